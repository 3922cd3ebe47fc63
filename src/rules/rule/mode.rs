use alloc::format;
use core::time::Duration;

use crate::error::ConfigError;

/// How much a node decides by itself about a shared rule, whose counts are kept by a store.
///
/// The module `redis` documents the bound and the cost of each. A rule set of one process ignores it. A rule in the shadow
/// is always strict, also if it is in the shadow for some keys only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Each node counts by itself, with the whole quota. The store is never asked.
    Local,
    /// The store makes every decision: exact, one round trip each. The default.
    #[default]
    Strict,
    /// A node spends permits that the store has leased to it: exact, and without a round trip for busy keys. All other
    /// decisions are the store's.
    Lease {
        /// The most permits of one key that a node may hold, 1 to [`MAX_PERMITS`](Mode::MAX_PERMITS).
        permits: u64,
    },
    /// A node admits by itself and reports to the store in the background: without a round trip for busy keys.
    ///
    /// K nodes together may exceed the limit L by (K − 1)·min(`pending`, L). A node that has not heard from the store stops
    /// after the term of a lease, or after four periods if that is longer. The store decides about a request for more than
    /// `pending`, and about one that finds `pending` used up.
    Sync {
        /// The time between two reports of one key, 1 ms to 60 s.
        period: Duration,
        /// The most permits of one key that a node may have admitted without a report, 1 to
        /// [`MAX_PERMITS`](Mode::MAX_PERMITS).
        pending: u64,
    },
}

impl Mode {
    /// The most permits of one key that a node may hold or leave unreported: the capacity of a lease's word.
    pub const MAX_PERMITS: u64 = 1_000_000;

    const MIN_PERIOD: Duration = Duration::from_millis(1);
    const MAX_PERIOD: Duration = Duration::from_secs(60);

    pub(crate) fn validate(self) -> Result<(), ConfigError> {
        let (field, permits) = match self {
            Self::Local | Self::Strict => return Ok(()),
            Self::Lease { permits } => ("permits", permits),
            Self::Sync { period, pending } => {
                if period < Self::MIN_PERIOD || period > Self::MAX_PERIOD {
                    return Err(ConfigError::new(
                        "period",
                        format!("{period:?}"),
                        format!("{:?} to {:?}", Self::MIN_PERIOD, Self::MAX_PERIOD),
                    ));
                }
                ("pending", pending)
            }
        };
        match permits {
            1..=Self::MAX_PERMITS => Ok(()),
            _ => Err(ConfigError::new(
                field,
                format!("{permits}"),
                format!("1 to {} permits", Self::MAX_PERMITS),
            )),
        }
    }
}
