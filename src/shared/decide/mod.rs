//! Decisions on this node: by leases, and by local rules.

use alloc::vec::Vec;
use core::time::Duration;

use smallvec::SmallVec;

use super::charges::{Charges, Decision, Details, LeaseSpend, admitted};
use super::lease::{LeaseTable, SpendResult};
use super::rules::{NodeLeases, SharedRules};
use super::store::StoreError;
use crate::rules::{Admitted, DecidedBy, Denied, DeniedValues, QuotaStatus, Reason, Reservation};
use crate::shared::plan::{CheckPlan, DeniedQuota, PlannedQuota, QuickPlan, Route, Source, Target};

mod await_grant;
mod question;
mod remote;

/// The charges of a request on this node. Dropping them undoes them, unless [`keep`](Self::keep) has taken them.
struct NodeCharges<'a, R: ?Sized> {
    rules: &'a SharedRules<R>,
    spends: SmallVec<[LeaseSpend; 2]>,
    /// `None` if no state of this node decides.
    states: Option<Reservation<R>>,
}

impl<R: ?Sized> NodeCharges<'_, R> {
    /// The source of the charge for a target that the store was not asked about.
    fn source_of(&self, target: &Target) -> Option<Source> {
        let first = target.quotas().start;
        match is_local(target) {
            true => Some(Source::State),
            false => {
                let mut spends = self.spends.iter();
                spends
                    .any(|spend| spend.quota as usize == first)
                    .then_some(Source::Lease)
            }
        }
    }

    /// Spends permits of a lease for a quota, and returns the lease's position and answer.
    fn spend(&mut self, table: &LeaseTable, target: &Target, quota: usize) -> (usize, SpendResult) {
        let (at, result) = table.spend(target.lease_key(quota), target.permits());
        if let SpendResult::Covered { epoch, .. } = result {
            self.spends.push(lease_spend(target, quota, at, epoch));
        }
        (at, result)
    }

    /// Refunds what was spent for these quotas.
    fn refund(&mut self, which: impl Fn(usize) -> bool) {
        let rules = self.rules;
        self.spends.retain(|spend| {
            let refunds = which(spend.quota as usize);
            if refunds {
                rules.refund_lease(spend);
            }
            !refunds
        });
    }

    /// Keeps the charges of an admitted request, and counts it for the states.
    fn keep(mut self) -> (SmallVec<[LeaseSpend; 2]>, Option<Reservation<R>>) {
        let states = self.states.take();
        if let Some(states) = &states {
            states.count_admitted();
        }
        (core::mem::take(&mut self.spends), states)
    }
}

impl<R: ?Sized> Drop for NodeCharges<'_, R> {
    fn drop(&mut self) {
        for spend in &self.spends {
            self.rules.refund_lease(spend);
        }
        if let Some(states) = self.states.take() {
            states.undo();
        }
    }
}

#[inline(always)]
fn lease_spend(target: &Target, quota: usize, at: usize, epoch: u32) -> LeaseSpend {
    // Rules have fewer quotas, and a node fewer leases, than 2^32. A state has at most sixteen quotas.
    LeaseSpend {
        quota: quota as u32,
        state: target.state,
        member: target.member(quota) as u16,
        at: at as u32,
        epoch,
        permits: target.permits(),
    }
}

fn is_local(target: &Target) -> bool {
    target.route == Route::Local
}

impl<R: ?Sized> SharedRules<R> {
    /// Decides, if this node can decide alone.
    #[inline(always)]
    pub(super) fn decide_now(&self, plan: &QuickPlan) -> Option<Decision<R>> {
        match plan {
            QuickPlan::One(target) => self.decide_one(target),
            QuickPlan::Many(plan) => self.decide_many(plan),
        }
    }

    /// Decides by one lease. Inlined down to the lease, so that its answer stays in registers.
    #[inline(always)]
    fn decide_one(&self, target: &Target) -> Option<Decision<R>> {
        let table = &*self.leases.as_ref()?.table;
        let (at, result) = table.spend(target.lease_key(0), target.permits());
        match result {
            SpendResult::Covered { epoch, .. } => {
                self.planner.count_admitted(target);
                let mut spends = SmallVec::new();
                spends.push(lease_spend(target, 0, at, epoch));
                Some(Ok(admitted(DecidedBy::Local, spends, None)))
            }
            SpendResult::Closed { left, retry_at } => Some(Err(self.deny_one(table, target, left, retry_at))),
            SpendResult::NotCovered => {
                table.note_shortage(at, target.permits());
                None
            }
            SpendResult::NotOwner => None,
        }
    }

    /// Denies a request that neither one lease nor the store covers.
    #[cold]
    fn deny_one(&self, table: &LeaseTable, target: &Target, left: u64, retry_at: u64) -> Denied<'static> {
        table.counts().denied.add_one();
        let (plan, now) = ([*target].into_iter().collect(), table.clock.now());
        let quotas = self.planner.quotas(&plan).enumerate();
        let full = quotas.map(|(quota, planned)| (quota, closed_status(&planned, left, retry_at, now)));
        let full = full.collect();
        self.deny(&plan, full)
    }

    /// Decides by any number of leases and states of this node: looks at all of them, and then charges them.
    #[inline(never)]
    fn decide_many(&self, plan: &CheckPlan) -> Option<Decision<R>> {
        if plan.by(Route::Denied).next().is_none() && plan.by(Route::Store).next().is_some() {
            // No list denies the request, so the store decides.
            return None;
        }
        let covered = self.leases_cover(plan, true);
        let charged = covered.and_then(|is_covered| match is_covered {
            true => self.charge_states(plan).map(Some),
            false => Ok(None),
        });
        let mut charged = match charged {
            Ok(charged) => charged?,
            Err(denied) => return Some(Err(denied)),
        };
        for target in plan.by(Route::Lease) {
            let table = &*self.leases.as_ref()?.table;
            for quota in target.quotas() {
                let (_, result) = charged.spend(table, target, quota);
                if !matches!(result, SpendResult::Covered { .. }) {
                    // Another request has spent the permits meanwhile. Dropping `charged` refunds the others.
                    return None;
                }
            }
        }
        Some(Ok(self.admit_on_node(plan, charged)))
    }

    /// Returns whether the leases of a request cover it, unless a list or a lease denies it. A denial by a lease also names the states
    /// of this node without room. With `notes_shortage`, a lease counts permits that it does not cover as its shortage.
    fn leases_cover(&self, plan: &CheckPlan, notes_shortage: bool) -> Result<bool, Denied<'static>> {
        if plan.by(Route::Denied).next().is_some() {
            return Err(self.deny_listed(plan));
        }
        let (mut full, mut is_covered) = (Vec::new(), true);
        for target in plan.by(Route::Lease) {
            let Some(table) = self.leases.as_ref().map(|node| &*node.table) else {
                break;
            };
            let now = table.clock.now();
            for quota in target.quotas() {
                let key = target.lease_key(quota);
                match table.peek(key, target.permits(), now) {
                    SpendResult::Covered { .. } => {}
                    SpendResult::Closed { left, retry_at } => {
                        if let Some(planned) = self.planner.quotas(plan).nth(quota) {
                            full.push((quota, closed_status(&planned, left, retry_at, now)));
                        }
                    }
                    SpendResult::NotCovered => {
                        is_covered = false;
                        if let Some(at) = table.find(key).filter(|_| notes_shortage) {
                            table.note_shortage(at, target.permits());
                        }
                    }
                    SpendResult::NotOwner => is_covered = false,
                }
            }
        }
        if !full.is_empty() {
            self.count_denied_by_lease();
        }
        // If the leases cover the request, the states are looked at when they are charged.
        if !full.is_empty() || !is_covered {
            full.extend(self.planner.full_on_node(plan, is_local));
        }
        match full.is_empty() {
            true => Ok(is_covered),
            false => Err(self.deny(plan, full)),
        }
    }

    /// Counts a request that one or several leases have denied.
    fn count_denied_by_lease(&self) {
        if let Some(node) = &self.leases {
            node.table.counts().denied.add_one();
        }
    }

    /// Charges the states of local rules.
    fn charge_states(&self, plan: &CheckPlan) -> Result<NodeCharges<'_, R>, Denied<'static>> {
        let states = match plan.targets.iter().any(is_local) {
            true => self.planner.charge_on_node(plan, is_local).map(Some),
            false => Ok(None),
        };
        Ok(NodeCharges {
            rules: self,
            spends: SmallVec::new(),
            states: states.map_err(|full| self.deny(plan, full))?,
        })
    }

    /// Admits a request that leases and states of this node have decided.
    fn admit_on_node(&self, plan: &CheckPlan, charged: NodeCharges<'_, R>) -> Admitted<Charges<R>> {
        self.planner
            .charge_fallbacks(plan, |target| charged.source_of(target));
        let (spends, states) = charged.keep();
        let states = states.filter(Reservation::is_limited);
        let decided_by = match spends.is_empty() && states.is_none() {
            true => DecidedBy::Rules,
            false => DecidedBy::Local,
        };
        let details = states.map(|states| Details {
            states: Some(states),
            ..Details::default()
        });
        admitted(decided_by, spends, details)
    }

    /// Gives permits of an admitted request back to their lease, counts them for their rule, and returns how many could not be
    /// refunded.
    pub(super) fn return_to_lease(&self, spend: &LeaseSpend) -> u64 {
        let lost = self.refund_lease(spend);
        self.planner
            .count_refund(spend.state, spend.member, spend.permits, lost);
        lost
    }

    /// Refunds permits to their lease, and returns how many could not be refunded.
    fn refund_lease(&self, spend: &LeaseSpend) -> u64 {
        let refunds = |node: &NodeLeases| {
            let state = &node.table.states[spend.at as usize];
            state.refund(spend.epoch, spend.permits)
        };
        match self.leases.as_ref().is_some_and(refunds) {
            true => 0,
            false => spend.permits,
        }
    }

    /// Denies a request that this node has no room for.
    fn deny(&self, plan: &CheckPlan, full: Vec<DeniedQuota>) -> Denied<'static> {
        let planned: Vec<PlannedQuota<'_>> = self.planner.quotas(plan).collect();
        self.deny_by(DecidedBy::Local, Reason::Spent, &planned, full, None)
    }

    /// Denies a request whose key is on a list.
    fn deny_listed(&self, plan: &CheckPlan) -> Denied<'static> {
        let planned: Vec<PlannedQuota<'_>> = self.planner.quotas(plan).collect();
        let quotas = planned.iter().enumerate();
        let listed =
            quotas.filter(|(_, planned)| planned.extracted.enforced && planned.extracted.is_denied());
        let listed = listed.map(|(quota, planned)| (quota, planned.unknown_status()));
        self.deny_by(DecidedBy::Rules, Reason::Listed, &planned, listed.collect(), None)
    }

    /// Denies a request by these quotas, and counts the denial for their rules.
    fn deny_by(
        &self,
        decided_by: DecidedBy,
        reason: Reason,
        planned: &[PlannedQuota<'_>],
        full: Vec<DeniedQuota>,
        error: Option<StoreError>,
    ) -> Denied<'static> {
        let rules: Vec<u16> = full.iter().map(|&(quota, _)| planned[quota].rule).collect();
        self.planner.count_denied(&rules);
        let statuses: Vec<QuotaStatus> = full.into_iter().map(|(_, status)| status).collect();
        let values = DeniedValues {
            decided_by,
            reason,
            violations: statuses.len(),
            statuses,
            store_time: None,
            error,
        };
        Denied::of(values, self.now())
    }
}

/// The status of a quota whose lease is closed.
fn closed_status(planned: &PlannedQuota<'_>, left: u64, retry_at: u64, now: u64) -> QuotaStatus {
    QuotaStatus {
        remaining: left,
        retry_after: Some(Duration::from_nanos(retry_at.saturating_sub(now))),
        reset_after: Some(Duration::from_nanos(retry_at.saturating_sub(now))),
        ..planned.unknown_status()
    }
}
