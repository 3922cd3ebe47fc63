//! Rules with a block: a key that the rule has denied too often is denied until the end of its block.

use crate::tool::{by_rules, texts};

#[test]
fn a_blocked_key_is_denied_until_the_end_of_its_block() {
    let rules = "[[rules]]\nname = 'client'\nkey = 'client'\nquota = '2/min'\n\
                [rules.block]\nafter = '3/min'\nfor = '10min'\n";
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
    let report = by_rules(rules, "", log);
    for counts in [&report, &report["rules"][0]] {
        assert_eq!(
            (counts["admitted"].as_u64(), counts["denied"].as_u64()),
            (Some(4), Some(5))
        );
    }
    let expected =
        "rule \"client\" blocked keys 1 times; peaks and other limits are computed as if no key was blocked";
    assert!(texts(&report, "notes").contains(&expected), "{report}");
}
