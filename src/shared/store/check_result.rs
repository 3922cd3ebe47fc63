use alloc::vec::Vec;
use core::time::Duration;

/// The answer of a store to one check: the status of each counter, and whether the request is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckResult {
    /// The reading of the store's clock that decided, in microseconds of the store's time.
    pub at: u64,
    /// The status of each counter, in the order of the requests.
    pub statuses: Vec<CounterStatus>,
    /// Whether the request is admitted: every enforced counter had room, and its [reserve](super::CounterRequest::reserve) stays free.
    pub is_admitted: bool,
}

impl CheckResult {
    /// An admission at `at`, in microseconds of the store's time.
    #[must_use]
    pub const fn admitted(at: u64, statuses: Vec<CounterStatus>) -> Self {
        Self {
            at,
            statuses,
            is_admitted: true,
        }
    }

    /// A denial at `at`, in microseconds of the store's time.
    #[must_use]
    pub const fn denied(at: u64, statuses: Vec<CounterStatus>) -> Self {
        Self {
            at,
            statuses,
            is_admitted: false,
        }
    }
}

/// The status of one counter. It leaves the [reserve](super::CounterRequest::reserve) of the request out of account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterStatus {
    /// Whether the counter had room for the request.
    pub has_room: bool,
    /// Whether the counter was charged, if the request is admitted.
    pub is_charged: bool,
    /// The permits that are left.
    pub remaining: u64,
    /// The time until the counter has room, by the store's clock, if no other request is admitted. `None`: never.
    pub retry_after: Option<Duration>,
    /// Two numbers of the store's own. A [refund](super::CounterStore::refund) gets them back.
    pub receipt: (u64, u64),
}

impl CounterStatus {
    /// The counter had room, and `remaining` permits are left after the charge.
    #[must_use]
    pub const fn with_room(remaining: u64) -> Self {
        Self {
            has_room: true,
            is_charged: true,
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
            has_room: false,
            is_charged: false,
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
            is_charged: false,
            ..self
        }
    }

    /// Sets the [receipt](Self::receipt).
    #[must_use]
    pub const fn with_receipt(self, first: u64, second: u64) -> Self {
        Self {
            receipt: (first, second),
            ..self
        }
    }
}
