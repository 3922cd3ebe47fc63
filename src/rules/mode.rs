use alloc::format;
use core::time::Duration;

use crate::error::ConfigError;

/// How far a node may decide about a rule by itself, when the counts are kept by a store that many machines share. In
/// a rule set of one process it means nothing.
///
/// What each of them bounds, and what it costs, is in the documentation of the module `redis`. A rule in the shadow, or
/// for the keys for which it is in the shadow, is strict, whatever its mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Each node counts for itself, with the whole quota: the store is never asked.
    Local,
    /// Every decision is the store's: exact, and a round trip. The default.
    #[default]
    Strict,
    /// A node spends a hold that the store has registered, and charges in arrears: exact, and without a round trip
    /// for keys that are asked for often. All other decisions are the store's.
    Lease {
        /// The most permits of one key that a node may hold, 1 to [`MOST`](Mode::MOST).
        permits: u64,
    },
    /// A node spends a budget of its own, and pushes what it has spent in the background: without a round trip for
    /// keys that are asked for often, unless `pending` is spent before the store is heard. All nodes together admit up to
    /// (K − 1)·min(`pending`, L) too much. A budget may be spent for the term or for four periods, whichever is longer,
    /// without a word of the store; a request for more than `pending` is the store's.
    Sync {
        /// The time between two pushes of one key, 1 ms to 60 s.
        period: Duration,
        /// The most permits of one key that a node may have spent and not pushed, 1 to [`MOST`](Mode::MOST).
        pending: u64,
    },
}

impl Mode {
    /// The most permits of one key that a node may hold, or have pending: what the word of an account has room for.
    pub const MOST: u64 = 1_000_000;

    /// The times between two pushes.
    const PERIODS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(60));

    /// What is wrong with it.
    pub(super) fn validate(self) -> Result<(), ConfigError> {
        let (field, permits) = match self {
            Self::Local | Self::Strict => return Ok(()),
            Self::Lease { permits } => ("permits", permits),
            Self::Sync { period, pending } => {
                if period < Self::PERIODS.0 || period > Self::PERIODS.1 {
                    return Err(ConfigError::new(
                        "period",
                        format!("{period:?}"),
                        format!("{:?} to {:?}", Self::PERIODS.0, Self::PERIODS.1),
                    ));
                }
                ("pending", pending)
            }
        };
        match permits {
            1..=Self::MOST => Ok(()),
            _ => Err(ConfigError::new(
                field,
                format!("{permits} permits"),
                format!("1 to {} permits", Self::MOST),
            )),
        }
    }
}
