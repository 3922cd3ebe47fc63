//! Fixed windows and calendars in a store: a counter for each period, which the wall clocks of the nodes name.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::time::SystemTime;

use ringgate::rules::kind::AnyKind;
use ringgate::rules::{AnyRule, Block, RuleAlgorithm};
use ringgate::shared::{MemoryStore, OnError, SharedRules};
use ringgate::{ManualClock, Nanos, Rule, Settled};

use crate::user;

/// A wall clock in milliseconds since 1970.
type Wall = Arc<AtomicU64>;

/// A day in milliseconds.
const DAY: u64 = 86_400_000;

fn fixed(quota: &str) -> Rule<str> {
    let rule = Rule::new("fixed", quota.parse().expect("a quota")).by(&user());
    rule.algorithm(RuleAlgorithm::Fixed).on_error(OnError::Deny)
}

fn node<K: Into<AnyKind>>(store: &Arc<MemoryStore>, rule: Rule<str, K>, wall: &Wall) -> SharedRules<str> {
    let wall = Arc::clone(wall);
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_millis(wall.load(Ordering::Relaxed));
    let rules = SharedRules::builder().rule(rule).wall_clock(now);
    rules.build(store.clone()).expect("rules")
}

/// The admissions of ten requests, and the retry time of the first denial.
async fn ten(rules: &SharedRules<str>) -> (usize, Option<Duration>) {
    let (mut admitted, mut wait) = (0, None);
    for _ in 0..10 {
        match rules.check("alice").await {
            Ok(_) => admitted += 1,
            Err(denied) => wait = wait.or(denied.retry_after()),
        }
    }
    (admitted, wait)
}

#[tokio::test]
async fn a_fixed_window_admits_its_limit_until_its_end() {
    let minute = 60_000;
    let (store, wall) = (Arc::new(MemoryStore::new()), Wall::default());
    let nodes = [(); 2].map(|()| node(&store, fixed("5/min"), &wall));
    // The time, the node, its admissions of ten requests, and the retry time in milliseconds.
    for (at, of, admitted, wait) in [
        (0, 0, 5, 60_000),
        (1, 1, 0, 59_999),
        (minute - 1, 0, 0, 1),
        (minute, 1, 5, 60_000),
        (minute + 30_000, 0, 0, 30_000),
        (7 * minute + 59_000, 0, 5, 1_000),
        (8 * minute, 1, 5, 60_000),
        // A wall clock that goes back finds the counter of that window.
        (7 * minute, 1, 0, 60_000),
    ] {
        wall.store(at, Ordering::Relaxed);
        let expected = (admitted, Some(Duration::from_millis(wait)));
        assert_eq!(ten(&nodes[of]).await, expected, "{at}");
    }
    assert_eq!(nodes[0].max_overshoot(2).next(), Some(("fixed", Some(5))));
}

/// One node charges a period before the store's clock reaches it, and another one after it, because their clocks differ.
#[tokio::test]
async fn a_period_admits_its_limit_on_both_sides_of_its_ends() {
    let mut cases = vec![
        (fixed("5/min").into_any(), 60_000),
        (fixed("5/s").into_any(), 1_000),
        (fixed("5/h").into_any(), 3_600_000),
    ];
    cases.extend(calendars());
    for (rule, length) in cases {
        // A Monday at midnight.
        let (starts, ends) = (18 * DAY, 18 * DAY + length);
        // The store's clock and the node's clock at the first charge, and at the second one.
        for (first, second) in [
            ((starts - 1, starts), (ends, ends - 1)),
            ((starts - 1, starts), (ends + length / 2, ends - 1)),
            ((starts - length / 2, starts), (ends + 1, ends - 1)),
            ((starts - length / 2, starts), (ends + length / 2 - 1, ends - 1)),
            ((starts - 1, starts), (ends + length - 2, ends - 1)),
            ((starts - length, starts), (ends - 1, ends - 1)),
            // The clock of one node goes back over the boundary.
            ((starts, starts), (ends, ends - 1)),
            ((starts + 1, ends - 1), (ends + length, starts)),
        ] {
            let (clock, wall) = (Arc::new(ManualClock::new()), Wall::default());
            let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
            let nodes = [(); 2].map(|()| node(&store, rule.clone(), &wall));
            let mut admitted = Vec::new();
            for (node, (at_store, at_node)) in nodes.iter().zip([first, second]) {
                clock.set(Nanos::from_duration(Duration::from_millis(at_store)));
                wall.store(at_node, Ordering::Relaxed);
                admitted.push(ten(node).await.0);
            }
            assert_eq!(admitted, [5, 0], "{rule:?}, {first:?}, {second:?}");
        }
    }
}

#[tokio::test]
async fn a_refund_finds_its_period() {
    let (store, wall) = (Arc::new(MemoryStore::new()), Wall::default());
    let rules = node(&store, fixed("5/min"), &wall);
    let first = rules.check("alice").await.expect("room");
    assert_eq!(ten(&rules).await.0, 4);
    assert_eq!(rules.refund(first).await, Ok(Settled::Exact));
    assert_eq!(ten(&rules).await.0, 1);
    let remaining = async || rules.peek("alice").await.expect("an answer")[0].remaining;
    assert_eq!(remaining().await, 0);
    let late = {
        wall.store(60_000, Ordering::Relaxed);
        assert_eq!(remaining().await, 5);
        rules.check("alice").await.expect("room")
    };
    // The refund of the former window takes nothing from this one.
    wall.store(120_000, Ordering::Relaxed);
    assert_eq!(ten(&rules).await.0, 5);
    assert_eq!(rules.refund(late).await, Ok(Settled::Exact));
    assert_eq!(ten(&rules).await.0, 0);
    rules.reset("alice").await.expect("an answer");
    assert_eq!(ten(&rules).await.0, 5);
    rules.ready(Duration::from_secs(20)).await.expect("a decision");
}

/// Rules with calendars of five permits, and the lengths of their periods in milliseconds.
#[cfg(feature = "calendar")]
fn calendars() -> Vec<(AnyRule<str>, u64)> {
    let rule = |quota: &str| {
        let calendar: ringgate::algorithm::CalendarQuota = quota.parse().expect("a quota");
        let rule = Rule::calendar("calendar", calendar).by(&user());
        rule.on_error(OnError::Deny).into_any()
    };
    vec![(rule("5/day"), DAY), (rule("5/week"), 7 * DAY)]
}

#[cfg(not(feature = "calendar"))]
fn calendars() -> Vec<(AnyRule<str>, u64)> {
    Vec::new()
}

/// The violations of all periods count together, and a block outlasts its period.
#[tokio::test]
async fn a_rule_of_periods_blocks_its_keys() {
    let also = |rule: Rule<str>, quota: &str| rule.also(quota.parse().expect("a quota"));
    let length = Duration::from_secs(600);
    // The rule, the length of its period in milliseconds, and the admissions of ten requests in the second period.
    let mut rules = [
        (fixed("5/s"), 1_000, 5),
        (fixed("5/min"), 60_000, 5),
        (also(fixed("5/min"), "50/h"), 60_000, 5),
        (also(fixed("5/h"), "6/d"), 3_600_000, 1),
        (also(also(fixed("9/s"), "5/min"), "8/h"), 60_000, 3),
    ]
    .map(|(rule, period, second)| (rule.into_any(), period, second))
    .to_vec();
    rules.extend(calendars().into_iter().map(|(rule, period)| (rule, period, 5)));
    for (rule, period, second) in rules {
        let context = format!("{rule:?}");
        let block = Block::new("7/min".parse().expect("a quota"), length);
        // A Monday at midnight.
        let starts = 4 * DAY;
        let (clock, wall) = (Arc::new(ManualClock::new()), Wall::new(starts.into()));
        let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
        let nodes = [(); 2].map(|()| node(&store, rule.clone().block(block.clone()), &wall));
        assert_eq!(ten(&nodes[0]).await.0, 5, "{context}");
        wall.store(starts + period, Ordering::Relaxed);
        assert_eq!(ten(&nodes[1]).await.0, second, "{context}");
        wall.store(starts + 1_000 * period, Ordering::Relaxed);
        for (passed, left) in [(0, 600), (60, 540), (539, 1)] {
            clock.advance(Duration::from_secs(passed));
            let blocked = (0, Some(Duration::from_secs(left)));
            assert_eq!(
                ten(&nodes[0]).await,
                blocked,
                "{context}, {left} s before the end"
            );
        }
        nodes[1].unblock("alice").await.expect("an answer");
        assert!(nodes[0].check("alice").await.is_ok(), "{context}");
    }
}

/// The periods of calendars: the quota, its time zone, the time, and the seconds until the end.
#[cfg(feature = "calendar")]
#[tokio::test]
async fn a_calendar_admits_its_limit_in_each_period() {
    let day = 86_400;
    for (quota, zone, now, left) in [
        ("5/day", "UTC", 1_774_738_800, 3600),
        // The days on which clocks are set forward and back.
        ("5/day", "Europe/Berlin", 1_774_738_800, 23 * 3600),
        ("5/day", "Europe/Berlin", 1_792_879_200, 25 * 3600),
        ("5/month", "UTC", 1_769_904_000, 28 * day),
        ("5/month from the 5th", "UTC", 1_770_249_599, 1),
        ("5/week", "UTC", 1_795_564_800, 5 * day),
        ("5/week from sunday", "UTC", 1_795_564_800, 4 * day),
        ("5/year", "UTC", 1_830_297_600, 366 * day),
    ] {
        let calendar: ringgate::algorithm::CalendarQuota = quota.parse().expect("a quota");
        let calendar = calendar.in_zone(zone).expect("a zone");
        let rule = Rule::calendar("calendar", calendar)
            .by(&user())
            .on_error(OnError::Deny);
        let (store, wall) = (Arc::new(MemoryStore::new()), Wall::default());
        let nodes = [(); 2].map(|()| node(&store, rule.clone(), &wall));
        let wait = |seconds: u64| Some(Duration::from_secs(seconds));
        wall.store(now * 1000, Ordering::Relaxed);
        assert_eq!(ten(&nodes[0]).await, (5, wait(left)), "{quota} {zone} {now}");
        assert_eq!(ten(&nodes[1]).await, (0, wait(left)), "{quota} {zone} {now}");
        wall.store((now + left) * 1000 - 1, Ordering::Relaxed);
        let last = Some(Duration::from_millis(1));
        assert_eq!(ten(&nodes[1]).await, (0, last), "{quota} {zone} {now}");
        wall.store((now + left) * 1000, Ordering::Relaxed);
        assert_eq!(ten(&nodes[1]).await.0, 5, "{quota} {zone} {now}");
        assert_eq!(nodes[0].max_overshoot(2).next(), Some(("calendar", Some(5))));
    }
}
