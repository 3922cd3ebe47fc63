//! Logs whose client is easily mistaken: each is read, or refused.

use std::fs;

use crate::log::{access, clock, twenty};
use crate::tool::{assert_fields, by_rules, json, replay, rules, run, stderr, texts};

/// The expected result.
pub(crate) enum Expected {
    /// Requests, unreadable lines, clients, and a part of the only warning or nothing.
    Read(u64, u64, u64, &'static str),
    /// A part of the error.
    Refused(&'static str),
}

use Expected::{Read, Refused};

fn handed(name: &str) -> String {
    fs::read_to_string(format!("{}/tests/cases/logs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

pub(crate) fn check(name: &str, args: &str, log: &str, expected: &Expected) {
    let output = replay(args, log);
    match expected {
        Read(requests, unreadable, clients, warning) => {
            let object = json(&output);
            let counts = [
                &object["requests"],
                &object["unreadable"],
                &object["rules"][0]["keys"],
            ];
            assert_eq!(
                counts.map(|count| count.as_u64().unwrap()),
                [*requests, *unreadable, *clients],
                "{name}: {object}"
            );
            let warnings = texts(&object, "warnings");
            match warnings[..] {
                [] => assert_eq!(*warning, "", "{name}"),
                [only] => assert!(!warning.is_empty() && only.contains(warning), "{name}: {only}"),
                _ => panic!("{name}: {warnings:?}"),
            }
        }
        Refused(message) => {
            assert_eq!(output.status.code(), Some(2), "{name}: {}", stderr(&output));
            assert!(stderr(&output).contains(message), "{name}: {}", stderr(&output));
        }
    }
}

const ONE: &str = "every request has the client \"";

#[test]
fn handed_logs_have_their_results() {
    for (file, expected) in [
        (
            "caddy-behind-socket.log",
            Read(
                40,
                0,
                1,
                "the client \"@\", so all share one limit: --key request.headers.X-Forwarded-For",
            ),
        ),
        ("caddy-runtime-first.log", Read(38, 0, 2, "")),
        ("names-after-1000-lines.log", Read(1180, 0, 0, "")),
        ("line-in-quotes.log", Read(20, 0, 1, "")),
        ("proxy-manager.log", Read(40, 0, 1, ONE)),
        ("ingress-bracketed-client.log", Read(40, 0, 1, ONE)),
        ("client-dash.log", Refused("no line has a client")),
        ("istio.log", Read(40, 0, 1, ONE)),
        ("one-64.log", Read(20, 0, 1, "")),
        ("nat64.log", Read(20, 0, 20, "")),
    ] {
        let log = handed(file);
        if file == "names-after-1000-lines.log" {
            let clients: std::collections::HashSet<&str> =
                log.lines().filter_map(|line| line.split(' ').next()).collect();
            check(file, "", &log, &Read(1180, 0, clients.len() as u64, ""));
        } else {
            check(file, "", &log, &expected);
        }
    }
    check(
        "option",
        "--key request.headers.X-Forwarded-For",
        &handed("caddy-behind-socket.log"),
        &Read(40, 0, 2, ""),
    );
    let object = json(&replay("--rule 5/s", handed("one-64.log")));
    assert_eq!(
        (&object["rules"][1]["admitted"], &object["rules"][1]["denied"]),
        (&5.into(), &15.into())
    );
}

/// A line of Caddy.
fn caddy(number: usize, logger: &str, client: &str) -> String {
    format!(
        r#"{{"level":"info","ts":14318571{number:02}.5,"logger":"{logger}","msg":"m","request":{{"remote_ip":"{client}","client_ip":"{client}","method":"GET","uri":"/x"}},"status":200}}"#
    )
}

#[test]
fn other_messages_do_not_decide_the_meaning_of_fields() {
    let client = |number: usize| ["198.51.100.7", "198.51.100.8"][number % 2];
    let runtime =
        r#"{"level":"info","ts":1431857100.1,"logger":"admin","msg":"started","address":"127.0.0.1:2019"}"#;
    let of_caddy = |number| caddy(number, "http.log.access", client(number));
    let app = |number: usize| {
        let ip = client(number);
        format!(
            r#"{{"time":"2015-05-17T{}Z","remote_addr":"{ip}","status":200,"path":"/"}}"#,
            clock(number)
        )
    };
    let listening = |number: usize| {
        format!(
            r#"{{"time":"2015-05-17T{}Z","msg":"listening","client":"127.0.0.1","ip":"10.0.0.1"}}"#,
            clock(number)
        )
    };
    let traefik = |number: usize| {
        let ip = client(number);
        format!(
            r#"{{"ClientHost":"{ip}","RequestMethod":"GET","RequestPath":"/","DownstreamStatus":200,"StartUTC":"2015-05-17T{}Z"}}"#,
            clock(number)
        )
    };
    for (name, log, expected) in [
        (
            "many runtime messages first",
            format!("{runtime}\n").repeat(300) + &twenty(of_caddy),
            Read(20, 0, 2, ""),
        ),
        (
            "runtime messages behind",
            twenty(of_caddy) + &format!("{runtime}\n").repeat(50),
            Read(20, 0, 2, ""),
        ),
        (
            "a named access logger",
            twenty(|number| caddy(number, "http.log.access.log0", client(number))),
            Read(20, 0, 2, ""),
        ),
        (
            "errors of the same requests",
            twenty(|number| of_caddy(number) + "\n" + &caddy(number, "http.log.error", client(number))),
            Read(20, 0, 2, ""),
        ),
        (
            "debug messages of a handler",
            twenty(|number| {
                caddy(number, "http.handlers.reverse_proxy", client(number)) + "\n" + &of_caddy(number)
            }),
            Read(20, 0, 2, ""),
        ),
        (
            "an application that listens first",
            twenty(listening) + &twenty(app),
            Read(20, 0, 2, ""),
        ),
        (
            "messages without a client",
            format!("{}{}", r#"{"time":"2015-05-17T10:05:03Z","msg":"start"}"#, "\n").repeat(30)
                + &twenty(app),
            Read(20, 0, 2, ""),
        ),
        (
            "messages of Traefik itself",
            format!(
                "{}{}",
                r#"{"level":"info","msg":"Configuration loaded","time":"2015-05-17T10:05:03Z"}"#, "\n"
            )
            .repeat(30)
                + &twenty(traefik),
            Read(20, 0, 2, ""),
        ),
    ] {
        check(name, "", &log, &expected);
    }
    // One line of another format does not decide the format.
    let log = format!("{}\n{}", app(0), twenty(|number| access(client(number), number)));
    check(
        "one line of JSON first",
        "",
        &log,
        &Read(20, 1, 2, "1 of 21 lines"),
    );
}

#[test]
fn host_names_may_begin_late() {
    let first = |count: usize| -> String {
        (0..count)
            .map(|number| access(&format!("192.0.2.{}", number % 3), number % 60) + "\n")
            .collect()
    };
    let names = |number: usize| access(["a.example.net", "b.example.net"][number % 2], number);
    for (count, clients) in [(1, 3), (20, 5), (999, 5), (1_000, 5), (1_500, 5)] {
        let log = first(count) + &twenty(names);
        check("names", "", &log, &Read(count as u64 + 20, 0, clients, ""));
        let notes = json(&replay("", &log));
        assert!(
            texts(&notes, "notes")
                .iter()
                .any(|note| note.contains("clients may be host names, as \"a.example.net\""))
        );
    }
    // A name before an address is a prefix.
    let log = first(2_000) + &access("web-1 - 192.0.2.9", 1) + "\n";
    check("prefix", "", &log, &Read(2_000, 1, 3, ""));
}

#[test]
fn one_client_of_a_whole_log_is_a_warning() {
    let log = |client: &str, count: usize| -> String {
        (0..count)
            .map(|number| access(client, number % 60) + "\n")
            .collect()
    };
    for (client, count, warning) in [
        ("10.0.0.1", 5, ONE),
        ("127.0.0.1", 20, ONE),
        ("fd00::1", 20, ONE),
        ("::ffff:172.16.0.1", 20, ONE),
        ("unix:", 20, ONE),
        ("unknown", 20, ONE),
        ("198.51.100.7", 30, ONE),
        ("198.51.100.7", 29, ""),
        ("10.0.0.1", 1, ""),
    ] {
        check(
            client,
            "",
            &log(client, count),
            &Read(count as u64, 0, 1, warning),
        );
    }
    let mixed = log("10.0.0.1", 500) + &log("10.0.0.2", 1);
    check("two", "", &mixed, &Read(501, 0, 2, ""));
}

#[test]
fn a_log_without_clients_is_an_error() {
    let dash = |client: &'static str| move |number: usize| access(client, number);
    for (name, log) in [
        ("a dash", twenty(dash("-"))),
        (
            "a dash and a user",
            twenty(|number| access("-", number).replacen("- -", "- ann", 1)),
        ),
        (
            "w3c",
            "#Fields: date time c-ip cs-method\n".to_owned()
                + &twenty(|number| format!("2015-05-17 {} - GET", clock(number))),
        ),
        (
            "envoy",
            twenty(|number| {
                format!(
                    r#"[2015-05-17T{}.310Z] "GET / HTTP/2" 204 - 154 0 226 100 "-" "UA" "id" "host" "10.0.2.1:80""#,
                    clock(number)
                )
            }),
        ),
        (
            "json",
            twenty(|number| {
                format!(
                    r#"{{"time":"2015-05-17T{}Z","remote_addr":"-","status":200}}"#,
                    clock(number)
                )
            }),
        ),
        (
            "csv",
            "time,client\n".to_owned() + &twenty(|number| format!("2015-05-17T{}Z,-", clock(number))),
        ),
    ] {
        check(name, "", &log, &Refused("no"));
        assert!(
            stderr(&replay("", &log)).contains("client"),
            "{name}: {}",
            stderr(&replay("", &log))
        );
    }
}

#[test]
fn clients_are_counted_as_the_library_counts_them() {
    for (name, clients, expected) in [
        ("one network", ["2001:db8:1:2::1", "2001:db8:1:2:ffff::1"], 1),
        ("two networks", ["2001:db8:1:2::1", "2001:db8:1:3::1"], 2),
        ("mapped", ["::ffff:192.0.2.1", "192.0.2.1"], 1),
        ("mapped, two", ["::ffff:192.0.2.1", "::ffff:192.0.2.2"], 2),
        ("upper case", ["2001:DB8:1:2::1", "2001:db8:1:2::2"], 1),
        ("with a port", ["[2001:db8:1:2::1]:443", "2001:db8:1:2::2"], 1),
        ("translated", ["64:ff9b::c000:201", "64:ff9b::c000:202"], 2),
        ("of two interfaces", ["fe80::1%eth0", "fe80::1%eth1"], 2),
    ] {
        let log = twenty(|number| access(clients[number % 2], number));
        check(name, "", &log, &Read(20, 0, expected, ""));
    }
    let log = twenty(|number| access(&format!("2001:db8:1:2::{number:x}"), number));
    let object = json(&replay("", &log));
    assert_eq!(object["keys"][0]["key"], "2001:db8:1:2::/64");
    // A network in a list has all its addresses, and an address only itself.
    for (entry, denied) in [
        ("2001:db8:1:2::/64", 0),
        ("2001:db8:1:2::5", 9),
        ("10.0.0.0/8", 10),
    ] {
        let rules = format!("[[rules]]\nname = 'r'\nquota = '10/h'\nkey = 'client'\nallow = ['{entry}']\n");
        assert_eq!(by_rules(&rules, "", &log)["denied"], denied, "{entry}");
    }
}

#[test]
fn rules_that_a_log_cannot_show_are_left_out() {
    let log = twenty(|number| access("192.0.2.7", number));
    let quota = "[[rules]]\nname = 'q'\nquota = '10/h'\nkey = 'client'\n";
    for (name, more, notes) in [
        ("behind", "[[rules]]\nname = 'f'\nin_flight = 20\n".to_owned(), 1),
        (
            "with a key of the log",
            "[[rules]]\nname = 'f'\nin_flight = 20\nkey = 'client'\n".to_owned(),
            1,
        ),
        (
            "with a key that the log lacks",
            "[[rules]]\nname = 'f'\nin_flight = 20\nkey = 'tenant'\n".to_owned(),
            1,
        ),
        (
            "with a condition that the log lacks",
            "[[rules]]\nname = 'f'\nin_flight = 20\nkey = 'tenant'\nwhen = 'plan=free'\n".to_owned(),
            1,
        ),
        (
            "two",
            "[[rules]]\nname = 'f'\nin_flight = 20\n[[rules]]\nname = 'g'\nin_flight = 3\nkey = 'user'\n"
                .to_owned(),
            2,
        ),
        ("none", String::new(), 0),
    ] {
        for text in [quota.to_owned() + &more, more.clone() + quota] {
            let object = by_rules(&text, "", &log);
            assert_fields(&object, "requests denied", [20, 10], name);
            let said = texts(&object, "notes");
            assert_eq!(said.len(), notes, "{name}: {said:?}");
            if notes > 0 {
                assert_eq!(
                    said[0],
                    "rule \"f\" is not replayed: in_flight = 20 limits requests that have not ended, and a log does not show when a request ends"
                );
            }
            let rules = rules(&text);
            let output = run(["check", rules.path().to_str().unwrap()]);
            let words = String::from_utf8(output.stdout).unwrap();
            assert_eq!(
                words.matches("left out by ringgate replay").count(),
                notes,
                "{name}: {words}"
            );
        }
    }
}
