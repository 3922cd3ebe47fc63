use core::time::Duration;

/// Which decisions about a shared rule a node makes without the store that keeps its counts.
///
/// The module `shared` documents the bound and the cost of each mode. A local rule set ignores it. For a key for which
/// the rule is in the shadow, it is `Strict` unless it is `Local`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Each node counts separately, with the whole quota. It never calls the store.
    Local,
    /// The store makes every decision. The limit is exact, and a decision costs one round trip. This is the default.
    #[default]
    Strict,
    /// A node spends permits that the store has leased to it. The limit is exact, and decisions about busy keys cost no round trip.
    /// The store makes all other decisions, such as those about requests of more than half of the limit.
    Lease {
        /// The most permits of one key that a node may hold, 1 to a million.
        permits: u64,
    },
    /// A node admits requests without the store, and reports them in the background. Decisions about busy keys cost no round trip.
    ///
    /// K nodes together may exceed the limit L by (K − 1)·min(`pending`, L). A node without an answer of the store stops admitting
    /// after the term of a lease, or after four periods if that is longer. The store decides a request for more than `pending`
    /// permits, and a request for which `pending` is used up. No such request is denied while the limit has room for it.
    Sync {
        /// The time between two reports of one key, 1 ms to 60 s.
        period: Duration,
        /// The most permits of one key that a node may have admitted without a report, 1 to a million.
        pending: u64,
    },
}

impl Mode {
    /// The most permits of one key that a node may hold or leave unreported. The word of a lease cannot hold more.
    pub(crate) const MAX_PERMITS: u64 = 1_000_000;

    pub(crate) const MIN_PERIOD: Duration = Duration::from_millis(1);
    pub(crate) const MAX_PERIOD: Duration = Duration::from_secs(60);
}
