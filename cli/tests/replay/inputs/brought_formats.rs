//! Formats that people bring: those that are read, and those that are refused with a pattern to copy.

use crate::cases_clients::Expected::{Read, Refused};
use crate::cases_clients::check;
use crate::log::{access, clock, docker, twenty};
use crate::tool::{json, replay, stderr};

/// Lines of formats that are read: both clients have ten requests.
#[test]
fn formats_that_people_bring_are_read() {
    let client = |number: usize| ["192.0.2.7", "2001:db8::7"][number % 2];
    let time = |number: usize| format!("17/May/2015:{} +0000", clock(number));
    let manager = |middle: &str, sent: &str| {
        twenty(|number| {
            format!(
                "[{}] {middle} - GET https example.com \"/p\" [Client {}] [Length 61] [Gzip 2.1] {sent}\"UA\" \"ref\"",
                time(number),
                client(number)
            )
        })
    };
    let quoted = |line: &dyn Fn(usize) -> String| twenty(|number| format!("\"{}\"", line(number)));
    let bracket = |user: &str| {
        twenty(|number| {
            let ip = client(number);
            format!(
                "{ip} - [{ip}] - {user} [{}] \"GET / HTTP/1.1\" 200 5 \"-\" \"UA\" 100 0.005",
                time(number)
            )
        })
    };
    let istio = |middle: &str, forwarded: &dyn Fn(usize) -> String, remote: &dyn Fn(usize) -> String| {
        twenty(|number| {
            format!(
                "[2015-05-17T{}.123Z] \"GET /x HTTP/1.1\" 200 - {middle} 0 95 12 11 \"{}\" \"UA\" \"id\" \"example.com\" \
                 \"10.0.0.5:80\" outbound|80||x 10.0.0.9:1 10.0.0.5:80 {}:2 - default",
                clock(number),
                forwarded(number),
                remote(number)
            )
        })
    };
    let four = |number: usize| ["192.0.2.7", "192.0.2.8"][number % 2].to_owned();
    let ours = |number: usize| client(number).to_owned();
    for (name, log) in [
        ("proxied hosts", manager("HIT 200 200", "[Sent-to 10.0.0.2] ")),
        (
            "several upstream servers",
            manager("- 502, 200 200", "[Sent-to web.example] "),
        ),
        ("redirected hosts", manager("301", "")),
        ("dead hosts", manager("404", "")),
        ("no upstream status", manager("- - 499", "[Sent-to 10.0.0.2] ")),
        ("quoted lines", quoted(&|number| access(client(number), number))),
        (
            "quoted lines with a host",
            quoted(&|number| access(&format!("example.com {}", client(number)), number)),
        ),
        (
            "quoted lines of the common format",
            quoted(&|number| {
                format!(
                    "{} - - [{}] \"GET / HTTP/2\" 200 10540",
                    client(number),
                    time(number)
                )
            }),
        ),
        (
            "quoted lines without an end",
            twenty(|number| format!("\"{}", access(client(number), number))),
        ),
        (
            "quoted lines with a user",
            quoted(&|number| {
                format!(
                    "{} - ann [{}] \"GET / HTTP/2\" 200 5 \"-\" \"UA\"",
                    client(number),
                    time(number)
                )
            }),
        ),
        ("ingress", bracket("-")),
        ("ingress with a user", bracket("ann")),
        ("ingress with a user of two words", bracket("ann b")),
        ("ingress with a user in brackets", bracket("[ann]")),
        (
            "istio",
            istio("via_upstream - \"-\"", &ours, &|_| "10.0.0.7".to_owned()),
        ),
        (
            "istio 1.8",
            istio("via_upstream \"-\"", &ours, &|_| "10.0.0.7".to_owned()),
        ),
        (
            "istio 1.5",
            istio("\"-\" \"-\"", &ours, &|_| "10.0.0.7".to_owned()),
        ),
        (
            "istio within the mesh",
            istio("via_upstream - \"-\"", &|_| "-".to_owned(), &four),
        ),
        (
            "istio that upgrades",
            istio("upgrade_failed reset \"TLS error\"", &ours, &|_| {
                "10.0.0.7".to_owned()
            }),
        ),
        (
            "nlb",
            twenty(|number| {
                format!(
                    "tls 2.0 2015-05-17T{} net/lb/c6e7 g3d4 {}:51341 10.0.0.1:443 5 2 98 246 - arn:aws:acm:1 - ECDHE tlsv12 - \
                     www.example.com - - - 2015-05-17T10:05:00",
                    clock(number),
                    four(number)
                )
            }),
        ),
        (
            "ezproxy",
            twenty(|number| {
                format!(
                    "{} - QzYGUkEOnCbb3HQ [{}] \"GET http://www.db.example:80/a?b HTTP/1.1\" 200 5",
                    client(number),
                    time(number)
                )
            }),
        ),
        (
            "ezproxy with a session",
            twenty(|number| {
                format!(
                    "{} QzYGUkEOnCbb3HQ ann [{}] \"CONNECT www.db.example:443 HTTP/1.1\" 200 5 \"-\"",
                    client(number),
                    time(number)
                )
            }),
        ),
        (
            "morgan",
            twenty(|number| access(&format!("::ffff:{}", four(number)), number)),
        ),
    ] {
        check(name, "", &log, &Read(20, 0, 2, ""));
        // The same lines in the messages of a container.
        let wrapped = twenty(|number| docker(log.lines().nth(number).unwrap(), number));
        check(name, "", &wrapped, &Read(20, 0, 2, ""));
    }
    // Both shapes in one file.
    let both = manager("301", "") + &manager("- 200 200", "[Sent-to 10.0.0.2] ");
    check("both", "", &both, &Read(40, 0, 2, ""));
    // The path of a whole URL has no scheme and no host.
    let log = twenty(|number| {
        format!(
            "192.0.2.{number} - - [{}] \"GET http://www.db.example:80/a?b HTTP/1.1\" 200 5",
            time(number)
        )
    });
    let object = json(&replay("--key path", &log));
    assert_eq!(object["keys"][0]["key"], "/a");
}

/// Lines of formats that are refused: the error names the software, and its first pattern reads the lines.
#[test]
fn other_formats_are_refused_with_a_pattern() {
    let client = |number: usize| ["192.0.2.7", "192.0.2.8"][number % 2];
    let rest = |number: usize| {
        format!(
            "- - [17/May/2015:{} +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"UA\"",
            clock(number)
        )
    };
    let envoy = |number: usize| {
        format!(
            r#"[2015-05-17T{}.310Z] "GET /a?b HTTP/2" 204 - 154 0 226 100 "203.0.113.9, {}" "UA" "id" "host" "10.0.2.1:80""#,
            clock(number),
            client(number)
        )
    };
    let istio = |number: usize| {
        format!(
            r#"[2015-05-17T{}.123Z] "GET /x HTTP/1.1" 200 - via_upstream - "-" 0 95 12 11 "203.0.113.9,{}" "U" "id" "h" "10.0.0.5:80" outbound|80||x 10.0.0.9:1 10.0.0.5:80 10.0.0.7:2 - default"#,
            clock(number),
            client(number)
        )
    };
    let old_istio = |number| {
        istio(number)
            .replace(" via_upstream -", "")
            .replace("\"-\"", "\"-\" \"-\"")
    };
    for (name, log, software, clients) in [
        (
            "a list",
            twenty(|number| format!("203.0.113.9, {} {}", client(number), rest(number))),
            "X-Forwarded-For in the first column",
            2,
        ),
        (
            "a list without spaces",
            twenty(|number| format!("203.0.113.9,{} {}", client(number), rest(number))),
            "X-Forwarded-For in the first column",
            2,
        ),
        (
            "a list before an identity",
            twenty(|number| {
                let rest = rest(number).replacen("- -", "ident bob", 1);
                format!("203.0.113.9, {} {rest}", client(number))
            }),
            "X-Forwarded-For in the first column",
            2,
        ),
        (
            "a list of one address twice",
            twenty(|number| format!("{0}, {0} {1}", client(number), rest(number))),
            "X-Forwarded-For in the first column",
            2,
        ),
        (
            "a list of three",
            twenty(|number| format!("unknown, 203.0.113.9, {} {}", client(number), rest(number))),
            "X-Forwarded-For in the first column",
            2,
        ),
        (
            "some lists",
            twenty(|number| {
                format!(
                    "{}{} {}",
                    ["", "203.0.113.9, "][usize::from(number % 5 == 0)],
                    client(number),
                    rest(number)
                )
            }),
            "X-Forwarded-For in the first column",
            2,
        ),
        (
            "lists of IPv6",
            twenty(|number| format!("2001:db8::1, {} {}", client(number), rest(number))),
            "X-Forwarded-For in the first column",
            2,
        ),
        (
            "two addresses",
            twenty(|number| format!("{} 10.0.0.5 {}", client(number), rest(number))),
            "X-Forwarded-For before the peer",
            2,
        ),
        (
            "ingress",
            twenty(|number| format!("10.0.0.5 - [{}] - {}", client(number), rest(number))),
            "ingress-nginx",
            2,
        ),
        (
            "ingress with a list",
            twenty(|number| format!("10.0.0.5 - [203.0.113.9, {}] - {}", client(number), rest(number))),
            "ingress-nginx",
            2,
        ),
        ("envoy", twenty(envoy), "Envoy or Istio", 2),
        ("istio", twenty(istio), "Envoy or Istio", 2),
        ("old istio", twenty(old_istio), "Envoy or Istio", 2),
        (
            "an audit file",
            twenty(|number| {
                format!(
                    "2015-05-17 {}\tLogin.Success\t{}\t\tann\tsession",
                    clock(number),
                    client(number)
                )
            }),
            "audit file of EZproxy",
            2,
        ),
        (
            "morgan short",
            twenty(|number| {
                let line = format!("{} - GET /a HTTP/1.1 200 5 - 1.234 ms", client(number));
                docker(&line, number)
            }),
            "morgan in its format short",
            2,
        ),
        (
            "morgan tiny",
            twenty(|number| docker("GET /a 200 5 - 1.234 ms", number)),
            "morgan in its format tiny",
            1,
        ),
        (
            "morgan dev",
            twenty(|number| {
                let line = "\u{1b}[0mGET /a \u{1b}[32m200\u{1b}[0m 1.234 ms - 5\u{1b}[0m";
                docker(line, number)
            }),
            "morgan in its format dev",
            1,
        ),
        (
            "morgan dev without colours",
            twenty(|number| docker("POST /a 304 1.234 ms - -", number)),
            "morgan in its format dev",
            1,
        ),
        (
            "morgan default",
            twenty(|number| {
                let (client, time) = (client(number), clock(number));
                let line = format!("{client} - - [Sun, 17 May 2015 {time} GMT] \"GET /a HTTP/1.1\" 200 5");
                docker(&line, number)
            }),
            "morgan in its format default",
            2,
        ),
    ] {
        let output = replay("", &log);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {error}");
        assert!(error.contains(software), "{name}: {error}");
        let pattern = error
            .split("--pattern '")
            .nth(1)
            .unwrap()
            .split('\'')
            .next()
            .unwrap();
        let key = error
            .split("' --key ")
            .nth(1)
            .map(|key| key.trim_end().trim_end_matches(')'));
        let mut command = crate::tool::tool("--json --quiet --rule 10/60s", None);
        command
            .args(["--pattern", pattern])
            .args(key.into_iter().flat_map(|key| ["--key", key]));
        let object = json(&crate::tool::on_pipe(&mut command, &log));
        assert_eq!(
            (&object["requests"], &object["rules"][0]["keys"]),
            (&20.into(), &clients.into()),
            "{name}: {pattern}"
        );
    }
    // Without a time around them, the messages of morgan are refused as well.
    for line in [
        "GET /a 200 5 - 1.234 ms",
        "GET /a 200 1.234 ms - 5",
        "::1 - GET /a HTTP/1.1 200 5 - 1.234 ms",
    ] {
        check(
            line,
            "",
            &format!("{line}\n").repeat(20),
            &Refused("is of morgan in its format"),
        );
    }
}
