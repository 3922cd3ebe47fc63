//! Quotas from any text, and algorithms from any numbers. Each is built or is an error, and each algorithm that is built
//! decides at any time. No call panics.

#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ringgate::sync::Shared;
use ringgate::{Algorithm, ConfigError, CounterRing, Gcra, Nanos, Quota, TimestampRing};
use ringgate_fuzz::{Any, fresh};

#[derive(Arbitrary, Debug)]
struct Numbers {
    limit: u64,
    limit_bits: u8,
    window: u64,
    window_bits: u8,
    cells: u64,
    cells_bits: u8,
    burst: u64,
    more: Option<(u64, u64)>,
    unpacked: bool,
    calls: Vec<(u64, u64)>,
}

/// The shortest and the longest window.
const SHORTEST: Duration = Duration::from_micros(1);
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Shifts a number right, so that all magnitudes occur.
fn cut(number: u64, bits: u8) -> u64 {
    number >> (bits % 64)
}

fn quota(limit: u64, window: u64) -> Option<Quota> {
    let quota = Quota::new(limit, Duration::from_nanos(window));
    let valid = (1..=Quota::MAX_LIMIT).contains(&limit)
        && (SHORTEST..=LONGEST).contains(&Duration::from_nanos(window));
    assert_eq!(quota.is_ok(), valid);
    checked(quota)
}

/// Returns the value. Asserts that an error states the field, the given value and the accepted values.
fn checked<T>(result: Result<T, ConfigError>) -> Option<T> {
    result
        .inspect_err(|error| {
            assert!(["limit", "window", "windows", "cells", "burst", "quota"].contains(&error.field));
            assert!(!error.given.is_empty() && !error.expected.is_empty());
            assert!(error.to_string().contains(error.field));
        })
        .ok()
}

fn assert_parses_from_its_text(quota: Quota) {
    assert_eq!(quota.to_string().parse(), Ok(quota));
}

fn exercise(algorithm: &Any, calls: &[(u64, u64)]) {
    assert!(algorithm.words() > 0);
    assert!((1..=algorithm.bound()).contains(&algorithm.max_request()));
    assert!(algorithm.window() >= SHORTEST);
    // Larger states differ only in their length, and zeroing them would take most of the time.
    if algorithm.words() > 1 << 10 {
        return;
    }
    let words = fresh(algorithm.words());
    let words = Shared::new(&words);
    let ready = algorithm.ready_at(words, Nanos::ZERO, algorithm.max_request());
    assert!(
        ready.is_some(),
        "a fresh limiter admits the largest request at its origin or soon after"
    );
    assert_eq!(
        algorithm.ready_at(words, Nanos::ZERO, algorithm.max_request() + 1),
        None
    );
    for &(now, permits) in calls.iter().take(16) {
        let now = Nanos::new(now);
        let decision = algorithm.decide(words, now, permits);
        let _ = algorithm.remaining(words, now);
        let _ = algorithm.spent(words, now);
        let _ = algorithm.idle_at(words, now);
        let _ = algorithm.ready_at(words, now, permits);
        match decision {
            Some(receipt) if permits % 3 == 0 => {
                let _ = algorithm.refund(words, &receipt, permits);
            }
            None if permits % 3 == 0 => {
                let _ = algorithm.charge(words, now, permits);
            }
            _ => {}
        }
    }
}

fuzz_target!(|input: (Numbers, &str)| {
    let (numbers, text) = input;
    if let Some(quota) = checked(text.parse()) {
        assert_parses_from_its_text(quota);
    }
    let Some(first) = quota(
        cut(numbers.limit, numbers.limit_bits),
        cut(numbers.window, numbers.window_bits),
    ) else {
        return;
    };
    assert_parses_from_its_text(first);

    let ring = || {
        let mut ring = CounterRing::builder(first).cells(cut(numbers.cells, numbers.cells_bits));
        if numbers.unpacked {
            ring = ring.unpacked();
        }
        if let Some(more) = numbers.more.and_then(|(limit, window)| {
            quota(cut(limit, numbers.limit_bits), cut(window, numbers.window_bits))
        }) {
            ring = ring.also(more);
        }
        ring
    };
    let rings = [
        ring().build(),
        ring().classic().build(),
        ring().even().build(),
        CounterRing::new(first),
        CounterRing::fixed_window(first),
    ];
    let built = rings
        .into_iter()
        .map(|ring| checked(ring).map(Any::Counter))
        .chain([
            checked(TimestampRing::new(first)).map(Any::Log),
            checked(Gcra::new(first)).map(Any::Gcra),
            checked(Gcra::token_bucket(first, numbers.burst)).map(Any::Gcra),
        ]);
    for algorithm in built.flatten() {
        exercise(&algorithm, &numbers.calls);
    }
});
