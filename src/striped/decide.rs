//! Decisions of the striped limiter: the stripe of the thread first, then the other stripes, then the ring.
//!
//! [The protocol](super) defines these terms, and proves the claims.

use super::denied::StripedDenied;
use super::limiter::StripedLimiter;
use super::stripe::{Stripe, TakeResult};
use super::thread_index;
use super::word::StripeWord;
use crate::clock::Clock;
use crate::time::Nanos;

/// A claim of a stripe, which ends when this is dropped.
struct Claim<'a, C: Clock> {
    limiter: &'a StripedLimiter<C>,
    index: usize,
    /// The word that the end of the claim stores.
    word: StripeWord,
}

impl<C: Clock> Drop for Claim<'_, C> {
    fn drop(&mut self) {
        self.limiter
            .end_claim(&self.limiter.stripes[self.index], self.word);
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
    /// One atomic instruction takes the permit from a stripe or from the ring, and no other caller gets it. A denial is right for
    /// one moment of the call: neither the ring nor a stripe has capacity then. This does not include stripes that another thread
    /// is charging, nor those that it has charged before it reopens the limiter.
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
    /// One atomic instruction takes the permits. Denials are as exact as those of [`check`](Self::check).
    #[inline(always)]
    pub fn check_n(&self, permits: u64) -> Result<(), StripedDenied<'_, C>> {
        self.decide(thread_index::get(), permits)
    }

    /// The index of the stripe of a thread.
    pub(super) fn stripe_of(&self, thread_index: usize) -> usize {
        thread_index & (self.stripes.len() - 1)
    }

    /// Decides a request, first by the stripe of the thread.
    #[inline(always)]
    pub(super) fn decide(&self, thread_index: usize, permits: u64) -> Result<(), StripedDenied<'_, C>> {
        // Without stripes the batch is zero, so no permit is taken from a stripe.
        if permits > 0 && permits <= self.batch {
            let index = self.stripe_of(thread_index);
            // An expiring stripe is left out, because only a clock reading shows whether its count has expired.
            let stripe = &self.stripes[index];
            match stripe.take(permits, self.batch, StripeWord::capacity_unless_expiring) {
                TakeResult::Taken => return Ok(()),
                TakeResult::Filled(word) => {
                    self.flush(index, word);
                    return Ok(());
                }
                TakeResult::Exhausted => {}
            }
        }
        self.decide_elsewhere(thread_index, permits)
    }

    /// Decides a request that the stripe of its thread has not admitted.
    #[inline(never)]
    fn decide_elsewhere(&self, thread_index: usize, permits: u64) -> Result<(), StripedDenied<'_, C>> {
        match self.denied_at(permits) {
            Some(now) => Err(StripedDenied::new(self, now, permits)),
            None => self.search(thread_index, permits),
        }
    }

    /// Returns the clock reading if the published denial denies this request: an earlier request for as many permits or fewer was
    /// denied, and would still be denied.
    #[inline]
    pub(super) fn denied_at(&self, permits: u64) -> Option<Nanos> {
        let until = self.published_denial.until(permits)?;
        let now = self.clock.now();
        (self.decision_time(now) < until).then_some(now)
    }

    /// Searches all stripes and the ring for capacity, and denies the request if none has it.
    #[cold]
    #[inline(never)]
    fn search(&self, thread_index: usize, permits: u64) -> Result<(), StripedDenied<'_, C>> {
        if permits == 0 {
            return Ok(());
        }
        loop {
            let now = self.clock.now();
            if permits <= self.batch && self.take_anywhere(thread_index, permits, self.decision_time(now)) {
                return Ok(());
            }
            if self.ring.take(now, permits) {
                return Ok(());
            }
            // A denial is right only if at one moment neither the stripes nor the ring had capacity. So the stripes are read
            // again after the ring: if they still have no capacity, they had none when the ring was read (protocol, claim 5). If
            // one has capacity, the search starts over.
            // Claim: striped 5, a denied caller searches the stripes after the ring.
            if !self.any_has_capacity(permits, now) {
                self.close(permits, now);
                return Err(StripedDenied::new(self, now, permits));
            }
        }
    }

    /// *Closes* the limiter: publishes the denial of a request for `permits`. Requests for as many permits or more are then
    /// denied, at most until the earliest time at which a request for `permits` could be admitted.
    fn close(&self, permits: u64, now: Nanos) {
        let Some(closing) = self.published_denial.begin(permits) else {
            return;
        };
        let now = self.decision_time(now);
        let is_still_denied = |&ready_at: &Nanos| ready_at > now;
        if let Some(until) = self.ready_at(now, permits).filter(is_still_denied) {
            self.published_denial.publish(closing, permits, until);
        }
    }

    /// Ends a claim of a stripe, and then *reopens* the limiter: clears the published denial. In the other order, a thread could
    /// publish a denial in between, and later requests would be denied although the end of the claim has freed permits.
    pub(super) fn end_claim(&self, stripe: &Stripe, word: StripeWord) {
        // Claim: striped 6, the limiter is reopened after the claim has ended.
        stripe.release(word);
        self.published_denial.reopen();
    }

    /// Returns the time at which the ring decides for a caller whose reading is `now`: the newer of `now` and the time that the
    /// ring has published.
    pub(super) fn decision_time(&self, now: Nanos) -> Nanos {
        now.max(self.ring.latest_time())
    }

    /// Whether a stripe has capacity for `permits` at the [decision time](Self::decision_time) of `now`.
    fn any_has_capacity(&self, permits: u64, now: Nanos) -> bool {
        let now = self.decision_time(now);
        self.stripes
            .iter()
            .any(|stripe| permits <= self.capacity(stripe, now))
    }

    /// Takes `permits` from the batch of any stripe, beginning with that of the thread. For each stripe it removes an expired
    /// count and tries the remaining batch. If that is too small, it charges the count to the ring, which empties the stripe, and
    /// tries again.
    fn take_anywhere(&self, thread_index: usize, permits: u64, now: Nanos) -> bool {
        let mut smallest_denied = u64::MAX;
        // Claim: striped 7, a caller searches every stripe.
        (0..self.stripes.len()).any(|step| {
            let index = self.stripe_of(thread_index.wrapping_add(step));
            let stripe = &self.stripes[index];
            // An expired count must not be charged, because the charge would make it current again. So if `forget` fails, this
            // thread leaves the stripe uncharged.
            let may_charge = !self.is_forgettable(stripe.load(), now) || self.forget(stripe, now);
            if self.take_and_flush(index, permits) {
                return true;
            }
            let charged_before = stripe.load().tick();
            if !(may_charge && self.try_charge(index, now, &mut smallest_denied)) {
                return false;
            }
            let taken = self.take_and_flush(index, permits);
            self.charge_old_stripes(charged_before, now);
            taken
        })
    }

    /// Takes `permits` from the batch of a stripe. If that uses up the batch, charges the stripe at once.
    fn take_and_flush(&self, index: usize, permits: u64) -> bool {
        match self.stripes[index].take(permits, self.batch, StripeWord::capacity) {
            TakeResult::Taken => true,
            TakeResult::Filled(word) => {
                self.flush(index, word);
                true
            }
            TakeResult::Exhausted => false,
        }
    }

    /// Charges the count of a stripe if the ring has capacity for it, and returns whether it did. `smallest_denied` is the
    /// smallest count that the ring has denied in this search, so no count of that size or more is tried again.
    fn try_charge(&self, index: usize, now: Nanos, smallest_denied: &mut u64) -> bool {
        let stripe = &self.stripes[index];
        let seen = stripe.load();
        if !seen.is_chargeable() {
            return false;
        }
        // The ring is read first, so that a stripe is not claimed for a charge that the ring denies.
        if seen.count() >= *smallest_denied || seen.count() > self.ring.remaining(now) {
            *smallest_denied = seen.count().min(*smallest_denied);
            return false;
        }
        stripe
            .claim(seen)
            .is_some_and(|word| self.charge(index, word).is_some())
    }

    /// Removes an expired count from a stripe, and returns whether it did.
    pub(super) fn forget(&self, stripe: &Stripe, now: Nanos) -> bool {
        let seen = stripe.load();
        // The time is published first, so that a clock that steps back cannot make the count current again.
        self.is_forgettable(seen, now) && self.is_expired(seen, self.ring.publish(now)) && stripe.forget(seen)
    }

    /// Whether the stripe has an unclaimed count, and all of it has expired at `now`.
    fn is_forgettable(&self, word: StripeWord, now: Nanos) -> bool {
        word.is_chargeable() && self.is_expired(word, now)
    }

    /// Whether the whole count of a stripe has expired at the latest time that the ring can publish for the reading `at`: the
    /// beginning of its cell, or of the last cell that a word can hold.
    fn is_expired(&self, word: StripeWord, at: Nanos) -> bool {
        self.expires_at(word)
            .is_some_and(|expiry| expiry <= at && expiry <= self.ring.cell_start(at))
    }

    /// Returns the time at which the whole count of an expiring stripe has expired. `None` if no word can hold it, or if the
    /// stripe is not expiring, because then the period of its latest admission is unknown.
    fn expires_at(&self, word: StripeWord) -> Option<Nanos> {
        if !word.is_expiring() {
            return None;
        }
        // Every permit of the count was admitted before the end of the period in the word.
        // Claim: striped 3, a count expires a window after the end of its last period.
        let end = self.periods.start(word.tick() + 1)?;
        let expiry = end.get() + self.window;
        (expiry <= Nanos::MAX.get()).then_some(Nanos::new(expiry))
    }

    /// Charges a stripe that the caller has claimed. If the word's period is older than that of the charge, this also
    /// [charges the old stripes](Self::charge_old_stripes).
    #[cold]
    #[inline(never)]
    fn flush(&self, index: usize, word: StripeWord) {
        if let Some(at) = self.charge(index, word) {
            self.charge_old_stripes(word.tick(), at);
        }
    }

    /// Charges a claimed stripe, and ends the claim. The time of the charge is no earlier than that of any admission of the stripe.
    /// Returns this time, or `None` if the ring has no capacity for the count.
    fn charge(&self, index: usize, word: StripeWord) -> Option<Nanos> {
        let mut claim = Claim {
            limiter: self,
            index,
            // If the clock panics, the claim ends without a charge, and the stripe keeps its count.
            word: word.released(),
        };
        // Claim: striped 1, a stripe is emptied only after its charge.
        let (word, at) = match self.charge_keeping_claim(word) {
            Ok((at, charged)) => (charged, Some(at)),
            Err(kept) => (kept, None),
        };
        claim.word = word;
        at
    }

    /// Charges a claimed stripe without ending the claim. The time of the charge is no earlier than that of any admission of the
    /// stripe. Returns this time and the stripe word after the charge, or the word to store if the ring has no capacity for the
    /// count.
    pub(super) fn charge_keeping_claim(&self, word: StripeWord) -> Result<(Nanos, StripeWord), StripeWord> {
        // Every admission came before the claim, or was made by the claiming thread. So none is later than a clock reading after
        // the claim. A reading before the claim may be older than an admission.
        // Claim: striped 2, a charge reads the clock after the claim.
        let at = self.clock.now();
        let tick = self.periods.tick(at);
        if self.ring.take(at, word.count()) {
            Ok((at, word.charged(tick)))
        } else {
            // If the clock was set back, the published time is later than `at`. The count is dated in the period of the later
            // time.
            // Claim: striped 4, a kept count is not dated before the published time.
            Err(word.kept(tick.max(self.periods.tick(self.ring.latest_time()))))
        }
    }

    /// Charges the stripes whose count has been uncharged for a whole period, as far as the ring has capacity, and removes
    /// expired counts.
    ///
    /// The caller has just charged a stripe. `at` is its time, or a later one that the ring has published. `charged_before` is the
    /// period that the word of the stripe had before. If `at` is not in a later period, this does nothing, so that the other stripes
    /// are not read at every charge.
    pub(super) fn charge_old_stripes(&self, charged_before: u64, at: Nanos) {
        let tick = self.periods.tick(at);
        if tick <= charged_before {
            return;
        }
        let mut smallest_denied = u64::MAX;
        for (index, stripe) in self.stripes.iter().enumerate() {
            let seen = stripe.load();
            // Claim: striped 8, the stripes of an older period are charged.
            if self.is_forgettable(seen, at) {
                self.forget(stripe, at);
            } else if seen.is_chargeable() && seen.tick() + 1 < tick {
                self.try_charge(index, at, &mut smallest_denied);
            }
        }
    }

    /// Returns the capacity of a stripe at the time `now`, for a caller that removes an expired count first.
    pub(super) fn capacity(&self, stripe: &Stripe, now: Nanos) -> u64 {
        let seen = stripe.load();
        if self.is_forgettable(seen, now) {
            self.batch
        } else {
            seen.capacity(self.batch)
        }
    }

    /// Returns the earliest time, `now` or later, at which `permits` would be admitted if no other request came before.
    pub(super) fn ready_at(&self, now: Nanos, permits: u64) -> Option<Nanos> {
        if self.any_has_capacity(permits, now) {
            return Some(now);
        }
        if permits > self.batch {
            return self.ring.ready_at(now, permits);
        }
        let words = || {
            self.stripes
                .iter()
                .map(|stripe| stripe.load())
                .filter(|seen| seen.is_chargeable())
        };
        // The request is admitted at the first of three events: the ring has capacity for it, the ring has capacity for the count
        // of a stripe, or the count of a stripe has expired. The second and the third event free the batch of the stripe. An
        // expired count is removed at the next beginning of a cell, because the ring publishes only such times.
        let needed = words().map(StripeWord::count).fold(permits, u64::min);
        let expiries = words().filter_map(|seen| self.expires_at(seen));
        expiries
            .filter_map(|expiry| self.ring.next_cell_start(expiry))
            .chain(self.ring.ready_at(now, needed))
            .min()
    }
}
