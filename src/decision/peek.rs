use core::fmt;
use core::time::Duration;

use super::state_ref::{NextEntry, StateRef, StateWords};
use crate::algorithm::{Algorithm, AnyAlgorithm};
use crate::receipt::ChargedTo;
use crate::sync::{AtomicU64, Ordering, Words};
use crate::table::OccupiedWords;
use crate::time::Nanos;

/// A read-only view of a limiter at one time.
///
/// # Concurrency
///
/// Each method reads the state when it is called, and evaluates it at the time of the peek. The result includes permits that
/// were taken since the peek, and may be outdated when the method returns. If the state has several words, a method starts over
/// if a request is admitted meanwhile. So under load it can take many times as long as a decision.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::{Gcra, ManualClock, Quota, RateLimiter};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let bucket = Gcra::token_bucket(Quota::per_second(10)?, 2)?;
/// let limiter = RateLimiter::with_clock(bucket, ManualClock::new());
/// assert!(limiter.check_n(2).is_ok());
/// let peek = limiter.peek();
/// assert_eq!((peek.remaining(), peek.spent()), (0, 2));
/// assert_eq!(peek.retry_after(1), Some(Duration::from_millis(100)));
/// // The burst is 2, so three permits at once are never admitted.
/// assert_eq!(peek.retry_after(3), None);
/// # Ok(())
/// # }
/// ```
#[must_use = "a peek computes nothing until a method is called"]
pub struct Peek<'a, A> {
    algorithm: &'a A,
    state: StateRef<'a>,
    /// The time at which the state is read.
    now: Nanos,
    /// The caller's reading of the clock, from which times are counted. A state of a table may begin later.
    reading: Nanos,
}

impl<'a, A> Peek<'a, A> {
    #[inline]
    pub(crate) fn new(algorithm: &'a A, state: StateRef<'a>, now: Nanos) -> Self {
        Self::read_at(algorithm, state, now, now)
    }

    /// A view of the state at the time `now`, for a caller whose reading of the clock is `reading`.
    #[inline]
    pub(crate) fn read_at(algorithm: &'a A, state: StateRef<'a>, now: Nanos, reading: Nanos) -> Self {
        Self {
            algorithm,
            state,
            now,
            reading,
        }
    }
}

impl<A> Peek<'_, A> {
    #[inline]
    fn words(&self) -> StateWords<'_> {
        StateWords::new(self.state)
    }

    /// See [`StateRef::limiter`].
    pub(super) const fn limiter(&self) -> Option<ChargedTo> {
        self.state.limiter()
    }

    /// Returns the algorithm that decides. A [`SlidingWindow`](crate::SlidingWindow) displays the representation that it chose:
    /// `one word of 16 cells in units of 4`.
    #[must_use]
    pub const fn algorithm(&self) -> &A {
        self.algorithm
    }

    /// This view by another algorithm over the same words.
    pub(crate) const fn with_algorithm<'a>(&'a self, algorithm: &'a A) -> Peek<'a, A> {
        Peek {
            algorithm,
            state: self.state,
            now: self.now,
            reading: self.reading,
        }
    }
}

impl<A: Algorithm> Peek<'_, A> {
    /// See [`StateRef::known_remaining`].
    fn known_remaining(&self) -> Option<u64> {
        self.state.known_remaining(self.now, self.algorithm.max_request())
    }

    /// The time until a request for `permits` would be admitted. `ready_by_words` is the argument of [`StateRef::ready_at`].
    fn after(
        &self,
        permits: u64,
        ready_by_words: impl Fn(&StateWords<'_>, Nanos) -> Option<Nanos>,
    ) -> Option<Duration> {
        if permits == 0
            || self
                .known_remaining()
                .is_some_and(|remaining| permits <= remaining)
        {
            return Some(Duration::ZERO);
        }
        let ready = self.state.ready_at(self.now, self.reading, ready_by_words)?;
        Some(ready.saturating_since(self.reading))
    }

    /// Copies the words, so that several values are of one state. `None` if the key has no words of its own, or too many.
    pub(crate) fn copy_words<V: FromIterator<u64> + PartialEq>(&self) -> Option<V> {
        let count = self.algorithm.words();
        if self.state.is_overflow() || count > MAX_COPIED {
            return None;
        }
        let read = || -> V {
            let words = self.words();
            // Acquire: a word that another thread has published is read with all words that it published before.
            (0..count)
                .map(|index| (&words).load(index, Ordering::Acquire))
                .collect()
        };
        let mut before = read();
        loop {
            // If no word has changed, the copy is of one instant.
            let copy = read();
            if copy == before {
                return Some(copy);
            }
            before = copy;
        }
    }

    /// This view over a copy of the words.
    pub(crate) const fn with_words<'a>(&'a self, words: &'a [AtomicU64]) -> Peek<'a, A> {
        Peek {
            algorithm: self.algorithm,
            // No time is known at which another entry would be free, so the copied words decide at any time.
            state: StateRef::CatchAll(words, NextEntry::UNKNOWN),
            now: self.now,
            reading: self.reading,
        }
    }
}

/// The most words that are copied: those of a ring of 4096 cells, or a log of as many permits.
const MAX_COPIED: usize = 4098;

impl<A: Algorithm> Peek<'_, A> {
    /// Returns the time of the peek: the reading of the clock.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.reading
    }

    /// Returns the most permits that one request would get.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.known_remaining()
            .unwrap_or_else(|| self.algorithm.remaining(&self.words(), self.now))
    }

    /// Returns the number of permits that still count. With debt it may exceed the limit.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.algorithm.spent(&self.words(), self.now)
    }

    /// Returns the time until a request for `permits` would be admitted, if no other request came before. Zero means now, and
    /// `None` means never, as in [`Denied::retry_after`](crate::Denied::retry_after).
    #[must_use]
    pub fn retry_after(&self, permits: u64) -> Option<Duration> {
        self.after(permits, |words, from| {
            self.algorithm.ready_at(words, from, permits)
        })
    }

    /// A lower bound of the time until all `permits` can have been admitted, in any number of requests. `None` if time ends
    /// before.
    pub(crate) fn earliest_after(&self, permits: u64) -> Option<Duration> {
        let from = self.state.decides_from(self.now);
        let ready = match self.algorithm.earliest(&self.words(), from, permits)? {
            ready if ready == from => self.state.decides_from(self.reading),
            ready => ready,
        };
        Some(ready.saturating_since(self.reading))
    }

    /// Returns whether the key had no entry in its table, so that [`OnFull`](crate::keyed::OnFull) decides. Always false for a
    /// limiter without keys.
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        self.state.is_overflow()
    }
}

impl Peek<'_, AnyAlgorithm> {
    /// The most permits that one request would get, by the window with the index `window` alone.
    pub(crate) fn remaining_in(&self, window: usize) -> u64 {
        let by_words = || self.algorithm.remaining_in(window, &self.words(), self.now);
        match self.known_remaining() {
            Some(0) => 0,
            // `most` is the limit of the smallest window. This window may be a larger one, and its words are fresh.
            Some(most) => most.max(by_words()),
            None => by_words(),
        }
    }

    /// The time until the window with the index `window` has the capacity for `permits`, if no other request came before.
    pub(crate) fn retry_after_in(&self, window: usize, permits: u64) -> Option<Duration> {
        self.after(permits, |words, from| {
            self.algorithm.ready_in(window, words, from, permits)
        })
    }

    /// The most permits that one request would get, by the window with the index `window` alone, and the time until it would
    /// get more. `None` if it never would.
    pub(crate) fn remaining_and_reset_in(&self, window: usize) -> (u64, Option<Duration>) {
        if self.state.is_overflow() {
            let remaining = self.remaining_in(window);
            let more = remaining.checked_add(1);
            return (remaining, more.and_then(|more| self.retry_after_in(window, more)));
        }
        let words = self.words();
        // Words of an entry are passed as such, because each read of `words` would distinguish the states again.
        let (remaining, reset) = match &words {
            StateWords::Entry(entry, key, seen) => {
                let words = OccupiedWords::new(*entry, *key, seen);
                self.algorithm.remaining_and_reset_in(window, words, self.now)
            }
            words @ (StateWords::Words(_) | StateWords::Fresh) => {
                self.algorithm.remaining_and_reset_in(window, words, self.now)
            }
        };
        (remaining, reset.map(|reset| reset.saturating_since(self.reading)))
    }
}

impl<A> fmt::Debug for Peek<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peek")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}
