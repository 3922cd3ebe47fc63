use alloc::boxed::Box;
use core::fmt;

use crossbeam_utils::CachePadded;

use super::published_denial::PublishedDenial;
use super::ring::Ring;
use super::stripe::Stripe;
use crate::algorithm::Algorithm;
use crate::clock::{Clock, DefaultClock};
use crate::limiter::Promise;
use crate::time::Cells;

/// A rate limiter for one limit that many cores request from: a strict [`CounterRing`](crate::CounterRing) behind
/// per-thread counters.
///
/// Each thread counts its admissions in a stripe. A stripe is one cache line, which no other thread writes as long as
/// there are enough stripes. When a stripe has admitted a small batch of permits, its thread charges the batch to the
/// ring. Most admissions therefore read no clock and touch no cache line that another core writes. The batches of all
/// stripes are reserved from the limit, a few per cent in total, so the bound is still the limit.
///
/// Threads are numbered in the order of their first request to any striped limiter, and are assigned to the stripes in
/// turn. Threads share a stripe if there are more threads than stripes, or if many threads start and end. A runtime
/// that numbers its threads or cores sets the number of each thread by
/// [`set_thread_index`](crate::striped::set_thread_index).
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
/// - An admission does not record its time, so there is no receipt, no refund and no settling.
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
/// also reads the clock and charges the ring. The first such admission of a stripe in each eighth of a window also reads the
/// other stripes.
///
/// A request that does not fit into the stripe of its thread reads the clock, and searches the stripes and then the ring for
/// capacity. If it is denied, the caller publishes the denial in a shared word. Until permits become free, further requests for
/// as many permits are denied by that word and one clock reading. A denial changes no count.
///
/// Nothing is allocated, and no thread waits for another. A thread that is suspended while it charges blocks only its
/// stripe. A worker with a [`LocalStripe`](crate::striped::LocalStripe) admits without a compare-exchange.
///
/// The memory is that of a [`RateLimiter`](crate::RateLimiter) with a strict ring, and 128 bytes for each stripe on
/// x86-64.
///
/// # Examples
///
/// ```
/// use ringgate::{Quota, StripedLimiter};
///
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
/// # Ok::<(), ringgate::ConfigError>(())
/// ```
#[doc(alias = "sharded")]
pub struct StripedLimiter<C = DefaultClock> {
    /// The number of stripes is a power of two, or zero. Without stripes the ring decides alone.
    pub(super) stripes: Box<[CachePadded<Stripe>]>,
    /// The permits that are reserved for each stripe, or zero without stripes.
    pub(super) batch: u64,
    pub(super) ring: Ring,
    pub(super) published_denial: CachePadded<PublishedDenial>,
    /// The periods in which stripes are charged and expire.
    pub(super) periods: Cells,
    /// The window in nanoseconds.
    pub(super) window: u64,
    pub(super) clock: C,
}

impl<C: Clock> StripedLimiter<C> {
    /// Returns the number of requests for one permit that would be admitted now, to a caller without a
    /// [`LocalStripe`](crate::striped::LocalStripe). The remaining permits of stripes that a `LocalStripe` has claimed are
    /// not counted.
    ///
    /// # Concurrency
    ///
    /// The ring and the stripes are read one after the other, so the sum can include some concurrent admissions and
    /// charges and miss others. It is exact without concurrent requests.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        let now = self.decision_time(self.clock.now());
        let in_stripes: u64 = self.stripes.iter().map(|stripe| self.capacity(stripe, now)).sum();
        self.ring.remaining(now) + in_stripes
    }

    /// Returns the maximum number of permits that are admitted in any interval of one window, which is the limit.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.ring.algorithm().bound() + self.reserved()
    }

    /// Returns the maximum number of permits of one request, which is the limit less all batches.
    #[must_use]
    pub fn max_request(&self) -> u64 {
        self.ring.algorithm().max_request()
    }

    /// Returns the bound in true time, for the window less the clock's error.
    #[must_use]
    pub fn promise(&self) -> Promise {
        let window = self.ring.algorithm().window();
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

    /// Returns the number of permits that a stripe may admit before it charges the ring, or zero without stripes.
    #[must_use]
    pub const fn batch(&self) -> u64 {
        self.batch
    }

    /// Returns the clock.
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    fn reserved(&self) -> u64 {
        self.batch * self.stripes.len() as u64
    }
}

impl<C: fmt::Debug> fmt::Debug for StripedLimiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripedLimiter")
            .field("ring", self.ring.algorithm())
            .field("batch", &self.batch)
            .field("stripes", &self.stripes)
            .field("published_denial", &*self.published_denial)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
