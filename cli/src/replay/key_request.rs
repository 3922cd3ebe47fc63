//! A request for one quota.

/// The time, the permits and the verdict of a request, for one quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestOfKey {
    /// Nanoseconds since 1970.
    pub(crate) time: i64,
    pub(crate) permits: u64,
    /// Whether all rules admitted it.
    pub(crate) admitted: bool,
    /// Whether this quota denied it.
    pub(crate) denied: bool,
}
