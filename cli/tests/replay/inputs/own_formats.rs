//! Formats of the command line, and formats in columns.

use crate::log::{access, clock, twenty};
use crate::random::Random;
use crate::tool::{assert_error, assert_half_denied, replay, stderr, texts};

#[test]
fn failed_logins_are_found_by_a_pattern() {
    let pattern = r"--pattern=Failed\spassword\sfor\s.*\sfrom\s(?<address>\S+)";
    let log = twenty(|number| {
        format!(
            "May 17 {} web sshd[7]: Failed password for invalid user x from 198.51.100.9 port {number} ssh2\n\
             May 17 {} web sshd[7]: Connection closed",
            clock(number),
            clock(number)
        )
    });
    let object = assert_half_denied(&format!("{pattern} --year 2015 --key address"), &log);
    assert_eq!(
        texts(&object, "notes"),
        [
            "timestamps without a time zone are taken as UTC (--utc-offset sets another)",
            "20 lines are no requests of the format"
        ]
    );
    assert_half_denied(&format!("{pattern} --year 2015 --key host,client"), &log);
    // Without the group `time` a request has no time.
    let plain = twenty(|number| format!("at=2015-05-17T{}Z from=198.51.100.9 failed", clock(number)));
    assert_half_denied(r"--pattern=^at=(?<time>\S+)\sfrom=(?<client>\S+)", &plain);
    assert_error(
        r"--pattern=from=(?<client>\S+)",
        &plain,
        "no group called time, and no time before the lines",
    );
    assert_error(
        r"--pattern=from=(?<client",
        &plain,
        "invalid --pattern: regex parse error",
    );
    assert_error(
        r"--pattern=at=(?<time>\S+)",
        &plain,
        "invalid field: \"client\" (expected a field of --pattern: time)",
    );
    assert_error(
        r"--pattern=on=(?<time>\S+)\s(?<client>\S+)",
        &plain,
        "20 lines are no requests of the format",
    );
}

#[test]
fn lines_are_read_by_a_log_format() {
    let format = "--log-format=$remote_addr,$request_id,[$time_local],\"$request\",$status";
    let log = |before: &str| {
        twenty(|number| {
            format!(
                "{before}198.51.100.9,x,[17/May/2015:{} +0000],\"GET /a HTTP/1.1\",200",
                clock(number)
            )
        })
    };
    assert_half_denied(format, &log(""));
    assert_half_denied(&format!("{format} --key request_id,path"), &log(""));
    assert_half_denied(format, &log("2015-05-17T10:05:03.1Z stdout F "));
    assert_half_denied(format, &log("<190>May 17 10:05:03 web nginx: "));
    // Without a time of its own, a request has that of the line around it.
    let timeless = twenty(|number| format!("May 17 {} web nginx: 198.51.100.9,GET /a", clock(number)));
    let object = assert_half_denied("--log-format=$remote_addr,$request --year 2015", &timeless);
    assert_eq!(object["from"], 1_431_857_100_000_i64);
    assert_error(format, &log("- "), "not a line of --log-format");
    assert_error(
        "--log-format=$remote_addr",
        &log(""),
        "invalid --log-format: no time",
    );
}

/// Every format reads damaged lines of every other format without a panic, and counts each line once.
#[test]
fn damaged_lines_of_any_format_are_counted() {
    let line = |number: usize| access("198.51.100.9", number);
    let inner = |number: usize| line(number).replace('"', "\\\"");
    let logs = [
        "time,client,agent\r\n".to_owned()
            + &twenty(|number| format!("2015-05-17T{}Z,198.51.100.9,\"a, \"\"b\"\"; c\"", clock(number))),
        twenty(|number| {
            format!("{{\"ts\":14318571{number:02}.5,\"ip\":\"198.51.100.9\",\"o\":{{\"n\":[1,{{}}]}}}}")
        }),
        twenty(|number| format!("www.example.com:443 {}", line(number))),
        twenty(|number| {
            format!(
                "<190>1 2015-05-17T10:05:03Z web nginx 1 - [a b=\"c\"] {}",
                line(number)
            )
        }),
        twenty(|number| format!("May 17 {} web nginx[1]: {}", clock(number), line(number))),
        twenty(|number| {
            format!(
                "2015-05-17T10:05:03.1Z stdout {} {}",
                ["F", "P"][number % 2],
                line(number)
            )
        }),
        twenty(|number| {
            format!(
                r#"{{"log":"{}\n","stream":"stdout","time":"2015-05-17T10:05:03Z"}}"#,
                inner(number)
            )
        }),
        twenty(|number| {
            format!(
                r#"{{"__REALTIME_TIMESTAMP":"1431857103000000","MESSAGE":"{}"}}"#,
                inner(number)
            )
        }),
        String::from("#Fields: date time c-ip cs-method\n")
            + &twenty(|number| format!("2015-05-17 {} 198.51.100.9 GET", clock(number))),
        twenty(|number| {
            format!(
                "time=2015-05-17T{}Z ip=198.51.100.9 msg=\"a \\\" b\"",
                clock(number)
            )
        }),
        twenty(|number| {
            format!(
                "h2 2015-05-17T{}.1Z app/web/5 198.51.100.9:1 10.0.0.1:80 0 0 0 200 200 0 57 \"GET https://h/a HTTP/2\" \"c\" - -",
                clock(number)
            )
        }),
        twenty(|number| {
            format!(
                "198.51.100.9:1 [17/May/2015:{}.655] in s/s 1/0/3/6/9 200 2 - - ---- 1/1/1/1/0 0/0 {{a}} \"GET /a HTTP/1.1\"",
                clock(number)
            )
        }),
    ];
    let formats = "auto common combined vhost json csv logfmt w3c alb elb s3 envoy haproxy caddy traefik syslog rfc5424 docker cri \
                   timed journald nlb istio proxy-manager";
    let mut random = Random::new(61);
    for log in &logs {
        for format in formats.split_whitespace() {
            let mut bytes = log.clone().into_bytes();
            for _ in 0..12 {
                let at = random.index(bytes.len());
                match random.below(4) {
                    0 => bytes[at] = random.below(256) as u8,
                    1 => drop(bytes.remove(at)),
                    2 => bytes.insert(at, random.one_of(b"\"\\[]{},:\n 9<>")),
                    _ => bytes.truncate(bytes.len() - random.index(9)),
                }
            }
            let output = replay(&format!("--lenient --format {format}"), &bytes);
            let message = stderr(&output);
            assert!(
                !message.contains("panicked") && matches!(output.status.code(), Some(0 | 2)),
                "{format}: {message}"
            );
            if output.status.code() == Some(0) {
                let object = crate::tool::json(&output);
                let count = |name: &str| object[name].as_u64().unwrap();
                let others: u64 = texts(&object, "notes")
                    .iter()
                    .filter_map(|note| {
                        note.strip_suffix(" lines are no requests of the format")?
                            .parse::<u64>()
                            .ok()
                    })
                    .sum();
                let read = count("requests") + count("unreadable") + others;
                // Headers and blank lines are not counted. A message that the end of the input cuts is counted once more.
                assert!(
                    read <= count("lines") + 1 && read + 4 >= count("lines"),
                    "{format}: {object}"
                );
            }
        }
    }
}
