//! Models of GCRA.

use core::time::Duration;

use ringgate::{Gcra, Quota};

use super::harness::{BOUNDED, Call::*, FULL};

/// One permit per microsecond.
fn bucket(limit: u64, burst: u64) -> Gcra {
    let quota = Quota::new(limit, Duration::from_micros(limit)).unwrap();
    Gcra::token_bucket(quota, burst).unwrap()
}

#[test]
fn gcra_last_token() {
    FULL.run(
        bucket(2, 1),
        &[],
        &[&[Check(0, 1), Check(1_000, 1)], &[Check(0, 1)]],
    );
    FULL.run(bucket(4, 3), &[], &[&[Check(0, 2)], &[Check(0, 2)]]);
}

/// Readings out of order: an older reading may deny more, and never admits more.
#[test]
fn gcra_older_reading() {
    FULL.run(
        bucket(2, 1),
        &[],
        &[
            &[Check(1_000, 1), Check(2_000, 1)],
            &[Check(0, 1), Check(1_500, 1)],
        ],
    );
    BOUNDED.run(
        bucket(2, 2),
        &[],
        &[&[Check(1_000, 1)], &[Check(0, 2)], &[Check(500, 1)]],
    );
}

/// A refund succeeds if nothing was charged since, and fails otherwise.
#[test]
fn gcra_refund() {
    FULL.run(
        bucket(2, 2),
        &[],
        &[&[Check(0, 2), Refund(1)], &[Check(500, 1), Refund(1)]],
    );
}

#[test]
fn gcra_charge() {
    FULL.run(
        bucket(2, 2),
        &[],
        &[&[Charge(0, 3)], &[Check(0, 1), Check(2_000, 1)]],
    );
}
