//! Requests in flight.
//!
//! A case is { limit, lower limit, word, step, slots, generation }.

use super::case::{
    ADMIT, ADVANCE, CHARGE, Case, IS_IDLE, Outcome, REFUND, REMAINING, Random, SPENT, Subject, or_zero,
    perform,
};
use crate::algorithm::InFlight;
use crate::receipt::Receipt;
use crate::time::Nanos;

pub(super) const SUBJECT: Subject = Subject {
    name: "slots",
    any_case,
    specified,
    performed,
};

const STEPS: u64 = 7;

const MOST: u64 = (1 << 20) - 1;
const LAST_GENERATION: u64 = (1 << 42) - 1;

fn any_case(random: &mut Random) -> Case {
    let limit = 1 + random.up_to(MOST - 1);
    let lower = 1 + random.up_to(limit - 1);
    let generation = random.up_to(LAST_GENERATION);
    let held = match random.below(3) {
        // A word of generation 0 has never been written.
        _ if generation == 0 => 0,
        0 => random.near(lower, MOST),
        1 => random.up_to(3),
        _ => random.up_to(MOST),
    };
    let slots = match random.below(4) {
        0 => random.near(lower.saturating_sub(held), MOST),
        1 => random.near(held, MOST),
        2 => random.up_to(MOST),
        _ => random.up_to(u64::MAX),
    };
    let other = random.near(generation.max(1), LAST_GENERATION);
    let word = generation << 20 | held;
    let step = random.below(STEPS);
    [limit, lower, word, step, slots.max(1), other, 0, 0, 0, 0, 0, 0]
}

fn specified(case: &Case) -> Outcome {
    let [_, lower, word, step, slots, of_receipt, ..] = *case;
    let (generation, held) = ((word / (MOST + 1)).max(1), word % (MOST + 1));
    let with = |held: u128| generation * (MOST + 1) + u64::try_from(held).expect("few slots");
    let after = u128::from(held) + u128::from(slots);
    match step {
        ADMIT if after <= u128::from(lower) => (1, with(after)),
        ADMIT => (0, word),
        // There is no debt.
        CHARGE => (0, word),
        REFUND if of_receipt == generation && slots <= held => (1, with(u128::from(held - slots))),
        REFUND => (0, word),
        REMAINING => (lower.saturating_sub(held), word),
        SPENT => (held, word),
        IS_IDLE => (u64::from(held == 0), word),
        ADVANCE => {
            let next = (generation < LAST_GENERATION).then(|| (generation + 1) * (MOST + 1));
            (or_zero(next), word)
        }
        _ => unreachable!("a step"),
    }
}

fn performed(case: &Case) -> Outcome {
    let [limit, lower, word, step, slots, of_receipt, ..] = *case;
    let flight = InFlight::new(limit, "in_flight").expect("slots");
    let receipt = Receipt::new(Nanos::ZERO, slots, of_receipt);
    perform(&flight, lower, (step, word), Nanos::ZERO, slots, &receipt)
}
