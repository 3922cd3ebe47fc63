use alloc::string::String;
use core::fmt;

/// A call to a store failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreError {
    kind: StoreErrorKind,
    detail: String,
}

/// The kind of a [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// There is no connection. The store is making one.
    Down,
    /// Too many calls have failed lately. No call is made for a while.
    BreakerOpen,
    /// The limit of concurrent calls is reached.
    Overloaded,
    /// No answer came in time. The call may have taken effect, or may yet: a second call may charge twice.
    TimedOut,
    /// The connection broke before an answer came. The call may have taken effect.
    Disconnected,
    /// The server does not accept writes: out of memory, read-only, loading, busy, or its cluster is down.
    Refused,
    /// The server answered with another error, or with a reply of the wrong form.
    UnexpectedReply,
}

impl StoreError {
    /// An error of this kind, with the server's or the library's own words.
    #[must_use]
    pub fn new(kind: StoreErrorKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
        }
    }

    /// The kind of the error.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether nothing was charged for certain, because nothing was sent.
    #[must_use]
    pub const fn is_unsent(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::Down | StoreErrorKind::BreakerOpen | StoreErrorKind::Overloaded
        )
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            StoreErrorKind::Down => "no connection to the store",
            StoreErrorKind::BreakerOpen => "circuit breaker of the store is open",
            StoreErrorKind::Overloaded => "too many concurrent calls to the store",
            StoreErrorKind::TimedOut => "store did not answer in time",
            StoreErrorKind::Disconnected => "connection to the store broke",
            StoreErrorKind::Refused => "store does not accept writes",
            StoreErrorKind::UnexpectedReply => "unexpected reply of the store",
        })?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl core::error::Error for StoreError {}
