use alloc::string::String;
use core::fmt;

/// A store has not answered as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreError {
    kind: StoreErrorKind,
    detail: String,
}

/// What went wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// There is no connection; one is being made.
    Down,
    /// Too many calls have failed lately, and none is made for a while.
    BreakerOpen,
    /// So many calls are on their way that no more is let in.
    Overloaded,
    /// No answer came in time. The call may have taken effect, or may yet: to ask again may charge it twice.
    TimedOut,
    /// The connection broke before an answer came. The call may have taken effect.
    Disconnected,
    /// The server has answered that it will not write: out of memory, read-only, loading, busy, the cluster is down.
    Refused,
    /// The server has answered with another error, or with something that makes no sense.
    Confused,
}

impl StoreError {
    /// What went wrong, and the words of whoever said so.
    #[must_use]
    pub fn new(kind: StoreErrorKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
        }
    }

    /// What went wrong.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether it is certain that nothing was taken, since nothing was sent.
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
            StoreErrorKind::Down => "there is no connection to the store",
            StoreErrorKind::BreakerOpen => "the store has failed too often, and is left alone for a while",
            StoreErrorKind::Overloaded => "too many calls to the store are on their way",
            StoreErrorKind::TimedOut => "the store did not answer in time",
            StoreErrorKind::Disconnected => "the connection to the store broke",
            StoreErrorKind::Refused => "the store refuses to write",
            StoreErrorKind::Confused => "the store has answered with an error",
        })?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl core::error::Error for StoreError {}
