//! Lines of the common and the combined format, and their neighbours.

use super::{CommonLayout, parse};
use crate::input::format::common::field::CommonField;
use crate::input::row::Row;
use crate::input::time::calendar::SECOND;
use crate::input::time::timestamp::TimestampParser;

const NAMES: CommonLayout = CommonLayout {
    names: true,
    vhost: false,
};

/// The time in seconds and these fields of a line.
fn fields<const N: usize>(
    line: &str,
    wanted: [CommonField; N],
) -> Result<(i64, [Option<String>; N]), String> {
    let mut timestamps = TimestampParser::detecting();
    let mut row = Row::new(N);
    let places: Vec<_> = wanted.into_iter().zip(0..).collect();
    parse(line.as_bytes(), NAMES, &mut timestamps, &places, &mut row).map_err(|error| error.to_string())?;
    let text = |at| row.get(at).map(|text| String::from_utf8_lossy(text).into_owned());
    Ok((row.time / SECOND, core::array::from_fn(text)))
}

fn client(line: &str) -> Result<(i64, [Option<String>; 1]), String> {
    fields(line, [CommonField::Client])
}

#[test]
fn both_formats_are_parsed() {
    for (line, address) in [
        (
            r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET / HTTP/1.1" 200 5"#,
            "1.2.3.4",
        ),
        (
            r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET / HTTP/1.1" 304 -"#,
            "1.2.3.4",
        ),
        (
            r#"::1 - - [01/Jan/1970:01:00:09 +0100] "-" 408 0 "-" "curl/8""#,
            "::1",
        ),
        (
            r#"a.example id me [01/Jan/1970:00:00:09 +0000] "" 400 0 "r" "a \" b" 0.01"#,
            "a.example",
        ),
        (
            r#"x - - [01/Jan/1970:00:00:09 +0000] "GET /\"q\\" 200 1 cut "off"#,
            "x",
        ),
    ] {
        assert_eq!(client(line), Ok((9, [Some(address.into())])), "{line}");
    }
}

#[test]
fn every_field_is_found() {
    use CommonField::{
        Agent, Client, Ident, Method, Path, Protocol, Referer, Request, Size, Status, Target, User,
    };
    let line = r#"a id a b [01/Jan/1970:00:00:09 +0000] "GET /p?q=\"1 HTTP/1.1" 200 17 "r\"f" "agent""#;
    let wanted = [
        Client, Ident, User, Request, Method, Target, Path, Protocol, Status, Size, Referer, Agent,
    ];
    let expected = [
        "a",
        "id",
        "a b",
        r#"GET /p?q=\"1 HTTP/1.1"#,
        "GET",
        r#"/p?q=\"1"#,
        "/p",
        "HTTP/1.1",
        "200",
        "17",
        r#"r\"f"#,
        "agent",
    ];
    assert_eq!(
        fields(line, wanted),
        Ok((9, expected.map(|text| Some(text.into()))))
    );
    // The common format has no referer and no agent, and a request may be any text.
    let line = r#"a - - [01/Jan/1970:00:00:09 +0000] "-" 200 -"#;
    let some = |text: &str| Some(text.to_string());
    assert_eq!(
        fields(line, [Method, Path, Size, Referer, Agent]),
        Ok((9, [some("-"), some(""), some("-"), None, None]))
    );
}

#[test]
fn a_user_name_may_have_spaces_and_brackets() {
    for user in [
        "John Doe",
        "[",
        "a [b] c",
        "x [01/Jan/1970:00:00:01 +0000] y",
        r#"x [01/Jan/1970:00:00:01 +0000] \"GET"#,
    ] {
        let line = format!(r#"1.2.3.4 - {user} [01/Jan/1970:00:00:09 +0000] "GET /" 200 5"#);
        assert_eq!(
            fields(&line, [CommonField::User]),
            Ok((9, [Some(user.into())])),
            "{line}"
        );
    }
}

#[test]
fn missing_parts_are_named_with_their_column() {
    let stamp = "[01/Jan/1970:00:00:09 +0000]";
    for (line, column, missing) in [
        ("", 1, "no client address"),
        ("1.2.3.4", 8, "no identity"),
        ("1.2.3.4 ", 9, "no identity"),
        (&format!(r#" - - {stamp} "GET /" 200 5"#), 1, "no client address"),
        (
            &format!("h\u{f6}st - - {stamp} \"GET /\" 200 5"),
            1,
            "no client address",
        ),
        (
            &format!("a\u{1b}[1m - - {stamp} \"GET /\" 200 5"),
            1,
            "no client address",
        ),
        ("1.2.3.4 -", 10, "no user and [time]"),
        ("1.2.3.4 - me", 11, "no user and [time]"),
        (&format!(r#"1.2.3.4  - {stamp} "GET /" 200 5"#), 9, "no identity"),
        (
            &format!(r#"1.2.3.4 - {stamp} "GET /" 200 5"#),
            11,
            "no user and [time]",
        ),
        (
            r#"1.2.3.4 - - 01/Jan/1970:00:00:09 +0000 "GET /" 200 5"#,
            11,
            "no user and [time]",
        ),
        (r#"1.2.3.4 - - [9] "GET /" 200 5"#, 11, "no user and [time]"),
        (
            r#"1.2.3.4 - - [31/Feb/1970:00:00:09 +0000] "GET /" 200 5"#,
            14,
            "invalid time: \"31/Feb/1970:00:00:09 +0000\" (expected an existing time",
        ),
        (&format!("1.2.3.4 - - {stamp}"), 41, "no quoted request"),
        (
            &format!("1.2.3.4 - - {stamp} GET / 200 5"),
            41,
            "no quoted request",
        ),
        (
            &format!(r#"1.2.3.4 - - {stamp} "GET /a1.2.3.4 - - {stamp} "GET /" 200 5"#),
            43,
            "a second request",
        ),
        (
            &format!(r#"1.2.3.4 - - {stamp} "GET /" 2001.2.3.4 - - {stamp} "GET /" 200 5"#),
            62,
            "a second request",
        ),
    ] {
        let error = client(line).expect_err(line);
        assert!(
            error.starts_with(&format!("column {column}: {missing}")),
            "{line}: {error}"
        );
    }
}

/// A client may send what a server does not escape, and a line may be cut.
#[test]
fn a_line_is_read_whatever_follows_its_request() {
    use CommonField::{Agent, Client, Path, Size, Status};
    let some = |text: &str| Some(text.to_owned());
    for (rest, path, status, size, agent) in [
        (
            r#""GET /" - 5 "-" "x""#,
            some("/"),
            some("-"),
            some("5"),
            some("x"),
        ),
        (
            r#""GET /" 0 5 "-" "x""#,
            some("/"),
            some("0"),
            some("5"),
            some("x"),
        ),
        (r#""GET /" 20 5"#, some("/"), some("20"), some("5"), None),
        (
            r#""GET /" 2000 5 "-" "x""#,
            some("/"),
            some("2000"),
            None,
            some("x"),
        ),
        (
            r#""GET /" %!d(<nil>) 5 "-" "x""#,
            some("/"),
            some("%!d(<nil>)"),
            some("5"),
            some("x"),
        ),
        (r#""GET /" "" "" "-" "x""#, some("/"), None, None, some("x")),
        (
            r#""GET /" 200 1,024 "-" "x""#,
            some("/"),
            some("200"),
            some("1,024"),
            some("x"),
        ),
        (r#""GET /" 200"#, some("/"), some("200"), None, None),
        (r#""GET /" 200 "#, some("/"), some("200"), None, None),
        (r#""GET /""#, some("/"), None, None, None),
        (
            r#""GET /\" 200 5 "-" "x""#,
            some("/\\"),
            some("200"),
            some("5"),
            some("x"),
        ),
        (
            r#""GET /"a"b HTTP/1.1" 200 5 "-" "x""#,
            some("/\"a\"b"),
            some("200"),
            some("5"),
            some("x"),
        ),
        (r#""GET /aa"#, some("/aa"), None, None, None),
        (r#""GET /aa\"#, some("/aa\\"), None, None, None),
        (
            r#""GET /" 200 5 "-" "cut"#,
            some("/"),
            some("200"),
            some("5"),
            None,
        ),
    ] {
        for time in [
            "01/Jan/1970:00:00:09 +0000",
            "01/Jan/1970:00:00:09",
            "01/Jan/1970 00:00:09",
            "01/Jan/1970:00:00:09.000 +0000",
            "01/Jan/1970:00:00:09 UTC",
            "1970-01-01T00:00:09Z",
            "1970-01-01T00:00:09.000000+00:00",
            "1970-01-01 00:00:09",
            "1970/01/01 00:00:09",
        ] {
            let line = format!("1.2.3.4 - x [ [y] z [{time}] {rest}");
            let values = [
                some("1.2.3.4"),
                path.clone(),
                status.clone(),
                size.clone(),
                agent.clone(),
            ];
            assert_eq!(
                fields(&line, [Client, Path, Status, Size, Agent]),
                Ok((9, values)),
                "{line}"
            );
        }
    }
}

#[test]
fn the_client_is_an_address_behind_a_virtual_host() {
    use CommonField::{Client, Host, User};
    let rest = r#"- me [01/Jan/1970:00:00:09 +0000] "GET /" 200 5"#;
    let of = |first: &str, names: bool, vhost: bool| {
        let line = format!("{first} {rest}");
        let mut timestamps = TimestampParser::detecting();
        let mut row = Row::new(3);
        let places = [(Client, 0), (Host, 1), (User, 2)];
        parse(
            line.as_bytes(),
            CommonLayout { names, vhost },
            &mut timestamps,
            &places,
            &mut row,
        )
        .map_err(|error| error.to_string())?;
        let text = |at| {
            row.get(at)
                .map_or(String::new(), |text| String::from_utf8_lossy(text).into_owned())
        };
        assert_eq!(text(2), "me");
        Ok::<_, String>(format!("{} {}", text(0), text(1)))
    };
    for (first, names, vhost, expected) in [
        ("1.2.3.4", false, false, "1.2.3.4 "),
        ("1.2.3.4:5678", false, false, "1.2.3.4 "),
        (
            "www.example.com:443 1.2.3.4",
            false,
            false,
            "1.2.3.4 www.example.com:443",
        ),
        ("www.example.com 1.2.3.4", true, false, "1.2.3.4 www.example.com"),
        ("203.0.113.5:443 1.2.3.4", false, false, "1.2.3.4 203.0.113.5:443"),
        ("203.0.113.5 1.2.3.4", false, true, "1.2.3.4 203.0.113.5"),
        ("in24.example.net", true, false, "in24.example.net "),
    ] {
        assert_eq!(of(first, names, vhost), Ok(expected.to_owned()), "{first}");
    }
    for (first, names, vhost, said) in [
        (
            "10.9.9.9, 203.0.113.9",
            false,
            false,
            "no client address at the beginning: \"10.9.9.9,\"",
        ),
        ("10.9.9.9, 203.0.113.9", true, true, "no client address"),
        (
            "10.9.9.9 203.0.113.9",
            false,
            false,
            "two addresses at the beginning",
        ),
        ("www.example.com", false, false, "no client address"),
        ("www.example.com:443", true, false, "no client address"),
        ("1.2.3.4", false, true, "no client address"),
        ("-", true, false, "no client address"),
        ("web-1 |", true, false, "no client address"),
    ] {
        let error = of(first, names, vhost).expect_err(first);
        assert!(error.contains(said), "{first}: {error}");
    }
}
