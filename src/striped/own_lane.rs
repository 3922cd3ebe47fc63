use core::fmt;

use super::account::Account;
use super::stripe::Stripe;
use super::{StripedDenied, StripedLimiter};
use crate::clock::Clock;
use crate::time::Nanos;

/// A [`StripedLimiter`] as one worker uses it who has a stripe to itself: an admission is a subtraction from a number
/// of the worker's own, with no locked instruction and no clock.
///
/// For runtimes with one thread per core, each with a lane for as long as it runs; made by
/// [`Lane::own`](super::Lane::own). The lane may go to another thread, but only one at a time can use it.
///
/// # Guarantee
///
/// As the limiter's: the stripe's hold is set aside from the limit whoever has it.
///
/// # Trade-offs
///
/// What is left of the hold is for this lane alone: up to [`hold`](StripedLimiter::hold) permits of each own lane may
/// lie idle while others are denied, and what it has used and not charged stays missing from the limit until it asks
/// again, or is dropped. (Others cannot take part in a count that is written without a locked instruction.) The stripe
/// is lost to everybody if the lane is leaked, as by [`core::mem::forget`]: that many permits are then missing for
/// good.
///
/// Where the ring behind is full the stripe is given back to all, and the lane decides as a [`Lane`](super::Lane) does
/// until there is room again; so too while somebody else has the stripe.
///
/// # Cost
///
/// An admission is a comparison and a subtraction. The one that uses up the hold also reads the clock and charges the
/// ring. Nothing is allocated.
///
/// # Examples
///
/// ```
/// use ringgate::{Quota, StripedLimiter};
///
/// # #[cfg(feature = "quanta")]
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = StripedLimiter::builder(Quota::per_second(100_000)?).stripes(4).build()?;
/// let admitted: usize = std::thread::scope(|scope| {
///     let work = |worker| {
///         // Made by the thread that uses it, for as long as it runs.
///         let mut lane = limiter.lane(worker).own();
///         (0..10_000).filter(|_| lane.check().is_ok()).count()
///     };
///     let workers: Vec<_> = (0..4).map(|worker| scope.spawn(move || work(worker))).collect();
///     workers.into_iter().map(|worker| worker.join().unwrap()).sum()
/// });
/// assert_eq!(admitted, 40_000);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "quanta"))]
/// # fn main() {}
/// ```
#[must_use = "a lane of one's own keeps its stripe from others"]
pub struct OwnLane<'a, C: Clock> {
    limiter: &'a StripedLimiter<C>,
    worker: usize,
    /// What is left of the hold; zero while the stripe is not the lane's.
    left: u64,
    /// The account as it was claimed, without what was used since.
    claimed: Option<Account>,
    /// The newest time that was given for anything used since. (What was given before is noted in the stripe.)
    given: Nanos,
}

impl<'a, C: Clock> OwnLane<'a, C> {
    pub(super) fn new(limiter: &'a StripedLimiter<C>, worker: usize) -> Self {
        let mut lane = Self {
            limiter,
            worker,
            left: 0,
            claimed: None,
            given: Nanos::ZERO,
        };
        if !limiter.stripes.is_empty() {
            lane.claim(1, None);
        }
        lane
    }

    /// Takes one permit if there is room, as [`StripedLimiter::check`].
    ///
    /// # Errors
    ///
    /// As [`StripedLimiter::check`].
    #[inline(always)]
    pub fn check(&mut self) -> Result<(), StripedDenied<'a, C>> {
        self.check_n(1)
    }

    /// Takes `permits` permits if there is room for all of them, as [`StripedLimiter::check_n`].
    ///
    /// # Errors
    ///
    /// As [`StripedLimiter::check_n`].
    #[inline(always)]
    pub fn check_n(&mut self, permits: u64) -> Result<(), StripedDenied<'a, C>> {
        if permits < self.left {
            self.left -= permits;
            return Ok(());
        }
        self.decide(permits, None)
    }

    /// Takes `permits` permits at the time `now`, as [`StripedLimiter::check_at`].
    ///
    /// # Errors
    ///
    /// As [`StripedLimiter::check_at`].
    #[inline(always)]
    pub fn check_at(&mut self, now: Nanos, permits: u64) -> Result<(), StripedDenied<'a, C>> {
        if permits < self.left {
            self.left -= permits;
            if permits > 0 {
                self.given = self.given.max(now);
            }
            return Ok(());
        }
        self.decide(permits, Some(now))
    }

    /// Whether the lane has its stripe to itself just now.
    #[must_use]
    pub const fn is_own(&self) -> bool {
        self.claimed.is_some()
    }

    /// Decides where the permits use up the hold, or it has too little room for them, or is not the lane's.
    #[cold]
    #[inline(never)]
    fn decide(&mut self, permits: u64, given: Option<Nanos>) -> Result<(), StripedDenied<'a, C>> {
        // What the lane has used of its own stripe is for itself alone to charge.
        if !self.is_own()
            && let Some(now) = self.limiter.denied_at(permits, given)
        {
            return Err(StripedDenied::new(self.limiter, now, permits));
        }
        if permits > 0 && permits <= self.limiter.hold {
            // With the stripe, room is made if the ring has room for what was used. Without it, what still counts of it is
            // for others to charge, so it is taken only where it has room beside that.
            let has_room = self.take(permits, given) || {
                let ready = if self.is_own() {
                    self.charge()
                } else {
                    self.claim(permits, given)
                };
                ready && self.take(permits, given)
            };
            if has_room {
                return Ok(());
            }
        }
        self.limiter.decide(self.worker, permits, given)
    }

    /// Uses the hold, if the lane has it and it has room; charges it when it is full.
    fn take(&mut self, permits: u64, given: Option<Nanos>) -> bool {
        if self.claimed.is_none() || permits > self.left {
            return false;
        }
        self.left -= permits;
        self.given = self.given.max(given.unwrap_or(Nanos::ZERO));
        if self.left == 0 {
            self.charge();
        }
        true
    }

    /// Charges what was used; if the ring is full, gives the stripe back to all. Whether the lane still has it.
    fn charge(&mut self) -> bool {
        let Some(account) = self.account() else {
            return false;
        };
        if account.count() == 0 {
            return true;
        }
        let (index, since) = (self.limiter.index(self.worker), account.tick());
        match self.limiter.charge_claimed(index, account, self.given) {
            Ok((at, charged)) => {
                self.have(charged.claimed());
                self.limiter.empty_old(since, at);
                true
            }
            Err(kept) => {
                self.give_back(kept);
                false
            }
        }
    }

    /// Claims the stripe, if nobody has it and its hold has room for `permits`, beside what no longer counts.
    fn claim(&mut self, permits: u64, given: Option<Nanos>) -> bool {
        let stripe = self.stripe();
        if stripe.look().is_dated() {
            let now = given.unwrap_or_else(|| self.limiter.clock.now());
            self.limiter.forget(stripe, now);
        }
        let seen = stripe.look();
        if permits > seen.room(self.limiter.hold) {
            return false;
        }
        let claimed = stripe.claim(seen);
        if let Some(account) = claimed {
            self.have(account);
        }
        claimed.is_some()
    }

    fn have(&mut self, account: Account) {
        self.left = self.limiter.hold - account.count();
        self.claimed = Some(account);
    }

    /// The account with what was used since it was claimed.
    fn account(&self) -> Option<Account> {
        let claimed = self.claimed?;
        let used = self.limiter.hold - claimed.count() - self.left;
        Some(if used == 0 {
            claimed
        } else {
            claimed.used(used, self.limiter.hold)
        })
    }

    /// Ends the claim.
    fn give_back(&mut self, account: Account) {
        self.claimed = None;
        self.left = 0;
        self.stripe().note(self.given);
        self.limiter.release(self.stripe(), account);
    }

    fn stripe(&self) -> &'a Stripe {
        &self.limiter.stripes[self.limiter.index(self.worker)]
    }
}

impl<C: Clock> Drop for OwnLane<'_, C> {
    /// Gives the stripe back to all, with what was used and not charged.
    fn drop(&mut self) {
        if let Some(account) = self.account() {
            self.give_back(account.released());
        }
    }
}

impl<C: Clock> fmt::Debug for OwnLane<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnLane")
            .field("worker", &self.worker)
            .field("account", &self.account())
            .finish_non_exhaustive()
    }
}
