use crate::receipt::Receipt;
use crate::sync::Words;

/// The outcome of one attempt to decide.
///
/// Inside the crate `T` is the tick or time that was charged instead of a receipt. An attempt is straight code that
/// is inlined into its caller (`inline(always)`, from `check` down) and whose outcome fits into registers: the
/// compare-exchange waits for every earlier store, so a spilled register or an outcome in memory delays each decision.
/// The loop around it is a function of its own, and takes words instead of a `State`, which would be passed in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an attempt may have charged permits, or may have to be repeated"]
pub enum Attempt<T = Receipt> {
    /// The permits were taken.
    Admitted(T),
    /// The permits do not fit. Nothing was consumed.
    Denied,
    /// Another thread was faster, or a step had to be done first and was done.
    Retry,
}

impl<T> Attempt<T> {
    /// Converts the payload of `Admitted`.
    #[inline(always)]
    pub(super) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Attempt<U> {
        match self {
            Self::Admitted(taken) => Attempt::Admitted(convert(taken)),
            Self::Denied => Attempt::Denied,
            Self::Retry => Attempt::Retry,
        }
    }

    /// The decision; made by `retry` if this attempt made none.
    #[inline(always)]
    pub(super) fn or_else(self, retry: impl FnOnce() -> Option<T>) -> Option<T> {
        match self {
            Self::Admitted(taken) => Some(taken),
            Self::Denied => None,
            Self::Retry => retry(),
        }
    }
}

/// A copy of the words for a function that is not inlined.
///
/// The compiler passes a large value by its address. If that were the address of the words themselves, it would keep them in
/// memory on every path, and each decision would store them first.
#[inline(always)]
pub(super) fn lent<W: Words>(words: W) -> W {
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
