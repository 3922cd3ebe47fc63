//! Lines of the common and the combined format, and their neighbours.

use super::{Common, CommonLayout};
use crate::input::format::words::tests::{fields as fields_of, wanted};
use crate::input::time::calendar::SECOND;

/// The time in seconds and these fields of a line.
fn fields<const N: usize>(line: &str, names: [&str; N]) -> Result<(i64, [Option<String>; N]), String> {
    let mut format = Common::new(&wanted(&names), CommonLayout::NAMES).expect("known fields");
    let (time, values) = fields_of(&mut format, line, N)?;
    Ok((time / SECOND, values.try_into().expect("one for each name")))
}

fn client(line: &str) -> Result<(i64, [Option<String>; 1]), String> {
    fields(line, ["client"])
}

#[test]
fn every_field_is_found() {
    let line = r#"a id a b [01/Jan/1970:00:00:09 +0000] "GET /p?q=\"1 HTTP/1.1" 200 17 "r\"f" "agent""#;
    let names = [
        "client", "ident", "user", "request", "method", "target", "path", "protocol", "status", "size",
        "referer", "agent",
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
        fields(line, names),
        Ok((9, expected.map(|text| Some(text.into()))))
    );
    // The common format has no referer and no agent, and a request may be any text.
    let line = r#"a - - [01/Jan/1970:00:00:09 +0000] "-" 200 -"#;
    let some = |text: &str| Some(text.to_string());
    assert_eq!(
        fields(line, ["method", "path", "size", "referer", "agent"]),
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
        assert_eq!(fields(&line, ["user"]), Ok((9, [Some(user.into())])), "{line}");
    }
}

#[test]
fn missing_parts_are_named_with_their_column() {
    // The column, the missing part and the line, in which {S} stands for the time.
    for case in "\
        1|no client address|\n\
        8|no identity|1.2.3.4\n\
        9|no identity|1.2.3.4 \n\
        1|no client address| - - {S} \"GET /\" 200 5\n\
        1|no client address|h\u{f6}st - - {S} \"GET /\" 200 5\n\
        1|no client address|a\u{1b}[1m - - {S} \"GET /\" 200 5\n\
        10|no user and [time]|1.2.3.4 -\n\
        11|no user and [time]|1.2.3.4 - me\n\
        9|no identity|1.2.3.4  - {S} \"GET /\" 200 5\n\
        11|no user and [time]|1.2.3.4 - {S} \"GET /\" 200 5\n\
        11|no user and [time]|1.2.3.4 - - 01/Jan/1970:00:00:09 +0000 \"GET /\" 200 5\n\
        11|no user and [time]|1.2.3.4 - - [9] \"GET /\" 200 5\n\
        14|invalid time: \"31/Feb/1970:00:00:09 +0000\" (expected an existing time|\
        1.2.3.4 - - [31/Feb/1970:00:00:09 +0000] \"GET /\" 200 5\n\
        41|no quoted request|1.2.3.4 - - {S}\n\
        41|no quoted request|1.2.3.4 - - {S} GET / 200 5\n\
        43|a second request|1.2.3.4 - - {S} \"GET /a1.2.3.4 - - {S} \"GET /\" 200 5\n\
        62|a second request|1.2.3.4 - - {S} \"GET /\" 2001.2.3.4 - - {S} \"GET /\" 200 5"
        .lines()
    {
        let case = case.replace("{S}", "[01/Jan/1970:00:00:09 +0000]");
        let [column, missing, line] = case.splitn(3, '|').collect::<Vec<_>>()[..] else {
            panic!("no three parts: {case}");
        };
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
    // The path, the status, the size and the agent; an empty one is missing.
    for (rest, values) in [
        (r#""GET /" - 5 "-" "x""#, ["/", "-", "5", "x"]),
        (r#""GET /" 0 5 "-" "x""#, ["/", "0", "5", "x"]),
        (r#""GET /" 20 5"#, ["/", "20", "5", ""]),
        (r#""GET /" 2000 5 "-" "x""#, ["/", "2000", "", "x"]),
        (r#""GET /" %!d(<nil>) 5 "-" "x""#, ["/", "%!d(<nil>)", "5", "x"]),
        (r#""GET /" "" "" "-" "x""#, ["/", "", "", "x"]),
        (r#""GET /" 200 1,024 "-" "x""#, ["/", "200", "1,024", "x"]),
        (r#""GET /" 200"#, ["/", "200", "", ""]),
        (r#""GET /" 200 "#, ["/", "200", "", ""]),
        (r#""GET /""#, ["/", "", "", ""]),
        (r#""GET /\" 200 5 "-" "x""#, ["/\\", "200", "5", "x"]),
        (
            r#""GET /"a"b HTTP/1.1" 200 5 "-" "x""#,
            ["/\"a\"b", "200", "5", "x"],
        ),
        (r#""GET /aa"#, ["/aa", "", "", ""]),
        (r#""GET /aa\"#, ["/aa\\", "", "", ""]),
        (r#""GET /" 200 5 "-" "cut"#, ["/", "200", "5", ""]),
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
            let values = values.map(|value| Some(value.to_owned()).filter(|value| !value.is_empty()));
            assert_eq!(
                fields(&line, ["path", "status", "size", "agent"]),
                Ok((9, values)),
                "{line}"
            );
            assert_eq!(client(&line), Ok((9, [Some("1.2.3.4".to_owned())])), "{line}");
        }
    }
}

#[test]
fn the_client_is_an_address_behind_a_virtual_host() {
    let rest = r#"- me [01/Jan/1970:00:00:09 +0000] "GET /" 200 5"#;
    let of = |first: &str, names: bool, vhost: bool| {
        let layout = CommonLayout { names, vhost };
        let mut format = Common::new(&wanted(&["client", "vhost", "user"]), layout).expect("known fields");
        let (_, values) = fields_of(&mut format, &format!("{first} {rest}"), 3)?;
        let [client, host, user] = [0, 1, 2].map(|at: usize| values[at].clone().unwrap_or_default());
        assert_eq!(user, "me");
        Ok::<_, String>(format!("{client} {host}"))
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
