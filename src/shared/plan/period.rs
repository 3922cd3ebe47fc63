//! The current fixed window, or the current period of a calendar, by the wall clock of this node.

use core::time::Duration;
use std::time::SystemTime;

use crate::algorithm::CalendarQuota;
use crate::quota::Quota;

/// A period of a quota. The store keeps a counter under its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CurrentPeriod {
    /// The start in microseconds since 1970, equal on all nodes.
    pub(crate) number: u64,
    pub(crate) length: Duration,
    /// The time until the end.
    pub(crate) ends_in: Duration,
}

impl CurrentPeriod {
    /// The period of the calendar, or else of the fixed window, that contains `now`. Fixed windows begin at the multiples of their
    /// length since 1970. So do the periods of a calendar at a time that is out of its range.
    pub(super) fn of(calendar: Option<&CalendarQuota>, quota: Quota, now: SystemTime) -> Self {
        let now_since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if let Some((start, end)) = calendar.and_then(|calendar| calendar.period_of(now_since)) {
            return Self::between(start, end, now_since);
        }
        let window = quota.window().as_nanos().max(1);
        let start = now_since.as_nanos() / window * window;
        let nanos = |nanos: u128| Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        Self::between(nanos(start), nanos(start + window), now_since)
    }

    fn between(start: Duration, end: Duration, now: Duration) -> Self {
        Self {
            number: u64::try_from(start.as_micros()).unwrap_or(u64::MAX),
            length: end.saturating_sub(start),
            // A denial is not to be repeated within the same period.
            ends_in: end.saturating_sub(now).max(Duration::from_nanos(1)),
        }
    }
}
