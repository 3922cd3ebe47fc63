//! Decisions on this node: by leases, and by local rules.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use smallvec::SmallVec;

use super::answer::{Admitted, DecidedBy, Denied, Details, LeaseSpend, Reason};
use super::convert::{local_status, unknown_status};
use super::lease::{LeaseTable, SpendResult};
use super::rules::SharedRules;
use super::slots::HeldSlots;
use crate::rules::{
    CheckPlan, NodeCharge, NodeSlot, PlannedQuota, QuickPlan, QuotaStatus, Route, Step, Target,
};

mod await_grant;
mod remote;

/// The charges of a request on this node. They are refunded unless they are kept, also when the future is dropped.
struct NodeCharges<'a, R: ?Sized> {
    rules: &'a SharedRules<R>,
    spends: SmallVec<[LeaseSpend; 2]>,
    charges: Vec<NodeCharge>,
}

impl<'a, R: ?Sized> NodeCharges<'a, R> {
    fn new(rules: &'a SharedRules<R>) -> Self {
        Self {
            rules,
            spends: SmallVec::new(),
            charges: Vec::new(),
        }
    }

    fn has(&self, quota: usize) -> bool {
        self.spends.iter().any(|spend| spend.quota as usize == quota)
    }

    /// Spends permits of a lease for a quota, and returns the lease's position and answer.
    fn spend(&mut self, table: &LeaseTable, step: &Step, quota: usize) -> (usize, SpendResult) {
        let member = quota - step.first;
        let (at, result) = table.spend(step.lease_key(member), step.permits);
        if let SpendResult::Covered { epoch, .. } = result {
            self.spends.push(lease_spend(step, member, at, epoch));
        }
        (at, result)
    }

    /// Refunds what was spent for these quotas.
    fn refund(&mut self, which: impl Fn(usize) -> bool) {
        let rules = self.rules;
        self.spends.retain(|spend| {
            let refunds = which(spend.quota as usize);
            if refunds {
                rules.refund_leases(core::slice::from_ref(spend));
            }
            !refunds
        });
    }

    /// Keeps the charges of an admitted request.
    fn keep(mut self) -> KeptCharges {
        let mut charges = core::mem::take(&mut self.charges);
        KeptCharges {
            spends: core::mem::take(&mut self.spends),
            slots: self.rules.planner.take_slots(&mut charges),
            charges,
        }
    }
}

/// The charges of an admitted request on this node.
struct KeptCharges {
    spends: SmallVec<[LeaseSpend; 2]>,
    charges: Vec<NodeCharge>,
    slots: Vec<NodeSlot>,
}

impl<R: ?Sized> Drop for NodeCharges<'_, R> {
    fn drop(&mut self) {
        self.rules.refund_leases(&self.spends);
        self.rules.planner.undo_local(core::mem::take(&mut self.charges));
    }
}

#[inline(always)]
fn lease_spend(step: &Step, member: usize, at: usize, epoch: u32) -> LeaseSpend {
    // Rules have fewer quotas, and a node fewer leases, than 2^32. A state has at most sixteen quotas.
    LeaseSpend {
        quota: (step.first + member) as u32,
        state: step.state(),
        member: member as u16,
        at: at as u32,
        epoch,
        permits: step.permits,
    }
}

/// A quota that has no room, by its position in the request, and its status.
type DeniedQuota = (usize, QuotaStatus);

/// A request that this node cannot decide alone.
struct Remote<'a> {
    plan: &'a CheckPlan,
    quotas: Vec<PlannedQuota<'a>>,
    steps: Vec<Step>,
}

impl Remote<'_> {
    fn route_of(&self, target: usize) -> Route {
        self.steps[target].route
    }

    /// The step that a quota belongs to.
    fn step_of(&self, quota: usize) -> &Step {
        let of = |step: &&Step| (step.first..step.first + step.quotas).contains(&quota);
        // Every quota belongs to a step.
        self.steps.iter().find(of).unwrap_or(&self.steps[0])
    }
}

impl<R: ?Sized> SharedRules<R> {
    /// Decides, if this node can decide alone.
    #[inline(always)]
    pub(super) fn decide_now(&self, plan: &QuickPlan) -> Option<Result<Admitted, Denied>> {
        match plan {
            QuickPlan::One(target, step) => self.decide_one(target, step),
            QuickPlan::Many(plan) => self.decide_many(plan),
        }
    }

    /// Decides by one lease. Inlined down to the lease, so that its answer stays in registers.
    #[inline(always)]
    fn decide_one(&self, target: &Target, step: &Step) -> Option<Result<Admitted, Denied>> {
        let table = &*self.leases.as_ref()?.table;
        let (at, result) = table.spend(step.lease_key(0), step.permits);
        match result {
            SpendResult::Covered { epoch, .. } => {
                self.planner.count_admitted(target);
                let mut spends = SmallVec::new();
                spends.push(lease_spend(step, 0, at, epoch));
                Some(Ok(admitted(KeptCharges {
                    spends,
                    charges: Vec::new(),
                    slots: Vec::new(),
                })))
            }
            SpendResult::Closed { left, retry_at } => Some(Err(self.deny_one(table, target, left, retry_at))),
            SpendResult::NotCovered => {
                table.note_shortage(at, step.permits);
                None
            }
            SpendResult::NotOwner => None,
        }
    }

    /// Denies a request that neither one lease nor the store covers.
    #[cold]
    fn deny_one(&self, table: &LeaseTable, target: &Target, left: u64, retry_at: u64) -> Denied {
        table.counts().denied.add_one();
        let (plan, now) = ([*target].into_iter().collect(), table.clock.now());
        let quotas = self.planner.quotas(&plan).enumerate();
        let full = quotas.map(|(quota, planned)| (quota, closed_status(&planned, left, retry_at, now)));
        let full = full.collect();
        self.deny(&plan, full)
    }

    /// Decides by any number of leases and local limiters: checks all of them, and then charges them.
    #[inline(never)]
    fn decide_many(&self, plan: &CheckPlan) -> Option<Result<Admitted, Denied>> {
        let steps: SmallVec<[Step; 4]> = self.planner.steps(plan).collect();
        if steps.iter().any(|step| step.route == Route::Listed) {
            return Some(Err(self.deny_listed(plan)));
        }
        if steps.iter().any(|step| step.route == Route::Store) {
            return None;
        }
        let full = match self.peek_on_node(plan, &steps, true) {
            Ok(full) => full,
            Err(NeedsStore) => return None,
        };
        if !full.is_empty() {
            return Some(Err(self.deny(plan, full)));
        }
        let mut charged = NodeCharges::new(self);
        if let Err(full) = self.charge_local(plan, &steps, &mut charged) {
            return Some(Err(self.deny(plan, full)));
        }
        for step in steps.iter().filter(|step| step.route == Route::Lease) {
            let table = &*self.leases.as_ref()?.table;
            for quota in 0..step.quotas {
                let (_, result) = charged.spend(table, step, step.first + quota);
                if !matches!(result, SpendResult::Covered { .. }) {
                    // Another request has spent the permits since the check.
                    return None;
                }
            }
        }
        self.count(plan, &steps, &charged);
        Some(Ok(admitted(charged.keep())))
    }

    /// The quotas without room, of those that this node decides about. Fails if all of these have room and the store
    /// must decide about others. With `notes`, permits that a lease does not cover are counted as its shortage.
    fn peek_on_node(
        &self,
        plan: &CheckPlan,
        steps: &[Step],
        notes: bool,
    ) -> Result<Vec<DeniedQuota>, NeedsStore> {
        let (mut full, mut short) = (Vec::new(), false);
        let leases = self
            .leases
            .as_ref()
            .map(|node| (&*node.table, node.table.clock.now()));
        for step in steps.iter().filter(|step| step.route == Route::Lease) {
            let Some((table, now)) = leases else {
                continue;
            };
            for quota in 0..step.quotas {
                let key = step.lease_key(quota);
                match table.peek(key, step.permits, now) {
                    SpendResult::Covered { .. } => {}
                    SpendResult::Closed { left, retry_at } => {
                        let quota = step.first + quota;
                        if let Some(planned) = self.planner.quotas(plan).nth(quota) {
                            full.push((quota, closed_status(&planned, left, retry_at, now)));
                        }
                        table.counts().denied.add_one();
                    }
                    SpendResult::NotCovered => {
                        short = true;
                        if let Some(at) = table.find(key).filter(|_| notes) {
                            table.note_shortage(at, step.permits);
                        }
                    }
                    SpendResult::NotOwner => short = true,
                }
            }
        }
        if steps.iter().any(|step| step.route == Route::Local) {
            let local = self
                .planner
                .peek_local(plan, |target| steps[target].route == Route::Local);
            let planned: Vec<PlannedQuota<'_>> = self.planner.quotas(plan).collect();
            full.extend(
                local
                    .iter()
                    .map(|full| (full.quota, local_status(&planned[full.quota], full))),
            );
        }
        match short && full.is_empty() {
            true => Err(NeedsStore),
            false => Ok(full),
        }
    }

    /// Charges the limiters of local rules.
    fn charge_local(
        &self,
        plan: &CheckPlan,
        steps: &[Step],
        charged: &mut NodeCharges<'_, R>,
    ) -> Result<(), Vec<DeniedQuota>> {
        if !steps.iter().any(|step| step.route == Route::Local) {
            return Ok(());
        }
        let is_local = |target: usize| steps[target].route == Route::Local;
        match self.planner.charge_local(plan, is_local) {
            Ok(charges) => {
                charged.charges = charges;
                Ok(())
            }
            Err(full) => {
                let planned: Vec<PlannedQuota<'_>> = self.planner.quotas(plan).collect();
                Err(full
                    .iter()
                    .map(|full| (full.quota, local_status(&planned[full.quota], full)))
                    .collect())
            }
        }
    }

    /// Gives permits of an admitted request back to leases, counts them for their rules, and returns how many could not be refunded.
    pub(super) fn return_to_leases(&self, spends: &[LeaseSpend]) -> u64 {
        let lost = spends.iter().map(|spend| {
            let lost = self.refund_leases(core::slice::from_ref(spend));
            let (state, member) = (spend.state, usize::from(spend.member));
            self.planner.count_refund_of(state, member, spend.permits, lost);
            lost
        });
        lost.sum()
    }

    /// Refunds permits to leases, and returns how many could not be refunded.
    pub(super) fn refund_leases(&self, spends: &[LeaseSpend]) -> u64 {
        let Some(leases) = self.leases.as_ref() else {
            return 0;
        };
        let lost = spends.iter().filter(|spend| {
            let state = &leases.table.states[spend.at as usize];
            !state.refund(spend.epoch, spend.permits)
        });
        lost.map(|spend| spend.permits).sum()
    }

    /// Denies a request that this node has no room for.
    fn deny(&self, plan: &CheckPlan, full: Vec<DeniedQuota>) -> Denied {
        let rules: Vec<u16> = {
            let planned: Vec<PlannedQuota<'_>> = self.planner.quotas(plan).collect();
            full.iter().map(|&(quota, _)| planned[quota].rule).collect()
        };
        self.planner.count_denied(&rules);
        let violations = full.into_iter().map(|(_, status)| status).collect();
        self.denial(DecidedBy::Local, Reason::Spent, violations)
    }

    /// Denies a request whose key is on a list.
    fn deny_listed(&self, plan: &CheckPlan) -> Denied {
        let planned = self.planner.quotas(plan);
        let listed: Vec<PlannedQuota<'_>> = planned.filter(|it| it.enforced && it.always_denied).collect();
        let rules: Vec<u16> = listed.iter().map(|planned| planned.rule).collect();
        self.planner.count_denied(&rules);
        let violations = listed.iter().map(unknown_status).collect();
        self.denial(DecidedBy::Rules, Reason::Listed, violations)
    }

    /// A denial by these quotas.
    fn denial(&self, decided_by: DecidedBy, reason: Reason, violations: Vec<QuotaStatus>) -> Denied {
        Denied {
            decided_by,
            reason,
            violations: violations.len(),
            statuses: violations,
            denied_at: self.now(),
            at: None,
            error: None,
        }
    }
}

/// This node cannot decide alone.
struct NeedsStore;

#[inline]
fn admitted(kept: KeptCharges) -> Admitted {
    let KeptCharges {
        spends,
        charges,
        slots: on_node,
    } = kept;
    let has_details = !charges.is_empty() || !on_node.is_empty();
    let decided_by = if spends.is_empty() && !has_details {
        DecidedBy::Rules
    } else {
        DecidedBy::Local
    };
    // In a box, because the answer is moved several times and most answers have no details.
    let details = has_details.then(|| {
        Box::new(Details {
            charges,
            slots: HeldSlots {
                on_node,
                in_store: None,
            },
            ..Details::default()
        })
    });
    Admitted {
        decided_by,
        spends,
        details,
    }
}

/// The status of a quota whose lease is closed.
fn closed_status(planned: &PlannedQuota<'_>, left: u64, retry_at: u64, now: u64) -> QuotaStatus {
    QuotaStatus {
        remaining: left,
        retry_after: Some(Duration::from_nanos(retry_at.saturating_sub(now))),
        reset_after: Some(Duration::from_nanos(retry_at.saturating_sub(now))),
        ..unknown_status(planned)
    }
}
