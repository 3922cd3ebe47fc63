//! The violations of a rule by one key, and the block of the key, in one word.
//!
//! # States and protocol
//!
//! The fields of a word are those of [`Word`]. A word of 0 is that of a key without violations.
//!
//! | word | meaning |
//! |---|---|
//! | `{ begin, level, violations }` | the window that began at `begin` has these violations. Without violations, `begin` is when another key lost the entry |
//! | `{ end, level, blocked }` | the key is blocked until `end`; later it has no violations, and the level until it is forgiven |
//!
//! | event | instruction | by |
//! |---|---|---|
//! | *violate* | the exchange of the word: one violation more, a new window with one violation, or a block | a request that was denied, if the key is not blocked |
//! | *extend* | the exchange of the word for one with a later end | a request that was denied, if the key is blocked and the block extends |
//!
//! # How it keeps the contract of the traits
//!
//! A rule set charges no request to a block. But each request reads it as it reads any other state, because a blocked key is one
//! without capacity until a known instant. The denial, its values, the retry time and the queue of a waiter follow from that. So
//! violations are an algorithm. A state of another kind would need a second path through the table, and a second form of each of
//! these readers.
//!
//! - A key that is not blocked has capacity for any number of permits. A blocked key has none, and
//!   [`ready_at`](Algorithm::ready_at) is the end of the block.
//! - To a table, each denial is a request for one permit. It is admitted if it changes the word, and denied otherwise.
//! - A violation is not taken back, so no refund succeeds. There is no debt: [`charge`](Algorithm::charge) charges nothing, so
//!   [`spent`](Algorithm::spent) does not describe a state. A saved file and a reload that copies counts leave blocks out.
//! - [`max_request`](Algorithm::max_request) is above the bound, which is the number of violations that begin a block.
//! - The number of violations that begin a block does not depend on the request, so a lower limit changes nothing.
//!
//! # Proof sketch
//!
//! 1. **A violation is counted once, or the key is blocked.** The exchange expects the word that it replaces, so no violation is
//!    lost. The one that reaches the limit begins the block, and no other does. (models `block_begins_once`,
//!    `block_beside_an_older_reading`)
//! 2. **A block never becomes shorter, whatever the readings.** `end` is at least the reading and the beginning of the window, plus
//!    the duration. While it is in force at a reading, the word changes only by *extend* to a later end. A reading that is older than
//!    the end finds the block in force.
//! 3. **No key is blocked by the violations of another.** The time is in the highest bits, and each change keeps it or raises it.
//!    `advance` returns a later time, without violations. So an exchange of a suspended thread fails when the entry has passed to
//!    another key. (model `block_of_a_reused_entry`)
//! 4. **An idle word means nothing.** A window counts for its length. A level counts for the time after which a key is forgiven, from
//!    the end of the last block, or from the beginning of the last window if that is later. After both, the next violation begins a
//!    window with level 0, as it does in a new entry. (test `blocks_equal_the_reference`)

use core::time::Duration;

use self::word::{TICK, Word, instant};
use super::attempt::{Attempt, until_decided};
use super::one_word::OneWord;
use super::traits::{Algorithm, Reclaim};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

mod word;

/// Counts the violations of a key, and blocks the key.
///
/// The mark of a receipt is [`BEGAN`](Self::BEGAN) if the denial has begun a block, and otherwise 0.
#[derive(Clone, Debug)]
#[expect(unnameable_types, reason = "only a rule makes it")]
pub struct Violations {
    /// The violations in a window that block the key.
    limit: u64,
    /// The window, in ticks.
    window: u64,
    length: BlockLength,
    /// The time after which a key is forgiven, in ticks.
    forgiveness: u64,
    /// Whether a retry extends the block.
    extends: bool,
}

/// The duration of blocks: `first` · `factor`^(k − 1) for the k-th one, and at most `ceiling`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockLength {
    pub(crate) first: Duration,
    pub(crate) factor: u32,
    pub(crate) ceiling: Duration,
}

impl BlockLength {
    /// The duration of the block with this number, from 1.
    pub(crate) fn of(&self, number: u32) -> Duration {
        // A word has no level above it.
        let number = number.min(Word::MAX_LEVEL);
        let factor = self.factor.saturating_pow(number.saturating_sub(1));
        self.first.saturating_mul(factor).min(self.ceiling)
    }
}

/// A duration in ticks, rounded up.
fn ticks(duration: Duration) -> u64 {
    Nanos::from_duration(duration).get().div_ceil(TICK)
}

impl Violations {
    /// The most violations in a window.
    pub(crate) const MAX_LIMIT: u64 = Word::MAX_VIOLATIONS;

    /// The mark of a violation that has begun a block.
    pub(crate) const BEGAN: u64 = 1;

    /// Creates the algorithm. `after` has at most [`MAX_LIMIT`](Self::MAX_LIMIT) violations.
    pub(crate) fn new(after: Quota, length: BlockLength, forgiveness: Duration, extends: bool) -> Self {
        Self {
            limit: after.limit(),
            window: ticks(after.window()),
            length,
            forgiveness: ticks(forgiveness),
            extends,
        }
    }

    pub(crate) const fn extends(&self) -> bool {
        self.extends
    }

    /// The word after a denial at `now`, and whether the denial begins a block. `None` if the word does not change. The denial is
    /// a retry if the key is blocked, and otherwise a violation.
    pub(crate) fn after_denial(&self, word: u64, now: Nanos) -> Option<(u64, bool)> {
        let word = Word(word);
        match self.violated(word, now) {
            Some(violated) => Some((violated.0, violated.is_block())),
            None => Some((self.extended(word, now)?.0, false)),
        }
    }

    /// The end of the block of this word, if it is in force at `now`.
    pub(crate) fn block_end(word: u64, now: Nanos) -> Option<Nanos> {
        Word(word).end(now)
    }

    /// The word after a violation at `now`. `None` while the key is blocked.
    fn violated(&self, word: Word, now: Nanos) -> Option<Word> {
        if word.end(now).is_some() {
            return None;
        }
        let tick = now.get() / TICK;
        let in_window = !word.is_block() && word.violations() > 0 && tick < word.time() + self.window;
        let (begin, level, before) = if in_window {
            (word.time(), word.level(), word.violations())
        } else {
            let begin = tick.max(word.time());
            let is_forgiven = begin - word.time() >= self.forgiveness;
            (begin, if is_forgiven { 0 } else { word.level() }, 0)
        };
        if before + 1 < self.limit {
            return Some(Word::counting(begin, level, before + 1));
        }
        let level = Word::MAX_LEVEL.min(level + 1);
        let end = self.end_from(now.max(instant(begin)), level);
        Some(Word::blocked(end, level))
    }

    /// The word after a retry at `now`. `None` if the key is not blocked, or the block does not become longer.
    fn extended(&self, word: Word, now: Nanos) -> Option<Word> {
        word.end(now)?;
        let end = self.end_from(now, word.level());
        (self.extends && end > word.time()).then(|| Word::blocked(end, word.level()))
    }

    /// The end of a block of this level from `now` on, in ticks, rounded up.
    fn end_from(&self, now: Nanos, level: u32) -> u64 {
        let end = now.saturating_add(self.length.of(level));
        end.get().div_ceil(TICK)
    }

    /// The first tick at which the word means as much as that of a key without violations.
    fn idle_tick(&self, word: Word) -> u64 {
        let level = if word.level() > 0 { self.forgiveness } else { 0 };
        let window = if word.violations() > 0 { self.window } else { 0 };
        // A word is not idle in its own tick, so that a later word of the entry is greater.
        word.time().saturating_add(level.max(window).max(1))
    }
}

impl Algorithm for Violations {
    fn words(&self) -> usize {
        1
    }

    fn max_request(&self) -> u64 {
        u64::MAX
    }

    fn bound(&self) -> u64 {
        self.limit
    }

    fn window(&self) -> Duration {
        instant(self.window).saturating_since(Nanos::ZERO)
    }

    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        until_decided(|| self.attempt(None, words, now, permits))
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        Some(Word::read(words).end(now).filter(|_| permits > 0).unwrap_or(now))
    }

    fn earliest<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        self.ready_at(words, now, permits)
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        match Word::read(words).end(now) {
            Some(_) => 0,
            None => u64::MAX,
        }
    }

    /// A violation is not taken back.
    fn refund<W: Words>(&self, _: W, _: &Receipt, permits: u64) -> bool {
        permits == 0
    }

    /// Charges nothing. A block has no debt.
    fn charge<W: Words>(&self, _: W, _: Nanos, _: u64) -> u64 {
        0
    }

    fn spent<W: Words>(&self, words: W, _: Nanos) -> u64 {
        Word::read(words).violations()
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        let idle = self.idle_from(Word::read(words).0)?;
        Some(idle.max(now))
    }
}

impl Reclaim for Violations {
    fn span(&self) -> Duration {
        let longest = self.length.ceiling.max(self.window());
        longest.saturating_add(instant(self.forgiveness).saturating_since(Nanos::ZERO))
    }

    fn attempt<W: Words>(&self, _: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
        if permits == 0 {
            return Attempt::Admitted(Receipt::new(now, 0, 0));
        }
        let seen = Word::read(words).0;
        let changed = self.after_denial(seen, now).map(|(new, began)| {
            let mark = if began { Self::BEGAN } else { 0 };
            (new, Receipt::new(now, permits, mark))
        });
        OneWord(words).finish(seen, changed)
    }

    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        first == 0 || self.idle_tick(Word(first)) <= now.get() / TICK
    }

    fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        let (time, tick) = (Word(first).time(), now.get() / TICK);
        if time > tick {
            return None;
        }
        Word::fresh(tick.max(time + 1)).map(|word| word.0)
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        if first == 0 {
            return Some(Nanos::ZERO);
        }
        let idle = instant(self.idle_tick(Word(first)));
        (idle < Nanos::MAX).then_some(idle)
    }

    fn latest_time(&self, first: u64) -> Nanos {
        Word(first).instant()
    }

    /// A lower limit changes nothing.
    fn with_limit(&self, _: u64) -> Result<Self, ConfigError> {
        Ok(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn at(seconds: u64) -> Nanos {
        Nanos::from_duration(secs(seconds))
    }

    fn violations(after: u64) -> Violations {
        let after = Quota::new(after, secs(60)).expect("a quota");
        let length = BlockLength {
            first: secs(10),
            factor: 2,
            ceiling: secs(40),
        };
        Violations::new(after, length, secs(100), false)
    }

    /// A word is idle as soon as the next violation means as much as in a new entry, and not before. A claim then raises it.
    #[test]
    fn a_word_is_idle_when_it_means_as_much_as_a_fresh_one() {
        let violations = violations(3);
        let ticks = |seconds: u64| at(seconds).get() / TICK;
        for word in [
            Word::counting(ticks(1_000), 0, 1),
            Word::counting(ticks(1_000), 0, 0),
            Word::counting(ticks(1_000), 2, 1),
            Word::blocked(ticks(1_000), 1),
            Word::blocked(ticks(1_000), Word::MAX_LEVEL),
        ] {
            let idle = violations.idle_from(word.0).expect("time does not end");
            for step in 0..13_000 {
                let now = Nanos::new(990 * 1_000_000_000 + step * TICK);
                assert_eq!(
                    violations.is_idle(word.0, now),
                    now >= idle,
                    "{word:?} at {now:?}"
                );
                let fresh = violations
                    .advance(0, now)
                    .map(Word)
                    .and_then(|fresh| violations.violated(fresh, now));
                let after = violations.violated(word, now);
                assert_eq!(violations.advance(word.0, now).is_some(), now >= word.instant());
                if now >= idle {
                    assert_eq!(after, fresh, "{word:?} at {now:?}");
                    let advanced = violations.advance(word.0, now).expect("an idle word advances");
                    assert!(advanced > word.0 && violations.latest_time(advanced) <= now);
                }
                if let Some(after) = after {
                    assert!(after.time() >= word.time(), "{word:?} at {now:?}");
                }
            }
        }
    }

    /// Times and levels saturate at their ends.
    #[test]
    fn a_block_at_the_end_of_time_does_not_wrap() {
        let violations = violations(1);
        for now in [Nanos::MAX, Nanos::new(Nanos::MAX.get() - TICK)] {
            let word = violations.violated(Word(0), now).expect("not blocked");
            assert!(word.is_block() && word.0 < 1 << 62, "{word:?}");
            assert_eq!(word.end(at(5)), Some(word.instant()));
            assert_eq!(word.instant(), Nanos::MAX);
        }
        let highest = Word::blocked(100, Word::MAX_LEVEL);
        let next = violations.violated(highest, at(1)).expect("the block is over");
        assert_eq!((next.level(), next.time()), (Word::MAX_LEVEL, 4_100));
    }
}
