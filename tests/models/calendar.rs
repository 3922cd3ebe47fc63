//! Models of calendar windows.

use core::time::Duration;
use std::time::SystemTime;

use ringgate::algorithm::{Calendar, CalendarQuota};

use super::harness::{BOUNDED, Call::*, FULL};

/// The end of the first day, in nanoseconds.
const MIDNIGHT: u64 = 86_400_000_000_000;

fn days(limit: u64) -> Calendar {
    let origin = SystemTime::UNIX_EPOCH + Duration::from_secs(20_000 * 86_400);
    Calendar::with_origin(&CalendarQuota::per_day(limit).unwrap(), origin).unwrap()
}

#[test]
fn calendar_last_permit() {
    FULL.run(
        days(2),
        &[Check(0, 1)],
        &[&[Check(1, 1)], &[Check(2, 1), Remaining(2)]],
    );
}

/// Readings around midnight: those of the old day are decided in the new one once it has begun.
#[test]
fn calendar_midnight() {
    FULL.run(
        days(2),
        &[Check(0, 2)],
        &[
            &[Check(MIDNIGHT, 2), Check(MIDNIGHT - 1, 1)],
            &[Check(MIDNIGHT - 1, 1), Check(MIDNIGHT, 1)],
        ],
    );
    BOUNDED.run(
        days(2),
        &[],
        &[
            &[Check(MIDNIGHT - 1, 2)],
            &[Check(MIDNIGHT, 2), ReadyAt(MIDNIGHT, 1)],
            &[Check(MIDNIGHT - 1, 1)],
        ],
    );
}

/// A refund of the old day changes nothing in the new one.
#[test]
fn calendar_refund() {
    FULL.run(
        days(2),
        &[],
        &[
            &[Check(MIDNIGHT - 1, 2), Refund(2), Check(MIDNIGHT, 1)],
            &[Check(MIDNIGHT, 2)],
        ],
    );
}

#[test]
fn calendar_charge() {
    FULL.run(
        days(2),
        &[],
        &[
            &[Charge(0, 3), Check(MIDNIGHT, 2)],
            &[Check(1, 1), Charge(MIDNIGHT, 1)],
        ],
    );
}
