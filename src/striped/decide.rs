//! What happens between the stripes and the ring: see [the protocol](super).

use super::account::Account;
use super::stripe::{Stripe, Use};
use super::{StripedDenied, StripedLimiter};
use crate::clock::Clock;
use crate::time::Nanos;

impl<C: Clock> StripedLimiter<C> {
    pub(super) fn index(&self, lane: usize) -> usize {
        lane & (self.stripes.len() - 1)
    }

    /// Decides for a caller on `lane`, whose stripe is asked first.
    #[inline(always)]
    pub(super) fn decide(
        &self,
        lane: usize,
        permits: u64,
        given: Option<Nanos>,
    ) -> Result<(), StripedDenied<'_, C>> {
        // Without stripes the hold is zero.
        if permits > 0 && permits <= self.hold {
            let home = self.index(lane);
            // What has a date may no longer count, which only a reading tells.
            match self.take(home, permits, given, Account::undated_room) {
                Use::Done => return Ok(()),
                Use::Filled(account) => {
                    self.settle_up(home, account);
                    return Ok(());
                }
                Use::Short => {}
            }
        }
        self.decide_elsewhere(lane, permits, given)
    }

    /// Decides for a caller whose own stripe has no room.
    #[inline(never)]
    fn decide_elsewhere(
        &self,
        lane: usize,
        permits: u64,
        given: Option<Nanos>,
    ) -> Result<(), StripedDenied<'_, C>> {
        match self.denied_at(permits, given) {
            Some(now) => Err(StripedDenied::new(self, now, permits)),
            None => self.search(lane, permits, given),
        }
    }

    /// The reading of a caller that is denied because another was, and nothing can have come free since.
    #[inline]
    pub(super) fn denied_at(&self, permits: u64, given: Option<Nanos>) -> Option<Nanos> {
        let until = self.closed.until(permits)?;
        let now = given.unwrap_or_else(|| self.clock.now());
        (self.newest(now) < until).then_some(now)
    }

    /// Uses a stripe's hold, if it has `room`, an [`Account`]'s of the hold.
    #[inline(always)]
    fn take(
        &self,
        index: usize,
        permits: u64,
        given: Option<Nanos>,
        room: impl Fn(Account, u64) -> u64,
    ) -> Use {
        let stripe = &self.stripes[index];
        if let Some(given) = given {
            // Where there is no room nothing is noted, so that a denial writes nothing.
            if permits > room(stripe.look(), self.hold) {
                return Use::Short;
            }
            stripe.note(given);
        }
        stripe.take(permits, self.hold, room)
    }

    /// Looks for room everywhere, and denies when there is none.
    #[cold]
    #[inline(never)]
    fn search(&self, lane: usize, permits: u64, given: Option<Nanos>) -> Result<(), StripedDenied<'_, C>> {
        if permits == 0 {
            return Ok(());
        }
        loop {
            let now = given.unwrap_or_else(|| self.clock.now());
            if permits <= self.hold && self.take_anywhere(lane, permits, given, self.newest(now)) {
                return Ok(());
            }
            if self.ring.take(now, permits) {
                return Ok(());
            }
            // Stripes had no room, and then the ring had none. If they still have none, then they
            // had none at that moment. Otherwise another thread has charged one in between, or published a time at
            // which what is in one no longer counts.
            if !self.any_has_room(permits, now) {
                self.close(permits, now);
                return Err(StripedDenied::new(self, now, permits));
            }
        }
    }

    /// Tells others until when they are denied as the caller was, which asked for `permits`.
    fn close(&self, permits: u64, now: Nanos) {
        let Some(closing) = self.closed.begin(permits) else {
            return;
        };
        let now = self.newest(now);
        if let Some(until) = self.ready_at(now, permits).filter(|&until| until > now) {
            self.closed.publish(closing, permits, until);
        }
    }

    /// Ends a claim. The others are told afterwards: before, one of them could close the limiter by the claim.
    pub(super) fn release(&self, stripe: &Stripe, account: Account) {
        stripe.release(account);
        self.closed.reopen();
    }

    /// The time that the ring decides by for a caller whose reading is `now`.
    pub(super) fn newest(&self, now: Nanos) -> Nanos {
        now.max(self.ring.latest_time())
    }

    /// Whether a stripe has room for `permits` at the newest of `now` and the time that the ring has published.
    fn any_has_room(&self, permits: u64, now: Nanos) -> bool {
        let now = self.newest(now);
        self.stripes
            .iter()
            .any(|stripe| permits <= self.room(stripe, now))
    }

    /// Uses the hold of any stripe, the caller's own first; of each first what is left, or is free again, then what it has
    /// when it is charged.
    fn take_anywhere(&self, lane: usize, permits: u64, given: Option<Nanos>, now: Nanos) -> bool {
        let mut refused = u64::MAX;
        (0..self.stripes.len()).any(|step| {
            let index = self.index(lane.wrapping_add(step));
            let stripe = &self.stripes[index];
            // Nothing is charged that no longer counts.
            let still_counts = !self.is_past(stripe.look(), now) || self.forget(stripe, now);
            if self.take_and_charge(index, permits, given) {
                return true;
            }
            let since = stripe.look().tick();
            if !(still_counts && self.empty(index, now, &mut refused)) {
                return false;
            }
            let taken = self.take_and_charge(index, permits, given);
            self.empty_old(since, now);
            taken
        })
    }

    fn take_and_charge(&self, index: usize, permits: u64, given: Option<Nanos>) -> bool {
        match self.take(index, permits, given, Account::room) {
            Use::Done => true,
            Use::Filled(account) => {
                self.settle_up(index, account);
                true
            }
            Use::Short => false,
        }
    }

    /// Empties a stripe, by a charge if the ring has room; false if that cannot be done. `refused` is
    /// the least that the ring has been seen to have no room for.
    fn empty(&self, index: usize, now: Nanos, refused: &mut u64) -> bool {
        let stripe = &self.stripes[index];
        let seen = stripe.look();
        if !seen.is_chargeable() {
            return false;
        }
        // A look first, so that a denial claims nothing in vain.
        if seen.count() >= *refused || self.ring.refuses(now, seen.count()) {
            *refused = seen.count().min(*refused);
            return false;
        }
        stripe
            .claim(seen)
            .is_some_and(|account| self.charge(index, account, now).is_some())
    }

    /// Empties a stripe of what no longer counts; false if that cannot be done.
    pub(super) fn forget(&self, stripe: &Stripe, now: Nanos) -> bool {
        let seen = stripe.look();
        // The time is published first: with a clock that is set back it could count again.
        self.is_past(seen, now) && self.is_over(seen, self.ring.reach(now)) && stripe.forget(seen)
    }

    /// Whether there is something in the account, and none of it counts any more.
    fn is_past(&self, account: Account, now: Nanos) -> bool {
        account.is_chargeable() && self.is_over(account, now)
    }

    /// Whether all that was used in a stripe no longer counts at the beginning of the ring's cell that
    /// `at` falls into, which is what the ring can publish of that time.
    fn is_over(&self, account: Account, at: Nanos) -> bool {
        self.over_at(account)
            .is_some_and(|over| over <= at && over <= self.ring.cell_start(at))
    }

    /// From when on all that was used in a stripe no longer counts; `None` when that is not known, or
    /// time ends before.
    fn over_at(&self, account: Account) -> Option<Nanos> {
        if !account.is_dated() {
            return None;
        }
        // Everything was used before the end of the period.
        let end = self.periods.start(account.tick() + 1)?;
        let over = end.get() + self.window;
        (over <= Nanos::MAX.get()).then_some(Nanos::new(over))
    }

    /// Charges a claimed stripe, and once in a period empties others that nobody has charged for long.
    #[cold]
    #[inline(never)]
    fn settle_up(&self, index: usize, account: Account) {
        if let Some(at) = self.charge(index, account, Nanos::ZERO) {
            self.empty_old(account.tick(), at);
        }
    }

    /// Charges a claimed stripe at a time after all of its uses, and not before `now`, and ends the claim:
    /// the time, or none if the ring is full.
    fn charge(&self, index: usize, account: Account, now: Nanos) -> Option<Nanos> {
        let stripe = &self.stripes[index];
        match self.charge_claimed(index, account, now) {
            Ok((at, charged)) => {
                self.release(stripe, charged);
                Some(at)
            }
            Err(kept) => {
                self.release(stripe, kept);
                None
            }
        }
    }

    /// The same without the end of the claim: the time and what the account is after the charge, or what it is if the
    /// ring is full.
    pub(super) fn charge_claimed(
        &self,
        index: usize,
        account: Account,
        now: Nanos,
    ) -> Result<(Nanos, Account), Account> {
        // Both are read after the claim, and every use came before it, or was the claimer's own. The caller's reading
        // was not.
        let at = self.clock.now().max(self.stripes[index].noted()).max(now);
        let tick = self.periods.tick(at);
        if self.ring.take(at, account.count()) {
            Ok((at, account.charged(tick)))
        } else {
            // Dated no earlier than what has been published, even if the clock was set back.
            Err(account.kept(tick.max(self.periods.tick(self.ring.latest_time()))))
        }
    }

    /// Once in a period (`since` is the one of the last time) empties stripes in which something has
    /// been uncharged for a whole period, as far as the ring has room.
    pub(super) fn empty_old(&self, since: u64, at: Nanos) {
        let tick = self.periods.tick(at);
        if tick <= since {
            return;
        }
        let mut refused = u64::MAX;
        for (index, stripe) in self.stripes.iter().enumerate() {
            let seen = stripe.look();
            if self.is_past(seen, at) {
                self.forget(stripe, at);
            } else if seen.is_chargeable() && seen.tick() + 1 < tick {
                self.empty(index, at, &mut refused);
            }
        }
    }

    /// The room of a stripe at the time `now`, for a caller that forgets what no longer counts.
    pub(super) fn room(&self, stripe: &Stripe, now: Nanos) -> u64 {
        let seen = stripe.look();
        if self.is_past(seen, now) {
            self.hold
        } else {
            seen.room(self.hold)
        }
    }

    /// The earliest instant, `now` or later, at which `permits` would be admitted if nobody else asked.
    pub(super) fn ready_at(&self, now: Nanos, permits: u64) -> Option<Nanos> {
        if self.any_has_room(permits, now) {
            return Some(now);
        }
        if permits > self.hold {
            return self.ring.ready_at(now, permits);
        }
        let accounts = || {
            self.stripes
                .iter()
                .map(|stripe| stripe.look())
                .filter(|seen| seen.is_chargeable())
        };
        // The ring has room for them, or for what is in a stripe, or what is in a stripe no longer counts.
        let needed = accounts().map(Account::count).fold(permits, u64::min);
        let over = accounts().filter_map(|seen| self.over_at(seen));
        over.filter_map(|over| self.ring.next_cell_start(over))
            .chain(self.ring.ready_at(now, needed))
            .min()
    }
}
