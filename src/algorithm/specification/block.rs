//! Violations, and the block that they begin.
//!
//! A case is { violations that block, window in ticks, time until a key is forgiven in ticks, whether a retry extends a block,
//! length of the first block, factor, longest block, word, step, reading }.

use core::time::Duration;

use super::case::{Case, Outcome, Random, Subject, is_admitted, on_word, or_zero};
use crate::algorithm::{Algorithm, BlockLength, Reclaim, Violations};
use crate::quota::Quota;
use crate::time::Nanos;

pub(super) const SUBJECT: Subject = Subject {
    name: "block",
    any_case,
    specified,
    performed,
};

const DENY: u64 = 0;
const END: u64 = 1;
const IS_IDLE: u64 = 2;
const ADVANCE: u64 = 3;
const STEPS: u64 = 4;

/// 10 ms.
const TICK: u64 = 10_000_000;
const MAX_LEVEL: u64 = 31;
/// 366 days.
const LONGEST: u64 = 366 * 24 * 3600 * 1_000_000_000;

#[derive(Clone, Copy)]
struct State {
    time: u64,
    blocked: bool,
    level: u64,
    violations: u64,
}

impl State {
    fn of(word: u64) -> Self {
        Self {
            time: word >> 22,
            blocked: word >> 21 & 1 == 1,
            level: word >> 16 & MAX_LEVEL,
            violations: word & 0xFFFF,
        }
    }

    const fn word(self) -> u64 {
        self.time << 22 | (self.blocked as u64) << 21 | self.level << 16 | self.violations
    }

    /// The end of the block, if it is in force.
    fn end(self, now: u64) -> Option<u64> {
        let end = (u128::from(self.time) * u128::from(TICK)).min(u128::from(Nanos::MAX.get()));
        let end = u64::try_from(end).expect("a time");
        (self.blocked && now < end).then_some(end)
    }
}

/// The length of the block with this number, in nanoseconds.
fn length(case: &Case, number: u64) -> u128 {
    let [_, _, _, _, first, factor, ceiling, ..] = (*case).map(u128::from);
    let mut length = first;
    for _ in 1..number {
        length = (length * factor).min(u128::from(u64::MAX));
    }
    length.min(ceiling)
}

/// The end of a block of this level from `now` on, in ticks, rounded up.
fn end_from(case: &Case, now: u128, level: u64) -> u64 {
    let end = (now + length(case, level)).min(u128::from(Nanos::MAX.get()));
    u64::try_from(end.div_ceil(u128::from(TICK))).expect("below 2^40")
}

fn any_case(random: &mut Random) -> Case {
    let limit = 1
        + random.up_to(6)
        + if random.below(8) == 0 {
            random.up_to(60_000)
        } else {
            0
        };
    let window = 1 + random.up_to(LONGEST / TICK - 1);
    let forgiveness = random.up_to(LONGEST / TICK);
    let first = TICK + random.up_to(1 << 40);
    let factor = 1 + random.below(5);
    let ceiling = first + random.up_to(LONGEST);
    let now = random.up_to(Nanos::MAX.get());
    let tick = now / TICK;
    let time = match random.below(6) {
        0 => random.up_to(Nanos::MAX.get() / TICK),
        1 => random.near(tick, 1 << 39),
        2 => random.near(tick.saturating_sub(window), 1 << 39),
        3 => random.near(tick.saturating_sub(forgiveness), 1 << 39),
        _ => random.near(tick + 3, 1 << 39),
    };
    let blocked = random.below(2) == 0;
    let state = State {
        time,
        blocked,
        // A block is of level 1 or higher.
        level: if blocked {
            1 + random.below(MAX_LEVEL)
        } else {
            random.below(MAX_LEVEL + 1)
        },
        violations: if blocked {
            0
        } else {
            random.near(limit - 1, limit - 1)
        },
    };
    let (extends, step) = (random.below(2), random.below(STEPS));
    [
        limit,
        window,
        forgiveness,
        extends,
        first,
        factor,
        ceiling,
        state.word(),
        step,
        now,
        0,
        0,
    ]
}

fn violated(case: &Case, state: State, now: u64) -> Option<State> {
    let [limit, window, forgiveness, ..] = *case;
    if state.end(now).is_some() {
        return None;
    }
    let tick = now / TICK;
    let mut after = state;
    after.blocked = false;
    let in_window = !state.blocked && state.violations > 0 && tick < state.time + window;
    if !in_window {
        after.time = tick.max(state.time);
        after.violations = 0;
        if after.time - state.time >= forgiveness {
            after.level = 0;
        }
    }
    after.violations += 1;
    if after.violations >= limit {
        let begin = (u128::from(after.time) * u128::from(TICK)).min(u128::from(Nanos::MAX.get()));
        let level = (after.level + 1).min(MAX_LEVEL);
        after = State {
            time: end_from(case, begin.max(u128::from(now)), level),
            blocked: true,
            level,
            violations: 0,
        };
    }
    Some(after)
}

fn specified(case: &Case) -> Outcome {
    let [_, window, forgiveness, extends, _, _, _, word, step, now, ..] = *case;
    let state = State::of(word);
    let tick = now / TICK;
    match step {
        DENY => {
            let time = end_from(case, u128::from(now), state.level);
            let longer = state.end(now).is_some() && extends == 1 && time > state.time;
            let extended = longer.then_some(State { time, ..state });
            let after = violated(case, state, now).or(extended);
            after.map_or((0, word), |after| (1, after.word()))
        }
        END => (state.end(now).unwrap_or(now), word),
        IS_IDLE => {
            let later = tick > state.time;
            let counts = (state.violations > 0 && tick < state.time + window)
                || (state.level > 0 && tick < state.time + forgiveness);
            (u64::from(word == 0 || (later && !counts)), word)
        }
        ADVANCE => {
            let next = State {
                time: tick.max(state.time + 1),
                blocked: false,
                level: 0,
                violations: 0,
            };
            (or_zero((state.time <= tick).then(|| next.word())), word)
        }
        _ => unreachable!("a step"),
    }
}

fn performed(case: &Case) -> Outcome {
    let [
        limit,
        window,
        forgiveness,
        extends,
        first,
        factor,
        ceiling,
        word,
        step,
        now,
    ] = *case.first_chunk().expect("the numbers of a case");
    let length = BlockLength {
        first: Duration::from_nanos(first),
        factor: u32::try_from(factor).expect("a small factor"),
        ceiling: Duration::from_nanos(ceiling),
    };
    let after = Quota::new(limit, Duration::from_nanos(window * TICK)).expect("a quota");
    let forgiveness = Duration::from_nanos(forgiveness * TICK);
    let violations = Violations::new(after, length, forgiveness, extends == 1);
    let now = Nanos::new(now);
    on_word(word, |words| match step {
        DENY => is_admitted(&violations.attempt(None, words, now, 1)),
        END => violations.ready_at(words, now, 1).map_or(0, Nanos::get),
        IS_IDLE => u64::from(violations.is_idle(word, now)),
        ADVANCE => or_zero(violations.advance(word, now)),
        _ => unreachable!("a step"),
    })
}
