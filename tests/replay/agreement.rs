//! The tool finds what brute force finds.

use alloc::collections::BTreeSet;
use core::iter::repeat_n;
use std::fs;

use serde_json::Value;

use crate::brute_force::{self, Found, Model};
use crate::log::{START, line, lines, shuffled, text};
use crate::tool::{file, json, on_file, stderr, tool};

/// The JSON object as what brute force finds.
fn found(object: &Value) -> Found {
    let number = |object: &Value, name: &str| object[name].as_u64().unwrap();
    let string = |object: &Value, name: &str| object[name].as_str().unwrap().to_string();
    let rows = object["denied_by_key"].as_array().unwrap().iter();
    Found {
        requests: number(object, "requests"),
        admitted: number(object, "admitted"),
        denied: number(object, "denied"),
        keys: number(object, "keys"),
        first: string(object, "first"),
        last: string(object, "last"),
        denied_by_key: rows
            .map(|row| (string(row, "key"), number(row, "requests"), number(row, "denied")))
            .collect(),
    }
}

/// The algorithms as arguments, and how each of them decides.
fn models(limit: i64, window: i64) -> Vec<(&'static str, Model)> {
    let cells = |cells, summed, shares| Model::Cells {
        cells,
        summed,
        shares,
    };
    let mut models = vec![
        ("--algorithm log", Model::Log),
        ("", cells(5, 6, false)),
        ("--algorithm counter --cells 2", cells(2, 3, false)),
        ("--algorithm classic", cells(5, 5, false)),
        ("--algorithm classic --cells 10", cells(10, 10, false)),
        ("--algorithm fixed", cells(1, 1, false)),
    ];
    // Brute force knows the shares only when they are equal, and buckets only in whole halves
    // of a nanosecond.
    if limit % 5 == 0 {
        models.push(("--algorithm even", cells(5, 5, true)));
    }
    if window * 2_000_000_000 % limit == 0 {
        models.push(("--algorithm gcra", Model::Bucket));
    }
    models
}

/// The tool finds what brute force finds, by every algorithm and by several rules.
fn agrees(log: &str) {
    let path = file(log);
    let mut denied = BTreeSet::new();
    for (limit, window) in [(20, 60), (5, 10), (100, 3600), (1, 1), (10, 30), (1, 86_400)] {
        for (algorithm, model) in models(limit, window) {
            let args = format!("--json --rule {limit}/{window}s {algorithm}");
            let output = tool(&args, Some(path.path())).output().unwrap();
            let expected = brute_force::replay(log, limit, window, model);
            assert_eq!(found(&json(&output)), expected, "{args}");
            denied.insert(expected.denied);
        }
    }
    // A log on which all algorithms and rules deny the same would tell nothing.
    assert!(denied.len() > 10, "{denied:?}");
}

#[test]
fn a_log_in_order_is_decided_as_by_brute_force() {
    agrees(&text(&lines(4_000, 1)));
}

#[test]
fn a_log_in_no_order_is_decided_as_by_brute_force() {
    agrees(&text(&shuffled(lines(4_000, 2), 3)));
}

#[test]
fn the_shared_log_is_decided_as_by_brute_force() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/access.log");
    match fs::read(path) {
        Ok(log) => agrees(&String::from_utf8_lossy(&log)),
        // The two tests above have done the same with logs of their own.
        Err(error) => println!("not run: {path}: {error}"),
    }
}

#[test]
fn large_limits_are_exact() {
    // 126,000 requests of one client in two and a half hours, 14 a second, and one a second of another.
    let lines: Vec<String> = (START..START + 9_000)
        .flat_map(|second| {
            let [one, other] = ["::1", "::2"].map(|address| line(address, second));
            repeat_n(one, 14).chain([other])
        })
        .collect();
    let log = text(&lines);
    let path = file(&log);
    for (limit, window) in [(700, 60), (5_000, 600), (50_000, 3600), (100_000, 7200)] {
        let args = format!("--json --algorithm log --rule {limit}/{window}s");
        let expected = brute_force::replay(&log, limit, window, Model::Log);
        assert!(expected.denied > 0);
        let output = tool(&args, Some(path.path())).output().unwrap();
        assert_eq!(found(&json(&output)), expected, "{args}");
    }
}

#[test]
fn twenty_years_are_counted_and_more_is_an_error() {
    const DAY: i64 = 24 * 3600;
    // 50 requests in 25 seconds, and again after so many days.
    let twice = |days: i64| {
        let lines: Vec<String> = [0, days * DAY]
            .iter()
            .flat_map(|later| (0..50).map(move |half| line("a", 946_684_800 + later + half / 2)))
            .collect();
        text(&lines)
    };
    let log = twice(20 * 366 - 1);
    for (algorithm, model) in models(5, 10) {
        let args = format!("--json --rule 5/10s {algorithm}");
        let expected = brute_force::replay(&log, 5, 10, model);
        assert_eq!(found(&json(&on_file(&args, &log))), expected, "{args}");
    }
    for log in [twice(20 * 366), text(&[line("a", START), line("a", 5)])] {
        let output = on_file("--rule 5/10s", &log);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        assert!(
            stderr(&output).contains("a limiter counts 7319 days"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn windows_are_half_open() {
    let at = |seconds: &[i64]| text(&seconds.iter().map(|s| line("a", START + s)).collect::<Vec<_>>());
    for (seconds, denied) in [(&[0, 9][..], 1), (&[0, 10], 0), (&[0, 9, 10, 19, 20], 2)] {
        let output = on_file("--json --algorithm log --rule 1/10s", at(seconds));
        assert_eq!(json(&output)["denied"], denied, "{seconds:?}");
    }
}

#[test]
fn fixed_windows_begin_at_multiples_of_the_window() {
    // START is the middle of an hour: the second request is in the same hour, the third is not.
    let log = text(&[0, 1_799, 1_800].map(|second| line("a", START + second)));
    let output = on_file("--json --algorithm fixed --rule 1/h", log);
    assert_eq!(json(&output)["denied"], 1);
}
