use crate::sync::{AtomicU64, Ordering};

/// What the store has said of room, as a value. From the lowest bit:
///
/// | bits | field | meaning |
/// |---|---|---|
/// | 20 | left | permits that there may be room for at the store |
/// | 44 | until | for how long that is believed, in units of 16,384 ns |
///
/// The time of a clock that has run for nine years is the last; from there on nothing is shut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Notice(u64);

impl Notice {
    const UNIT: u32 = 14;
    const BITS: u32 = 20;
    const LEFT: u64 = (1 << Self::BITS) - 1;

    pub(super) fn new(until: u64, left: u64) -> Self {
        let until = (until >> Self::UNIT).min(u64::MAX >> Self::BITS);
        Self(until << Self::BITS | left.min(Self::LEFT))
    }

    /// What is left, if that is known at this time.
    pub(super) fn left_at(self, now: u64) -> Option<u64> {
        (now >> Self::UNIT < self.0 >> Self::BITS).then_some(self.0 & Self::LEFT)
    }
}

/// The word of a [`Notice`].
#[derive(Debug)]
pub(super) struct Shut(AtomicU64);

impl Shut {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(super) fn read(&self) -> Notice {
        // Acquire: pairs with the Release in `write`; who sees what was said to a later owner sees that owner.
        Notice(self.0.load(Ordering::Acquire))
    }

    pub(super) fn write(&self, notice: Notice) {
        // Release: pairs with the Acquire in `read`.
        self.0.store(notice.0, Ordering::Release);
    }
}
