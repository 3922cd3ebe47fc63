//! The manager of a lease: its terms, the pending request, and the demand that determines the next request.

use core::time::Duration;

use crate::shared::lease::clock::nanos;
use crate::shared::lease::state::{LeaseState, UsageReport};
use crate::shared::lease::terms::Lease;
use crate::shared::store::{LeaseGrant, LeaseRequest};

/// The manager of one lease. The lock around it is held for a few instructions, and never across an await.
#[derive(Debug, Default)]
pub(crate) struct LeaseManager {
    lease: Option<Lease>,
    lease_id: u128,
    /// The sequence of the last request that was made.
    sequence: u64,
    /// The sequence of the last request that was answered.
    answered: u64,
    /// Whether the store has answered a request of this lease.
    known: bool,
    pending: Option<PendingRequest>,
    /// The use of budgets that have ended. The next request charges it.
    carried: u64,
    /// Whether a copy of the pending request is on its way.
    sent: bool,
    /// When the last copy was sent.
    sent_at: u64,
    /// Twice the permits that a period demands: the recent maximum, halved in each period.
    demand: u64,
    /// The permits that were requested and not covered since the last request was made. Callers wait for the next request,
    /// which sets this to 0.
    unmet: u64,
    /// When demand was counted last.
    counted_at: u64,
    /// When demand was halved last.
    halved_at: u64,
    /// The part of this epoch's use that is counted as demand.
    counted: u64,
    /// The part of this epoch's use that the fallback limiter was charged.
    charged_fallback: u64,
    /// When the last request was made.
    requested_at: u64,
    /// When the last copy that was answered had been sent. The term begins then.
    answered_at: u64,
    /// The copies that were not answered.
    failures: u64,
    /// Whether the last copy of the pending request was not answered.
    failing: bool,
    /// Whether the store refused the last request for a new lease, because it has not run for a term and a window.
    backing_off: bool,
    /// Whether the next request gives everything back. Making that request clears the flag.
    releasing: bool,
    /// The deciders that withhold permits from the lease. Meanwhile, no request wants any.
    withholders: u16,
    /// Whether the flusher looks at the lease in every period.
    pub(super) watched: bool,
}

#[derive(Debug)]
struct PendingRequest {
    report: UsageReport,
    wanted: u64,
    is_new: bool,
    /// Whether it gives everything back.
    releases: bool,
}

/// The lowest demand for which a key gets registered permits. With less demand, a lease would save no calls of the store.
const WORTH_A_LEASE: u64 = 4;

impl LeaseManager {
    pub(crate) const fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    pub(super) const fn demand(&self) -> u64 {
        self.demand
    }

    /// Whether a request should wait for an answer about the lease.
    pub(crate) fn is_worth_waiting(&self, state: &LeaseState) -> bool {
        let is_expected = self.demand >= WORTH_A_LEASE && !self.backing_off;
        !self.failing && (state.balance().budget() > 0 || is_expected)
    }

    /// Whether the last copy of the pending request was not answered. The next copy is sent a period after it.
    pub(crate) const fn is_failing(&self) -> bool {
        self.failing
    }

    /// Whether an answer is awaited.
    pub(crate) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    pub(crate) const fn failures(&self) -> u64 {
        self.failures
    }

    /// The number of the lease, and of its last request that was answered.
    pub(super) const fn answered(&self) -> (u128, u64) {
        (self.lease_id, self.answered)
    }

    /// Makes the next request give everything back, and returns its lease and sequence. `None`: the lease
    /// [is released](Self::is_released) already.
    pub(super) fn release(&mut self, state: &LeaseState) -> Option<(u128, u64)> {
        if self.lease.is_none() || self.is_released(state) {
            return None;
        }
        self.releasing = true;
        Some((self.lease_id, self.sequence + 1))
    }

    /// Whether the lease has no permits and no uncharged use, and no request is pending that may grant it some.
    pub(super) fn is_released(&self, state: &LeaseState) -> bool {
        let balance = state.balance();
        self.pending.is_none() && self.carried + balance.used() + balance.budget() == 0
    }

    /// The lease and the sequence of the request that charges the permits that have left the state. `None`: no such permit is
    /// uncharged.
    pub(super) fn charging(&self) -> Option<(u128, u64)> {
        if self.carried > 0 {
            return Some((self.lease_id, self.sequence + 1));
        }
        let charges = |pending: &PendingRequest| pending.report.charge > 0;
        let is_charging = self.pending.as_ref().is_some_and(charges);
        is_charging.then_some((self.lease_id, self.sequence))
    }

    /// The uncharged permits that have left the state: the next request charges them, or the pending one does.
    pub(super) fn reported(&self) -> u64 {
        self.carried + self.pending.as_ref().map_or(0, |pending| pending.report.charge)
    }

    /// Makes every request want no permits, until [`end_withholding`](Self::end_withholding) is called as often as this. Returns
    /// false, and does nothing, if 65,535 deciders withhold permits already.
    pub(super) const fn withhold(&mut self) -> bool {
        let is_counted = self.withholders < u16::MAX;
        self.withholders += is_counted as u16;
        is_counted
    }

    pub(super) const fn end_withholding(&mut self) {
        self.withholders -= 1;
    }

    pub(super) const fn answered_at(&self) -> u64 {
        self.answered_at
    }

    /// Resets the manager for the lease of another key.
    pub(super) fn assign(&mut self, lease: Lease, lease_id: u128, now: u64) {
        *self = Self {
            lease: Some(lease),
            lease_id,
            counted_at: now,
            halved_at: now,
            watched: self.watched,
            ..Self::default()
        };
    }

    /// Whether the lease may be given to another key.
    pub(super) fn is_free(&self, state: &LeaseState, now: u64) -> bool {
        let Some(lease) = &self.lease else { return true };
        let balance = state.balance();
        let in_term = now < self.answered_at.saturating_add(lease.term);
        let holds = lease.is_registered && balance.budget() > 0 && in_term;
        // Callers wait for an answer about the lease.
        let is_awaited = self.unmet > 0 || state.has_shortage();
        !is_awaited
            && !self.sent
            && !self.releasing
            && self.withholders == 0
            && self.pending.is_none()
            && self.carried + balance.used() == 0
            && !holds
    }

    /// Whether the flusher has to look at the lease.
    pub(super) fn is_busy(&self, state: &LeaseState) -> bool {
        let balance = state.balance();
        let is_registered = self.lease.as_ref().is_some_and(|lease| lease.is_registered);
        let holds = is_registered && balance.budget() > 0;
        self.sent
            || self.releasing
            || self.pending.is_some()
            || self.carried + balance.used() > 0
            || holds
            || self.unmet > 0
            || self.demand > 0
    }

    /// Returns the permits that the lease has admitted since the last call. The caller charges them to the fallback limiter.
    pub(super) fn charge_fallback(&mut self, state: &LeaseState) -> u64 {
        let used = state.balance().used();
        let uncharged = used.saturating_sub(self.charged_fallback);
        self.charged_fallback = self.charged_fallback.max(used);
        uncharged
    }

    /// Returns the request to send now, and the permits that the caller charges to the fallback limiter. The request is a copy
    /// of the pending one, or a new one. `None`: no request is due, or a copy is on its way.
    ///
    /// A `dirty` lease does not wait for the end of its period, unless the last copy was not answered. Then the next copy is
    /// sent a period after it.
    pub(super) fn request(
        &mut self,
        state: &LeaseState,
        now: u64,
        dirty: bool,
        new_id: impl FnOnce() -> u128,
    ) -> Option<(LeaseRequest, u64)> {
        let lease = self.lease.as_ref()?;
        if self.sent || self.failing && dirty && now < self.sent_at.saturating_add(lease.period) {
            return None;
        }
        let fallback = match self.pending {
            Some(_) => 0,
            None => self.begin_request(state, now, dirty, new_id)?,
        };
        let (lease, pending) = (self.lease.as_ref()?, self.pending.as_ref()?);
        self.sent = true;
        self.sent_at = now;
        let request = LeaseRequest {
            counter: lease.counter.clone(),
            lease_id: self.lease_id,
            sequence: self.sequence,
            is_new: pending.is_new,
            is_registered: lease.is_registered,
            charge: pending.report.charge,
            cap: pending.report.cap,
            wanted: pending.wanted,
            term: Duration::from_nanos(lease.term),
        };
        Some((request, fallback))
    }

    /// Makes a request the pending one, and returns the permits that the caller charges to the fallback limiter. `None`: no
    /// request is due.
    fn begin_request(
        &mut self,
        state: &LeaseState,
        now: u64,
        dirty: bool,
        new_id: impl FnOnce() -> u128,
    ) -> Option<u64> {
        let lease = self.lease.as_ref()?;
        let (most, is_registered, period) = (lease.most, lease.is_registered, lease.period);
        let term_end = self.answered_at.saturating_add(lease.term);
        self.count_demand(state, period, now);
        let releases = core::mem::take(&mut self.releasing) && !self.is_released(state);
        let wanted = if releases || self.withholders > 0 {
            0
        } else if is_registered {
            self.demand.min(most)
        } else {
            most
        };
        if !releases && !self.is_due(state, is_registered, period, now, dirty) {
            if is_registered && self.demand == 0 {
                // The store has decided about these permits, because so few are not worth a lease.
                self.unmet = 0;
            }
            return None;
        }
        let balance = state.balance();
        let has_nothing = balance.used() == 0 && (balance.budget() == 0 || !is_registered);
        if self.known && has_nothing && now >= term_end {
            // The lease has ended with its term, so the request begins another.
            self.carried += state.lose();
            self.begin(new_id());
        }
        if wanted < state.balance().budget() {
            // The request returns a part of the budget, so the store will have permits again. The notice says that it has none.
            state.reopen();
        }
        let mut report = state.report(wanted);
        let fallback = report.charge.saturating_sub(self.charged_fallback);
        (self.charged_fallback, self.counted) = (0, 0);
        let carried = core::mem::take(&mut self.carried);
        report.charge += carried;
        report.cap += carried;
        self.sequence += 1;
        self.requested_at = now;
        self.unmet = 0;
        self.pending = Some(PendingRequest {
            report,
            wanted,
            is_new: !self.known,
            releases,
        });
        Some(fallback)
    }

    /// Adds the demand since the last call to the estimate.
    fn count_demand(&mut self, state: &LeaseState, period: u64, now: u64) {
        let (used, shortage) = (state.balance().used(), state.take_shortage());
        self.unmet = self.unmet.saturating_add(shortage);
        let demand = used.saturating_sub(self.counted) + shortage;
        self.counted = used;
        let periods = now.saturating_sub(self.halved_at) / period;
        self.demand = self
            .demand
            .checked_shr(u32::try_from(periods).unwrap_or(64))
            .unwrap_or(0);
        self.halved_at += periods * period;
        let elapsed = now.saturating_sub(self.counted_at);
        self.counted_at = now;
        // A few permits in a short time may be chance, so they are taken as the demand of a whole period.
        let min_elapsed = if demand < 8 { period } else { period / 8 };
        let rate = u128::from(demand) * u128::from(period) / u128::from(elapsed.max(min_elapsed).max(1));
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        self.demand = self.demand.max(rate.saturating_mul(2));
    }

    /// Whether a request is due. It is due at the end of a period, and earlier if the lease is `dirty` and half of its budget
    /// is used or callers wait for more.
    fn is_due(&self, state: &LeaseState, is_registered: bool, period: u64, now: u64, dirty: bool) -> bool {
        let balance = state.balance();
        let (used, budget) = (balance.used(), balance.budget());
        let in_time = now >= self.requested_at.saturating_add(period);
        let early = dirty && !state.is_closed(now) && !self.backing_off;
        if !is_registered {
            let needed = self.carried + used > 0 || self.unmet > 0;
            return needed && (in_time || early && (2 * used >= budget || self.unmet > 0));
        }
        if used == 0 && budget == 0 {
            return self.demand >= WORTH_A_LEASE && (in_time || early);
        }
        in_time || early && (2 * used >= budget || self.unmet > 0)
    }

    /// Begins a lease that the store does not know yet.
    fn begin(&mut self, lease_id: u128) {
        self.lease_id = lease_id;
        (self.sequence, self.answered, self.known) = (0, 0, false);
    }

    /// Applies an answer of the store. Returns false if it does not answer the pending request.
    pub(super) fn answer(
        &mut self,
        state: &LeaseState,
        (request, grant): (&LeaseRequest, LeaseGrant),
        (sent, now): (u64, u64),
        new_id: impl FnOnce() -> u128,
    ) -> bool {
        let Some(lease) = &self.lease else { return false };
        if request.lease_id != self.lease_id || request.sequence != self.sequence {
            return false;
        }
        let Some(pending) = self.pending.take() else {
            return false;
        };
        (self.sent, self.failing) = (false, false);
        if pending.releases {
            // The demand that the lease has covered is past.
            self.demand = 0;
        }
        self.backing_off = grant.permits().is_none() && request.is_new;
        match grant.permits() {
            Some(permits) => {
                self.known = true;
                self.answered = request.sequence;
                self.answered_at = sent;
                state.grant(permits, sent.saturating_add(lease.term - lease.margin));
                state.note_left(grant.remaining());
                match grant.retry_after() {
                    Some(after) if grant.remaining() == 0 => {
                        let after = nanos(after);
                        let retry_at = now.saturating_add(after);
                        state.close(now.saturating_add(after.min(lease.period)), 0, retry_at);
                    }
                    _ => state.reopen(),
                }
            }
            None => {
                let used = state.lose();
                if !lease.is_registered {
                    // The store has no registered permits that cover the use of a budget, so the use is still to be charged.
                    // Claim: shared 7, the use of an ended budget is charged by the next one.
                    self.carried = pending.report.charge + used;
                    self.releasing |= pending.releases && self.carried > 0;
                }
                (self.charged_fallback, self.counted) = (0, 0);
                self.begin(new_id());
            }
        }
        self.releasing &= !self.is_released(state);
        true
    }

    /// Records that a copy of a request was not answered.
    pub(super) fn fail(&mut self, request: &LeaseRequest) {
        if request.lease_id == self.lease_id && request.sequence == self.sequence {
            (self.sent, self.failing) = (false, true);
            self.failures += 1;
        }
    }
}

#[cfg(test)]
mod tests;
