//! Values that look like others: host names behind virtual hosts, a dash for nothing, names of devices, ports, zones and aliases.

use alloc::collections::BTreeSet;

use serde_json::Value;

use crate::log::{access, clock};
use crate::tool::{assert_fields, json, on_file, on_pipe, rules, run, stderr, texts, tool};

/// Writes a line with a value.
type LineOf<'a> = &'a dyn Fn(&str) -> String;

/// The report of a rule, which may have spaces.
fn by_rule(args: &str, rule: &str, input: &str) -> Value {
    let args = format!("--json --quiet {args}");
    json(&on_pipe(tool(&args, None).arg("--rule").arg(rule), input))
}

fn keys(object: &Value) -> BTreeSet<&str> {
    let keys = object["keys"].as_array().unwrap().iter();
    keys.map(|key| key["key"].as_str().unwrap()).collect()
}

#[test]
fn a_host_name_behind_a_virtual_host_is_the_client() {
    let line = |words: &str| {
        let line = access("", 3);
        line.replacen(" - -", words, 1)
    };
    for (words, client) in [
        ("www.example.com a.example - -", "a.example"),
        ("www.example.com:443 a.example - -", "a.example"),
        ("www.example.com a.example - ann", "a.example"),
        ("www.example.com a.example - ann b", "a.example"),
        ("localhost a - -", "a"),
        ("www.example.com 192.0.2.1 - -", "192.0.2.1"),
        ("a.example - -", "a.example"),
        ("a.example - ann", "a.example"),
        ("a.example - ann b", "a.example"),
        ("a.example ident -", "a.example"),
        ("a.example ident ann", "a.example"),
        ("a.example ident ann b", "a.example"),
    ] {
        for other in ["www.example.com 192.0.2.9 - -", "192.0.2.9 - -", words] {
            let input = format!("{}\n{}\n", line(words), line(other));
            let object = by_rule("", "5/min", &input);
            assert_eq!(object["unreadable"], 0, "{words}");
            assert!(keys(&object).contains(client), "{words}: {object}");
            assert!(!keys(&object).contains("www.example.com"), "{words}");
        }
    }
    for words in [
        "www.example.com a.example - -",
        "www.example.com:443 a.example - -",
        "10.0.0.1 a.example ident ann",
    ] {
        let object = by_rule("--format vhost", "5/min", &(line(words) + "\n"));
        assert_eq!(keys(&object), BTreeSet::from(["a.example"]), "{words}");
    }
    // The second name may be an identity, or a client behind a virtual host.
    for words in ["www.example.com a.example ident ann", "a.example id.x ann b"] {
        let input = format!("{}\n{}\n", line(words), line("192.0.2.9 - -"));
        let output = on_file("--json --quiet --rule 5/min", &input);
        assert_eq!(json(&output)["unreadable"], 1, "{words}");
        assert!(
            stderr(&output).contains("two names at the beginning"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn a_dash_is_no_value_in_every_format() {
    let common = |user: &str| access("192.0.2.1", 3).replacen("- -", &format!("- {user}"), 1) + "\n";
    let w3c = |user: &str| format!("2015-05-17 10:05:03 192.0.2.1 {user} GET /a 200\n");
    let json_line = |user: &str| match user {
        "-" => "{\"time\":1431857103,\"client\":\"192.0.2.1\",\"method\":\"GET\"}\n".to_owned(),
        user => format!(
            "{{\"time\":1431857103,\"client\":\"192.0.2.1\",\"method\":\"GET\",\"user\":\"{user}\"}}\n"
        ),
    };
    let csv = |user: &str| format!("2015-05-17T10:05:03Z,192.0.2.1,{user}\n");
    let logs: [(&str, LineOf<'_>, &str); 4] = [
        ("", &common, "user"),
        (
            "#Fields: date time c-ip cs-username cs-method cs-uri-stem sc-status\n",
            &w3c,
            "user",
        ),
        ("", &json_line, "user"),
        ("time,client,user\n", &csv, "user"),
    ];
    for (header, line, field) in logs {
        let input =
            header.to_owned() + &line("-").repeat(20) + &line("ann").repeat(7) + &line("bob").repeat(3);
        for (condition, requests) in [
            ("", 10),
            ("!=-", 10),
            ("=-", 20),
            ("=ann", 7),
            ("!=ann", 23),
            ("=a*", 7),
            ("!=a*", 23),
        ] {
            let object = by_rule("", &format!("100/min when {field}{condition}"), &input);
            assert_eq!(object["rules"][0]["requests"], requests, "{condition}: {input}");
            assert_eq!(object["requests"], 30);
        }
    }
}

#[test]
fn a_dash_is_a_cost_of_zero_in_every_format() {
    let w3c = |size: &str| format!("2015-05-17 10:05:03 192.0.2.1 GET /a 200 {size}\n");
    let elb = |size: &str| {
        format!(
            "2015-05-17T10:05:03.000000Z elb 192.0.2.1:2817 10.0.0.1:80 0.1 0.1 0.1 200 200 0 {size} \"GET http://h:80/ HTTP/1.1\" \"c\" - -\n"
        )
    };
    let s3 = |size: &str| {
        format!(
            "owner bucket [17/May/2015:10:05:03 +0000] 192.0.2.1 - 3E57 REST.GET.OBJECT key \"GET /key HTTP/1.1\" 200 - {size} 4406 41 28 \"-\" \"c\" -\n"
        )
    };
    let common = |size: &str| access("192.0.2.1", 3).replacen(" 57 ", &format!(" {size} "), 1) + "\n";
    let logs: [(&str, LineOf<'_>); 4] = [
        (
            "#Fields: date time c-ip cs-method cs-uri-stem sc-status sc-bytes\n",
            &w3c,
        ),
        ("", &elb),
        ("", &s3),
        ("", &common),
    ];
    for (header, line) in logs {
        let input = header.to_owned() + &line("-").repeat(20) + &line("40").repeat(3);
        let object = by_rule("", "100/min cost size", &input);
        let found = (&object["requests"], &object["unreadable"], &object["denied"]);
        assert_eq!(found, (&23.into(), &0.into(), &1.into()), "{input}");
        // A field that is also a cost is a dash in a condition.
        let object = by_rule("", "100/min cost size when size!=-", &input);
        assert_eq!(object["rules"][0]["requests"], 3, "{input}");
    }
}

/// Thirty requests of devices with these names.
fn of_devices(name: fn(usize) -> String) -> String {
    (0..30)
        .map(|number| format!("{{\"time\":1431857103,\"device\":\"{}\"}}\n", name(number)))
        .collect()
}

#[test]
fn names_of_devices_are_no_addresses() {
    for name in [
        |number: usize| format!("00:12:4b:00:14:b5:d9:{number:02x}"),
        |number: usize| format!("A0:12:4B:FF:FE:B5:D9:{number:02X}"),
        |number: usize| format!("50:06:01:60:3b:20:{number:02x}:4b"),
        |number: usize| format!("10:00:00:00:c9:22:fc:{number:02x}"),
        |number: usize| format!("00:12:4b:14:b5:{number:02x}"),
        |number: usize| format!("{number:02x}:00:00:00:00:00:00:01"),
    ] {
        let input = of_devices(name);
        let object = by_rule("", "5/min by device", &input);
        assert_eq!(
            (&object["rules"][0]["keys"], &object["denied"]),
            (&30.into(), &0.into()),
            "{input}"
        );
        let condition = format!("100/min by device when device={}", name(1));
        assert_eq!(
            by_rule("", &condition, &input)["rules"][0]["requests"],
            1,
            "{condition}"
        );
    }
    // Addresses with eight groups are.
    for name in [
        |number: usize| format!("2001:db8:1:2:3:4:5:{number:x}"),
        |number: usize| format!("2001:0db8:0001:0002:0003:0004:0005:{number:04x}"),
        |number: usize| format!("2001:db8:10:20:30:40:50:{number:02x}"),
    ] {
        let input = of_devices(name);
        assert_eq!(
            by_rule("", "5/min by device", &input)["rules"][0]["keys"],
            1,
            "{input}"
        );
    }
}

#[test]
fn a_client_has_no_port_in_any_spelling() {
    let spellings: [&dyn Fn(usize) -> String; 6] = [
        &|number| format!("192.0.2.7:{}", 5000 + number),
        &|number| format!("/192.0.2.7:{}", 5000 + number),
        &|number| format!("[2001:db8::1]:{}", 5000 + number),
        &|number| format!("/[2001:db8:0:0:0:0:0:1]:{}", 5000 + number),
        &|number| format!("[2001:db8::{number:x}]"),
        &|number| format!("/2001:db8:0:0:0:0:0:{number:x}"),
    ];
    for spelling in spellings {
        let line = |number: usize| format!("1431857103 {}\n", spelling(number));
        let input: String = (0..30).map(line).collect();
        for group in ["client", "address", "ip"] {
            let pattern = format!(r"^(?<time>\d+) (?<{group}>\S+)");
            let mut tool = tool("--json --quiet --rule 5/min", None);
            let object = json(&on_pipe(tool.args(["--pattern", &pattern]), &input));
            let found = (&object["rules"][0]["keys"], &object["denied"]);
            assert_eq!(found, (&1.into(), &25.into()), "{group}: {input}");
        }
        for field in ["client", "remote", "remote_addr"] {
            let line =
                |number: usize| format!("{{\"time\":1431857103,\"{field}\":\"{}\"}}\n", spelling(number));
            let input: String = (0..30).map(line).collect();
            let object = by_rule("", "5/min", &input);
            let found = (&object["rules"][0]["keys"], &object["denied"]);
            assert_eq!(found, (&1.into(), &25.into()), "{field}: {input}");
        }
        // A field of another name is the client by an alias. Without one its values are those of connections.
        let quoted = |number: usize| format!("{{\"time\":1431857103,\"peer\":\"{}\"}}\n", spelling(number));
        let row = |number: usize| format!("1431857103,{}\n", spelling(number));
        let inputs = [
            (0..30).map(quoted).collect::<String>(),
            "time,peer\n".to_owned() + &(0..30).map(row).collect::<String>(),
        ];
        for input in inputs {
            let object = by_rule("--alias client=peer", "5/min", &input);
            let found = (&object["rules"][0]["keys"], &object["denied"]);
            assert_eq!(found, (&1.into(), &25.into()), "{input}");
            let object = by_rule("", "5/min by peer", &input);
            let says_alias = texts(&object, "notes")
                .iter()
                .any(|note| note.contains("--alias client=peer says"));
            assert_eq!(says_alias, object["rules"][0]["keys"] == 30, "{object}");
        }
    }
    // A number behind a name may be a part of it, so it stays, with a note.
    let input: String = (0..30)
        .map(|number| format!("1431857103 host:{}\n", 5000 + number))
        .collect();
    let mut tool = tool("--json --quiet --rule 5/min", None);
    let object = json(&on_pipe(
        tool.args(["--pattern", r"^(?<time>\d+) (?<client>\S+)"]),
        &input,
    ));
    assert_eq!(object["rules"][0]["keys"], 30);
    let notes = texts(&object, "notes");
    assert!(
        notes
            .iter()
            .any(|note| note.contains("names that may have ports, as \"host:5000\"")),
        "{notes:?}"
    );
}

#[test]
fn several_proxies_are_a_warning() {
    let log = |clients: &[&str], forwarded: bool| -> String {
        let line = |number: usize| {
            let other = match forwarded {
                true => format!(",\"x_forwarded_for\":\"198.51.100.{number}\""),
                false => String::new(),
            };
            let client = clients[number % clients.len()];
            format!("{{\"time\":1431857103,\"remote_addr\":\"{client}\",\"status\":200{other}}}\n")
        };
        (0..30).map(line).collect()
    };
    let is_warned = |clients: &[&str], forwarded: bool| {
        let object = by_rule("", "5/min", &log(clients, forwarded));
        let warnings = texts(&object, "warnings");
        warnings
            .iter()
            .any(|warning| warning.contains("--key x_forwarded_for counts by"))
    };
    for clients in [
        &["10.0.0.5", "10.0.1.5"][..],
        &["10.0.0.5", "10.0.0.6", "127.0.0.1"],
        &["fd00::1", "fd00:0:0:1::1"],
        &["192.168.0.1", "172.16.0.9", "::1", "10.0.0.1"],
        &["10.0.0.5"],
    ] {
        assert!(is_warned(clients, true), "{clients:?}");
        assert!(!is_warned(clients, false), "{clients:?}");
    }
    // The program names the client in a field beside the address of the connection.
    let both = log(&["10.0.0.5", "10.0.1.5"], true).replace("x_forwarded_for", "client_ip");
    let warnings = by_rule("", "5/min", &both)["warnings"].to_string();
    assert!(warnings.contains("--key client_ip counts by"), "{warnings}");
    let only = both.replace("remote_addr", "peer");
    assert_eq!(by_rule("", "5/min", &only)["warnings"], serde_json::json!([]));
    for clients in [
        &["10.0.0.5", "198.51.100.1"][..],
        &["2001:db8::1", "10.0.0.5"],
        &[
            "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7", "10.0.0.8",
            "10.0.0.9",
        ],
    ] {
        assert!(!is_warned(clients, true), "{clients:?}");
    }
}

#[test]
fn lists_of_addresses_as_keys_are_a_warning() {
    let is_warned = |args: &str, rule: &str, input: &str| {
        let object = by_rule(args, rule, input);
        let warnings = texts(&object, "warnings");
        warnings
            .iter()
            .any(|warning| warning.contains("are lists of addresses"))
    };
    let log = |forwarded: &dyn Fn(usize) -> String| -> String {
        let line = |number| {
            format!(
                "{{\"time\":1431857103,\"x_forwarded_for\":\"{}\"}}\n",
                forwarded(number)
            )
        };
        (0..30).map(line).collect()
    };
    // The first address is one that the client has sent.
    let forged = log(&|number| format!("192.0.2.{number}, 198.51.100.7"));
    assert!(is_warned("", "5/min by x_forwarded_for", &forged));
    assert!(is_warned("--alias client=x_forwarded_for", "5/min", &forged));
    assert!(is_warned(
        "",
        "5/min by x_forwarded_for",
        &log(&|_| "unknown,[2001:db8::1]:80".to_owned())
    ));
    for value in ["198.51.100.7", "a, b", "198.51.100.7, b", "", "-"] {
        let input = log(&|_| value.to_owned());
        assert!(!is_warned("", "5/min by x_forwarded_for", &input), "{value}");
    }
}

#[test]
fn an_alias_names_a_field_wherever_a_rule_does() {
    let input: String = (0..30)
        .map(|number| {
            format!(
                "{{\"time\":1431857103,\"ip\":\"192.0.2.7\",\"uid\":\"u{}\",\"n\":2}}\n",
                number % 6
            )
        })
        .collect();
    for (rule, keys, requests, denied) in [
        ("5/min by user", 6, 30, 0),
        ("5/min by ip,user", 6, 30, 0),
        ("5/min by user , ip", 6, 30, 0),
        ("3/min by both", 6, 30, 12),
        ("3/min by both,n", 6, 30, 12),
        ("2/min by ip when user=u1", 1, 5, 3),
        ("2/min by ip when user!=u1", 1, 25, 23),
        ("2/min by ip when user=u*", 1, 30, 28),
        ("2/min by ip when user", 1, 30, 28),
        ("2/min by ip when first", 1, 5, 3),
        ("5/min by ip cost size", 1, 30, 28),
    ] {
        let args = "--alias user=uid --alias both=ip,uid --alias first=uid=u1 --alias size=n";
        let object = by_rule(args, rule, &input);
        let found = &object["rules"][0];
        assert_fields(found, "keys requests denied", [keys, requests, denied], rule);
    }
    let file = rules("[[rules]]\nname = \"a\"\nquota = \"2/min\"\nkey = \"ip,user\"\nwhen = \"user=u1\"\n");
    let path = file.path().to_str().unwrap();
    let object = json(&on_file(
        &format!("--json --quiet --alias user=uid --rules {path}"),
        &input,
    ));
    assert_eq!(
        (&object["denied"], &object["rules"][0]["requests"]),
        (&3.into(), &5.into())
    );
    let output = on_file("--rule 5/s --alias user=uid --alias user=ip", &input);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("invalid --alias: \"user\" twice (expected each name once)"));
}

#[test]
fn words_in_quotation_marks_are_no_keywords() {
    let input: String = (0..30)
        .map(|number| {
            let message = ["Created by admin", "as  is", "cost"][number % 3];
            let quote = ["\\\"q\\\"", ""][number % 2];
            format!("{{\"time\":1431857103,\"client\":\"192.0.2.{number}\",\"msg\":\"{message}\",\"q\":\"{quote}\"}}\n")
        })
        .collect();
    for (rule, keys, requests) in [
        ("5/min when \"msg=Created by admin\"", 10, 10),
        ("5/min when msg=\"Created by admin\"", 10, 10),
        ("5/min when msg=Created\" by \"admin by client", 10, 10),
        ("5/min when \"msg=as  is\" as x", 10, 10),
        ("5/min when msg=\"as  is\" by client", 10, 10),
        ("5/min when \"msg=as is\"", 0, 0),
        ("5/min when \"msg=cost\"", 10, 10),
        ("5/min when msg!=\"cost\" as \"by the way\"", 20, 20),
        ("5  per   min  by   client", 30, 30),
        (r#"5/min when q=\"q\""#, 15, 15),
        (r#"5/min when "q!=\"q\"" by client"#, 15, 15),
    ] {
        let found = &by_rule("", rule, &input)["rules"][0];
        assert_fields(found, "keys requests", [keys, requests], rule);
    }
    for (rule, said) in [
        ("5/min when \"msg=Created by", "quotation mark: not closed"),
        ("5/min when \"\"", "when: empty"),
        ("5/min by ip by client", "by: there twice"),
    ] {
        let output = on_pipe(tool("--quiet", None).arg("--rule").arg(rule), &input);
        assert_eq!(output.status.code(), Some(2), "{rule}");
        assert!(stderr(&output).contains(said), "{rule}: {}", stderr(&output));
    }
    for when in [
        "msg=Created by admin",
        "msg=as  is",
        "msg=cost",
        "msg!=\"x\" by all cost n",
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ringgate"));
        command.args(["suggest", "--json", "--quiet", "--window", "min", "--when", when]);
        let found = &json(&on_pipe(&mut command, &input))["suggestions"][0];
        let requests = if when.contains("!=") { 30 } else { 10 };
        assert_eq!(
            (&found["key"], &found["requests"], &found["keys"]),
            (&"client".into(), &requests.into(), &requests.into()),
            "{when}"
        );
    }
}

#[test]
fn a_zone_in_brackets_is_that_of_the_time() {
    let input: String = (0..30).map(|number| access("192.0.2.1", number) + "\n").collect();
    for (time, requests) in [
        ("2015-05-17T10:05:20Z", 10),
        ("2015-05-17T12:05:20[Europe/Berlin]", 10),
        ("2015-05-17T12:05:20+02:00[Europe/Berlin]", 10),
        ("2015-05-17T12:05:20[+02:00]", 10),
        ("2015-05-17T04:35:20[-05:30]", 10),
        ("2015-05-17T10:05:20[UTC]", 10),
        ("2015-05-17T19:05:20[Asia/Tokyo]", 10),
        ("2015-05-17[Asia/Tokyo]", 30),
    ] {
        let object = json(&on_file(
            &format!("--json --quiet --rule 5/min --from {time}"),
            &input,
        ));
        assert_eq!(object["requests"], requests, "{time}");
        assert_eq!(object["to"], 1_431_857_129_000_i64, "{}", clock(29));
    }
    for time in [
        "2015-05-17T12:05:20[Europe/Nowhere]",
        "2015-05-17T12:05:20+05:00[Europe/Berlin]",
        "2015-05-17T12:05:20[",
        "2015-05-17T12:05:20[]",
    ] {
        let output = run(["replay", "--rule", "5/s", "--from", time]);
        assert_eq!(output.status.code(), Some(2), "{time}");
        assert!(stderr(&output).contains("invalid --from"), "{}", stderr(&output));
    }
}
