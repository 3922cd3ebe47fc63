//! Words that pass to another key beside sleeping threads and refunds, and lowered limits.

use core::sync::atomic::Ordering;
use core::time::Duration;

use ringgate::algorithm::Reclaim;
use ringgate::sync::Words;
use ringgate::{Algorithm, CounterRing, Gcra, Nanos, Quota, TimestampRing};

use super::reclaim::{first, with_first};
use crate::common::{Any, State};

/// Words of a thread that stops right after its claim: it never stores the word that it has claimed.
#[derive(Clone, Copy)]
struct Asleep<'a>(&'a State);

impl Words for Asleep<'_> {
    fn load(self, index: usize, order: Ordering) -> u64 {
        self.0.shared().load(index, order)
    }

    fn exchange(self, index: usize, current: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        match index {
            0 => self.0.shared().exchange(0, current, new, order),
            _ => Err(!current),
        }
    }
}

/// A log passes on while a claimer sleeps: what it has not stored counts as taken at that time, and
/// no longer.
#[test]
fn a_log_passes_on_while_a_claiming_thread_stalls() {
    let quota = Quota::new(2, core::time::Duration::from_micros(10)).expect("a quota");
    let it = Any::from(TimestampRing::new(quota).expect("a ring"));
    let state = State::fresh(&it);
    assert!(it.decide(state.shared(), Nanos::ZERO, 1).is_some());
    assert!(it.decide(Asleep(&state), Nanos::new(100), 1).is_some());
    let mut idle = 0;
    for now in 10_000..10_200 {
        let now = Nanos::new(now);
        if it.is_idle(first(&state), now) {
            idle += 1;
            let later = it.advance(first(&state), now).expect("it is idle");
            let handed = with_first(&state, later);
            assert_eq!(it.remaining(handed.shared(), now), 1);
            assert!(it.decide(handed.shared(), now, 1).is_some());
            assert!(it.decide(handed.shared(), now, 1).is_none());
            let then = now.saturating_add(it.span());
            assert_eq!(it.remaining(handed.shared(), then), 2);
        }
    }
    assert_eq!(idle, 99);
}

/// Without a refund a bucket is idle as soon as it is full again, however much was taken.
#[test]
fn a_bucket_is_idle_when_it_is_full() {
    let it = Gcra::new(Quota::per_second(10).expect("a quota")).expect("a bucket");
    let second = Nanos::new(1_000_000_000);
    for permits in 1..=10 {
        let state = State::fresh(&Any::from(it.clone()));
        assert!(it.decide(state.shared(), second, permits).is_some());
        let full = second.saturating_add(core::time::Duration::from_millis(100 * permits));
        assert_eq!(it.idle_at(state.shared(), second), Some(full));
        assert!(!it.is_idle(first(&state), full));
        let after = full.saturating_add(core::time::Duration::from_nanos(1));
        assert!(it.is_idle(first(&state), after), "{permits}");
        assert_eq!(it.idle_from(first(&state)), Some(after));
    }
}

/// A word that a refund has taken back may be above the clock when the current word is not: also after further charges, and
/// where the word was passed on earlier.
#[test]
fn a_bucket_is_not_idle_before_a_refunded_charge_has_expired() {
    let it = Gcra::new(Quota::per_second(10).expect("a quota")).expect("a bucket");
    let second = Nanos::new(1_000_000_000);
    for then in ["nothing", "a charge", "passed on"] {
        let mut state = State::fresh(&Any::from(it.clone()));
        let taken = it.decide(state.shared(), second, 10).expect("a fresh bucket");
        let highest = first(&state);
        assert!(it.refund(state.shared(), &taken, 10));
        match then {
            "a charge" => assert!(it.decide(state.shared(), second, 1).is_some()),
            "passed on" => {
                let later = it.advance(first(&state), second).expect("time goes on");
                state = with_first(&state, later);
            }
            _ => {}
        }
        let mut idle = 0;
        for later in 0..3_000 {
            let now = second.saturating_add(core::time::Duration::from_millis(later));
            let word = first(&state);
            if it.is_idle(word, now) {
                idle += 1;
                let above = it.advance(word, now).is_some_and(|later| later > highest);
                assert!(above, "{then}, {now:?}");
            }
        }
        assert!(idle > 0, "{then}");
    }
}

/// Algorithms whose limit cannot be lowered, and the limits.
#[test]
fn a_limit_is_lowered_within_its_range() {
    let quota = |text: &str| text.parse::<Quota>().expect("a quota");
    let ring = CounterRing::builder(quota("10/s"))
        .cells(5)
        .build()
        .expect("a ring");
    for limit in [0, 11, u64::MAX] {
        assert_eq!(ring.with_limit(limit).expect_err("out of range").field, "limit");
    }
    let several = CounterRing::builder(quota("10/s"))
        .cells(5)
        .also(quota("100/min"))
        .build();
    let error = several
        .expect("a ring")
        .with_limit(5)
        .expect_err("which of them?");
    assert_eq!(error.field, "windows");
    let log = TimestampRing::new(quota("10/s")).expect("a ring");
    assert!(log.with_limit(10).is_ok());
    assert_eq!(log.with_limit(5).expect("five of ten").bound(), 5);
    assert_eq!(log.with_limit(11).expect_err("ten slots").field, "limit");
    let bucket = Gcra::token_bucket(quota("10/s"), 5).expect("a bucket");
    assert_eq!(bucket.with_limit(0).expect_err("no permits").field, "limit");
    assert_eq!(bucket.with_limit(11).expect_err("more").field, "limit");
    // The burst in proportion, and at least one.
    let bursts = [10, 9, 2, 1].map(|limit| bucket.with_limit(limit).expect("fewer").max_request());
    assert_eq!(bursts, [5, 4, 1, 1]);
}

/// A bucket whose limit is lowered has a longer burst: a permit takes longer, which is rounded up. A state is idle only
/// when every word that a refund may have taken back is below the next one.
#[test]
fn a_lowered_bucket_is_not_idle_before_refunded_charges_have_expired() {
    for (limit, window, burst) in [(1_000, 1_000, 1), (7, 1_000, 7), (60, 1_001, 3), (7, 7_000, 14)] {
        let bucket = Gcra::token_bucket(quota_of(limit, window), burst).unwrap();
        for lowered in 1..=limit {
            let lower = bucket.with_limit(lowered).unwrap();
            let state = State::fresh(&lower);
            let all = lower.max_request();
            let receipt = lower
                .decide(state.shared(), Nanos::new(5), all)
                .expect("a fresh bucket");
            let highest = first(&state);
            assert!(lower.refund(state.shared(), &receipt, all));
            for it in [&bucket, &lower] {
                let idle = it.idle_from(first(&state)).expect("long before time ends");
                assert!(
                    it.advance(first(&state), idle) > Some(highest),
                    "{burst} of {limit} in {window} ns, lowered to {lowered}"
                );
            }
        }
    }
}

fn quota_of(limit: u64, window: u64) -> Quota {
    Quota::new(limit, Duration::from_nanos(window)).unwrap()
}
