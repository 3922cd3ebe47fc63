//! No window ever exceeds the bound, and histories reach the bound, so that it is not too high. The bound of a bucket is
//! b + L − 1: a greedy caller reaches it, and no rounding exceeds it.

use core::time::Duration;

use proptest::prelude::*;
use ringgate::algorithm::CounterRingBuilder;
use ringgate::{Algorithm, CounterRing, Gcra, Nanos, Quota, TimestampRing};

use super::walk::{Move, Walk, acts, anywhere, config, history, nanos, quota, subject};
use crate::common::{Any, Log, State, Subject};

proptest! {
    #![proptest_config(config())]

    /// Refunds, debts, and clocks that step back, stand still, jump by decades and end.
    #[test]
    fn no_clock_and_no_refund_exceeds_the_bound(
        subject in subject(),
        history in history(anywhere(), acts()),
    ) {
        let walk = Walk::after(&subject.algorithm, history);
        prop_assert_eq!(subject.broken(&walk.log), None);
    }

    /// Every method with every number, in every reachable state, does not panic. In debug builds, an overflow is a
    /// panic.
    #[test]
    fn no_reading_and_no_number_panics(
        subject in subject(),
        history in history(anywhere(), acts()),
        now in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
        permits in prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>()],
    ) {
        let walk = Walk::after(&subject.algorithm, history);
        let (it, now) = (walk.algorithm, Nanos::new(now));
        let state = walk.state.clone();
        let spent = it.spent(state.shared(), now);
        prop_assert!(it.remaining(state.shared(), now) <= it.max_request());
        prop_assert!(spent > 0 || it.idle_at(state.shared(), now) == Some(now));
        if let Some(ready) = it.ready_at(state.shared(), now, permits) {
            prop_assert!(ready >= now && permits <= it.max_request());
        }
        prop_assert!(it.charge(state.shared(), now, permits) <= permits);
        let receipt = it.decide(state.shared(), now, 0).expect("zero permits are always admitted");
        it.refund(state.shared(), &receipt, permits);
    }
}

fn builder(limit: u64) -> CounterRingBuilder {
    CounterRing::builder(Quota::per_second(limit).expect("a small limit"))
}

/// One subject per algorithm, with a window of a second, and the most that the adversaries below get in one window.
fn subjects() -> Vec<(Subject, u64)> {
    let rate = |limit| Quota::per_second(limit).expect("a small limit");
    let ring = |builder: CounterRingBuilder| builder.build().expect("a small ring");
    let gcra = |limit, burst| Gcra::token_bucket(rate(limit), burst).expect("a small burst");
    let tenfold = Quota::new(50, core::time::Duration::from_secs(10)).expect("a small quota");
    vec![
        (Subject::new("strict", ring(builder(10).cells(10))), 10),
        (
            Subject::new("strict, unpacked", ring(builder(10).cells(10).unpacked())),
            10,
        ),
        (Subject::new("strict, one cell", ring(builder(10).cells(1))), 10),
        (
            Subject::new("strict, uneven cells", ring(builder(10).cells(7))),
            10,
        ),
        (Subject::new("strict, wide", ring(builder(1000).cells(10))), 1000),
        (Subject::new("classic", ring(builder(10).classic().cells(10))), 20),
        (
            Subject::new(
                "classic, unpacked",
                ring(builder(10).classic().cells(10).unpacked()),
            ),
            20,
        ),
        (
            Subject::new("classic, wide", ring(builder(1000).classic().cells(4))),
            2000,
        ),
        (Subject::new("even", ring(builder(10).even().cells(10))), 11),
        (
            Subject::new("even, uneven shares", ring(builder(10).even().cells(4))),
            13,
        ),
        (
            Subject::new("even, unpacked", ring(builder(100).even().cells(10).unpacked())),
            110,
        ),
        (
            Subject::new(
                "fixed window",
                CounterRing::fixed_window(rate(10)).expect("a small ring"),
            ),
            20,
        ),
        (
            Subject::new("two windows", ring(builder(10).cells(5).also(tenfold))).and(tenfold.window(), 50),
            10,
        ),
        (
            Subject::new(
                "two windows, classic",
                ring(builder(10).classic().cells(5).also(tenfold)),
            )
            .and(tenfold.window(), 100),
            20,
        ),
        (
            Subject::new(
                "two windows, the longer first",
                ring(CounterRing::builder(tenfold).cells(5).also(rate(10))),
            )
            .and(rate(10).window(), 10),
            50,
        ),
        (
            Subject::new("timestamps", TimestampRing::new(rate(10)).expect("a small ring")),
            10,
        ),
        (
            Subject::new(
                "timestamps, many, of a limiter",
                TimestampRing::new(rate(300)).expect("a small ring").for_limiter(),
            ),
            300,
        ),
        (Subject::new("bucket", gcra(10, 10)), 19),
        (Subject::new("bucket of one", gcra(10, 1)), 10),
        (Subject::new("bucket of many", gcra(10, 95)), 104),
    ]
}

/// Requests single permits until one is denied.
fn hammer(walk: &mut Walk<'_>) {
    while walk.ask(1) != super::walk::Outcome::Denied(1) {}
}

type Adversary = fn(&mut Walk<'_>);

/// Runs an adversary from many phases within a cell and a window.
fn attack(subject: &Subject, adversary: Adversary) -> u64 {
    let mut most = 0;
    // Large limits are left out: a burst would be a thousand calls, and phases depend on cells and not on the limit.
    let phases = match subject.algorithm.bound() {
        0..=110 => 10,
        _ => 3,
    };
    for phase in 0..phases {
        let mut walk = Walk::new(&subject.algorithm);
        walk.go(Move::Window(0));
        walk.go(Move::Permille(phase * 1000 / phases));
        for _ in 0..3 {
            adversary(&mut walk);
        }
        assert_eq!(
            subject.broken(&walk.log),
            None,
            "{} at phase {phase}",
            subject.name
        );
        most = most.max(walk.log.worst(subject.bounds[0].0));
    }
    most
}

/// Requests everything in the last nanosecond of a cell, and again in the first of the next.
fn around_the_edge(walk: &mut Walk<'_>) {
    walk.go(Move::CellEnd);
    hammer(walk);
    walk.go(Move::NextCell);
    hammer(walk);
}

/// One request, and silence for most of a window. Then everything at the last time at which the cell of the first
/// request counts, and everything as soon as it does not.
fn one_then_silence(walk: &mut Walk<'_>, silence: u64) {
    walk.ask(1);
    walk.go(Move::Permille(silence));
    hammer(walk);
    for _ in 0..60 {
        walk.go(Move::Permille(20));
        hammer(walk);
    }
}

/// Requests everything in the first nanosecond of a cell, and then at the end of every cell, until one window has
/// passed.
fn every_edge(walk: &mut Walk<'_>) {
    walk.go(Move::NextCell);
    hammer(walk);
    for _ in 0..12 {
        walk.go(Move::CellEnd);
        hammer(walk);
        walk.go(Move::NextCell);
        hammer(walk);
    }
}

/// Twice the limit, evenly: two calls at a time, and one at a time.
fn twice_the_limit(walk: &mut Walk<'_>) {
    let window = nanos(walk.algorithm.window());
    let limit = walk.algorithm.bound();
    for _ in 0..4 * limit {
        walk.go(Move::Nanos(window / (2 * limit)));
        walk.ask(1);
    }
}

/// Requests everything at each retry time, again and again.
fn on_the_dot(walk: &mut Walk<'_>) {
    for _ in 0..400 {
        let ready = walk.algorithm.ready_at(walk.state.shared(), walk.at(), 1);
        walk.go(Move::To(ready.expect("one permit is at most the limit").get()));
        hammer(walk);
    }
}

/// A burst, silence until just before it leaves the window, and then as much as possible.
fn just_before_it_leaves(walk: &mut Walk<'_>) {
    walk.go(Move::CellEnd);
    hammer(walk);
    walk.go(Move::Window(-1));
    for _ in 0..5 {
        hammer(walk);
        walk.go(Move::Nanos(1));
    }
}

#[test]
fn adversaries_reach_the_bound_and_do_not_exceed_it() {
    let adversaries: [Adversary; 8] = [
        around_the_edge,
        |walk| one_then_silence(walk, 500),
        |walk| one_then_silence(walk, 950),
        |walk| one_then_silence(walk, 999),
        every_edge,
        twice_the_limit,
        on_the_dot,
        just_before_it_leaves,
    ];
    for (subject, expected) in subjects() {
        let most = adversaries
            .iter()
            .map(|&adversary| attack(&subject, adversary))
            .max();
        assert_eq!(most, Some(expected), "{}", subject.name);
        assert_eq!(subject.algorithm.bound(), expected, "{}", subject.name);
    }
}

/// The documented throughput: at least L·N/(N + 1) per W for a strict ring, and L for the others.
#[test]
fn saturated_throughput_is_as_promised() {
    let windows = 60;
    for (subject, _) in subjects() {
        let name = &subject.name;
        if name.starts_with("two windows") {
            continue;
        }
        let mut walk = Walk::new(&subject.algorithm);
        let window = nanos(subject.algorithm.window());
        let limit = match &subject.algorithm {
            Any::Gcra(gcra) => gcra.bound() - gcra.max_request() + 1,
            it if name.starts_with("classic") || name.starts_with("fixed") => it.bound() / 2,
            it if name.starts_with("even") => it.bound() - it.max_request(),
            it => it.bound(),
        };
        while walk.now < windows * window {
            walk.go(Move::Nanos(window / (20 * limit)));
            walk.ask(1);
        }
        let admitted = walk.log.count(walk.now, walk.now + 1);
        let promised = match &subject.algorithm {
            Any::Counter(ring) if name.starts_with("strict") => {
                let cell = nanos(ring.cell());
                // The limit of the first window, then L in every N + 1 cells.
                limit * (walk.now / (window.div_ceil(cell) * cell + cell))
            }
            _ => limit * (windows - 1),
        };
        assert!(admitted >= promised, "{name}: {admitted} of {promised}");
    }
}

/// Requests the whole burst at `begin`, and then all refilled permits in steps of at most the burst, until the last
/// nanosecond of the window. No refilled permit is lost, so no caller gets more between two full buckets.
fn greedy(bucket: &Gcra, limit: u64, window: u64, begin: u64) -> Log {
    let state = State::fresh(bucket);
    let mut log = Log::default();
    let mut take = |now: u64| {
        let now = Nanos::new(now);
        let permits = bucket.remaining(state.shared(), now);
        let receipt = bucket
            .decide(state.shared(), now, permits)
            .expect("so many are free");
        log.add(receipt.at(), permits);
        bucket
            .ready_at(state.shared(), now, 1)
            .expect("far from the end of time")
            .get()
    };
    let mut ready = take(begin);
    // The time in which half the burst is refilled, or one permit.
    let step = u64::try_from(u128::from(window) * u128::from(bucket.max_request() / 2) / u128::from(limit))
        .expect("a window");
    let last = begin + window - 1;
    while ready < last {
        ready = take(ready.max(ready + step).min(last));
    }
    take(last);
    log
}

/// L divides W or not. b is 1, the limit, or in between. The limit is up to the largest.
#[test]
fn a_greedy_caller_reaches_the_bound_of_a_bucket() {
    const SECOND: u64 = 1_000_000_000;
    for (limit, window, burst) in [
        (1, SECOND, 1),
        (10, SECOND, 1),
        (10, SECOND, 10),
        (7, SECOND, 3),
        (999, SECOND, 1),
        (3, 1_000, 2),
        (30_000, SECOND, 30_000),
        (1_000_000, SECOND, 1_000_000),
        (333_333, 86_400 * SECOND, 1_000),
        (1_000, 1_000, 1),
        (1_000_000_000_000, 1_000_000 * SECOND, 1_000_000_000_000),
        (SECOND, SECOND, SECOND),
    ] {
        let bucket = Gcra::token_bucket(quota(limit, window), burst).expect("a bucket");
        let log = greedy(&bucket, limit, window, 5);
        assert_eq!(bucket.bound(), burst + limit - 1);
        assert_eq!(
            log.worst(Duration::from_nanos(window)),
            bucket.bound(),
            "{limit} in {window} ns, {burst}"
        );
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_rounding_exceeds_the_bound_of_a_bucket(
        (window, limit) in (1_000..31_622_400_000_000_000_u64).prop_flat_map(|window| {
            (Just(window), prop_oneof![1..1_000_u64, 1..=window.min(1_000_000_000_000)])
        }),
        part in 1..=1_000_u64,
        begin in 0..1_000_000_u64,
    ) {
        // At least a thousandth of the limit, so that the walk is short. With a small limit, one permit.
        let burst = (limit * part).div_ceil(1_000);
        let bucket = Gcra::token_bucket(quota(limit, window), burst).expect("no more than the limit");
        let most = greedy(&bucket, limit, window, begin).worst(Duration::from_nanos(window));
        // The time of a permit is rounded up to half a nanosecond, which may cost a few permits of a window.
        let permit = (2 * window).div_ceil(limit);
        prop_assert_eq!(most, burst + (2 * window - 2) / permit);
        prop_assert!(most <= bucket.bound());
    }
}
