use core::time::Duration;

/// How the accounts of a node are, which decide by [`Mode::Lease`](crate::Mode::Lease) and
/// [`Mode::Sync`](crate::Mode::Sync).
///
/// Each number is exact when nobody decides; read under load, they may be of slightly different instants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing {
    /// The accounts that there is room for.
    pub capacity: u64,
    /// The accounts that are some key's.
    pub accounts: u64,
    /// Permits that were admitted here, and that the store has not said to have charged.
    pub uncharged: u64,
    /// Permits that this node holds or has as a budget, what is uncharged included.
    pub held: u64,
    /// How long ago the account was heard of that nobody has heard of for the longest time, of those that hold or owe
    /// something; `None`: there is none.
    pub stale: Option<Duration>,
    /// Requests that accounts have refused.
    pub refused: u64,
    /// Requests that the store had to be asked for, although an account is kept of their keys.
    pub asked: u64,
}
