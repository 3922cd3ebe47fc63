//! Calendar, with days in UTC.
//!
//! A case is { limit, lower limit, word, step, day of the reading, permits, day of a charge }. The first day is 1.

use core::time::Duration;
use std::sync::LazyLock;

use super::case::{
    ADMIT, ADVANCE, CHARGE, Case, IDLE_AT, IS_IDLE, Outcome, READY, REFUND, REMAINING, RESTORE, Random,
    SPENT, Subject, or_zero, perform,
};
use crate::algorithm::{Calendar, CalendarQuota, Reclaim};
use crate::receipt::Receipt;
use crate::time::Nanos;

pub(super) const SUBJECT: Subject = Subject {
    name: "calendar",
    any_case,
    specified,
    performed,
};

const STEPS: u64 = 10;

/// The days of the cases. An algorithm has more.
const DAYS: u64 = 7_000;
const DAY: u64 = 24 * 3600 * 1_000_000_000;
const MAX_LIMIT: u64 = 1_000_000_000_000;
const MAX_USED: u64 = (1 << 48) - 1;

static DAILY: LazyLock<Calendar> = LazyLock::new(|| {
    let quota: CalendarQuota = std::format!("{MAX_LIMIT}/day").parse().expect("a quota");
    // A midnight.
    let origin = Duration::from_secs(20_000 * 24 * 3600);
    Calendar::with_origin_since_1970(&quota, origin).expect("in range")
});

fn any_case(random: &mut Random) -> Case {
    let limit = 1 + random.up_to(MAX_LIMIT - 1);
    let lower = 1 + random.up_to(limit - 1);
    let period = random.up_to(DAYS);
    let used = match random.below(3) {
        // A word of day 0 has never been written.
        _ if period == 0 => 0,
        0 => random.near(lower, MAX_USED),
        1 => random.up_to(lower),
        _ => random.up_to(MAX_USED),
    };
    let day = match random.below(3) {
        0 => random.up_to(DAYS),
        _ => random.near(period, DAYS),
    };
    let step = random.below(STEPS);
    let permits = match random.below(4) {
        0 => random.near(lower.saturating_sub(used), MAX_USED),
        1 => random.near(used, MAX_USED),
        2 => random.up_to(MAX_USED),
        _ if step == CHARGE => random.up_to(u64::MAX),
        _ => random.up_to(lower),
    }
    .max(1);
    let permits = if step == READY {
        permits.min(lower)
    } else {
        permits
    };
    let charged = random.near(period, DAYS);
    let word = if step == RESTORE { 0 } else { period << 48 | used };
    [
        limit,
        lower,
        word,
        step,
        day.max(1),
        permits,
        charged,
        0,
        0,
        0,
        0,
        0,
    ]
}

fn specified(case: &Case) -> Outcome {
    let [_, lower, word, step, day, permits, charged, ..] = *case;
    let (period, used) = (word / (MAX_USED + 1), word % (MAX_USED + 1));
    let (newest, counted) = if day > period { (day, 0) } else { (period, used) };
    let state = |period: u64, used: u64| period * (MAX_USED + 1) + used;
    let start = |period: u64| (period.max(1) - 1) * DAY;
    match step {
        ADMIT if u128::from(counted) + u128::from(permits) <= u128::from(lower) => {
            (1, state(newest, counted + permits))
        }
        ADMIT => (0, word),
        CHARGE => {
            let taken = permits.min(MAX_USED - counted);
            (taken, state(newest, counted + taken))
        }
        REFUND if charged == period && permits <= used => (1, state(period, used - permits)),
        REFUND => (0, word),
        REMAINING => (lower.saturating_sub(counted), word),
        SPENT => (counted, word),
        IS_IDLE => (u64::from(period < day), word),
        ADVANCE => {
            let next = (period <= day).then(|| state(day.max(period + 1), 0));
            (or_zero(next), word)
        }
        READY => {
            let fits = u128::from(counted) + u128::from(permits) <= u128::from(lower);
            (1 + if fits { start(day) } else { start(newest + 1) }, word)
        }
        IDLE_AT => (1 + start(day).max(start(newest + u64::from(counted > 0))), word),
        RESTORE => {
            let taken = permits.min(MAX_USED);
            (taken, state(day, taken))
        }
        _ => unreachable!("a step"),
    }
}

fn performed(case: &Case) -> Outcome {
    let [limit, lower, word, step, day, permits, charged, ..] = *case;
    let daily = DAILY.with_limit(limit).expect("a lower limit");
    let now = Nanos::new((day - 1) * DAY);
    let receipt = Receipt::new(now, permits, charged);
    perform(&daily, lower, (step, word), now, permits, &receipt)
}
