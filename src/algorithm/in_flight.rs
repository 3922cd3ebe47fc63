//! The limit of requests in flight, in one word.
//!
//! # States and protocol
//!
//! | bits, from the top | field | meaning |
//! |---|---|---|
//! | 2 | | clear ([`FIRST_WORD_BITS`]) |
//! | 42 | `generation` | how often the word was given to a key, from 1 |
//! | 20 | `held` | the slots that are held |
//!
//! A word of 0 is a fresh state of generation 1. A written word is never 0.
//!
//! | event | instruction | by |
//! |---|---|---|
//! | *hold* n | exchange `{ generation, held }` → `{ generation, held + n }` | a caller for which `held + n` is at most its limit |
//! | *release* n | exchange `{ generation, held }` → `{ generation, held - n }` | the caller whose receipt has this generation, once |
//! | *advance* | exchange `{ generation, _ }` → `{ generation + 1, 0 }` | a thread that gives the word to another key, or resets it |
//!
//! # How it keeps the contract of the traits
//!
//! A request takes slots as it takes permits: all or none, in the entry that a table finds or makes for its key. It gives them
//! back if another rule denies it. So a limit of slots is an algorithm. A state of another kind would need a second path with the
//! same steps through the table, the charge of a rule set, and the views of a state.
//!
//! The contract of [`Algorithm`] speaks of permits that count for a time. A slot counts until it is released, however long.
//!
//! - The bound is the number of slots that are held at any instant, so it holds for a window of any length.
//!   [`window`](Algorithm::window) returns zero. [`span`](Reclaim::span) is the longest time there is.
//! - [`ready_at`](Algorithm::ready_at) is now or never: without a release, no time frees a slot. A release may come at any time,
//!   so [`earliest`](Algorithm::earliest), a lower bound, is now.
//! - A refund is a release. It succeeds at any time, for any receipt whose slot is held.
//! - The word holds no debt, because no receipt could release it. [`charge`](Algorithm::charge) charges nothing, so
//!   [`spent`](Algorithm::spent) does not describe a state. A saved file and a reload that copies counts leave slots out.
//! - No answer depends on a time. [`latest_time`](Reclaim::latest_time) is zero, and a clock that steps back changes nothing.
//! - A state is idle only if no slot is held. So a table does not give the entry of a held slot to another key: the slot pins it.
//!
//! A catch-all cannot decide for keys without an entry: a key could hold slots there and in an entry. Nor may a table
//! [forget](crate::keyed::OnFull::Forget) a key. A rule set accepts neither for such a rule.
//!
//! # Proof sketch
//!
//! 1. **At most the limit is held.** Each *hold* exchanges the word that it has compared with its limit.
//! 2. **Each slot is released once.** A receipt is consumed by its release. The exchange succeeds in the end: each failure is the
//!    success of another thread. The word has `held` of at least n until then, because only *advance* takes slots that others hold.
//! 3. **A release takes no slot of another key.** Only a reset advances a word while slots are held. Then the generation differs
//!    from that of their receipts, for ever: it only grows, and at its maximum *advance* fails. (test
//!    `a_receipt_of_an_earlier_generation_releases_nothing`, model `in_flight_of_another_key`)
//!
//! The generation has 42 bits. An entry that is given to another key a million times per second uses them up in 51 days. Then it
//! stays with its last key.

use alloc::format;
use core::time::Duration;

use super::attempt::{Attempt, until_decided};
use super::one_word::OneWord;
use super::traits::{Algorithm, FIRST_WORD_BITS, Reclaim, lowered_limit};
use crate::error::ConfigError;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

/// A limit of the slots that are held at one time. A refund releases a slot.
#[derive(Clone, Debug)]
#[expect(unnameable_types, reason = "only a rule makes it")]
pub struct InFlight {
    limit: u64,
}

/// A value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word(u64);

impl Word {
    const HELD_BITS: u32 = 20;
    const MOST_HELD: u64 = (1 << Self::HELD_BITS) - 1;
    const LAST_GENERATION: u64 = (1 << (FIRST_WORD_BITS - Self::HELD_BITS)) - 1;

    fn read(words: impl Words) -> Self {
        Self(OneWord(words).read())
    }

    const fn new(generation: u64, held: u64) -> Self {
        Self((generation << Self::HELD_BITS) | held)
    }

    const fn generation(self) -> u64 {
        match self.0 >> Self::HELD_BITS {
            0 => 1,
            generation => generation,
        }
    }

    const fn held(self) -> u64 {
        self.0 & Self::MOST_HELD
    }

    /// `{ generation, held }` with another number of held slots.
    const fn with_held(self, held: u64) -> Self {
        Self::new(self.generation(), held)
    }
}

impl InFlight {
    /// The highest limit.
    pub(crate) const MAX_LIMIT: u64 = Word::MOST_HELD;

    /// Creates a limit of 1 to [`MAX_LIMIT`](Self::MAX_LIMIT) slots. `field` is the name of the limit in an error.
    pub(crate) fn new(limit: u64, field: &'static str) -> Result<Self, ConfigError> {
        if (1..=Self::MAX_LIMIT).contains(&limit) {
            return Ok(Self { limit });
        }
        let expected = format!("1 to {} requests in flight", Self::MAX_LIMIT);
        Err(ConfigError::new(field, format!("{limit}"), expected))
    }

    /// The highest limit, to read the slots that are held by any limit.
    pub(crate) const fn highest() -> Self {
        Self {
            limit: Self::MAX_LIMIT,
        }
    }
}

impl Algorithm for InFlight {
    fn words(&self) -> usize {
        1
    }

    fn max_request(&self) -> u64 {
        self.limit
    }

    fn bound(&self) -> u64 {
        self.limit
    }

    fn window(&self) -> Duration {
        Duration::ZERO
    }

    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        until_decided(|| self.attempt(None, words, now, permits))
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        (permits <= self.remaining(words, now)).then_some(now)
    }

    fn earliest<W: Words>(&self, _: W, now: Nanos, _: u64) -> Option<Nanos> {
        Some(now)
    }

    fn remaining<W: Words>(&self, words: W, _: Nanos) -> u64 {
        self.limit.saturating_sub(Word::read(words).held())
    }

    /// Releases slots. It fails if they are not held any more, because the words were reset.
    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        let released = |seen: Word| {
            let left = seen.held().checked_sub(permits)?;
            (seen.generation() == receipt.mark()).then(|| (seen.with_held(left).0, ()))
        };
        OneWord(words).update(|seen| released(Word(seen))).is_some()
    }

    /// Charges nothing. The word holds no debt, because no receipt could release it.
    fn charge<W: Words>(&self, _: W, _: Nanos, _: u64) -> u64 {
        0
    }

    fn spent<W: Words>(&self, words: W, _: Nanos) -> u64 {
        Word::read(words).held()
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        (Word::read(words).held() == 0).then_some(now)
    }
}

impl Reclaim for InFlight {
    fn span(&self) -> Duration {
        Duration::MAX
    }

    fn attempt<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
        let seen = Word::read(words);
        let receipt = Receipt::new(now, permits, seen.generation());
        if permits == 0 {
            return Attempt::Admitted(receipt);
        }
        let held = seen.held().checked_add(permits);
        let held = held.filter(|&held| held <= limit.unwrap_or(self.limit));
        OneWord(words).finish(seen.0, held.map(|held| (seen.with_held(held).0, receipt)))
    }

    fn is_idle(&self, first: u64, _: Nanos) -> bool {
        Word(first).held() == 0
    }

    /// The next generation, whatever the time. `None` after the last one.
    fn advance(&self, first: u64, _: Nanos) -> Option<u64> {
        let generation = Word(first).generation();
        (generation < Word::LAST_GENERATION).then(|| Word::new(generation + 1, 0).0)
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        (Word(first).held() == 0).then_some(Nanos::ZERO)
    }

    fn latest_time(&self, _: u64) -> Nanos {
        Nanos::ZERO
    }

    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        lowered_limit(limit, self.limit)?;
        Ok(Self { limit })
    }

    fn lower_limits(&self) -> (u64, u64) {
        (1, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;
    use crate::sync::{AtomicU64, Ordering, Shared};

    const NOW: Nanos = Nanos::new(7);

    #[test]
    fn a_slot_counts_until_it_is_released_whatever_the_time() {
        let two = InFlight::new(2, "in_flight").expect("two slots");
        let word = [AtomicU64::new(0)];
        let words = Shared::new(&word);
        let first = two.decide(words, NOW, 1).expect("a slot");
        let second = two.decide(words, Nanos::ZERO, 1).expect("a slot");
        assert!(two.decide(words, Nanos::MAX, 1).is_none());
        assert_eq!((two.remaining(words, NOW), two.spent(words, NOW)), (0, 2));
        assert_eq!(
            (two.ready_at(words, NOW, 1), two.idle_at(words, NOW)),
            (None, None)
        );
        assert!(two.ready_at(words, NOW, 0).is_some() && two.decide(words, NOW, 0).is_some());
        assert!(two.refund(words, &first, 1));
        assert_eq!(two.ready_at(words, NOW, 1), Some(NOW));
        assert!(two.refund(words, &second, 1));
        assert_eq!(two.idle_at(words, NOW), Some(NOW));
        // A word is 0 only until it is first written. Relaxed: the thread reads the word that it has written itself.
        assert!(word[0].load(Ordering::Relaxed) > 0 && two.is_idle(word[0].load(Ordering::Relaxed), NOW));
    }

    #[test]
    fn a_receipt_of_an_earlier_generation_releases_nothing() {
        let one = InFlight::new(1, "in_flight").expect("a slot");
        let word = [AtomicU64::new(0)];
        let words = Shared::new(&word);
        for fresh in [0, one.advance(0, NOW).expect("many generations")] {
            // Relaxed, here and below: no other thread has the word, so each load returns what was last stored.
            word[0].store(fresh, Ordering::Relaxed);
            let old = one.decide(words, NOW, 1).expect("a slot");
            let held = word[0].load(Ordering::Relaxed);
            let later = one.advance(held, NOW).expect("many generations");
            assert!(later > held && one.is_idle(later, NOW) && !one.is_idle(held, NOW));
            assert_eq!(
                (one.idle_from(later), one.idle_from(held)),
                (Some(Nanos::ZERO), None)
            );
            word[0].store(later, Ordering::Relaxed);
            let new = one.decide(words, NOW, 1).expect("the slot again");
            assert!(!one.refund(words, &old, 1));
            assert_eq!(one.spent(words, NOW), 1);
            assert!(one.refund(words, &new, 1) && !one.refund(words, &new, 1));
        }
    }

    #[test]
    fn the_last_generation_is_not_left() {
        let most = InFlight::highest();
        let last = Word::new(Word::LAST_GENERATION, 0);
        assert!(most.advance(Word::new(Word::LAST_GENERATION - 1, 5).0, NOW) == Some(last.0));
        assert_eq!(most.advance(last.0, NOW), None);
        // The two highest bits are clear, and a full count does not reach the generation.
        let word = [AtomicU64::new(last.0)];
        let words = Shared::new(&word);
        assert!(most.decide(words, NOW, InFlight::MAX_LIMIT).is_some());
        // Relaxed: the decision was made by this thread.
        assert_eq!(word[0].load(Ordering::Relaxed), (1 << FIRST_WORD_BITS) - 1);
        assert!(most.decide(words, NOW, 1).is_none() && most.decide(words, NOW, u64::MAX).is_none());
    }

    #[test]
    fn a_lower_limit_uses_the_same_count() {
        let three = InFlight::new(3, "in_flight").expect("three slots");
        let one = three.with_limit(1).expect("a lower limit");
        let word = [AtomicU64::new(0)];
        let words = Shared::new(&word);
        let receipts: alloc::vec::Vec<_> = (0..3).filter_map(|_| three.decide(words, NOW, 1)).collect();
        assert_eq!((receipts.len(), one.remaining(words, NOW)), (3, 0));
        for receipt in &receipts {
            assert!(one.decide(words, NOW, 1).is_none());
            assert_eq!(three.attempt(Some(1), words, NOW, 1), Attempt::Denied);
            assert!(one.refund(words, receipt, 1));
        }
        assert!(one.decide(words, NOW, 1).is_some() && three.with_limit(4).is_err());
        for limit in [0, InFlight::MAX_LIMIT + 1] {
            let error = InFlight::new(limit, "in_flight")
                .expect_err("out of range")
                .to_string();
            let expected =
                alloc::format!("invalid in_flight: {limit} (expected 1 to 1048575 requests in flight)");
            assert_eq!(error, expected);
        }
    }
}
