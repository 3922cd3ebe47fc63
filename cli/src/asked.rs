//! A request, as one entry sees it.

/// What is left of a request for one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Nanoseconds since 1970.
    pub(crate) time: i64,
    pub(crate) permits: u64,
    /// Whether all rules admitted it.
    pub(crate) admitted: bool,
    /// Whether this entry had no room for it.
    pub(crate) denied: bool,
}
