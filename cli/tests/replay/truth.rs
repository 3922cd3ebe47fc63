//! No wrong answer without a word: formats near the known ones are read exactly or refused with a reason.

use core::fmt::Write as _;
use std::process::Output;

use serde_json::Value;

use crate::tool::{json, on_pipe, stderr, tool};

/// Twenty requests of one client within a minute.
pub(crate) fn twenty(of: impl Fn(usize) -> String) -> String {
    (0..20).map(|number| of(number) + "\n").collect()
}

/// The second of a request as `10:05:03`.
pub(crate) fn clock(number: usize) -> String {
    format!("10:05:{number:02}")
}

const REST: &str = "\"GET /a HTTP/1.1\" 200 57 \"-\" \"curl/8.0\"";

/// An access line of a client.
pub(crate) fn access(first: &str, number: usize) -> String {
    format!("{first} - - [17/May/2015:{} +0000] {REST}", clock(number))
}

pub(crate) fn replay(args: &str, input: impl AsRef<[u8]>) -> Output {
    on_pipe(
        &mut tool(&format!("--json --quiet --rule 10/60s {args}"), None),
        input,
    )
}

/// Ten of twenty requests of one client are denied.
pub(crate) fn is_exact(args: &str, input: &str) -> Value {
    let object = json(&replay(args, input));
    assert_eq!(
        (
            &object["requests"],
            &object["denied"],
            &object["rules"][0]["keys"]
        ),
        (&20.into(), &10.into(), &1.into()),
        "{args}: {input}"
    );
    object
}

/// The input is an error with this message.
pub(crate) fn is_refused(args: &str, input: &str, said: &str) {
    let output = replay(args, input);
    assert_eq!(output.status.code(), Some(2), "{input}");
    assert!(output.stdout.is_empty());
    assert!(
        stderr(&output).contains(said),
        "{said} is not in {}",
        stderr(&output)
    );
}

pub(crate) fn texts<'v>(object: &'v Value, name: &str) -> Vec<&'v str> {
    let texts = object[name].as_array().expect("a list").iter();
    texts.map(|text| text.as_str().expect("a text")).collect()
}

/// The client of these lines stands behind other words.
#[test]
fn lines_around_an_access_line_are_read() {
    let client = "198.51.100.9";
    for (name, first) in [
        ("vhost_combined", "www.example.com:443 "),
        ("vhost without a port", "www.example.com "),
        ("vhost that is an address", "203.0.113.5:8080 "),
        ("RFC 5424", "<190>1 2015-05-17T10:05:03.003Z web nginx 8710 - - "),
        (
            "RFC 5424 with data",
            r#"<190>1 2015-05-17T10:05:03Z web nginx - - [a@1 b="c]\"d"] "#,
        ),
        ("RFC 3164", "<190>May 17 10:05:03 web nginx: "),
        ("a file of syslog", "2015-05-17T10:05:03.25+00:00 web nginx[12]: "),
        ("CRI", "2015-05-17T10:05:03.123456789Z stdout F "),
        ("docker logs --timestamps", "2015-05-17T10:05:03.123456789Z "),
        ("none", ""),
    ] {
        let object = is_exact("", &twenty(|number| format!("{first}{}", access(client, number))));
        assert_eq!(object["keys"][0]["key"], client, "{name}");
    }
    // Each connection has a port of its own.
    is_exact(
        "",
        &twenty(|number| access(&format!("{client}:{}", 50_000 + number), number)),
    );
    let quoted = |text: String| text.replace('"', "\\\"");
    let docker = |number| {
        format!(
            r#"{{"log":"{}\n","stream":"stdout","time":"2015-05-17T{}.5Z"}}"#,
            quoted(access(client, number)),
            clock(number)
        )
    };
    is_exact("", &twenty(docker));
    is_exact("", &twenty(|number| docker(number).replace("\\n", "")));
    let journal = |number| {
        format!(
            r#"{{"__REALTIME_TIMESTAMP":"1431857{}00000","_HOSTNAME":"web","SYSLOG_IDENTIFIER":"nginx","MESSAGE":"{}"}}"#,
            1030 + number * 10,
            quoted(access(client, number))
        )
    };
    let object = is_exact("", &twenty(journal));
    assert!(
        texts(&object, "formats")[0].starts_with("journald, by line 1"),
        "{object}"
    );
    // Fields of both are keys.
    is_exact("--key program,client", &twenty(journal));
    is_exact("--key _HOSTNAME", &twenty(journal));
    is_exact("--key stream,path", &twenty(docker));
}

/// A long message is in several pieces, of which each stream has its own.
#[test]
fn pieces_of_a_message_are_joined() {
    let cri = twenty(|number| {
        let line = access("198.51.100.9", number);
        let (one, two) = line.split_at(20);
        format!(
            "2015-05-17T10:05:03.1Z stdout P {one}\n2015-05-17T10:05:03.2Z stderr F not a request\n2015-05-17T10:05:03.3Z stdout F {two}"
        )
    });
    let object = is_exact("--lenient", &cri);
    assert_eq!(object["unreadable"], 20);
    // A forged line in a long request is a piece of it.
    let forged = access("192.0.2.1", 1);
    let mut forging = twenty(|number| {
        format!(
            "2015-05-17T10:05:03.1Z stdout F {}",
            access("198.51.100.9", number)
        )
    });
    write!(
        forging,
        "2015-05-17T10:05:03.1Z stdout P 198.51.100.8 - - [17/May/2015:10:05:01 +0000] \"GET /aaa\n2015-05-17T10:05:03.1Z stdout F {forged}\n"
    )
    .unwrap();
    assert_eq!(is_exact("", &forging)["unreadable"], 1);
    let docker = twenty(|number| {
        let line = access("198.51.100.9", number).replace('"', "\\\"");
        let (one, two) = line.split_at(20);
        format!(
            "{{\"log\":\"{one}\",\"stream\":\"stdout\",\"time\":\"2015-05-17T10:05:03Z\"}}\n{{\"log\":\"{two}\\n\",\"stream\":\"stdout\",\"time\":\"2015-05-17T10:05:03Z\"}}"
        )
    });
    is_exact("", &docker);
    // The last message has no end.
    let cut = format!("{cri}2015-05-17T10:05:03.1Z stdout P 198.51");
    assert_eq!(is_exact("--lenient", &cut)["unreadable"], 21);
}

#[test]
fn other_lines_are_refused_with_a_reason() {
    for (first, said) in [
        (
            "10.9.9.9, 203.0.113.9",
            "no client address at the beginning: \"10.9.9.9,\"",
        ),
        ("10.9.9.9 203.0.113.9", "two addresses at the beginning"),
        (
            "www.example.com:443",
            "no client address at the beginning: \"www.example.com:443\"",
        ),
        ("-", "no client address at the beginning: \"-\""),
        ("- 203.0.113.9", "no client address at the beginning"),
        ("web-1 | 203.0.113.9", "no client address"),
        ("[pod/web/nginx] 203.0.113.9", "no client address"),
    ] {
        is_refused("", &twenty(|number| access(first, number)), said);
        // An input with a few of them says so.
        let mixed = twenty(|number| access("198.51.100.9", number)) + &access(first, 5);
        let object = is_exact("", &mixed);
        assert_eq!(object["unreadable"], 1);
        assert!(
            texts(&object, "warnings")[0].starts_with("1 of 21 lines (4.8 %) are unreadable"),
            "{object}"
        );
    }
    // The user is the address.
    let other = twenty(|number| access("10.0.0.1", number).replace("- - [", "- 203.0.113.9 ["));
    is_refused(
        "",
        &other,
        "line 1 is of no known format: the user is the address \"203.0.113.9\"",
    );
    is_exact("--format combined", &other);
    // Two addresses, of which the command line says which is the client.
    let two = twenty(|number| access("10.9.9.9 203.0.113.9", number));
    let object = is_exact("--format vhost", &two);
    assert_eq!(object["keys"][0]["key"], "203.0.113.9");
}

#[test]
fn host_names_are_clients_where_the_log_has_them() {
    let names = twenty(|number| access("in24.example.net", number));
    let object = is_exact("", &names);
    assert_eq!(
        texts(&object, "notes"),
        ["clients may be host names, as \"in24.example.net\" in line 1"]
    );
    let mixed = twenty(|number| access("in24.example.net", number)) + &access("198.51.100.9", 5);
    assert_eq!(json(&replay("", &mixed))["rules"][0]["keys"], 2);
}

#[test]
fn clients_of_named_fields_are_addresses() {
    let object = |fields: &str| {
        twenty(|number| {
            format!(
                "{{\"time\":\"2015-05-17T{}Z\",{}}}",
                clock(number),
                fields.replace("PORT", &(50_000 + number).to_string())
            )
        })
    };
    for fields in [
        r#""client":"198.51.100.9:PORT""#,
        r#""remote_addr":"198.51.100.9:PORT""#,
        r#""client":{"ip":"198.51.100.9","port":PORT}"#,
        r#""host":"web-1","remote_ip":"198.51.100.9""#,
        r#""client":"app","ip":"198.51.100.PORT""#,
        r#""ClientIP":"198.51.100.9","EdgeResponseStatus":200"#,
        r#""host":"198.51.100.9""#,
        r#""ip":"3f2a9c""#,
    ] {
        is_exact("", &object(fields));
    }
    for (fields, said) in [
        (r#""host":"web-1""#, "no client among the fields host, time"),
        (r#""path":"/""#, "no client among the fields path, time"),
        (r#""client":{"port":PORT}"#, "no client among the fields"),
        (r#""ip":"198.51.100.9, 10.0.0.1""#, "no client among the fields"),
    ] {
        is_refused("", &object(fields), said);
    }
    // One object whose client is no address.
    let mixed =
        object(r#""ip":"198.51.100.9""#) + r#"{"time":"2015-05-17T10:05:00Z","ip":"198.51.100.9, 10.0.0.1"}"#;
    assert_eq!(is_exact("", &mixed)["unreadable"], 1);
    // The report names a key with ports.
    let ports = json(&replay(
        "--key remote_addr",
        object(r#""remote_addr":"198.51.100.9:PORT""#),
    ));
    assert_eq!(ports["rules"][0]["keys"], 20);
    assert!(
        texts(&ports, "notes")[0].contains("each connection is a key"),
        "{ports}"
    );
    // Fields that are there twice.
    let twice = r#"{"time":"2015-05-17T10:05:00Z","ip":"198.51.100.9","ip":"198.51.100.8"}"#;
    assert_eq!(
        is_exact("", &(object(r#""ip":"198.51.100.9""#) + twice))["unreadable"],
        1
    );
    is_refused(
        "",
        "time,client,client\n1,a,b\n",
        "the columns 2 and 3 are both called \"client\"",
    );
    let logfmt = twenty(|number| {
        format!(
            "time=2015-05-17T{}Z level=info ip=198.51.100.9:{number}",
            clock(number)
        )
    });
    is_exact("", &logfmt);
    let twice = "time=2015-05-17T10:05:00Z level=info ip=198.51.100.9 ip=198.51.100.8";
    assert_eq!(is_exact("", &(logfmt + twice))["unreadable"], 1);
}

/// The message's own time counts, and the report names a year that was assumed.
#[test]
fn times_without_a_year_are_told() {
    // The header of each line is from another second, and of no known year.
    let late = twenty(|number| {
        format!(
            "Jan  2 10:0{}:00 web nginx: {}",
            number % 9,
            access("198.51.100.9", number)
        )
    });
    let object = is_exact("", &late);
    assert_eq!(
        (&object["from"], &object["to"]),
        (&1_431_857_100_000_i64.into(), &1_431_857_119_000_i64.into())
    );
    assert_eq!(texts(&object, "notes").len(), 0, "{object}");
    let plain = twenty(|number| format!("May 17 {} web sshd[7]: hello", clock(number)));
    let notes = is_exact("--key host", &plain);
    assert!(
        texts(&notes, "notes")[0].starts_with("timestamps have no year: the first is taken to be in "),
        "{notes}"
    );
    let args = "--key host --year 2015 --utc-offset=+01:00";
    assert_eq!(texts(&is_exact(args, &plain), "notes").len(), 0);
    is_refused("", &plain, "its messages are of no known format, as in \"hello\"");
    is_refused(
        "--utc-offset +25:00",
        &plain,
        "invalid --utc-offset: \"+25:00\" (expected -14:00 to +14:00",
    );
    // The time of a request is not its duration.
    let wrong = json(&replay(
        "",
        twenty(|number| format!(r#"{{"time":0.0{number},"ip":"198.51.100.9"}}"#)),
    ));
    assert!(
        texts(&wrong, "warnings")[0].starts_with("the first request is at 1970-01-01"),
        "{wrong}"
    );
}
