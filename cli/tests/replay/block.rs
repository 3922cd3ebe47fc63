//! Rules with a block: a key that the rule has denied too often is denied until the end of its block.

use std::fs;

use crate::tool::{file, json, run};

#[test]
fn a_blocked_key_is_denied_until_the_end_of_its_block() {
    let rules = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    let text = "[[rules]]\nname = 'client'\nkey = 'client'\nquota = '2/min'\n\
                [rules.block]\nafter = '3/min'\nfor = '10min'\n";
    fs::write(rules.path(), text).unwrap();
    let mut log = String::new();
    // Two are admitted, and three violate the rule. The client is blocked from 10:00:04 to 10:10:04. Another client is not.
    for (client, time) in [
        (1, "10:00:00"),
        (1, "10:00:01"),
        (1, "10:00:02"),
        (1, "10:00:03"),
        (1, "10:00:04"),
        (1, "10:05:00"),
        (2, "10:05:00"),
        (1, "10:10:03"),
        (1, "10:10:04"),
    ] {
        log += &format!("192.0.2.{client} - - [01/Nov/2026:{time} +0000] \"GET / HTTP/1.1\" 200 17\n");
    }
    let log = file(log);
    let paths = [
        "--rules",
        rules.path().to_str().unwrap(),
        log.path().to_str().unwrap(),
    ];
    let report = json(&run(["replay", "--json"].iter().chain(&paths)));
    for counts in [&report, &report["rules"][0]] {
        assert_eq!(
            (counts["admitted"].as_u64(), counts["denied"].as_u64()),
            (Some(4), Some(5))
        );
    }
    let notes = report["notes"].as_array().unwrap();
    let expected =
        "rule \"client\" blocked keys 1 times; peaks and other limits are computed as if no key was blocked";
    assert!(notes.iter().any(|note| note == expected), "{notes:?}");
}
