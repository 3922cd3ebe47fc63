use core::time::Duration;

/// The leases of a node, in numbers: those of [`Mode::Lease`](crate::rules::Mode::Lease) and the budgets of
/// [`Mode::Sync`](crate::rules::Mode::Sync).
///
/// Each number is exact while no request is decided. Under load, the numbers may be of slightly different instants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// The most leases that the node keeps at once.
    pub capacity: u64,
    /// The leases that belong to a key.
    pub leases: u64,
    /// Permits that were admitted here, and that the store has not confirmed to have charged.
    pub uncharged: u64,
    /// Permits that the node may spend, the uncharged ones included.
    pub held: u64,
    /// The age of the stalest lease that holds or owes permits. `None`: there is none.
    pub stale: Option<Duration>,
    /// Requests that leases have denied.
    pub denied: u64,
    /// Requests about which the store was asked although one of their rules uses leases.
    pub remote: u64,
}
