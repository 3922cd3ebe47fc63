use crate::receipt::Receipt;
use crate::sync::Words;

/// The outcome of one attempt to decide.
///
/// `T` is the receipt in the public API. Inside the crate it is the tick or the time that was charged.
// Every attempt is inlined into its caller (`inline(always)`, from `check` down), and its outcome fits into registers. The
// compare-exchange waits for all earlier stores, so a spilled register or an outcome in memory would delay each decision.
// The retry loop is a separate function. It takes the words and not a `State`, which would be passed in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an attempt may have charged permits, or may have to be repeated"]
pub enum Attempt<T = Receipt> {
    /// The permits were taken.
    Admitted(T),
    /// The permits do not fit. Nothing was taken.
    Denied,
    /// Nothing was decided: another thread changed the state first, or this attempt finished a step that must precede a
    /// decision.
    Retry,
}

impl<T> Attempt<T> {
    /// Converts the value of `Admitted`.
    #[inline(always)]
    pub(super) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Attempt<U> {
        match self {
            Self::Admitted(taken) => Attempt::Admitted(convert(taken)),
            Self::Denied => Attempt::Denied,
            Self::Retry => Attempt::Retry,
        }
    }

    /// Returns the decision of this attempt, or that of `retry` if this attempt made none.
    #[inline(always)]
    pub(super) fn or_else(self, retry: impl FnOnce() -> Option<T>) -> Option<T> {
        match self {
            Self::Admitted(taken) => Some(taken),
            Self::Denied => None,
            Self::Retry => retry(),
        }
    }
}

/// Copies a handle to the words, to pass it to a function that is not inlined.
///
/// The compiler passes a large value by its address. Without the copy it would keep the original in memory on every path,
/// and each decision would store it first.
#[inline(always)]
pub(super) fn opaque_copy<W: Words>(words: W) -> W {
    core::hint::black_box(words)
}

/// Repeats `attempt` until it decides.
#[inline(always)]
pub(super) fn until_decided<T>(mut attempt: impl FnMut() -> Attempt<T>) -> Option<T> {
    loop {
        match attempt() {
            Attempt::Admitted(taken) => return Some(taken),
            Attempt::Denied => return None,
            Attempt::Retry => {}
        }
    }
}
