//! Decisions on several threads, beside those on one.

use std::collections::HashMap;

use super::*;
use crate::args::{AlgorithmName, CountArgs};
use crate::input::row::Row;

fn plan(rules: &[&str]) -> Plan {
    let count = CountArgs {
        key: "client".to_owned(),
        cost: None,
        algorithm: AlgorithmName::Counter,
        cells: None,
    };
    let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    Plan::of_args(&rules, &count, None, HashMap::new()).expect("valid rules")
}

const SECOND: i64 = 1_000_000_000;

/// Requests of 40 clients at random times within an hour.
fn events(plan: &Plan, count: usize) -> Sorted {
    let layout = plan.fields.layout();
    let mut events = Sorter::new(layout.words());
    let (mut row, mut record, mut random) = (Row::default(), Vec::new(), 7_u64);
    for _ in 0..count {
        let mut below = |end: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % end
        };
        row.clear();
        row.time = below(3600).cast_signed() * SECOND;
        for (place, field) in layout.fields.iter().enumerate() {
            let values = if field == "client" { 40 } else { 4 };
            row.set(place, below(values).to_string().as_bytes());
        }
        layout.record(&row, &mut record).expect("a record");
        events.push(&record).expect("room");
    }
    events.finish().expect("sorted")
}

/// The verdicts and the series of a run.
fn run(rules: &[&str], threads: usize, keys: u64) -> (Vec<u64>, Vec<Vec<u64>>, bool) {
    let plan = plan(rules);
    let events = events(&plan, 3 * BATCH + 17);
    let windows = plan.entries.iter().map(PlanEntry::window);
    let span = Span::new(0, 3600 * SECOND, windows).expect("a span");
    let mut progress = Progress::new(None, true);
    let mut judged = judge(&plan, events, keys, span, threads, &mut progress).expect("judged");
    let (mut reading, mut verdicts) = (judged.verdicts.read().expect("readable"), Vec::new());
    while let Some(words) = reading.next().expect("readable") {
        verdicts.extend_from_slice(words);
    }
    let mut series = judged.series.by_rule;
    series.extend([judged.series.requests, judged.series.denied]);
    (verdicts, series, judged.overflowed.is_empty())
}

#[test]
fn several_threads_decide_as_one() {
    for rules in [
        &["9/60s"][..],
        &["30/60s algorithm log as a", "100/10m algorithm gcra burst 7 as b"],
        &[
            "9/60s when path=1 as a",
            "20/60s cost size as b",
            "90/h algorithm fixed as c",
        ],
    ] {
        let one = run(rules, 1, 40);
        assert!(one.0.iter().any(|verdict| verdict & 1 == 1), "some are denied");
        for threads in [2, 3, 8] {
            assert_eq!(run(rules, threads, 40), one, "{rules:?} on {threads}");
        }
    }
}

#[test]
fn rules_with_several_keys_have_one_thread() {
    assert!(plan(&["9/60s as a", "5/s as b"]).common_key().is_some());
    assert_eq!(plan(&["9/60s as a", "5/s by path as b"]).common_key(), None);
    assert_eq!(plan(&["9/60s as a", "5/s by all as b"]).common_key(), None);
}

#[test]
fn room_is_shared_by_the_tables_of_one_thread() {
    let room = |rules: &[&str]| {
        let plan = plan(rules);
        (0..31)
            .rev()
            .find(|bit| plan.has_room(1_u64 << bit))
            .expect("room for a key")
    };
    let one = room(&["9/60s as a"]);
    assert!((20..30).contains(&one), "2^{one} keys");
    assert_eq!(room(&["9/60s as a", "8/60s as b"]), one - 1);
    // A limit for all requests has no table.
    assert_eq!(room(&["9/60s as a", "8/60s by all as b"]), one);
    assert!(!plan(&["9/60s as a"]).has_room(u64::MAX));
}
