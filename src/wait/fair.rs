use core::fmt;
use core::time::Duration;

use super::room::Room;
use super::runtime::{Runtime, TokioRuntime};

/// A limiter with a line before it: those who find no room wait for it, first come, first served.
///
/// Put before a [`RateLimiter`](crate::RateLimiter), a [`KeyedRateLimiter`](crate::KeyedRateLimiter), a
/// [`RuleSet`](crate::RuleSet) or [`LiveRules`](crate::LiveRules); share it by reference or in an `Arc`. (For any other
/// limiter, sleep for its `retry_after`.)
///
/// # Guarantee
///
/// - The limiter's own: waiting changes nothing about what is admitted. Permits are taken in the poll that says so, so
///   a wait that is dropped has taken nothing, and nothing has to be given back.
/// - Whoever waits for a state (of the limiter, of a key, of a rule) is served before whoever comes later, whatever
///   either needs: a request for 50 permits is not starved by a stream of ones. If there is room for several of them
///   they are woken together, up to 64, and run in the order that the runtime chooses.
/// - With rules a request waits for one state at a time, the one that takes longest, and holds up nobody who does not
///   need that state. When its turn has come and another state has no room, it waits for that, by its time of arrival;
///   nothing is kept for it meanwhile.
/// - Calls that do not wait, [`check`](Fair::check) and the like, do not overtake the line, unless
///   [`barging`](Self::barging) says that they may. Calls of the limiter itself do.
/// - A task in a tight loop gives way to others after four permits that were to be had at once. (The future of
///   `block_on` or `main` is no task, and does not.)
///
/// # Panics
///
/// A wait that finds no room, when it is polled outside of a tokio runtime with a time driver: see [`TokioRuntime`].
///
/// # Caveats
///
/// - A request that needs two states, of which each is exhausted all the time by others who do not need the other, may
///   wait for one and the other in turn.
/// - Keys that share the catch-all of a full table ([`OnFull::Share`](crate::OnFull)) stand in lines of their own, and
///   race for it.
/// - Where a rule has tiers, whether a deadline can be met is judged as if nobody came before. (Those who do may have
///   other limits.)
///
/// # Cost
///
/// Without a line: that of the limiter's decision, and two loads and one store of another word. (`check` costs what the
/// limiter's does, about 10 ns; a wait that finds room 25 ns, and 55 where a task does nothing else, since it gives way
/// every fifth time.) With one: a lock (for moments, never across an `.await`), a look at the state or two, and an
/// alarm for the first in line, and for each that has a deadline. About one wake for each wait. A wait in line takes
/// about 100 bytes beside the future itself (and as much again with a deadline), and its line, if it is the only one in
/// it, about 1 KB; a key that nobody waits for takes nothing.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::{Fair, Gcra, Quota, RateLimiter, WaitError};
///
/// # #[cfg(feature = "quanta")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// // A hundred a second, evenly.
/// let pace = Gcra::token_bucket(Quota::per_second(100)?, 1)?;
/// let limiter = Fair::new(RateLimiter::new(pace));
/// for _ in 0..3 {
///     limiter.until_ready().await?;
///     // Send the request.
/// }
/// // Ten milliseconds it takes, so this is refused at once.
/// let hasty = limiter.until_ready().within(Duration::from_millis(1)).await;
/// assert!(matches!(hasty, Err(WaitError::TooLate { .. })));
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "quanta"))]
/// # fn main() {}
/// ```
pub struct Fair<L, T: Runtime = TokioRuntime> {
    pub(super) limiter: L,
    pub(super) room: Room<T>,
    barging: bool,
}

impl<L> Fair<L> {
    /// Puts a line before a limiter.
    pub fn new(limiter: L) -> Self {
        Self::with_runtime(limiter, TokioRuntime)
    }
}

impl<L, T: Runtime> Fair<L, T> {
    /// Puts a line before a limiter, with another runtime than tokio to wake those in it.
    pub fn with_runtime(limiter: L, runtime: T) -> Self {
        Self {
            limiter,
            room: Room::new(runtime),
            barging: false,
        }
    }

    /// Lets at most `allowed` wait, all lines together (0: nobody); 1,000,000 when nothing is said. Whoever comes when
    /// as many wait is refused with [`WaitError::QueueFull`](super::WaitError::QueueFull).
    #[must_use]
    pub fn max_waiting(mut self, allowed: usize) -> Self {
        self.room.allowed = allowed;
        self
    }

    /// Sets each alarm later than it might be, by a random time of up to `most`; by none when nothing is said. For many
    /// processes that would otherwise all go on at the same moments.
    #[must_use]
    pub fn jitter(mut self, most: Duration) -> Self {
        self.room.jitter = most;
        self
    }

    /// Lets calls that do not wait, `check` and the like, overtake those who do.
    #[must_use]
    pub fn barging(mut self) -> Self {
        self.barging = true;
        self
    }

    /// The limiter.
    pub const fn limiter(&self) -> &L {
        &self.limiter
    }

    /// How many wait, in all lines together.
    ///
    /// # Concurrency
    ///
    /// One load; others may have come or gone by the time it is read.
    #[must_use]
    pub fn waiting(&self) -> usize {
        usize::try_from(self.room.waiting()).unwrap_or(usize::MAX)
    }

    /// Whether somebody who does not wait is to leave it to those who do.
    pub(super) fn gives_way<C>(&self, case: &C) -> bool
    where
        C: super::ask::Case<Runtime = T>,
    {
        !self.barging && self.room.is_queued(case)
    }
}

impl<L: fmt::Debug, T: Runtime> fmt::Debug for Fair<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fair")
            .field("limiter", &self.limiter)
            .field("room", &self.room)
            .field("barging", &self.barging)
            .finish()
    }
}
