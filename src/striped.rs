#![doc = include_str!("striped.md")]

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use crossbeam_utils::CachePadded;

use self::closed::Closed;
use self::ring::Ring;
use self::stripe::Stripe;
use self::word::StripeWord;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::clock::DefaultClock;
#[cfg(feature = "quanta")]
use crate::clock::QuantaClock;
#[cfg(feature = "quanta")]
use crate::error::ConfigError;
use crate::limiter::Promise;
#[cfg(feature = "quanta")]
use crate::quota::Quota;
use crate::time::{Cells, Nanos};

mod word;
mod builder;
mod closed;
mod decide;
mod denied;
mod thread_index;
mod lane;
mod local_stripe;
mod ring;
mod stripe;

pub use builder::StripedBuilder;
pub use denied::StripedDenied;
pub use lane::Lane;
pub use local_stripe::LocalStripe;

/// A rate limiter for one limit that many cores request from: a strict [`CounterRing`](crate::CounterRing) behind
/// per-thread counters.
///
/// Each thread counts its admissions in a stripe. A stripe is one cache line, which no other thread writes as long as
/// there are enough stripes. When a stripe has admitted a small batch of permits, its thread charges the batch to the
/// ring. Most admissions therefore read no clock and touch no cache line that another core writes. The batches of all
/// stripes are reserved from the limit, a few per cent in total, so the bound is still the limit.
///
/// Threads are numbered in the order of their first request to any striped limiter, and are assigned to the stripes in
/// turn. Threads share a stripe if there are more threads than stripes, or if many threads start and end. A caller that
/// knows the number of its thread or core can pass it with a [`Lane`].
///
/// A limit that is too small for batches (by default below 256 permits) has no stripes. The ring decides every request
/// then, as in a [`RateLimiter`](crate::RateLimiter).
///
/// # Guarantee
///
/// At most [`bound`](Self::bound) permits are admitted in any interval of one window. This counts the calls that lie
/// wholly within the interval, by a clock that does not step back. [`promise`](Self::promise) includes the clock's
/// error. A denied request consumes nothing.
///
/// # Trade-offs
///
/// - An admission has no time of its own, so there is no receipt, no refund and no settling.
/// - If a thread stops making requests, the uncharged permits of its stripe are charged by a later request of another
///   thread. The charge has the time of that request, because an admission records no time and a charge must not be
///   earlier than the admission. Until the charge, and for one window after it, up to all batches are missing from the
///   limit.
/// - One request gets at most the limit less all batches ([`max_request`](Self::max_request)), since a single stripe or
///   the ring admits it. A request for several permits may be denied although several stripes together have as many.
/// - A clock that steps back by d shortens the window of uncharged permits by d. A
///   [`RateLimiter`](crate::RateLimiter) is not affected, because it publishes the reading of every admission.
///
/// # Cost
///
/// An admission is one load and one compare-exchange on the stripe of the thread. The admission that fills the batch
/// also reads the clock and charges the ring. Once in an eighth of a window it reads the other stripes.
///
/// A request that does not fit into the stripe of its thread reads the clock, every stripe and the ring. If it is
/// denied, the caller publishes the denial in a shared word. Until permits become free, further requests for as many
/// permits are denied by that word and one clock reading. A denial changes no count.
///
/// Nothing is allocated, and no thread waits for another. A thread that sleeps while it charges only blocks its
/// own stripe. A worker with a [`LocalStripe`] admits without a compare-exchange.
///
/// The memory is that of a [`RateLimiter`](crate::RateLimiter) with a strict ring, and 128 bytes for each stripe on
/// x86-64.
///
/// # Examples
///
/// ```
/// use ringgate::{Quota, StripedLimiter};
///
/// # #[cfg(feature = "quanta")]
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = StripedLimiter::new(Quota::per_second(100_000)?)?;
/// let admitted: usize = std::thread::scope(|scope| {
///     let workers: Vec<_> = (0..4)
///         .map(|_| scope.spawn(|| (0..10_000).filter(|_| limiter.check().is_ok()).count()))
///         .collect();
///     workers.into_iter().map(|worker| worker.join().unwrap()).sum()
/// });
/// // The limit had capacity for all requests of all threads.
/// assert_eq!(admitted, 40_000);
/// assert_eq!(limiter.bound(), 100_000);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "quanta"))]
/// # fn main() {}
/// ```
#[doc(alias = "sharded")]
pub struct StripedLimiter<C = DefaultClock> {
    /// A power of two in number, or empty: then the ring decides alone.
    stripes: Box<[CachePadded<Stripe>]>,
    /// Permits reserved for each stripe; zero without stripes.
    batch: u64,
    ring: Ring,
    closed: CachePadded<Closed>,
    /// The periods in which stripes are claimed and expire.
    periods: Cells,
    /// Nanoseconds in the window.
    window: u64,
    clock: C,
}

#[cfg(feature = "quanta")]
impl StripedLimiter<QuantaClock> {
    /// Creates a limiter with its own clock and as many stripes as there are cores.
    ///
    /// The first clock of a process calibrates the processor's counter, for up to 200 ms.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`StripedBuilder::build_with`].
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::builder(quota).build()
    }

    /// Returns a builder for the number of stripes, the batch and the cells.
    pub fn builder(quota: Quota) -> StripedBuilder {
        StripedBuilder::new(quota)
    }
}

impl<C: Clock> StripedLimiter<C> {
    /// Admits a request for one permit if there is capacity.
    ///
    /// # Errors
    ///
    /// Returns a denial if there is no capacity. Nothing is consumed then.
    ///
    /// # Concurrency
    ///
    /// The permit is charged by one atomic instruction, to this caller only. At the moment when the ring denied, a
    /// denial was right for all stripes except those that another thread was charging, or had charged without
    /// reopening the limiter yet.
    #[inline(always)]
    pub fn check(&self) -> Result<(), StripedDenied<'_, C>> {
        self.check_n(1)
    }

    /// Admits a request for `permits` permits if one stripe or the ring has capacity for all of them. A request for
    /// zero permits is always admitted.
    ///
    /// The ring decides every request for more permits than a [batch](Self::batch).
    ///
    /// # Errors
    ///
    /// Returns a denial if neither a stripe nor the ring has the capacity. Nothing is consumed then. A request for
    /// more than [`max_request`](Self::max_request) permits is never admitted, and its denial has no retry time.
    ///
    /// # Concurrency
    ///
    /// The permits are charged by one atomic instruction. Denials are as exact as those of [`check`](Self::check).
    #[inline(always)]
    pub fn check_n(&self, permits: u64) -> Result<(), StripedDenied<'_, C>> {
        self.lane(thread_index::get()).check_n(permits)
    }

    /// Admits a request for `permits` permits at the time `now`, a reading of this limiter's [clock](Self::clock). The
    /// permits are charged at that time or later.
    ///
    /// This is not faster than [`check`](Self::check): most admissions of `check` read no clock, and this method stores
    /// the time beside the stripe. [`RateLimiter::check_at`](crate::RateLimiter::check_at) documents old times and
    /// times in the future.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`check_n`](Self::check_n).
    ///
    /// # Concurrency
    ///
    /// The permits are charged by one atomic instruction. If another thread has published a newer time, the limiter
    /// decides at that time.
    #[inline(always)]
    pub fn check_at(&self, now: Nanos, permits: u64) -> Result<(), StripedDenied<'_, C>> {
        self.lane(thread_index::get()).check_at(now, permits)
    }

    /// Returns the limiter with the stripe of the worker numbered `worker` (from 0), for callers that know the number of
    /// their thread. Numbers from the number of stripes on wrap around to the first stripe.
    #[inline]
    pub const fn lane(&self, worker: usize) -> Lane<'_, C> {
        Lane::new(self, worker)
    }

    /// Claims the stripe of the current thread, which then admits without locked instructions. Dropping the result ends
    /// the claim.
    ///
    /// # Concurrency
    ///
    /// If another thread has claimed the stripe, a later request claims it once it is free. Threads are assigned to
    /// stripes in turn, so two threads can have one stripe: [`Lane::local_stripe`] claims the stripe of a number.
    #[inline]
    pub fn local_stripe(&self) -> LocalStripe<'_, C> {
        self.lane(thread_index::get()).local_stripe()
    }

    /// Returns how many requests for one permit would be admitted now to a caller without a [`LocalStripe`]. The remaining
    /// permits of stripes that a [`LocalStripe`] has claimed are not counted.
    ///
    /// # Concurrency
    ///
    /// The ring and the stripes are read one after the other, so the sum can include some concurrent admissions and
    /// charges and miss others. It is exact without concurrent requests.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        let now = self.newest(self.clock.now());
        let held: u64 = self.stripes.iter().map(|stripe| self.room(stripe, now)).sum();
        self.ring.remaining(now) + held
    }

    /// Returns the maximum number of permits that are admitted in any interval of one window, which is the limit.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.ring.policy().bound() + self.held()
    }

    /// Returns the maximum number of permits of one request, which is the limit less all batches.
    #[must_use]
    pub fn max_request(&self) -> u64 {
        self.ring.policy().max_request()
    }

    /// Returns the bound in true time, for the window less the clock's error.
    #[must_use]
    pub fn promise(&self) -> Promise {
        let window = self.ring.policy().window();
        Promise {
            permits: self.bound(),
            interval: window.saturating_sub(self.clock.error(window)),
        }
    }

    /// Returns the number of stripes: a power of two, or zero if the limit is too small for batches.
    #[must_use]
    pub fn stripes(&self) -> usize {
        self.stripes.len()
    }

    /// Returns the number of permits that a stripe may admit before it charges the ring; zero without stripes.
    #[must_use]
    pub const fn batch(&self) -> u64 {
        self.batch
    }

    /// Returns the clock.
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Permits reserved for all stripes.
    fn held(&self) -> u64 {
        self.batch * self.stripes.len() as u64
    }
}

impl<C: fmt::Debug> fmt::Debug for StripedLimiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripedLimiter")
            .field("ring", self.ring.policy())
            .field("batch", &self.batch)
            .field("stripes", &self.stripes)
            .field("closed", &*self.closed)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

/// The periods in which stripes are claimed and expire: eighths of the window, or longer, so that the periods of 20
/// years can be numbered in a stripe word.
fn periods(window: Duration) -> Cells {
    const LEAST: Duration = Duration::from_nanos(2_048);
    let width = Nanos::from_duration((window / 8).max(LEAST)).get();
    // The first period is 1, so that a fresh stripe (period 0) is older than every period.
    Cells::new(width, 1, StripeWord::LAST_TICK)
}

#[cfg(test)]
mod tests {
    use super::{StripeWord, periods};
    use crate::quota::Quota;
    use crate::time::HORIZON;

    #[test]
    fn periods_last_twenty_years() {
        for window in [Quota::MIN_WINDOW, Quota::MAX_WINDOW] {
            assert!(HORIZON / periods(window).width() + 1 < StripeWord::LAST_TICK);
        }
    }
}
