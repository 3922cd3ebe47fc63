//! Lines with a fault in a field that no rule needs: each request is counted.

use std::path::Path;

use crate::log::clock;
use crate::tool::{assert_fields, json, on_pipe, run, texts, tool};

/// A file of `cases/logs`, further arguments, and the expected requests, clients and format. No line is unreadable.
const FILES: [(&str, &str, u64, u64, &str); 11] = [
    ("haproxy-unix.log", "", 20, 1, "syslog, by line 1"),
    ("agent-backslash-x.json", "", 30, 16, "json, by line 1"),
    ("nginx-dash-number.json", "", 40, 2, "json, by line 1"),
    ("status-dash.log", "", 40, 1, "combined, by line 1"),
    ("status-zero.log", "", 40, 2, "combined, by line 1"),
    ("nul-hole-json.log", "", 40, 2, "caddy, by line 1"),
    ("nul-hole-json.log.gz", "", 40, 2, "caddy, by line 1"),
    ("nul-hole-combined.log", "", 40, 2, "combined, by line 1"),
    ("elb-ipv6-brackets.log", "", 42, 2, "elb, by line 1"),
    ("time-with-exponent.json", "", 40, 1, "json, by line 1"),
    (
        "time-without-zone.log",
        "--utc-offset=+02:00",
        40,
        1,
        "combined, by line 1",
    ),
];

#[test]
fn every_request_of_the_files_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/logs");
    for (file, args, requests, clients, format) in FILES {
        let path = folder.join(file);
        let args = format!("replay --json --quiet --rule 5/s {args}");
        let words = args.split_whitespace().map(std::ffi::OsStr::new);
        let object = json(&run(words.chain([path.as_os_str()])));
        let found = (
            &object["requests"],
            &object["unreadable"],
            &object["rules"][0]["keys"],
        );
        assert_eq!(found, (&requests.into(), &0.into(), &clients.into()), "{file}");
        assert!(
            texts(&object, "formats")[0].starts_with(format),
            "{file}: {object}"
        );
    }
}

/// The keys of the report with their requests, after a check that no line is unreadable.
pub(crate) fn keys(args: &str, input: &[u8]) -> Vec<(String, u64)> {
    let shown = String::from_utf8_lossy(&input[..input.len().min(2000)]).into_owned();
    let output = on_pipe(
        &mut tool(&format!("--json --quiet --rule 100/s {args}"), None),
        input,
    );
    assert_eq!(
        output.status.code(),
        Some(0),
        "{shown}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let object = json(&output);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(object["unreadable"], 0, "{shown}: {message}");
    let keys = object["keys"].as_array().unwrap().iter();
    let mut keys: Vec<(String, u64)> = keys
        .map(|key| {
            let name = key["key"].as_str().unwrap().to_owned();
            (name, key["requests"].as_u64().unwrap())
        })
        .collect();
    keys.sort();
    keys
}

/// Lines of a format: the text before them, and a line, in which {T} stands for the time of day, {C} for the client, and {X}
/// for the fault of one client, or for the text of the other one.
struct Lines {
    header: &'static str,
    line: &'static str,
    good: &'static str,
    /// Whether the format is detected also if all lines have the fault.
    alone: bool,
    faults: &'static [&'static [u8]],
}

pub(crate) const GOOD: &str = "198.51.100.1";
pub(crate) const ODD: &str = "192.0.2.7";

impl Lines {
    fn text(&self, client: &str, fault: &[u8], number: usize) -> Vec<u8> {
        let line = self.line.replace("{T}", &clock(number)).replace("{C}", client);
        let (before, after) = line.split_once("{X}").unwrap();
        [before.as_bytes(), fault, after.as_bytes(), b"\n"].concat()
    }

    fn check(&self) {
        for fault in self.faults {
            let header = self.header.as_bytes();
            let odd = |number| self.text(ODD, fault, number);
            let both = (0..20).map(|number| match number % 2 {
                0 => self.text(GOOD, self.good.as_bytes(), number),
                _ => odd(number),
            });
            let mixed = [header, &both.collect::<Vec<_>>().concat()].concat();
            let expected = [(ODD.to_owned(), 10), (GOOD.to_owned(), 10)];
            assert_eq!(
                keys("--lenient", &mixed),
                expected,
                "{}",
                String::from_utf8_lossy(fault)
            );
            if self.alone {
                let all = [header, &(0..20).map(odd).collect::<Vec<_>>().concat()].concat();
                assert_eq!(
                    keys("", &all),
                    [(ODD.to_owned(), 20)],
                    "{}",
                    String::from_utf8_lossy(fault)
                );
            }
        }
    }
}

#[test]
fn a_fault_in_a_combined_line_hides_no_request() {
    Lines {
        header: "",
        line: "{C} - - [17/May/2015:{T} +0000] \"{X}",
        good: "GET / HTTP/1.1\" 200 5 \"-\" \"UA\"",
        alone: true,
        faults: &[
            b"GET / HTTP/1.1\" - 5 \"-\" \"UA\"",
            b"GET / HTTP/1.1\" 0 5 \"-\" \"UA\"",
            b"GET / HTTP/1.1\" %!d(<nil>) 5 \"-\" \"UA\"",
            b"GET / HTTP/1.1\" nil nil \"-\" \"UA\"",
            b"GET / HTTP/1.1\" 4294967295 -1 \"-\" \"UA\"",
            b"GET / HTTP/1.1\" 200 \"\" \"-\" \"UA\"",
            b"GET / HTTP/1.1\" 200 1,024 \"-\" \"UA\"",
            b"GET / HTTP/1.1\" 200 1.5k \"-\" \"UA\"",
            b"GET / HTTP/1.1\" 200",
            b"GET / HTTP/1.1\" 200 5 \"-\" \"U\xffA\\xFA\t\"",
            b"GET / HTTP/1.1\" 200 5 \"-\" \"U\"A\" x\"",
            b"GET / HTTP/1.1\" 200 5 \"-\" \"cut",
            b"GET /\\\" 200 5 \"-\" \"UA\"",
            b"GET /\"a HTTP/1.1\" 200 5 \"-\" \"UA\"",
            b"\x16\x03\x01\" 400 0 \"-\" \"-\"",
            b"GET /aaaaaaaaaaaaaaaa",
        ],
    }
    .check();
}

#[test]
fn a_fault_in_an_object_hides_no_request() {
    const FAULTS: &[&[u8]] = &[
        b"\"agent\":\"F\\xFAtbol\"",
        b"\"agent\":\"F\xfftbol\"",
        b"\"agent\":\"a\tb\x01\"",
        b"\"agent\":\"\\\"a\\q\\u12\"",
        b"\"agent\":\"say \"hi\" you\"",
        b"\"n\":007",
        b"\"n\":NaN",
        b"\"n\":-",
        b"\"n\":",
        b"\"n\":,\"m\":+1",
        b"\"n\":1,024",
        b"\"n\":0.1, 0.2",
        b"\"n\":%!d(<nil>)",
        b"\"n\":{\"m\":-Infinity,\"k\":[.5,nil]}",
        b"\"n\":1.",
    ];
    for line in [
        "{\"time\":\"2015-05-17T{T}\",\"remote_addr\":\"{C}\",\"status\":200,{X}}",
        "{{X},\"time\":\"2015-05-17T{T}\",\"remote_addr\":\"{C}\",\"status\":200}",
        "{\"ts\":\"2015-05-17T{T}\",\"logger\":\"a\",\"request\":{\"remote_ip\":\"{C}\",{X}},\"status\":200}",
    ] {
        Lines {
            header: "",
            line,
            good: "\"agent\":\"UA\"",
            alone: true,
            faults: FAULTS,
        }
        .check();
    }
    // The last text was cut.
    Lines {
        header: "",
        line: "{\"time\":\"2015-05-17T{T}\",\"remote_addr\":\"{C}\",\"agent\":{X}",
        good: "\"UA\"}",
        alone: false,
        faults: &[
            b"\"Mozilla",
            b"\"Mozilla\"",
            b"\"Mozi\\",
            b"[\"Mozilla",
            b"\"a\",\"b\":{\"c\":1",
        ],
    }
    .check();
}

#[test]
fn a_fault_in_named_fields_or_columns_hides_no_request() {
    Lines {
        header: "",
        line: "time=2015-05-17T{T} ip={C} status=200 agent={X}",
        good: "UA",
        alone: true,
        faults: &[
            b"\"say \"hi\" you\" n=1",
            b"F\\xFAt\xff",
            b"\"F\\xFAt\xff\t\"",
            b"a b c",
            b"a =b \"c\" n=",
            b"%!d(<nil>) n=NaN",
        ],
    }
    .check();
    Lines {
        header: "",
        line: "time=2015-05-17T{T} ip={C} status=200 agent={X}",
        good: "UA",
        alone: false,
        faults: &[b"\"Mozilla", b"\"", b"\"a\\"],
    }
    .check();
    Lines {
        header: "time,client,status,size,agent\n",
        line: "2015-05-17T{T},{C},{X}",
        good: "200,5,UA",
        alone: true,
        faults: &[
            b"-,-,UA",
            b"0,\"\",UA",
            b"200,1,024,UA",
            b"200,\"1,024\",UA",
            b"200,5,Mozilla, like, \xff",
            b"200,5,\"say \"hi\", you\"",
            b"200,5,\"Mozilla, cut",
            b"%!d(<nil>),NaN,",
        ],
    }
    .check();
    Lines {
        header: "agent;client;time\n",
        line: "{X};{C};2015-05-17T{T}",
        good: "UA",
        alone: true,
        faults: &[
            b"Mozilla (X11; Linux; x)",
            b"\"a\"b",
            b"\xff\t",
            b";",
            b"\"\"\"\"",
        ],
    }
    .check();
    Lines {
        header: "#Fields: date time c-ip cs-method cs-uri-stem sc-status cs(User-Agent)\n",
        line: "2015-05-17 {T} {C} {X}",
        good: "GET / 200 UA",
        alone: true,
        faults: &[
            b"GET / - UA",
            b"GET / 0 \xff",
            b"GET / 200 Mozilla (X11; Linux)",
            b"GET /a b 200 UA",
            b"GET / %!d(<nil>) \"\"",
        ],
    }
    .check();
}

#[test]
fn a_fault_in_a_line_of_a_proxy_hides_no_request() {
    Lines {
        header: "",
        line: "{C}:33317 [17/May/2015:{T}.655] http-in static/srv1 10/0/30/69/109 {X}",
        good: "200 2750 - - ---- 1/1/1/1/0 0/0 {a} {} \"GET / HTTP/1.1\"",
        alone: true,
        faults: &[
            b"-1 0 - - CD-- 1/1/1/1/0 0/0 {a} {} \"<BADREQ>\"",
            b"0 2750 - - ---- 1/1/1/1/0 0/0 \"GET / HTTP/1.1\"",
            b"- - - - ---- 1/1/1/1/0 0/0 \"GET / HTTP/1.1\"",
            b"200 1,024 - - ---- 1/1/1/1/0 0/0 {\xff} \"GET / HTTP/1.1\"",
            b"200 2750 - - ---- 1/1/1/1/0 0/0 {Mozilla/5.0 (X11",
            b"200 2750 - - ---- 1/1/1/1/0 0/0 {a} {b",
            b"200 2750 - - ---- 1/1/1/1/0 0/0 {a} \"GET /aaaaaa",
            b"200 2750 - - ---- 1/1/1/1/0 0/",
            b"200 2750 a=bbbbbbbbb",
        ],
    }
    .check();
    Lines {
        header: "",
        line: "2015-05-17T{T}.945958Z web {C}:2817 10.0.0.1:80 0.000073 0.001048 0.000057 {X}",
        good: "200 200 0 29 \"GET http://h:80/a HTTP/1.1\" \"curl/8.0\" - -",
        alone: false,
        faults: &[
            b"- - 0 29 \"GET http://h:80/a HTTP/1.1\" \"curl/8.0\" - -",
            b"0 0 0 1,024 \"GET http://h:80/a HTTP/1.1\" \"\xff\" - -",
            b"200 200 0 29 \"GET http://h:80/a HTTP/1.1\" \"a\" b \"c\" d\" - -",
            b"200 200 0 29 \"GET http://h:80/a HTTP/1.1\" \"cut",
            b"200 200 0 29 \"GET\" \"a\" - -",
        ],
    }
    .check();
    Lines {
        header: "",
        line: "http 2015-05-17T{T}.186641Z app/web/50 {C}:2817 10.0.0.1:80 0.086 0.048 0.037 {X}",
        good: "200 200 0 57 \"GET http://h:80/a HTTP/1.1\" \"UA\" - - arn \"Root\" \"h\" \"-\" 1",
        alone: false,
        faults: &[
            b"- - 0 57 \"GET http://h:80/a HTTP/1.1\" \"UA\" - - arn \"Root\" \"h\" \"-\" 1",
            b"200 200 0 57 \"- http://h:80- -\" \"\xff\" - - arn \"Root\" \"h\" \"-\" 1",
            b"200 200 0 57 \"GET http://h:80/a HTTP/1.1\" \"a\" b\" - - arn \"Root\" \"h\" \"-\" 1",
            b"200 200 0 57 \"GET http://h:80/a HTTP/1.1\" \"cut",
            b"200 200 0 57 \"GET\" \"UA\" - - arn \"Root\" \"h\" \"-\" 1",
        ],
    }
    .check();
    Lines {
        header: "",
        line: "79a mybucket [17/May/2015:{T} +0000] {C} arn 3E5 REST.GET.OBJECT a {X}",
        good: "\"GET /a HTTP/1.1\" 200 - 113 113 7 5 \"-\" \"S3\" -",
        alone: false,
        faults: &[
            b"\"GET /a HTTP/1.1\" - - - - - - \"-\" \"\xff\" -",
            b"\"GET /a HTTP/1.1\" 0 - \"\" 113 7 5 \"-\" \"S3\" -",
            b"\"GET /a HTTP/1.1\" 200 - 1,024 113 7 5 \"-\" \"a\" b\" -",
            b"\"GET /a HTTP/1.1\" 200 - 113 113 7 5 \"-\" \"cut",
            b"\"GET /a",
        ],
    }
    .check();
    let envoy = |status: &str, rest: &str| {
        let good = |number| {
            format!(
                "[2015-05-17T{}.310Z] \"GET /a HTTP/2\" 204 - 154 0 226 100 \"{GOOD}\" \"UA\" \"c\" \"h\" \"t\"\n",
                clock(number)
            )
        };
        let odd = |number| {
            format!(
                "[2015-05-17T{}.310Z] \"GET /a HTTP/2\" {status} - 154 0 226 100 \"{ODD}\" {rest}\n",
                clock(number)
            )
        };
        let lines: String = (0..10).map(|number| good(number) + &odd(number)).collect();
        assert_eq!(
            keys("", lines.as_bytes()),
            [(ODD.to_owned(), 10), (GOOD.to_owned(), 10)],
            "{rest}"
        );
    };
    for (status, rest) in [
        ("-", "\"UA\" \"c\" \"h\" \"t\""),
        ("%!d(<nil>)", "\"UA\" \"c\" \"h\" \"t\""),
        ("0", "\"a\" b\" \"c\" \"h\" \"t\""),
        ("204", "\"cut"),
        ("204", "\"UA\""),
    ] {
        envoy(status, rest);
    }
}

#[test]
fn a_fault_within_a_wrapped_line_or_an_own_format_hides_no_request() {
    let wrapped = |before: &str, after: &str, faults: &[&str]| {
        for fault in faults {
            let line = |client: &str, fault: &str, number: usize| {
                let time = clock(number);
                format!("{before}{client} - - [17/May/2015:{time} +0000] {fault}{after}\n")
            };
            let lines: String = (0..10)
                .map(|number| line(GOOD, "\\\"GET / HTTP/1.1\\\" 200 5", number) + &line(ODD, fault, number))
                .collect();
            let lines = if after.is_empty() {
                lines.replace("\\\"", "\"")
            } else {
                lines
            };
            let expected = [(ODD.to_owned(), 10), (GOOD.to_owned(), 10)];
            assert_eq!(keys("", lines.as_bytes()), expected, "{before}{fault}");
        }
    };
    let faults = [
        "\\\"GET / HTTP/1.1\\\" - 5 \\\"-\\\" \\\"UA\\\"",
        "\\\"GET / HTTP/1.1\\\" 0 1,024",
        "\\\"GET /aaaaa",
        "\\\"GET / HTTP/1.1\\\" 200 5 \\\"-\\\" \\\"F\\xFAt\\\"",
        "\\\"GET / HTTP/1.1\\\" 200 5 \\\"-\\\" \\\"a\tb\\\"",
    ];
    wrapped(
        "{\"log\":\"",
        "\\n\",\"stream\":\"stdout\",\"time\":\"2015-05-17T10:05:03.5Z\"}",
        &faults,
    );
    wrapped("<190>May 17 10:05:03 web nginx: ", "", &faults);
    wrapped("2015-05-17T10:05:03.1Z stdout F ", "", &faults);
    wrapped("<190>1 2015-05-17T10:05:03.003Z web nginx 8710 - - ", "", &faults);
    wrapped("2015-05-17T10:05:03.1Z ", "", &faults);
    for (status, size, agent, time) in [
        ("-", "5", "UA", "0.1"),
        ("", "5", "UA", "-"),
        ("0", "1,024", "UA", ""),
        ("200", "", "say \"hi\" \\", "0.1"),
        ("%!d(<nil>)", "NaN", "\t", "0.1, 0.2"),
    ] {
        let line = |client: &str, number: usize| {
            format!(
                "{client} [17/May/2015:{} +0000] \"GET / HTTP/1.1\" {status} {size} \"{agent}\" {time}\n",
                clock(number)
            )
        };
        let lines: String = (0..20).map(|number| line(ODD, number)).collect();
        let mut command = tool("--json --quiet --rule 100/s", None);
        command.args([
            "--log-format",
            "$remote_addr [$time_local] \"$request\" $status $body_bytes_sent \"$http_user_agent\" $upstream_time",
        ]);
        let object = json(&on_pipe(&mut command, lines));
        assert_fields(&object, "requests unreadable", [20, 0], status);
    }
}

/// A fault in a field that a rule needs is an error of the line, and a status without a value is a value.
#[test]
fn a_fault_in_a_needed_field_is_unreadable() {
    for (args, line) in [
        (
            "--cost size",
            format!("{ODD} - - [17/May/2015:10:05:03 +0000] \"GET /\" 200 1,024"),
        ),
        (
            "--cost size",
            format!("{ODD} - - [17/May/2015:10:05:03 +0000] \"GET /\" 0.005 200 5"),
        ),
        (
            "",
            format!("{ODD}, - - [17/May/2015:10:05:03 +0000] \"GET /\" 200 5"),
        ),
        (
            "",
            "{\"time\":\"2015-05-17T10:05:03Z\",\"agent\":\"\\x\",\"ip\":\"1.2.3.4".to_owned(),
        ),
        ("", format!("{{\"time\":-,\"ip\":\"{ODD}\"}}")),
        (
            "",
            "time=2015-05-17T10:05:03Z status=200 agent=\"a ip=1.2.3.4".to_owned(),
        ),
    ] {
        let good = match line.as_bytes()[0] {
            b'{' => format!("{{\"time\":\"2015-05-17T10:05:03Z\",\"ip\":\"{GOOD}\"}}"),
            b't' => format!("time=2015-05-17T10:05:03Z status=200 ip={GOOD}"),
            _ => format!("{GOOD} - - [17/May/2015:10:05:03 +0000] \"GET /\" 200 5"),
        };
        let output = on_pipe(
            &mut tool(&format!("--json --quiet --rule 5000/s {args}"), None),
            format!("{good}\n{line}\n"),
        );
        let object = json(&output);
        assert_fields(&object, "requests unreadable", [1, 1], line);
    }
    let line = |status: &str| format!("{ODD} - - [17/May/2015:10:05:03 +0000] \"GET /\" {status} 5\n");
    let lines = line("-") + &line("200") + &line("-") + &line("0");
    let found = keys("--key status", lines.as_bytes());
    let expected = [("-", 2), ("0", 1), ("200", 1)].map(|(key, requests)| (key.to_owned(), requests));
    assert_eq!(found, expected);
}
