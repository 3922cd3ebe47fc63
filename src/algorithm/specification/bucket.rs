//! GCRA.
//!
//! A case is { limit, window, burst, lower limit, word, step, reading, permits, time before a charge, permits of it, time of its
//! permit }.

use core::time::Duration;

use super::case::{
    ADMIT, ADVANCE, CHARGE, Case, IDLE_AT, IS_IDLE, Outcome, READY, REFUND, REMAINING, RESTORE, Random,
    SPENT, Subject, or_zero, perform,
};
use crate::algorithm::Gcra;
use crate::quota::Quota;
use crate::receipt::Receipt;
use crate::time::Nanos;

pub(super) const SUBJECT: Subject = Subject {
    name: "bucket",
    any_case,
    specified,
    performed,
};

const STEPS: u64 = 10;

/// The end of time in nanoseconds, and the latest time that a word can hold, in half nanoseconds.
const END: u64 = 15 * 366 * 24 * 3600 * 1_000_000_000;
const MAX_TIME: u128 = (1 << 60) - 1;

/// The bucket of a limit, in half nanoseconds.
struct Bucket {
    permit: u128,
    burst: u128,
    ahead: u128,
}

impl Bucket {
    fn new([limit, window, burst, lower, ..]: &Case) -> Self {
        let [limit, window, burst, lower] = [*limit, 2 * *window, *burst, *lower].map(u128::from);
        let highest = window.div_ceil(limit);
        // Two windows, or four, or eight and so on, up to the time of the burst and one unit for each of its permits.
        let mut ahead = 2 * window;
        while ahead < burst * highest + burst {
            ahead *= 2;
        }
        if lower == limit {
            return Self {
                permit: highest,
                burst,
                ahead,
            };
        }
        let permit = window.div_ceil(lower);
        let longest = (burst + limit - 1) * highest - window;
        let share = (burst * lower / limit).max(1);
        Self {
            permit,
            burst: share.min(longest / permit + 1),
            ahead,
        }
    }

    fn full(&self, state: State, now: u128, permits: u64) -> u128 {
        state.time.max(now) + u128::from(permits) * self.permit
    }

    fn fits(&self, state: State, now: u128, permits: u64) -> bool {
        self.full(state, now, permits) - now <= self.burst * self.permit
    }

    fn charged(&self, state: State, now: u128, permits: u64) -> (u64, State) {
        let room = MAX_TIME.saturating_sub(state.time.max(now)) / self.permit;
        let taken = permits.min(u64::try_from(room).expect("below 2^60"));
        let time = self.full(state, now, taken);
        (
            taken,
            State {
                time,
                refunded: false,
                ..state
            },
        )
    }

    /// The first time after every word of the key.
    fn passed(&self, state: State) -> u128 {
        state.time + 1 + if state.lowered { self.ahead } else { 0 }
    }

    fn passed_on(&self, state: State, now: u128) -> Option<State> {
        let time = now.max(state.time + 1);
        let lowered = state.lowered && self.passed(state) > time;
        (time <= MAX_TIME).then_some(State {
            time,
            lowered,
            refunded: false,
        })
    }
}

#[derive(Clone, Copy)]
struct State {
    time: u128,
    lowered: bool,
    refunded: bool,
}

impl State {
    fn of(word: u64) -> Self {
        Self {
            time: u128::from(word / 4),
            lowered: word % 4 >= 2,
            refunded: word % 2 == 1,
        }
    }

    fn word(self) -> u64 {
        let time = u64::try_from(self.time).expect("below 2^60");
        4 * time + 2 * u64::from(self.lowered) + u64::from(self.refunded)
    }
}

fn units(now: u64) -> u128 {
    2 * (u128::from(now.min(END)) + 1)
}

/// The first reading from `now` on for which a condition holds, which holds from some reading on. `None` if it never holds.
fn first(now: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (now, END.max(now));
    if !holds(high) {
        return None;
    }
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

fn any_case(random: &mut Random) -> Case {
    let window = (1_000 + random.up_to(10_000_000_000)).min(366 * 24 * 3600 * 1_000_000_000);
    let limit = (1 + random.up_to(100_000)).min(window);
    let permit = (2 * window).div_ceil(limit);
    let burst = match random.below(3) {
        0 => limit,
        1 => 1 + random.up_to(limit - 1),
        _ => 1 + random.up_to(366 * 24 * 3600 * 2_000_000_000 / permit - 1),
    };
    let lower = if random.below(2) == 0 {
        limit
    } else {
        1 + random.up_to(limit - 1)
    };
    let now = match random.below(16) {
        0 => random.near(END, END + 5),
        1 => random.up_to(3),
        _ => random.up_to(END),
    };
    let tolerance = burst * permit;
    let now_units = 2 * (now.min(END) + 1);
    let time = match random.below(8) {
        0 => random.up_to((1 << 60) - 1),
        1 => now_units.saturating_sub(random.up_to(tolerance)),
        2 => random.near(now_units, (1 << 60) - 1),
        3 => random.near(now_units + tolerance, (1 << 60) - 1),
        _ => (now_units + random.up_to(tolerance)).min((1 << 60) - 1),
    };
    let flags = [0, 2, 3][usize::try_from(random.below(3)).expect("0 to 2")];
    let step = random.below(STEPS);
    let permits = match random.below(4) {
        0 => 1 + random.below(3),
        1 => random.near(burst, 2 * burst),
        2 => random.near(
            (tolerance + now_units).saturating_sub(time.max(now_units)) / permit,
            2 * burst,
        ),
        _ => 1 + random.up_to(2 * burst),
    }
    .max(1);
    let charged = permits + random.below(3);
    let own = if random.below(2) == 0 {
        permit
    } else {
        permit + random.below(100)
    };
    // A receipt whose charge is the last write of the word, or nearly.
    let length = charged.saturating_mul(own);
    let before = random.near(time.saturating_sub(length), (1 << 60) - 1);
    let now = if step == REFUND {
        (before / 2).saturating_sub(random.below(4))
    } else {
        now
    };
    let word = 4 * time + flags;
    let word = if step == RESTORE { 0 } else { word };
    [
        limit, window, burst, lower, word, step, now, permits, before, charged, own, 0,
    ]
}

fn specified(case: &Case) -> Outcome {
    let bucket = Bucket::new(case);
    let [_, _, _, _, word, step, reading, permits, before, charged, own, _] = *case;
    let (state, now) = (State::of(word), units(reading));
    match step {
        ADMIT => {
            if bucket.fits(state, now, permits) {
                (1, bucket.charged(state, now, permits).1.word())
            } else {
                (0, word)
            }
        }
        CHARGE => {
            let (taken, state) = bucket.charged(state, now, permits);
            (taken, state.word())
        }
        REFUND => {
            let begin = u128::from(before).max(now);
            let after = |permits: u64| begin + u128::from(permits) * u128::from(own);
            if state.time == after(charged) && !state.refunded {
                let time = after(charged - permits);
                let back = State {
                    time,
                    lowered: true,
                    refunded: true,
                };
                (1, back.word())
            } else {
                (0, word)
            }
        }
        REMAINING => {
            // The most permits that fit.
            let (mut fit, mut above) = (0, u64::try_from(bucket.burst).expect("a burst") + 1);
            while fit + 1 < above {
                let middle = fit.midpoint(above);
                if bucket.fits(state, now, middle) {
                    fit = middle;
                } else {
                    above = middle;
                }
            }
            (fit, word)
        }
        SPENT => {
            let ahead = state.time.saturating_sub(now);
            (
                u64::try_from(ahead.div_ceil(bucket.permit)).expect("below 2^60"),
                word,
            )
        }
        IS_IDLE => (u64::from(word == 0 || bucket.passed(state) <= now), word),
        ADVANCE => (or_zero(bucket.passed_on(state, now).map(State::word)), word),
        READY => {
            let fits = |reading| bucket.fits(state, units(reading), permits);
            (or_zero(first(reading, fits)), word)
        }
        IDLE_AT => (
            or_zero(first(reading, |reading| state.time <= units(reading))),
            word,
        ),
        RESTORE => {
            // A word whose time is the reading has begun.
            let begun = bucket.passed_on(state, now).filter(|_| reading > 0);
            let (taken, state) = bucket.charged(begun.unwrap_or(state), now, permits);
            (taken, state.word())
        }
        _ => unreachable!("a step"),
    }
}

fn performed(case: &Case) -> Outcome {
    let [
        limit,
        window,
        burst,
        lower,
        word,
        step,
        reading,
        permits,
        before,
        charged,
        own,
        _,
    ] = *case;
    let quota = Quota::new(limit, Duration::from_nanos(window)).expect("a quota");
    let bucket = Gcra::token_bucket(quota, burst).expect("a bucket");
    let now = Nanos::new(reading);
    let receipt = Receipt::new(now, charged, before).with_permit_time(own);
    perform(&bucket, lower, (step, word), now, permits, &receipt)
}
