//! Formats that differ slightly from a known one: each input is read exactly, or is an error with the reason.

use core::fmt::Write as _;

use crate::log::{access, clock, docker, twenty};
use crate::tool::{assert_error, assert_fields, assert_half_denied, json, replay, texts};

/// These lines have other words before the access line, or contain it as a field.
#[test]
fn access_lines_within_other_formats_are_read() {
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
        let object = assert_half_denied("", &twenty(|number| format!("{first}{}", access(client, number))));
        assert_eq!(object["keys"][0]["key"], client, "{name}");
    }
    // Each connection has a port of its own.
    assert_half_denied(
        "",
        &twenty(|number| access(&format!("{client}:{}", 50_000 + number), number)),
    );
    let docker = |number| docker(&access(client, number), number);
    assert_half_denied("", &twenty(docker));
    assert_half_denied("", &twenty(|number| docker(number).replace("\\n", "")));
    let journal = |number| {
        let message = serde_json::Value::from(access(client, number));
        format!(
            r#"{{"__REALTIME_TIMESTAMP":"1431857{}00000","_HOSTNAME":"web","SYSLOG_IDENTIFIER":"nginx","MESSAGE":{message}}}"#,
            1030 + number * 10
        )
    };
    let object = assert_half_denied("", &twenty(journal));
    assert!(
        texts(&object, "formats")[0].starts_with("journald, by line 1"),
        "{object}"
    );
    // Fields of the envelope and of the message can be keys.
    assert_half_denied("--key program,client", &twenty(journal));
    assert_half_denied("--key _HOSTNAME", &twenty(journal));
    assert_half_denied("--key stream,path", &twenty(docker));
}

/// A long message is split into several pieces, which are joined for each stream.
#[test]
fn pieces_of_a_message_are_joined() {
    let cri = twenty(|number| {
        let line = access("198.51.100.9", number);
        let (one, two) = line.split_at(20);
        format!(
            "2015-05-17T10:05:03.1Z stdout P {one}\n2015-05-17T10:05:03.2Z stderr F not a request\n2015-05-17T10:05:03.3Z stdout F {two}"
        )
    });
    let object = assert_half_denied("--lenient", &cri);
    assert_eq!(object["unreadable"], 20);
    // A long request may contain text that looks like a line. That text is a piece of the request.
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
    assert_eq!(assert_half_denied("", &forging)["unreadable"], 1);
    let docker = twenty(|number| {
        let line = access("198.51.100.9", number).replace('"', "\\\"");
        let (one, two) = line.split_at(20);
        format!(
            "{{\"log\":\"{one}\",\"stream\":\"stdout\",\"time\":\"2015-05-17T10:05:03Z\"}}\n{{\"log\":\"{two}\\n\",\"stream\":\"stdout\",\"time\":\"2015-05-17T10:05:03Z\"}}"
        )
    });
    assert_half_denied("", &docker);
    // The last message has no end.
    let cut = format!("{cri}2015-05-17T10:05:03.1Z stdout P 198.51");
    assert_eq!(assert_half_denied("--lenient", &cut)["unreadable"], 21);
}

#[test]
fn other_lines_are_errors_with_a_reason() {
    for (first, message) in [
        (
            "10.9.9.9, 203.0.113.9",
            "line 1 is of a log with X-Forwarded-For in the first column",
        ),
        (
            "10.9.9.9 203.0.113.9",
            "line 1 is of a log with two addresses in the first columns",
        ),
        (
            "www.example.com:443",
            "no client address at the beginning: \"www.example.com:443\"",
        ),
        ("-", "no line has a client: the first column is \"-\""),
        (
            "- 203.0.113.9",
            "line 1 is of a log with two addresses in the first columns",
        ),
        ("web-1 | 203.0.113.9", "no client address"),
        ("[pod/web/nginx] 203.0.113.9", "no client address"),
    ] {
        assert_error("", &twenty(|number| access(first, number)), message);
        // An input with a few such lines has a warning.
        let mixed = twenty(|number| access("198.51.100.9", number)) + &access(first, 5);
        let object = assert_half_denied("", &mixed);
        assert_eq!(object["unreadable"], 1);
        assert!(
            texts(&object, "warnings")[0].starts_with("1 of 21 lines (4.8 %) are unreadable"),
            "{object}"
        );
    }
    // In these lines the client's address is in the place of the user.
    let other = twenty(|number| access("10.0.0.1", number).replace("- - [", "- 203.0.113.9 ["));
    assert_error(
        "",
        &other,
        "line 1 is of no known format: the user is the address \"203.0.113.9\"",
    );
    assert_half_denied("--format combined", &other);
    // Lines with two addresses are read if the command line states the format.
    let two = twenty(|number| access("10.9.9.9 203.0.113.9", number));
    let object = assert_half_denied("--format vhost", &two);
    assert_eq!(object["keys"][0]["key"], "203.0.113.9");
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
        assert_half_denied("", &object(fields));
    }
    for (fields, message) in [
        (r#""host":"web-1""#, "no client among the fields host, time"),
        (r#""path":"/""#, "no client among the fields path, time"),
        (r#""client":{"port":PORT}"#, "no client among the fields"),
        (r#""ip":"198.51.100.9, 10.0.0.1""#, "no client among the fields"),
        // Of the fields, also those of objects, the error names those with addresses.
        (
            r#""properties":{"clientIp":"198.51.100.9","more":{"socket":"10.0.0.1:PORT","bytes":5}},"list":[{"a":1}]"#,
            "no client among the fields list, properties.clientIp, properties.more.bytes, properties.more.socket, time \
             (expected an address, or --key FIELD; addresses for --alias client=FIELD are in properties.clientIp, properties.more.socket)",
        ),
    ] {
        assert_error("", &object(fields), message);
    }
    // So does the error without a time. An object may have very many fields.
    let started = r#"{"started_at":1431857103250,"client_ip":"198.51.100.9","more":{"created":1400000000,"status":200}}"#;
    assert_error(
        "",
        started,
        "or --time-field; times are in more.created, started_at)",
    );
    let fields: Vec<String> = (0..50).map(|number| format!("\"f{number:02}\":1")).collect();
    assert_error(
        "",
        &object(&fields.join(",")),
        "f38, f39 and 11 more (expected an address, or --key FIELD)",
    );
    // Lines of a server in the objects of a collector, whose own address is no client. Another field may have the client of the line.
    let collected = |fields: &str| {
        twenty(|number| {
            let (line, at) = (serde_json::json!(access("198.51.100.9", number)), clock(number));
            format!("{{\"@timestamp\":\"2015-05-17T{at}Z\",\"message\":{line}{fields}}}")
        })
    };
    for fields in [
        "",
        r#","host":"10.0.0.5""#,
        r#","source_ip":"10.0.0.5""#,
        r#","host":{"ip":"10.0.0.5"}"#,
    ] {
        let message = "the field \"message\" has lines of the common format, and their clients are in no known field: 198.51.100.9 - - [";
        assert_error("", &collected(fields), message);
    }
    assert_half_denied("--key host", &collected(r#","host":"10.0.0.5""#));
    let from_line = assert_half_denied(
        "",
        &collected(r#","host":"10.0.0.5","clientip":"::ffff:198.51.100.9""#),
    );
    assert_eq!(from_line["keys"][0]["key"], "198.51.100.9");
    // The client of one object is no address.
    let mixed =
        object(r#""ip":"198.51.100.9""#) + r#"{"time":"2015-05-17T10:05:00Z","ip":"198.51.100.9, 10.0.0.1"}"#;
    assert_eq!(assert_half_denied("", &mixed)["unreadable"], 1);
    // A note states that the keys contain ports.
    let ports = json(&replay(
        "--key remote_addr",
        object(r#""remote_addr":"198.51.100.9:PORT""#),
    ));
    assert_eq!(ports["rules"][0]["keys"], 20);
    assert!(
        texts(&ports, "notes")[0].contains("a key for each connection"),
        "{ports}"
    );
    // Repeated fields are errors.
    let twice = r#"{"time":"2015-05-17T10:05:00Z","ip":"198.51.100.9","ip":"198.51.100.8"}"#;
    assert_eq!(
        assert_half_denied("", &(object(r#""ip":"198.51.100.9""#) + twice))["unreadable"],
        1
    );
    assert_error(
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
    assert_half_denied("", &logfmt);
    let twice = "time=2015-05-17T10:05:00Z level=info ip=198.51.100.9 ip=198.51.100.8";
    assert_eq!(assert_half_denied("", &(logfmt + twice))["unreadable"], 1);
}

/// The time of the message is used, not that of the header. An assumed year is a note.
#[test]
fn an_assumed_year_is_a_note() {
    // The header of each line has another time than the message, and no year.
    let late = twenty(|number| {
        format!(
            "Jan  2 10:0{}:00 web nginx: {}",
            number % 9,
            access("198.51.100.9", number)
        )
    });
    let object = assert_half_denied("", &late);
    assert_fields(
        &object,
        "from to",
        [1_431_857_100_000_i64, 1_431_857_119_000_i64],
        "",
    );
    assert_eq!(texts(&object, "notes").len(), 0, "{object}");
    let plain = twenty(|number| format!("May 17 {} web sshd[7]: hello", clock(number)));
    let notes = assert_half_denied("--key host", &plain);
    assert!(
        texts(&notes, "notes")[0].starts_with("timestamps have no year: the first is taken to be in "),
        "{notes}"
    );
    let args = "--key host --year 2015 --utc-offset=+01:00";
    assert_eq!(texts(&assert_half_denied(args, &plain), "notes").len(), 0);
    assert_error("", &plain, "its messages are of no known format, as in \"hello\"");
    assert_error(
        "--utc-offset +25:00",
        &plain,
        "invalid --utc-offset: \"+25:00\" (expected -14:00 to +14:00",
    );
    // A duration is not taken as the time of the request.
    let wrong = json(&replay(
        "",
        twenty(|number| format!(r#"{{"time":0.0{number},"ip":"198.51.100.9"}}"#)),
    ));
    assert!(
        texts(&wrong, "warnings")[0].starts_with("the first request is at 1970-01-01"),
        "{wrong}"
    );
}
