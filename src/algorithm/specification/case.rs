//! The cases, the subjects and the random numbers of the comparison.

use crate::algorithm::{Attempt, Reclaim};
use crate::receipt::Receipt;
use crate::sync::{AtomicU64, Ordering, Shared};
use crate::time::Nanos;

/// The numbers of a case: the layout or the policy, a word, a step, and what the step is given. Each algorithm says which.
pub(super) type Case = [u64; NUMBERS];
pub(super) const NUMBERS: usize = 12;

/// The steps. A subject makes the first ones, up to the number of its steps.
pub(super) const ADMIT: u64 = 0;
pub(super) const CHARGE: u64 = 1;
pub(super) const REFUND: u64 = 2;
pub(super) const REMAINING: u64 = 3;
pub(super) const SPENT: u64 = 4;
pub(super) const IS_IDLE: u64 = 5;
pub(super) const ADVANCE: u64 = 6;
pub(super) const READY: u64 = 7;
pub(super) const IDLE_AT: u64 = 8;
pub(super) const RESTORE: u64 = 9;

/// The value that a step returns, and the word after it.
pub(super) type Outcome = (u64, u64);

/// An algorithm whose state is one word.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) any_case: fn(&mut Random) -> Case,
    pub(super) specified: fn(&Case) -> Outcome,
    pub(super) performed: fn(&Case) -> Outcome,
}

/// Numbers for random cases.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn bits(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// A number up to `most`. Small numbers, and those near `most`, are likely.
    pub(super) fn up_to(&mut self, most: u64) -> u64 {
        let shift = self.below(64);
        let number = self.bits() >> shift;
        let number = if most == u64::MAX {
            number
        } else {
            number % (most + 1)
        };
        if self.below(4) == 0 { most - number } else { number }
    }

    /// A number near `middle`, up to `most`.
    pub(super) fn near(&mut self, middle: u64, most: u64) -> u64 {
        let distance = self.below(5);
        let number = if self.below(2) == 0 {
            middle.saturating_sub(distance)
        } else {
            middle.saturating_add(distance)
        };
        number.min(most)
    }
}

/// Runs a step of the crate on one word, and returns its outcome.
pub(super) fn on_word(word: u64, step: impl FnOnce(Shared<'_>) -> u64) -> Outcome {
    let words = [AtomicU64::new(word)];
    let value = step(Shared::new(&words));
    // Relaxed: one thread makes the step.
    (value, words[0].load(Ordering::Relaxed))
}

/// An optional word or time as a number: 0 for `None`, and otherwise the value plus 1.
pub(super) fn or_zero(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value + 1)
}

/// Performs a step of an algorithm of the crate with the limit `lower`, at the time `now` and for `permits`, or those of
/// `receipt`.
pub(super) fn perform<A: Reclaim>(
    algorithm: &A,
    lower: u64,
    (step, word): (u64, u64),
    now: Nanos,
    permits: u64,
    receipt: &Receipt,
) -> Outcome {
    let lowered = || algorithm.with_limit(lower).expect("a lower limit");
    let get = |instant: Option<Nanos>| or_zero(instant.map(Nanos::get));
    on_word(word, |words| match step {
        ADMIT => is_admitted(&algorithm.attempt(Some(lower), words, now, permits)),
        CHARGE => lowered().charge(words, now, permits),
        REFUND => u64::from(lowered().refund(words, receipt, permits)),
        REMAINING => lowered().remaining(words, now),
        SPENT => lowered().spent(words, now),
        IS_IDLE => u64::from(lowered().is_idle(word, now)),
        ADVANCE => or_zero(lowered().advance(word, now)),
        READY => get(lowered().ready_at(words, now, permits)),
        IDLE_AT => get(lowered().idle_at(words, now)),
        RESTORE => lowered().restore(words, now, permits),
        _ => unreachable!("a step"),
    })
}

pub(super) fn is_admitted<T>(attempt: &Attempt<T>) -> u64 {
    u64::from(matches!(attempt, Attempt::Admitted(_)))
}
