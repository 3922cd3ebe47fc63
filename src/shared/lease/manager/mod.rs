//! The manager of a lease: its terms, the request without an answer, and the demand that determines the next request.

use core::time::Duration;

use self::demand::Demand;
use crate::shared::lease::clock::nanos;
use crate::shared::lease::state::{LeaseState, UsageReport};
use crate::shared::lease::terms::Lease;
use crate::shared::store::{LeaseGrant, LeaseRequest};

mod demand;

/// The manager of one lease. The lock around it is held for a few instructions, and never across an await.
///
/// A request to the store reports the permits that were used, and asks for others. It is sent again, as a *copy*, until the store
/// has answered it. Each new request begins an *epoch*, in which use is counted from 0. So does the loss of the lease. Times are
/// in nanoseconds of the node's clock.
#[derive(Debug, Default)]
pub(crate) struct LeaseManager {
    /// `None` until a key has been given the lease.
    lease: Option<Lease>,
    lease_id: u128,
    /// The sequence number of the last request that was made.
    sequence: u64,
    standing: Standing,
    phase: Phase,
    demand: Demand,
    /// The permits that were spent under leases that have ended, and are still to be charged. The next request charges them.
    carried_permits: u64,
    /// The part of this epoch's use that was charged to the fallback limiter, which decides while the store does not answer.
    fallback_permits: u64,
    requested_at: u64,
    /// The time at which the last answered copy was sent. The node counts the term from then. The store counts it from the
    /// receipt of the copy, which came later, so the lease ends on the node first.
    term_began_at: u64,
    failed_copies: u64,
    /// Whether the next request gives everything back. Making that request clears the flag.
    is_release_due: bool,
    /// The number of calls of [`withhold`](Self::withhold) that have not ended. While it is above 0, requests ask for no permits.
    withholders: u32,
}

/// A lease as the store knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// The store has answered no request about it.
    #[default]
    New,
    /// The store refused the previous lease when that was new, and has not answered about this one. For a term and a window after
    /// its start, a store registers no lease. So the node asks only once in a period, even if callers wait.
    BackingOff,
    /// The store has granted the lease permits, perhaps none.
    Held,
}

/// The request of a lease that is not answered yet.
#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Idle,
    /// A copy of the request is on its way to the store.
    Asking {
        request: UnansweredRequest,
        sent_at: u64,
    },
    /// The last copy was not answered. The next one is sent a period after it.
    Failing {
        request: UnansweredRequest,
        sent_at: u64,
    },
}

/// A request that was sent, and to which no answer has come.
#[derive(Clone, Copy, Debug)]
struct UnansweredRequest {
    report: UsageReport,
    wanted_permits: u64,
    /// The budget before the report, which the store has registered until it executes the request.
    budget_before: u64,
    /// Whether the request gives everything back.
    releases: bool,
}

impl Phase {
    const fn unanswered(&self) -> Option<&UnansweredRequest> {
        match self {
            Self::Idle => None,
            Self::Asking { request, .. } | Self::Failing { request, .. } => Some(request),
        }
    }
}

impl LeaseManager {
    pub(crate) const fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    /// The permits to ask for: twice those that a period demands.
    pub(super) const fn target_permits(&self) -> u64 {
        self.demand.target_permits
    }

    /// Whether the next answer about the lease may grant permits.
    pub(crate) fn is_worth_waiting(&self, state: &LeaseState) -> bool {
        let is_worth_asking = |lease: &Lease| lease.is_worth_asking(self.demand.target_permits);
        let may_be_granted =
            self.lease.as_ref().is_some_and(is_worth_asking) && self.standing != Standing::BackingOff;
        let is_withheld = self.withholders > 0;
        !is_withheld && !self.is_failing() && (state.balance().budget() > 0 || may_be_granted)
    }

    /// Whether the last copy of the request was not answered. No caller waits for the next copy, sent a period later.
    pub(crate) const fn is_failing(&self) -> bool {
        matches!(self.phase, Phase::Failing { .. })
    }

    /// The most unspent permits that the store may have registered for the lease.
    pub(crate) fn most_unspent(&self, state: &LeaseState) -> u64 {
        let balance = state.balance();
        let granted = balance.budget().saturating_sub(balance.used());
        // The store may or may not have executed the request without an answer.
        let asked = self.phase.unanswered().map_or(0, |request| {
            let before = request.budget_before.saturating_sub(request.report.charge);
            request.wanted_permits.max(before)
        });
        let is_registered = self.lease.as_ref().is_some_and(|lease| lease.is_registered);
        if is_registered { granted.max(asked) } else { 0 }
    }

    pub(crate) const fn failed_copies(&self) -> u64 {
        self.failed_copies
    }

    /// The number of the lease, and the sequence of its last answered request. Only the last request can be unanswered, because
    /// the next one is made after its answer.
    pub(super) fn last_answered(&self) -> (u128, u64) {
        let unanswered = u64::from(self.phase.unanswered().is_some());
        (self.lease_id, self.sequence - unanswered)
    }

    /// Makes the next request give everything back, and returns its lease and sequence. `None`: the lease
    /// [is released](Self::is_released) already.
    pub(super) fn release(&mut self, state: &LeaseState) -> Option<(u128, u64)> {
        self.lease.as_ref()?;
        if self.is_released(state) {
            // No release is sent, so the demand ends here. Else a later request would ask for more.
            self.demand.end(state);
            return None;
        }
        self.is_release_due = true;
        Some((self.lease_id, self.sequence + 1))
    }

    /// Whether the whole lease was given back: it has no permits and no uncharged use, and no unanswered request can get it
    /// permits.
    pub(super) fn is_released(&self, state: &LeaseState) -> bool {
        let balance = state.balance();
        self.phase.unanswered().is_none() && self.carried_permits + balance.used() + balance.budget() == 0
    }

    /// Returns the number of the lease, and the sequence of the request whose answer confirms the charge of all [reported
    /// permits](Self::reported_permits). `None` if there are none.
    pub(super) fn charging_request(&self) -> Option<(u128, u64)> {
        if self.carried_permits > 0 {
            return Some((self.lease_id, self.sequence + 1));
        }
        let charges = |request: &UnansweredRequest| request.report.charge > 0;
        let is_charging = self.phase.unanswered().is_some_and(charges);
        is_charging.then_some((self.lease_id, self.sequence))
    }

    /// The use that has left the balance and is not known to be charged: that of the unanswered request, and the carried permits,
    /// which the next request charges.
    pub(super) fn reported_permits(&self) -> u64 {
        let unanswered = self.phase.unanswered();
        self.carried_permits + unanswered.map_or(0, |request| request.report.charge)
    }

    /// Makes every request ask for no permits, until [`end_withholding`](Self::end_withholding) has ended each call of this.
    ///
    /// Each call is made by a future that is alive. 2^32 of them do not fit into memory.
    pub(super) const fn withhold(&mut self) {
        self.withholders += 1;
    }

    pub(super) const fn end_withholding(&mut self) {
        self.withholders -= 1;
    }

    pub(super) const fn term_began_at(&self) -> u64 {
        self.term_began_at
    }

    /// Resets the manager for the lease of another key.
    pub(super) fn assign(&mut self, lease: Lease, lease_id: u128, now: u64) {
        *self = Self {
            lease: Some(lease),
            lease_id,
            demand: Demand::since(now),
            ..Self::default()
        };
    }

    /// Whether the lease may be given to another key.
    pub(super) fn is_free(&self, state: &LeaseState, now: u64) -> bool {
        let Some(lease) = &self.lease else { return true };
        let balance = state.balance();
        // Until the term ends, the store keeps the permits of the lease from other nodes.
        let is_held = lease.holds(balance.budget()) && now < self.term_began_at.saturating_add(lease.term);
        // Callers wait for an answer about the lease.
        let is_awaited = self.demand.unmet_permits > 0 || state.has_shortage();
        !is_awaited
            && !self.is_release_due
            && self.withholders == 0
            && self.phase.unanswered().is_none()
            && self.carried_permits + balance.used() == 0
            && !is_held
    }

    /// Whether the flusher has to look at the lease.
    pub(super) fn is_busy(&self, state: &LeaseState) -> bool {
        let balance = state.balance();
        let holds = |lease: &Lease| lease.holds(balance.budget());
        self.is_release_due
            || self.phase.unanswered().is_some()
            || self.carried_permits + balance.used() > 0
            || self.lease.as_ref().is_some_and(holds)
            || self.demand.unmet_permits > 0
            || self.demand.target_permits > 0
    }

    /// Returns the permits that the lease has admitted since the last call. The caller charges them to the fallback limiter.
    pub(super) fn take_fallback_charge(&mut self, state: &LeaseState) -> u64 {
        let used = state.balance().used();
        let uncharged = used.saturating_sub(self.fallback_permits);
        self.fallback_permits = self.fallback_permits.max(used);
        uncharged
    }

    /// Returns the request to send now, and the permits that the caller charges to the fallback limiter. The request is a copy
    /// of the unanswered one, or a new one. `None`: no request is due, or a copy is on its way.
    ///
    /// If the lease was marked (`dirty`), a new request may be [due](Self::is_due) before the period is over. The next copy of an
    /// unanswered one is sent about a period after the last, `dirty` or not.
    pub(super) fn request(
        &mut self,
        state: &LeaseState,
        now: u64,
        dirty: bool,
        new_id: impl FnOnce() -> u128,
    ) -> Option<(LeaseRequest, u64)> {
        let period = self.lease.as_ref()?.period;
        let (request, fallback) = match self.phase {
            Phase::Asking { .. } => return None,
            // A call without `dirty` comes about once a period, so it need not compare the time.
            Phase::Failing { sent_at, .. } if dirty && now < sent_at.saturating_add(period) => return None,
            Phase::Failing { request, .. } => (request, 0),
            Phase::Idle => self.begin_request(state, now, dirty, new_id)?,
        };
        self.phase = Phase::Asking {
            request,
            sent_at: now,
        };
        let lease = self.lease.as_ref()?;
        let request = LeaseRequest {
            counter: lease.counter.clone(),
            lease_id: self.lease_id,
            sequence: self.sequence,
            is_new: self.standing != Standing::Held,
            is_registered: lease.is_registered,
            charge: request.report.charge,
            cap: request.report.cap,
            wanted: request.wanted_permits,
            term: Duration::from_nanos(lease.term),
        };
        Some((request, fallback))
    }

    /// Makes a request, and returns it with the permits that the caller charges to the fallback limiter. `None`: no request is
    /// due.
    fn begin_request(
        &mut self,
        state: &LeaseState,
        now: u64,
        dirty: bool,
        new_id: impl FnOnce() -> u128,
    ) -> Option<(UnansweredRequest, u64)> {
        let lease = self.lease.as_ref()?;
        let term_end = self.term_began_at.saturating_add(lease.term);
        self.demand.count(state, lease.period, now);
        let releases = core::mem::take(&mut self.is_release_due) && !self.is_released(state);
        let wanted_permits = if releases || self.withholders > 0 {
            0
        } else {
            lease.wanted_permits(self.demand.target_permits)
        };
        if !releases && !self.is_due(lease, state, now, dirty) {
            if self.demand.target_permits == 0 {
                // No caller waits for a lease with so little demand (`is_worth_waiting`): the store decides the requests that
                // `unmet_permits` counts.
                self.demand.unmet_permits = 0;
            }
            return None;
        }
        let balance = state.balance();
        let has_nothing = balance.used() == 0 && !lease.holds(balance.budget());
        if self.standing == Standing::Held && has_nothing && now >= term_end {
            // The lease has ended with its term, so the request begins another. It charges what was spent since `balance`
            // was read.
            self.carried_permits += state.lose();
            self.begin(new_id(), Standing::New);
        }
        if wanted_permits < state.balance().budget() {
            // The request returns a part of the budget, so the store may have room. This ends the notice that it has none: the
            // store decides requests that the lease does not cover.
            state.reopen();
        }
        let budget_before = state.balance().budget();
        let mut report = state.report(wanted_permits);
        let fallback = report.charge.saturating_sub(self.fallback_permits);
        self.begin_epoch();
        let carried = core::mem::take(&mut self.carried_permits);
        report.charge += carried;
        report.cap += carried;
        self.sequence += 1;
        self.requested_at = now;
        self.demand.unmet_permits = 0;
        let request = UnansweredRequest {
            report,
            wanted_permits,
            budget_before,
            releases,
        };
        Some((request, fallback))
    }

    /// Whether a request is due. If there is use to charge, or something to renew or ask for, it is due a period after the last.
    /// For a `dirty` lease whose budget is half used, or for which callers wait, it is due earlier, unless the store grants no
    /// permits now.
    fn is_due(&self, lease: &Lease, state: &LeaseState, now: u64, dirty: bool) -> bool {
        let (balance, unmet) = (state.balance(), self.demand.unmet_permits);
        let is_needed = self.carried_permits + balance.used() > 0
            || lease.holds(balance.budget())
            || lease.is_asked_for(self.demand.target_permits, unmet);
        let is_early = dirty
            && !state.is_closed(now)
            && self.standing != Standing::BackingOff
            && (2 * balance.used() >= balance.budget() || unmet > 0);
        is_needed && (is_early || now >= self.requested_at.saturating_add(lease.period))
    }

    /// Begins a lease that the store does not know yet.
    fn begin(&mut self, lease_id: u128, standing: Standing) {
        (self.lease_id, self.sequence, self.standing) = (lease_id, 0, standing);
    }

    /// Notes that use is counted from 0 again.
    const fn begin_epoch(&mut self) {
        self.fallback_permits = 0;
        self.demand.begin_epoch();
    }

    /// Applies an answer of the store, and returns the permits that the caller charges to the fallback limiter. `None`: the
    /// answer belongs to an earlier request.
    pub(super) fn answer(
        &mut self,
        state: &LeaseState,
        (request, grant): (&LeaseRequest, LeaseGrant),
        (sent_at, now): (u64, u64),
        new_id: impl FnOnce() -> u128,
    ) -> Option<u64> {
        if !self.is_last(request) {
            return None;
        }
        let (Some(lease), Some(&answered)) = (&self.lease, self.phase.unanswered()) else {
            return None;
        };
        let mut fallback = 0;
        self.phase = Phase::Idle;
        if answered.releases {
            // The lease was given back, so the demand that it has covered is over.
            self.demand.target_permits = 0;
        }
        match grant.permits {
            Some(permits) => {
                self.standing = Standing::Held;
                self.term_began_at = sent_at;
                state.grant(permits, sent_at.saturating_add(lease.term - lease.margin));
                state.note_left(grant.remaining);
                match grant.retry_after {
                    Some(after) if grant.remaining == 0 => {
                        let after = nanos(after);
                        let until = now.saturating_add(after.min(lease.period));
                        // The retry time of a grant is when one more permit is free, so it is for requests of one permit.
                        state.close((now, until), 0, (1, now.saturating_add(after)));
                    }
                    _ => state.reopen(),
                }
            }
            None => {
                let used = state.lose();
                fallback = used.saturating_sub(self.fallback_permits);
                if !lease.covers_ended_use() {
                    // The store has registered no permits that cover this use, so the next request charges it.
                    // Claim: shared 7, the use of an ended budget is charged by the next one.
                    self.carried_permits = answered.report.charge + used;
                    self.is_release_due |= answered.releases && self.carried_permits > 0;
                }
                self.begin_epoch();
                let standing = match request.is_new {
                    true => Standing::BackingOff,
                    false => Standing::New,
                };
                self.begin(new_id(), standing);
            }
        }
        if self.is_release_due && self.is_released(state) {
            self.is_release_due = false;
            self.demand.end(state);
        }
        Some(fallback)
    }

    /// Records that a copy of a request was not answered.
    pub(super) fn fail(&mut self, request: &LeaseRequest) {
        if let Phase::Asking {
            request: asked,
            sent_at,
        } = self.phase
            && self.is_last(request)
        {
            self.phase = Phase::Failing {
                request: asked,
                sent_at,
            };
            self.failed_copies += 1;
        }
    }

    const fn is_last(&self, request: &LeaseRequest) -> bool {
        request.lease_id == self.lease_id && request.sequence == self.sequence
    }
}

#[cfg(test)]
mod tests;
