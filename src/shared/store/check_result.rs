use alloc::vec::Vec;
use core::time::Duration;

/// The answer of a store to one check: the status of each counter, and whether the request is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    at: u64,
    statuses: Vec<CounterStatus>,
    admitted: bool,
}

impl CheckResult {
    /// An admission at `at`, in microseconds of the store's time.
    #[must_use]
    pub const fn admitted(at: u64, statuses: Vec<CounterStatus>) -> Self {
        Self {
            at,
            statuses,
            admitted: true,
        }
    }

    /// A denial at `at`, in microseconds of the store's time.
    #[must_use]
    pub const fn denied(at: u64, statuses: Vec<CounterStatus>) -> Self {
        Self {
            at,
            statuses,
            admitted: false,
        }
    }

    /// The reading of the store's clock that decided, in microseconds of the store's time.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// The status of each counter, in the order of the requests.
    #[must_use]
    pub fn statuses(&self) -> &[CounterStatus] {
        &self.statuses
    }

    /// Whether the request is admitted: every enforced counter had room, and its [reserve](super::CounterRequest::reserve) stays free.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        self.admitted
    }
}

/// The status of one counter, without the [reserve](super::CounterRequest::reserve) of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterStatus {
    room: bool,
    charged: bool,
    remaining: u64,
    retry_after: Option<Duration>,
    receipt: (u64, u64),
}

impl CounterStatus {
    /// The counter had room, and `remaining` permits are left after the charge.
    #[must_use]
    pub const fn with_room(remaining: u64) -> Self {
        Self {
            room: true,
            charged: true,
            remaining,
            retry_after: Some(Duration::ZERO),
            receipt: (0, 0),
        }
    }

    /// The counter had no room. `remaining` permits are left, and there is room for the request after `retry_after`.
    /// `None`: never.
    #[must_use]
    pub const fn without_room(remaining: u64, retry_after: Option<Duration>) -> Self {
        Self {
            room: false,
            charged: false,
            remaining,
            retry_after,
            receipt: (0, 0),
        }
    }

    /// Marks the counter as not charged although it had room: another counter of its rule, which is not enforced, had
    /// none.
    #[must_use]
    pub const fn not_charged(self) -> Self {
        Self {
            charged: false,
            ..self
        }
    }

    /// Adds two numbers of the store's own. A [refund](super::CounterStore::refund) gets them back.
    #[must_use]
    pub const fn with_receipt(self, first: u64, second: u64) -> Self {
        Self {
            receipt: (first, second),
            ..self
        }
    }

    /// Whether the counter had room for the request.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.room
    }

    /// Whether the counter was charged, if the request is admitted.
    #[must_use]
    pub const fn is_charged(&self) -> bool {
        self.charged
    }

    /// The permits that are left.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The time until the counter has room, by the store's clock, if no other request is admitted. `None`: never.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The two numbers of the store's own.
    #[must_use]
    pub const fn receipt(&self) -> (u64, u64) {
        self.receipt
    }
}
