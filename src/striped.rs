#![doc = include_str!("striped.md")]

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use crossbeam_utils::CachePadded;

use self::account::Account;
use self::closed::Closed;
use self::ring::Ring;
use self::stripe::Stripe;
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

mod account;
mod builder;
mod closed;
mod decide;
mod denied;
mod home;
mod lane;
mod own_lane;
mod ring;
mod stripe;

pub use builder::StripedBuilder;
pub use denied::StripedDenied;
pub use lane::Lane;
pub use own_lane::OwnLane;

/// One limiter that many cores ask all the time: a strict [`CounterRing`](crate::CounterRing) that
/// is paid in arrears.
///
/// Each thread counts what it admits in a stripe, which is a cache line of its own as long as there are enough, up to a
/// small hold, and charges the ring behind once per hold. So most admissions read no clock and touch no line that
/// another core writes. The holds are set aside from the limit, a few per cent in all, so the bound is the limit all
/// the same.
///
/// Threads are numbered in the order in which they first ask any striped limiter, and go to the stripes in turn: where
/// there are more threads than stripes, or many that come and go, some share one. A caller that knows the number of its
/// thread or core says so by a [`Lane`].
///
/// A limit too small for holds (below 256 permits, when nothing else is said) is kept by the ring alone,
/// as by a [`RateLimiter`](crate::RateLimiter).
///
/// # Guarantee
///
/// In any interval of one window at most [`bound`](Self::bound) permits are admitted: of calls that
/// lie wholly within the interval, by a clock that does not step back. [`promise`](Self::promise)
/// says it with the clock's error. A denied request consumes nothing.
///
/// # Trade-offs
///
/// - An admission has no time of its own, so there is no receipt, no refund and no settling.
/// - What is used and not yet charged when a thread goes silent is charged when somebody comes by,
///   which is later than it was used: until then, and for a window more, up to all holds are missing
///   from the limit. (A charge must not be dated earlier than the use, and nobody has read the clock.)
/// - One request gets at most the limit less all holds ([`max_request`](Self::max_request)), since it is admitted at
///   one place: in one stripe or in the ring. A request for several permits may be denied while as
///   many lie in different places.
/// - A clock that steps back by d makes the window of what was uncharged shorter by d. (A
///   [`RateLimiter`](crate::RateLimiter) publishes every reading that it admits by, and so need not
///   care.)
///
/// # Cost
///
/// An admission is one load and one compare-exchange on the thread's own stripe. The one that fills the hold
/// also reads the clock and charges the ring, and once in an eighth of a window looks at the other stripes. A
/// request that does not fit into its own stripe reads the clock, and looks at every stripe and at
/// the ring. If it is denied it says so in a word that is shared, and until permits come free further requests for as
/// many are denied by that word and a reading of the clock. Nothing is allocated, and no thread waits for another: one that sleeps while it charges
/// keeps its stripe from the others, and nothing else. A denial changes no count. A worker that has a stripe to itself
/// ([`OwnLane`]) needs no exchange.
///
/// It takes the memory of a [`RateLimiter`](crate::RateLimiter) with a strict ring, and for each stripe cache lines of
/// its own, 128 bytes on x86-64.
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
/// // There was room for all of them, whichever thread asked.
/// assert_eq!(admitted, 40_000);
/// assert_eq!(limiter.bound(), 100_000);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "quanta"))]
/// # fn main() {}
/// ```
#[doc(alias = "sharded")]
pub struct StripedLimiter<C = DefaultClock> {
    /// A power of two, or none: the ring alone.
    stripes: Box<[CachePadded<Stripe>]>,
    /// Permits set aside for each stripe; zero without stripes.
    hold: u64,
    ring: Ring,
    closed: CachePadded<Closed>,
    /// The periods that accounts are dated by.
    periods: Cells,
    /// Nanoseconds in the window.
    window: u64,
    clock: C,
}

#[cfg(feature = "quanta")]
impl StripedLimiter<QuantaClock> {
    /// A limiter with a clock of its own, fresh, with as many stripes as there are cores.
    ///
    /// The first clock of a process calibrates the processor's counter, for up to 200 ms.
    ///
    /// # Errors
    ///
    /// As [`StripedBuilder::build_with`].
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::builder(quota).build()
    }

    /// A limiter with its stripes, holds and cells to be chosen.
    pub fn builder(quota: Quota) -> StripedBuilder {
        StripedBuilder::new(quota)
    }
}

impl<C: Clock> StripedLimiter<C> {
    /// Takes one permit if there is room.
    ///
    /// # Errors
    ///
    /// When there is none; nothing is consumed then.
    ///
    /// # Concurrency
    ///
    /// The permit is taken at one instruction, and is the caller's alone. A denial was right at the
    /// moment when the ring was asked, save for the stripes that others were charging just then, or had charged and not
    /// yet reported.
    #[inline(always)]
    pub fn check(&self) -> Result<(), StripedDenied<'_, C>> {
        self.check_n(1)
    }

    /// Takes `permits` permits if one place has room for all of them: a stripe, or the ring. Zero permits are
    /// always admitted.
    ///
    /// More than a stripe's [hold](Self::hold) are always asked of the ring.
    ///
    /// # Errors
    ///
    /// When there is no such place; nothing is consumed then. More than [`max_request`](Self::max_request) are
    /// never admitted, and the answer says so.
    ///
    /// # Concurrency
    ///
    /// As [`check`](Self::check).
    #[inline(always)]
    pub fn check_n(&self, permits: u64) -> Result<(), StripedDenied<'_, C>> {
        self.lane(home::number()).check_n(permits)
    }

    /// Takes `permits` permits at the time `now`, which the caller has read from this limiter's
    /// [clock](Self::clock): they are charged no earlier than that.
    ///
    /// This is no faster than [`check`](Self::check), which reads no clock for most admissions: the time is noted
    /// beside the stripe. Of old times and of times ahead see
    /// [`RateLimiter::check_at`](crate::RateLimiter::check_at).
    ///
    /// # Errors
    ///
    /// As [`check_n`](Self::check_n).
    ///
    /// # Concurrency
    ///
    /// As [`check`](Self::check). When another thread has published a newer time, that is used instead.
    #[inline(always)]
    pub fn check_at(&self, now: Nanos, permits: u64) -> Result<(), StripedDenied<'_, C>> {
        self.lane(home::number()).check_at(now, permits)
    }

    /// The limiter as the worker numbered `worker` (from 0) uses it, for callers that know which of their
    /// threads they are on. Numbers beyond the stripes begin anew with the first one.
    #[inline]
    pub const fn lane(&self, worker: usize) -> Lane<'_, C> {
        Lane::new(self, worker)
    }

    /// How many permits would be admitted now, one by one, to a caller without an [`OwnLane`]: what own lanes have left
    /// of their holds is not counted.
    ///
    /// # Concurrency
    ///
    /// Adds up the ring and the stripes one after the other, and what others take or charge in between
    /// shows. Exact when nobody else asks.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        let now = self.newest(self.clock.now());
        let held: u64 = self.stripes.iter().map(|stripe| self.room(stripe, now)).sum();
        self.ring.remaining(now) + held
    }

    /// The most permits that are admitted in any interval of one window: the limit.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.ring.policy().bound() + self.held()
    }

    /// The most permits that one request can ever get: the limit less all holds.
    #[must_use]
    pub fn max_request(&self) -> u64 {
        self.ring.policy().max_request()
    }

    /// The bound in true time: the clock's error is taken off the window.
    #[must_use]
    pub fn promise(&self) -> Promise {
        let window = self.ring.policy().window();
        Promise {
            permits: self.bound(),
            interval: window.saturating_sub(self.clock.error(window)),
        }
    }

    /// How many stripes there are: a power of two, or zero when the limit is too small for holds.
    #[must_use]
    pub fn stripes(&self) -> usize {
        self.stripes.len()
    }

    /// How many permits each stripe holds; zero when there are no stripes.
    #[must_use]
    pub const fn hold(&self) -> u64 {
        self.hold
    }

    /// The clock.
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Permits set aside for all stripes.
    fn held(&self) -> u64 {
        self.hold * self.stripes.len() as u64
    }
}

impl<C: fmt::Debug> fmt::Debug for StripedLimiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripedLimiter")
            .field("ring", self.ring.policy())
            .field("hold", &self.hold)
            .field("stripes", &self.stripes)
            .field("closed", &*self.closed)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

/// The periods that accounts are dated by: eighths of the window, but so long that 20 years of them
/// fit into an account.
fn periods(window: Duration) -> Cells {
    const LEAST: Duration = Duration::from_nanos(2_048);
    let width = Nanos::from_duration((window / 8).max(LEAST)).get();
    // From 1 on, so that a fresh stripe is older than every period.
    Cells::new(width, 1, Account::LAST_TICK)
}

#[cfg(test)]
mod tests {
    use super::{Account, periods};
    use crate::quota::Quota;
    use crate::time::HORIZON;

    #[test]
    fn periods_last_twenty_years() {
        for window in [Quota::MIN_WINDOW, Quota::MAX_WINDOW] {
            assert!(HORIZON / periods(window).width() + 1 < Account::LAST_TICK);
        }
    }
}
