use super::{OwnLane, StripedDenied, StripedLimiter};
use crate::clock::Clock;
use crate::time::Nanos;

/// A [`StripedLimiter`] as one worker uses it: with that worker's stripe first.
///
/// For runtimes that number their threads or cores, so that no two of them share a stripe as long
/// as there are [enough](StripedLimiter::stripes). Made by [`StripedLimiter::lane`].
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
    /// The same worker with its stripe to itself for as long as the lane lives: admissions need no locked instruction
    /// then.
    ///
    /// # Concurrency
    ///
    /// If somebody else has the stripe just now, the lane takes it as soon as it asks and nobody has. (Two workers
    /// whose numbers differ by a multiple of the [stripes](StripedLimiter::stripes) have the same one: only one of them
    /// has it to itself at a time, as [`OwnLane::is_own`] says.) Leave some stripes
    /// ([`StripedBuilder::stripes`](super::StripedBuilder::stripes)) for callers without a lane of their own: when all
    /// are taken, those ask the ring.
    pub fn own(self) -> OwnLane<'a, C> {
        OwnLane::new(self.limiter, self.worker)
    }

    /// Takes one permit if there is room, as [`StripedLimiter::check`].
    ///
    /// # Errors
    ///
    /// As [`StripedLimiter::check`].
    #[inline(always)]
    pub fn check(&self) -> Result<(), StripedDenied<'a, C>> {
        self.check_n(1)
    }

    /// Takes `permits` permits if there is room for all of them, as [`StripedLimiter::check_n`].
    ///
    /// # Errors
    ///
    /// As [`StripedLimiter::check_n`].
    #[inline(always)]
    pub fn check_n(&self, permits: u64) -> Result<(), StripedDenied<'a, C>> {
        self.limiter.decide(self.worker, permits, None)
    }

    /// Takes `permits` permits at the time `now`, as [`StripedLimiter::check_at`].
    ///
    /// # Errors
    ///
    /// As [`StripedLimiter::check_at`].
    #[inline(always)]
    pub fn check_at(&self, now: Nanos, permits: u64) -> Result<(), StripedDenied<'a, C>> {
        self.limiter.decide(self.worker, permits, Some(now))
    }
}
