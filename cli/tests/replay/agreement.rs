//! Reports agree with brute force.

use alloc::collections::BTreeSet;
use core::iter::repeat_n;
use serde_json::Value;

use crate::brute_force::{self, Expected, ExpectedKey, Model, Request, SECOND};
use crate::log::{START, line, lines, shuffled, text};
use crate::tool::{assert_fields, file, json, on_file, stderr, tool};

fn number(object: &Value, name: &str) -> u64 {
    object[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} of {object}"))
}

fn numbers(list: &Value) -> Vec<u64> {
    let list = list.as_array().unwrap().iter();
    list.map(|number| number.as_u64().unwrap()).collect()
}

/// Asserts that the JSON report of one rule equals the result of brute force.
pub(crate) fn assert_report(object: &Value, expected: &Expected, context: &str) {
    let rule = &object["rules"][0];
    for counts in [object, rule] {
        assert_eq!(number(counts, "requests"), expected.requests, "{context}");
        assert_eq!(number(counts, "denied"), expected.denied, "{context}");
        assert_eq!(
            number(counts, "admitted"),
            expected.requests - expected.denied,
            "{context}"
        );
    }
    assert_eq!(number(rule, "worst"), expected.worst, "{context}");
    assert!(number(rule, "worst") <= number(rule, "bound"), "{context}");
    assert_eq!(number(rule, "keys"), expected.keys.len() as u64, "{context}");
    assert_fields(object, "from to", [expected.from, expected.to], "");
    assert_keys(object, expected, context);
    assert_series(object, expected, context);
}

/// Asserts that the report has at most 50 keys, by rank. Of several keys with the last rank, the report may have any.
fn assert_keys(object: &Value, expected: &Expected, context: &str) {
    let listed = object["keys"].as_array().unwrap().iter().map(|key| ExpectedKey {
        key: key["key"].as_str().unwrap().to_string(),
        requests: number(key, "requests"),
        denied: number(key, "denied"),
        first_denied: key["first_denied"].as_i64(),
        last_denied: key["last_denied"].as_i64(),
        worst: number(key, "worst"),
    });
    let mut listed: Vec<ExpectedKey> = listed.collect();
    assert!(
        listed.is_sorted_by(|one, next| one.rank() >= next.rank()),
        "{context}"
    );
    let by_rank = |keys: &mut Vec<ExpectedKey>| {
        keys.sort_by(|one, other| (other.rank(), &other.key).cmp(&(one.rank(), &one.key)));
    };
    let mut all = expected.keys.clone();
    by_rank(&mut listed);
    by_rank(&mut all);
    assert_eq!(listed.len(), all.len().min(50), "{context}");
    let last = listed[listed.len() - 1].rank();
    assert_eq!(all[listed.len() - 1].rank(), last, "{context}");
    let complete = |keys: &[ExpectedKey]| -> Vec<ExpectedKey> {
        let above = keys.iter().filter(|key| key.rank() > last || keys.len() <= 50);
        above.cloned().collect()
    };
    if all.len() <= 50 {
        assert_eq!(listed, all, "{context}");
    } else {
        let listed: Vec<ExpectedKey> = listed.into_iter().filter(|key| key.rank() > last).collect();
        assert_eq!(listed, complete(&all), "{context}");
    }
}

/// Asserts that the series has equal steps, and that its sums are all requests and denials.
fn assert_series(object: &Value, expected: &Expected, context: &str) {
    let series = &object["series"];
    let (requests, denied) = (numbers(&series["requests"]), numbers(&series["denied"]));
    let steps = (expected.to - expected.from) / object["step"].as_i64().unwrap() + 1;
    assert!((1..=500).contains(&steps), "{context}");
    assert_eq!((requests.len(), denied.len()), (steps as usize, steps as usize));
    assert_eq!(requests.iter().sum::<u64>(), expected.requests, "{context}");
    assert_eq!(denied.iter().sum::<u64>(), expected.denied, "{context}");
    let of_rule = series["by_rule"].as_object().unwrap().values().next().unwrap();
    assert_eq!(numbers(of_rule), denied, "{context}");
}

/// The arguments of the algorithms, with their models.
pub(crate) fn models(limit: i64, window: i64) -> Vec<(&'static str, Model)> {
    let cells = |cells, summed, shares| Model::Cells {
        cells,
        summed,
        shares,
    };
    let mut models = vec![
        ("--algorithm log", Model::Log),
        ("", Model::Word),
        ("--algorithm counter", cells(60, 61, false)),
        ("--algorithm counter --cells 2", cells(2, 3, false)),
        ("--algorithm classic", cells(5, 5, false)),
        ("--algorithm classic --cells 10", cells(10, 10, false)),
        ("--algorithm fixed", cells(1, 1, false)),
    ];
    // Brute force models even rings only with equal shares, and buckets only with whole halves of a nanosecond.
    if limit % 5 == 0 {
        models.push(("--algorithm even", cells(5, 5, true)));
    }
    if window * 2_000_000_000 % limit == 0 {
        models.push(("--algorithm gcra", Model::Bucket));
    }
    models
}

/// Asserts that reports agree with brute force for every algorithm and these limits and windows in seconds.
fn assert_agrees(log: &str, quotas: &[(i64, i64)]) {
    let path = file(log);
    let requests = brute_force::requests(log);
    let mut denied = BTreeSet::new();
    for &(limit, window) in quotas {
        for (algorithm, model) in models(limit, window) {
            let args = format!("--json --rule {limit}/{window}s {algorithm}");
            let output = tool(&args, Some(path.path())).output().unwrap();
            let expected = brute_force::replay(&requests, limit, window * SECOND, model);
            assert_report(&json(&output), &expected, &args);
            denied.insert(expected.denied);
        }
    }
    // The algorithms and rules have to differ on this log. Otherwise the comparison proves nothing.
    assert!(denied.len() > 10, "{denied:?}");
}

const QUOTAS: [(i64, i64); 6] = [(20, 60), (5, 10), (100, 3600), (1, 1), (10, 30), (1, 86_400)];

#[test]
fn an_ordered_log_agrees_with_brute_force() {
    assert_agrees(&text(&lines(2_000, 1)), &QUOTAS);
}

#[test]
fn an_unordered_log_agrees_with_brute_force() {
    assert_agrees(&text(&shuffled(lines(2_000, 2), 3)), &QUOTAS);
}

#[test]
fn other_limits_and_algorithms_are_replayed_exactly() {
    let log = text(&lines(2_000, 21));
    let requests = brute_force::requests(&log);
    for (limit, window) in [(20, 60), (10, 10), (50, 3600)] {
        let compared: Vec<(&str, Model)> = models(limit, window)
            .into_iter()
            .filter(|(algorithm, _)| !algorithm.contains("--cells"))
            .collect();
        for (place, (algorithm, model)) in compared.iter().enumerate() {
            let args = format!("--json --compare --rule {limit}/{window}s {algorithm}");
            let object = json(&on_file(&args, &log));
            let what_if = &object["what_if"][0];
            let limits = numbers(&what_if["limits"]);
            assert!(limits.is_sorted() && limits[0] == 1 && limits.contains(&(limit as u64)));
            // The highest limit denies no request.
            assert_eq!(numbers(&what_if["denied"]).last(), Some(&0), "{args}");
            assert_eq!(number(what_if, "requests"), requests.len() as u64);
            let denied = numbers(&what_if["denied"]).into_iter();
            let found = denied.zip(numbers(&what_if["keys_denied"]));
            // One limit in three, since brute force is slow.
            for (other, (denied, keys)) in limits.into_iter().zip(found).skip(place % 3).step_by(3) {
                let other = other as i64;
                if matches!(model, Model::Bucket) && window * 2_000_000_000 % other != 0
                    || matches!(model, Model::Cells { shares: true, .. }) && other % 5 != 0
                {
                    continue;
                }
                let expected = brute_force::replay(&requests, other, window * SECOND, *model);
                let of_keys = expected.keys.iter().filter(|key| key.denied > 0).count();
                assert_eq!(
                    (denied, keys),
                    (expected.denied, of_keys as u64),
                    "{args}, limit {other}"
                );
            }
            // The comparison does not depend on the rule's own algorithm.
            if place == 0 {
                assert_comparison(&object, &requests, limit, window, &compared);
            }
        }
    }
}

fn assert_comparison(
    object: &Value,
    requests: &[Request],
    limit: i64,
    window: i64,
    models: &[(&str, Model)],
) {
    let rows = object["compare"].as_array().unwrap();
    assert_eq!(rows.len(), 9);
    for cells in [5, 13] {
        let name = format!("counter, {cells} cells");
        let row = rows.iter().find(|row| row["algorithm"] == *name).unwrap();
        let model = Model::Cells {
            cells,
            summed: cells + 1,
            shares: false,
        };
        let expected = brute_force::replay(requests, limit, window * SECOND, model);
        assert_eq!(
            (number(row, "denied"), number(row, "worst")),
            (expected.denied, expected.worst),
            "{name}"
        );
    }
    for (algorithm, model) in models {
        let name = algorithm.strip_prefix("--algorithm ").unwrap_or("sliding-window");
        let row = rows.iter().find(|row| row["algorithm"] == name).unwrap();
        let expected = brute_force::replay(requests, limit, window * SECOND, *model);
        assert_eq!(number(row, "denied"), expected.denied, "{name}");
        assert_eq!(
            number(row, "admitted"),
            expected.requests - expected.denied,
            "{name}"
        );
        assert_eq!(number(row, "worst"), expected.worst, "{name}");
        assert!(number(row, "worst") <= number(row, "bound"), "{name}");
    }
}

#[test]
fn sliding_counts_are_exact() {
    let log = text(&lines(2_000, 22));
    let requests = brute_force::in_order(&brute_force::requests(&log));
    let object = json(&on_file("--json --rule 10/60s --algorithm log", &log));
    let found = brute_force::replay(&requests, 10, 60 * SECOND, Model::Log);
    let chosen = object["chosen"].as_array().unwrap();
    assert_eq!(chosen.len(), 10);
    for (chosen, listed) in chosen.iter().zip(object["keys"].as_array().unwrap()) {
        assert_eq!((&chosen["key"], &chosen["limit"]), (&listed["key"], &10.into()));
        let of_key = requests.iter().zip(&found.verdicts);
        let of_key: Vec<_> = of_key
            .filter(|(request, _)| chosen["key"] == *request.key)
            .collect();
        for (name, all) in [("asked", true), ("admitted", false)] {
            let taken: Vec<(i64, u64)> = of_key
                .iter()
                .filter(|(_, admitted)| all || **admitted)
                .map(|(request, _)| (request.at, request.cost))
                .collect();
            let points = chosen[name].as_array().unwrap();
            assert!(points.len() > 20 && points.len() <= 2_000);
            // All times are whole seconds, so a request at the end of another's window does not share the window.
            let mut largest = 0;
            for point in points {
                let (at, count) = (point[0].as_i64().unwrap(), point[1].as_u64().unwrap());
                let expected = brute_force::counted(&taken, at * 1_000_000, 60 * SECOND);
                let before = brute_force::counted(&taken, at * 1_000_000 - 1, 60 * SECOND);
                assert!(
                    expected <= count && count <= expected.max(before),
                    "{name} {point}"
                );
                largest = largest.max(count);
            }
            assert_eq!(largest, brute_force::most(&taken, 60 * SECOND), "{name}");
            assert!(!all || listed["worst"].as_u64() == Some(largest));
        }
    }
}

#[test]
fn large_limits_are_exact() {
    // In two and a half hours, one client sends 14 requests a second (126,000), and another one a second.
    let lines: Vec<String> = (START..START + 9_000)
        .flat_map(|second| {
            let [one, other] = ["2001:db8:1::1", "2001:db8:2::1"].map(|address| line(address, second));
            repeat_n(one, 14).chain([other])
        })
        .collect();
    let log = text(&lines);
    let requests = brute_force::requests(&log);
    let path = file(&log);
    for (limit, window) in [(5_000, 600), (100_000, 7200)] {
        // Without JSON there are no charts, which would simulate sixty limits.
        let args = format!("--compare --rule {limit}/{window}s --algorithm log");
        let output = tool(&args, Some(path.path())).output().unwrap();
        let mut expected = 0;
        let mut admitted = alloc::collections::VecDeque::new();
        for request in requests.iter().filter(|request| request.key == "2001:db8:1::1") {
            while admitted
                .front()
                .is_some_and(|&s| s <= request.at - window * SECOND)
            {
                admitted.pop_front();
            }
            if admitted.len() < limit as usize {
                admitted.push_back(request.at);
            } else {
                expected += 1;
            }
        }
        assert!(expected > 0);
        let message = String::from_utf8(output.stdout).unwrap();
        assert!(
            message.contains(&format!("\ndenied     {expected}\n")),
            "{message}"
        );
    }
}

#[test]
fn a_log_may_span_fifteen_years() {
    const DAY: i64 = 24 * 3600;
    // 50 requests in 25 seconds, and as many again after some days.
    let twice = |days: i64| {
        let lines: Vec<String> = [0, days * DAY]
            .iter()
            .flat_map(|later| (0..50).map(move |half| line("a", 946_684_800 + later + half / 2)))
            .collect();
        text(&lines)
    };
    let log = twice(15 * 366 - 1);
    for (algorithm, model) in models(5, 10) {
        let args = format!("--json --rule 5/10s {algorithm}");
        let expected = brute_force::replay(&brute_force::requests(&log), 5, 10 * SECOND, model);
        assert_report(&json(&on_file(&args, &log)), &expected, &args);
    }
    for log in [twice(15 * 366), text(&[line("a", START), line("a", 5)])] {
        let output = on_file("--rule 5/10s", &log);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        assert!(
            stderr(&output).contains("expected at most 5489 days"),
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
    // START is the middle of an hour. The second request is in the same hour, the third in the next.
    let log = text(&[0, 1_799, 1_800].map(|second| line("a", START + second)));
    let output = on_file("--json --algorithm fixed --rule 1/h", log);
    assert_eq!(json(&output)["denied"], 1);
}
