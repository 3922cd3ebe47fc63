//! A limiter in a `static`, for log lines.
//!
#![doc = include_str!("protocol.md")]

mod pace;

use core::fmt;

#[cfg(feature = "quanta")]
use crate::clock::{Clock, QuantaClock};
use crate::sync::{Ordering, StaticWord};
use crate::time::Nanos;

use pace::Pace;

/// A limiter in a `static`, which counts the calls that it suppresses.
///
/// Each line of a log, or each other place that may be reached too often, gets a `static` of its own. It takes 16 bytes.
///
/// # Guarantee
///
/// It is a token bucket: up to a burst of calls passes at once, and later calls pass at the rate of the limit. The burst is the
/// limit, unless [`burst`](Self::burst) sets another.
///
/// At most [`bound`](Self::bound) calls pass in any interval of one window, by the readings of the clock: the burst plus the
/// limit minus 1. So a burst of 1 lets at most the limit pass, evenly spaced, and `per_minute(1)` at most one call in any minute.
/// If calls come without a pause, at least 98 % of the limit pass in the long run: the time per call is rounded up.
///
/// Each call either passes or is counted. The counts that the passing calls return, plus [`suppressed`](Self::suppressed), are all
/// calls that did not pass, whichever threads race.
///
/// # Saturation
///
/// The count starts again at each call that passes, so it holds the calls of about one interval between two calls that pass. It
/// has room for 62 million calls in each second of that interval: 16,777,215 calls for `per_second(5)`, and never less than 1,023.
/// Further calls are suppressed without being counted. The returned count then is the largest one, and a lower bound. The count can
/// also fill up if the clock steps back, because no call passes until it catches up.
///
/// 36 years after the origin of the clock every call is suppressed.
///
/// # Cost
///
/// A call reads the clock, loads one word and exchanges it. The exchange is repeated if another thread changes the word in
/// between. A suppressed call is counted, so it writes, too. Nothing is allocated, no system call is made, and no thread waits for
/// another.
///
/// The first call in a process that has made no [`QuantaClock`] calibrates the processor's counter, for up to
/// 200 ms. Call [`QuantaClock::of_process`](crate::QuantaClock::of_process) at the start to avoid that.
///
/// # Examples
///
/// ```
/// use ringgate::LogLimiter;
///
/// fn on_timeout(peer: &str) {
///     static LIMIT: LogLimiter = LogLimiter::per_second(5);
///     if let Some(suppressed) = LIMIT.check() {
///         eprintln!("{peer} timed out ({suppressed} similar lines suppressed)");
///     }
/// }
/// # on_timeout("10.0.0.1");
/// ```
///
/// With `tracing`, the count is a field of the event:
///
/// ```
/// # #[cfg(feature = "observe")]
/// fn on_timeout(peer: &str) {
///     static LIMIT: ringgate::LogLimiter = ringgate::LogLimiter::per_minute(10).burst(1);
///     if let Some(suppressed) = LIMIT.check() {
///         tracing::warn!(peer, suppressed, "timeout");
///     }
/// }
/// # #[cfg(feature = "observe")]
/// # on_timeout("10.0.0.1");
/// ```
///
/// A limit of zero does not compile in a `static`:
///
/// ```compile_fail,E0080
/// static LIMIT: ringgate::LogLimiter = ringgate::LogLimiter::per_second(0);
/// ```
///
/// ```
/// static LIMIT: ringgate::LogLimiter = ringgate::LogLimiter::per_second(1);
/// ```
pub struct LogLimiter {
    /// The time at which the bucket is full again, and the calls that were suppressed since the last one that passed.
    word: StaticWord,
    pace: Pace,
}

impl LogLimiter {
    /// Creates a limiter that lets `limit` calls per second pass.
    ///
    /// # Panics
    ///
    /// When `limit` is 0. In a `static` this is an error of the compiler.
    #[must_use]
    pub const fn per_second(limit: u16) -> Self {
        Self::new(Pace::new(limit, 1))
    }

    /// Creates a limiter that lets `limit` calls per minute pass.
    ///
    /// # Panics
    ///
    /// When `limit` is 0. In a `static` this is an error of the compiler.
    #[must_use]
    pub const fn per_minute(limit: u16) -> Self {
        Self::new(Pace::new(limit, 60))
    }

    /// Creates a limiter that lets `limit` calls per hour pass.
    ///
    /// # Panics
    ///
    /// When `limit` is 0. In a `static` this is an error of the compiler.
    #[must_use]
    pub const fn per_hour(limit: u16) -> Self {
        Self::new(Pace::new(limit, 3_600))
    }

    /// Sets the number of calls that pass at once after silence.
    ///
    /// # Panics
    ///
    /// When `calls` is 0. In a `static` this is an error of the compiler.
    #[must_use]
    pub const fn burst(mut self, calls: u16) -> Self {
        self.pace = self.pace.with_burst(calls);
        self
    }

    const fn new(pace: Pace) -> Self {
        Self {
            word: StaticWord::new(),
            pace,
        }
    }

    /// Lets the call pass if the limit permits it, and returns the number of calls that were suppressed since the last one that
    /// passed. Otherwise counts the call as suppressed and returns `None`.
    ///
    /// The time is that of the [clock of the process](crate::QuantaClock::of_process).
    ///
    /// # Concurrency
    ///
    /// Both outcomes are one atomic instruction. Each suppressed call is in the count of exactly one call that passes, the next one
    /// in the order of these instructions.
    #[cfg(feature = "quanta")]
    #[must_use = "the answer says whether the call passes"]
    #[inline]
    pub fn check(&self) -> Option<u64> {
        self.check_at(QuantaClock::of_process().now())
    }

    /// Lets the call pass if the limit permits it at the time `now`, and returns the number of calls that were suppressed since the
    /// last one that passed. Otherwise counts the call as suppressed and returns `None`.
    ///
    /// All readings must be of one clock, for [`check`](Self::check) that of the
    /// [process](crate::QuantaClock::of_process). A reading older than an earlier one makes the limiter stricter.
    #[must_use = "the answer says whether the call passes"]
    #[inline]
    pub fn check_at(&self, now: Nanos) -> Option<u64> {
        let word = self.word.get();
        // Relaxed, all three: the word is the whole state, and publishes no other data.
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let (next, suppressed) = self.pace.step(seen, now);
            if next == seen {
                // The count is full.
                return None;
            }
            // Claim: log_limiter 2, the exchange expects the word that was decided about.
            match word.compare_exchange(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return suppressed,
                Err(current) => seen = current,
            }
        }
    }

    /// Returns the number of calls that were suppressed since the last one that passed. The next call that passes returns them.
    #[must_use]
    pub fn suppressed(&self) -> u64 {
        // Relaxed: as in `check_at`.
        self.pace.suppressed(self.word.get().load(Ordering::Relaxed))
    }

    /// Returns the most calls that pass in any interval of one window, by the readings of the clock: the burst plus the limit
    /// minus 1.
    #[must_use]
    pub const fn bound(&self) -> u64 {
        self.pace.bound()
    }
}

impl fmt::Debug for LogLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogLimiter")
            .field("pace", &self.pace)
            .field("suppressed", &self.suppressed())
            .finish()
    }
}
