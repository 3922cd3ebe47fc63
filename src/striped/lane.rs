use super::{LocalStripe, StripedDenied, StripedLimiter};
use crate::clock::Clock;
use crate::time::Nanos;

/// A reference to a [`StripedLimiter`] that first tries the stripe of one worker.
///
/// It suits runtimes that number their threads or cores: no two workers share a stripe as long as there are
/// [enough stripes](StripedLimiter::stripes). [`StripedLimiter::lane`] creates it.
///
/// # Examples
///
/// ```
/// use ringgate::striped::StripedBuilder;
/// use ringgate::{ManualClock, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = StripedBuilder::new(Quota::per_second(10_000)?).build_with(ManualClock::new())?;
/// std::thread::scope(|scope| {
///     for worker in 0..4 {
///         let lane = limiter.lane(worker);
///         scope.spawn(move || assert!(lane.check().is_ok()));
///     }
/// });
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a lane does nothing until it is asked"]
pub struct Lane<'a, C> {
    limiter: &'a StripedLimiter<C>,
    worker: usize,
}

impl<C> Clone for Lane<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Lane<'_, C> {}

impl<'a, C> Lane<'a, C> {
    #[inline]
    pub(super) const fn new(limiter: &'a StripedLimiter<C>, worker: usize) -> Self {
        Self { limiter, worker }
    }
}

impl<'a, C: Clock> Lane<'a, C> {
    /// Claims the stripe of the worker for one thread, which then admits without locked instructions. Dropping the result
    /// ends the claim.
    ///
    /// # Concurrency
    ///
    /// If another thread has claimed the stripe, a later request claims it once it is free. Two workers whose numbers
    /// differ by a multiple of the number of [stripes](StripedLimiter::stripes) have one stripe, which only one of them
    /// can claim at a time: see [`LocalStripe::is_own`]. Leave some stripes
    /// ([`StripedBuilder::stripes`](super::StripedBuilder::stripes)) unclaimed for other callers. If all are claimed,
    /// the ring decides the requests of those callers.
    pub fn local_stripe(self) -> LocalStripe<'a, C> {
        LocalStripe::new(self.limiter, self.worker)
    }

    /// Admits a request for one permit if there is capacity, see [`StripedLimiter::check`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`StripedLimiter::check`].
    #[inline(always)]
    pub fn check(&self) -> Result<(), StripedDenied<'a, C>> {
        self.check_n(1)
    }

    /// Admits a request for `permits` permits if there is capacity for all of them, see [`StripedLimiter::check_n`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`StripedLimiter::check_n`].
    #[inline(always)]
    pub fn check_n(&self, permits: u64) -> Result<(), StripedDenied<'a, C>> {
        self.limiter.decide(self.worker, permits, None)
    }

    /// Admits a request for `permits` permits at the time `now`, see [`StripedLimiter::check_at`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`StripedLimiter::check_at`].
    #[inline(always)]
    pub fn check_at(&self, now: Nanos, permits: u64) -> Result<(), StripedDenied<'a, C>> {
        self.limiter.decide(self.worker, permits, Some(now))
    }
}
