use crate::algorithm::one_word::OneWord;
use crate::debug::debug_fields;
use crate::sync::Words;
use crate::time::Nanos;

/// The word of a key that has violated a rule.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 2 | | clear: they belong to the table |
/// | 40 | `time` | the beginning of the window of violations, or the end of the block, in ticks |
/// | 1 | `blocked` | whether `time` is the end of a block |
/// | 5 | `level` | the blocks since the key was last forgiven, at most [`MAX_LEVEL`](Self::MAX_LEVEL) |
/// | 16 | `violations` | the violations in the window |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

/// The unit of time of the words, in nanoseconds: 10 ms.
pub(super) const TICK: u64 = 10_000_000;

impl Word {
    /// The most violations that the word can count.
    pub(super) const MAX_VIOLATIONS: u64 = (1 << Self::VIOLATIONS) - 1;

    /// The highest level. No block is longer at a higher level: see [`Violations`](super::Violations).
    pub(super) const MAX_LEVEL: u32 = (1 << Self::LEVEL) - 1;

    /// The last tick. The end of the longest block fits into 40 bits, since 2^63 ns are less than 2^40 ticks.
    const MAX_TIME: u64 = (1 << 40) - 1;

    const VIOLATIONS: u32 = 16;
    const LEVEL: u32 = 5;
    const BLOCKED: u64 = 1 << (Self::VIOLATIONS + Self::LEVEL);
    const TIME: u32 = Self::VIOLATIONS + Self::LEVEL + 1;

    pub(super) fn read(words: impl Words) -> Self {
        Self(OneWord(words).read())
    }

    /// `{ time, level: 0, violations: 0 }`: the word of a key without violations from this tick on. `None` if time ends before.
    pub(super) fn fresh(time: u64) -> Option<Self> {
        (time <= Self::MAX_TIME).then(|| Self::counting(time, 0, 0))
    }

    /// `{ time: begin, blocked: false, level, violations }`.
    pub(super) fn counting(begin: u64, level: u32, violations: u64) -> Self {
        Self(begin << Self::TIME | u64::from(level) << Self::VIOLATIONS | violations)
    }

    /// `{ time: end, blocked: true, level, violations: 0 }`.
    pub(super) fn blocked(end: u64, level: u32) -> Self {
        Self(end.min(Self::MAX_TIME) << Self::TIME | Self::BLOCKED | u64::from(level) << Self::VIOLATIONS)
    }

    pub(super) const fn time(self) -> u64 {
        self.0 >> Self::TIME
    }

    /// Whether `time` is the end of a block, which may be over.
    pub(super) const fn is_block(self) -> bool {
        self.0 & Self::BLOCKED != 0
    }

    pub(super) const fn level(self) -> u32 {
        (self.0 >> Self::VIOLATIONS) as u32 & Self::MAX_LEVEL
    }

    pub(super) const fn violations(self) -> u64 {
        self.0 & Self::MAX_VIOLATIONS
    }

    /// The instant of `time`.
    pub(super) const fn instant(self) -> Nanos {
        instant(self.time())
    }

    /// The end of the block, if it is in force at `now`.
    pub(super) fn end(self, now: Nanos) -> Option<Nanos> {
        (self.is_block() && now < self.instant()).then(|| self.instant())
    }
}

/// The instant at which a tick begins.
pub(super) const fn instant(tick: u64) -> Nanos {
    Nanos::new(tick.saturating_mul(TICK))
}

debug_fields!(Word {
    time,
    is_block,
    level,
    violations
});
