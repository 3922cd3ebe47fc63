//! The last answer of the store about its room.

use crate::sync::{AtomicU64, Ordering};

/// The room of the store as a value. From the lowest bit:
///
/// | bits | field | meaning |
/// |---|---|---|
/// | 20 | left | permits that the store has at most |
/// | 44 | until | the end of the notice, in units of 16,384 ns |
///
/// The field `until` holds times up to nine years of the clock. After that no notice holds.
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

    /// The permits that are left at this time, if they are known.
    pub(super) fn left_at(self, now: u64) -> Option<u64> {
        (now >> Self::UNIT < self.0 >> Self::BITS).then_some(self.0 & Self::LEFT)
    }
}

/// The time at which the store may have room for a request, as a value. From the lowest bit:
///
/// | bits | field | meaning |
/// |---|---|---|
/// | 20 | permits | the permits of the request |
/// | 44 | at | the time, in units of 16,384 ns, rounded up |
///
/// A request of more permits than the field holds is denied by the store alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RetryTime(pub(super) u64);

impl RetryTime {
    pub(super) fn new(at: u64, permits: u64) -> Self {
        let at = at.div_ceil(1 << Notice::UNIT).min(u64::MAX >> Notice::BITS);
        Self(at << Notice::BITS | permits.min(Notice::LEFT))
    }

    pub(super) const fn permits(self) -> u64 {
        self.0 & Notice::LEFT
    }

    pub(super) const fn at(self) -> u64 {
        self.0 >> Notice::BITS << Notice::UNIT
    }
}

/// The word of a [`Notice`].
#[derive(Debug)]
pub(super) struct NoticeWord(AtomicU64);

impl NoticeWord {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(super) fn read(&self) -> Notice {
        // Acquire: pairs with the Release in `write`; a reader of a later owner's notice reads that owner.
        Notice(self.0.load(Ordering::Acquire))
    }

    pub(super) fn write(&self, notice: Notice) {
        // Release: pairs with the Acquire in `read`.
        self.0.store(notice.0, Ordering::Release);
    }
}
