//! Holes in files, sockets as clients, and times in other forms: each request is counted.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::cases_lines::{ODD, keys};
use crate::log::clock;
use crate::tool::{json, on_pipe, texts, tool};

/// Writes a line with a time, the forms of a time, and the milliseconds by which it is later.
type Forms<'a> = (&'a dyn Fn(&str) -> String, &'a [&'a str], i64);

/// Writes a line of a client, by its number.
type LineOf<'a> = &'a dyn Fn(&str, usize) -> String;

#[test]
fn holes_of_zeros_are_left_out() {
    let hole = |size: usize| vec![0_u8; size];
    let line = |number: usize| {
        format!(
            "{ODD} - - [17/May/2015:{} +0000] \"GET /\" 200 5 \"-\" \"UA\"\n",
            clock(number)
        )
    };
    let object = |number: usize| {
        format!(
            "{{\"time\":\"2015-05-17T{}Z\",\"ip\":\"{ODD}\",\"status\":200}}\n",
            clock(number)
        )
    };
    let pair = |number: usize| format!("time=2015-05-17T{}Z ip={ODD} status=200\n", clock(number));
    let lines: [&dyn Fn(usize) -> String; 3] = [&line, &object, &pair];
    for line in lines {
        let text: Vec<u8> = (0..20).flat_map(|number| line(number).into_bytes()).collect();
        let (first, last) = text.split_at(line(0).len() * 7);
        for (name, content) in [
            ("before the first line", [&hole(1)[..], &text].concat()),
            ("of a page", [&hole(4096)[..], &text].concat()),
            ("longer than a line may be", [&hole(300_000)[..], &text].concat()),
            ("longer than any buffer", [&hole(5_000_000)[..], &text].concat()),
            ("between lines", [first, &hole(1000), last].concat()),
            ("after the last line", [&text[..], &hole(70_000)].concat()),
            (
                "instead of the last line end",
                [&text[..text.len() - 1], &hole(9)].concat(),
            ),
            (
                "instead of a line end",
                [&first[..first.len() - 1], &hole(100_000), last].concat(),
            ),
            (
                "in several places",
                [&hole(3)[..], first, &hole(17), last, &hole(5)].concat(),
            ),
            (
                "with a byte order mark",
                [&hole(700)[..], b"\xef\xbb\xbf", &text].concat(),
            ),
        ] {
            assert_eq!(keys("", &content), [(ODD.to_owned(), 20)], "a hole {name}");
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&content).unwrap();
            let compressed = encoder.finish().unwrap();
            assert_eq!(
                keys("", &compressed),
                [(ODD.to_owned(), 20)],
                "a compressed hole {name}"
            );
        }
    }
    // A client that sends a zero does not end its line.
    let zero = (0..20)
        .map(|number| line(number).replace("UA", "U\0\0A"))
        .collect::<String>();
    assert_eq!(keys("", zero.as_bytes()), [(ODD.to_owned(), 20)]);
}

#[test]
fn clients_on_sockets_and_in_brackets_are_read() {
    let haproxy = |client: &str, number: usize| {
        format!(
            "{client} [17/May/2015:{}.049] fe be/srv 0/0/0/0/0 200 125 - - ---- 0/0/0/0/0 0/0 \"POST /x HTTP/1.1\"\n",
            clock(number)
        )
    };
    let elb = |client: &str, number: usize| {
        format!(
            "2015-05-17T{}.945958Z web {client} 10.0.0.1:80 0.1 0.1 0.1 200 200 0 29 \"GET http://h:80/a HTTP/1.1\" \"c\" - -\n",
            clock(number)
        )
    };
    let combined = |client: &str, number: usize| {
        format!(
            "{client} - - [17/May/2015:{} +0000] \"GET /\" 200 5\n",
            clock(number)
        )
    };
    let alb = |client: &str, number: usize| {
        "http ".to_owned() + elb(client, number).trim_end() + " arn \"Root\" \"h\" \"-\" 1\n"
    };
    let formats: [LineOf; 4] = [&haproxy, &elb, &combined, &alb];
    // An address of IPv6 has several spellings.
    for (client, expected, numbers) in [
        ("unix:1", "unix:", 0..3),
        ("unix:12", "unix:", 0..4),
        ("unix:0", "unix:", 0..4),
        ("[2001:db8::5]:2817", "", 0..4),
        ("[::ffff:192.0.2.7]:80", "", 0..4),
        ("[fe80::1%eth0]:80", "", 0..4),
        ("2001:db8::5:2817", "", 0..2),
        ("192.0.2.7:2817", "192.0.2.7", 0..4),
    ] {
        for format in &formats[numbers] {
            let lines: String = (0..20).map(|number| format(client, number)).collect();
            let keys = keys("", lines.as_bytes());
            let is_expected = |name: &str| match expected {
                "" => name.contains(':') || name == ODD,
                _ => name == expected,
            };
            assert!(
                matches!(&keys[..], [(name, 20)] if is_expected(name)),
                "{keys:?}: {lines}"
            );
        }
    }
}

#[test]
fn times_in_other_forms_are_read() {
    // The time of the first request in milliseconds, by the forms of `10:05:00` on 17 May 2015 in UTC.
    const AT: i64 = 1_431_857_100_000;
    let combined = |time: &str| format!("{ODD} - - [{time}] \"GET /\" 200 5\n");
    let object = |time: &str| format!("{{\"ts\":{time},\"remote_ip\":\"{ODD}\",\"status\":200}}\n");
    let text = |time: &str| object(&format!("\"{time}\""));
    let pair = |time: &str| format!("ts=\"{time}\" ip={ODD} status=200\n");
    let forms: [Forms; 7] = [
        (
            &combined,
            &[
                "17/May/2015:10:05:00",
                "17/May/2015 10:05:00",
                "2015-05-17 10:05:00",
                "2015-05-17T10:05:00",
                "2015/05/17 10:05:00",
            ],
            7200,
        ),
        (
            &combined,
            &[
                "17/May/2015:10:05:00 UTC",
                "17/May/2015:10:05:00 GMT",
                "17/May/2015:10:05:00 Z",
                "17/May/2015:12:05:00 +02:00",
                "17/May/2015:10:05:00.000 +0000",
                "17/May/2015:10:05:00,000 UTC",
                "2015-05-17T10:05:00Z",
                "2015-05-17T10:05:00.000000Z",
                "2015-05-17 10:05:00.000 UTC",
                "2015-05-17T12:05:00+02:00",
            ],
            0,
        ),
        (
            &object,
            &[
                "1.4318571e+09",
                "1.431857100e9",
                "1.4318571E+9",
                "14318571.00e02",
                "1431857100e0",
                "1.4318571e12",
                "1.4318571e+15",
                "1.4318571e+18",
            ],
            0,
        ),
        (
            &text,
            &[
                "1.4318571e+09",
                "2015-05-17 10:05:00 UTC",
                "2015/05/17 10:05:00 +0000",
            ],
            0,
        ),
        (
            &text,
            &[
                "2015-05-17 10:05:00",
                "2015-05-17T10:05:00.000",
                "17/May/2015:10:05:00",
                "2015/05/17 10:05:00.000",
            ],
            7200,
        ),
        (
            &pair,
            &[
                "2015-05-17 10:05:00",
                "17/May/2015 10:05:00",
                "2015-05-17 10:05:00,000",
            ],
            7200,
        ),
        (
            &pair,
            &[
                "17/May/2015:10:05:00.000 GMT",
                "1.4318571e9",
                "2015-05-17 10:05:00 GMT",
            ],
            0,
        ),
    ];
    for (line, times, local) in forms {
        for time in times {
            let lines = line(time).repeat(20);
            let output = on_pipe(
                &mut tool("--json --quiet --rule 5/s --utc-offset=+02:00", None),
                &lines,
            );
            let object = json(&output);
            assert_eq!(
                (&object["requests"], &object["unreadable"]),
                (&20.into(), &0.into()),
                "{time}"
            );
            assert_eq!(object["from"], AT - local * 1000, "{time}");
            // Without the option, a note says what was assumed.
            let object = json(&on_pipe(&mut tool("--json --quiet --rule 5/s", None), &lines));
            assert_eq!(object["from"], AT, "{time}");
            let hints = texts(&object, "notes");
            let has_hint = hints
                .iter()
                .any(|note| note.contains("--utc-offset sets another"));
            assert_eq!(has_hint, local != 0, "{time}: {hints:?}");
        }
    }
    // The name of a zone has several meanings.
    for time in [
        "17/May/2015:10:05:00 CST",
        "17/May/2015:10:05:00 +9900",
        "2015-05-17 10:05:00 EST",
    ] {
        let output = on_pipe(&mut tool("--json --quiet --rule 5/s", None), combined(time));
        assert_eq!(output.status.code(), Some(2), "{time}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("invalid time"),
            "{time}"
        );
    }
}
