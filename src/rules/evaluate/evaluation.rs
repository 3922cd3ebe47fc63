//! The decision of one request by the states of a rule set.
//!
//! [The protocol](crate::rules) defines *enforced*, *in the shadow*, *peek*, *charge* and *refund*. Most functions pass on
//! `evidence`, which says whether a denial counts as a violation, and may keep the values of the denying quotas.

use alloc::sync::Arc;
use core::iter;

use smallvec::SmallVec;

use super::admitted::Admitted;
use super::denied::{Denied, Violation};
use super::evidence::Evidence;
use super::extractor::{Extracted, Handling};
use super::key_hashes::KeyHashes;
use super::reservation::Reservation;
use super::reservation::held_slots::HeldSlots;
use super::reservation::state_charge::StateCharge;
use super::rule_state::RuleState;
use super::rule_states::{KeyDecision, RuleStates};
use super::state_decision::StateDecision;
use super::storage::StorageLookup;
use crate::keyed::Charged;
use crate::receipt::Receipt;
use crate::rules::decided_by::DecidedBy;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId};
use crate::time::Nanos;

/// A [`RuleState`] that applies to the request, with the entry of its key, and the values that it extracted from the request.
struct Evaluation<'a, R: ?Sized> {
    /// The index of the state in its rule set.
    state_index: u16,
    state: &'a Arc<RuleState<R>>,
    extracted: Extracted,
    found: StorageLookup<'a>,
}

/// The position of a state in the order of charging, which is the ascending order of these fields.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ChargeStep {
    shadow: bool,
    /// The permits that the charge would leave, if the capacity is still what [`peek_all`] read.
    left: u64,
    evaluation: EvaluationIndex,
}

/// A charge that was made.
struct ChargedStep {
    evaluation: EvaluationIndex,
    receipt: Receipt,
}

/// The evaluations by all states that apply to a request.
type Evaluations<'a, R> = SmallVec<[Evaluation<'a, R>; MAX_ON_STACK]>;
/// An index in [`Evaluations`].
type EvaluationIndex = u16;
/// The states that are to be charged, in the order of their charges.
type ChargeSteps = SmallVec<[ChargeStep; MAX_ON_STACK]>;
/// The states that were charged, in the order of their charges.
type ChargedSteps = SmallVec<[ChargedStep; MAX_ON_STACK]>;

/// The number of states that decide without an allocation.
const MAX_ON_STACK: usize = 16;

impl<R: ?Sized> RuleStates<R> {
    /// Decides a request by the states of all rules that apply to it. A single state is charged at once. Several are peeked at
    /// first, so that a denied request seldom charges one.
    #[inline]
    pub(crate) fn check<'a, E: Evidence<'a>>(
        &'a self,
        request: &'a R,
        now: impl FnOnce() -> Nanos + Copy,
        evidence: &mut E,
    ) -> Result<Admitted, Denied<'a, R>> {
        match self.decide_by_key(request, now) {
            Some(decided) => match decided.admitted_at() {
                Some(at) => Ok(Admitted::new(DecidedBy::Local, at)),
                None => self.conclude_by_key(decided, request, evidence),
            },
            None => self.check_by_more(request, now, None, evidence),
        }
    }

    /// Decides a request if more than its key is read, or if several states decide it. Keys whose hashes are known are not
    /// extracted again.
    #[inline(always)]
    pub(crate) fn check_by_more<'a, E: Evidence<'a>>(
        &'a self,
        request: &'a R,
        now: impl FnOnce() -> Nanos,
        mut hashes: Option<&mut KeyHashes>,
        evidence: &mut E,
    ) -> Result<Admitted, Denied<'a, R>> {
        if let [state] = &*self.states {
            let extracted = match hashes.as_deref_mut() {
                Some(hashes) => state.extractor.extract_with(request, &self.seeds, hashes),
                None => state.extractor.extract(request, &self.seeds),
            };
            let Some(extracted) = extracted else {
                return Ok(Admitted::new(DecidedBy::Rules, now()));
            };
            if extracted.enforced && extracted.handling == Handling::Charge {
                return self.check_one(state, &extracted, request, now, evidence);
            }
        } else if let [state, block] = &*self.states
            && let Some(filter) = &block.extractor.blocked
        {
            return self.check_one_with_block((state, block, filter), request, now, hashes, evidence);
        }
        self.check_all(request, now, hashes, evidence)
    }

    /// Decides a request by its only state, or by the first of two if the second is a block.
    #[inline(always)]
    pub(super) fn check_one<'a, E: Evidence<'a>>(
        &'a self,
        state: &RuleState<R>,
        extracted: &Extracted,
        request: &'a R,
        now: impl FnOnce() -> Nanos,
        evidence: &mut E,
    ) -> Result<Admitted, Denied<'a, R>> {
        let decision = state.decide(extracted, now);
        if decision.is_admitted_by_entry() {
            state.count(ShardId::current(), RuleEvent::Admitted(extracted.permits));
            return Ok(Admitted::new(DecidedBy::Local, decision.at));
        }
        self.conclude(state, extracted, decision, request, evidence)
    }

    /// Completes a decision that [`decide_by_key`](Self::decide_by_key) has begun about this request.
    pub(crate) fn conclude_by_key<'a, E: Evidence<'a>>(
        &'a self,
        KeyDecision { key, decision }: KeyDecision,
        request: &'a R,
        evidence: &mut E,
    ) -> Result<Admitted, Denied<'a, R>> {
        let extracted = Extracted::of_key(key);
        self.conclude(&self.states[0], &extracted, decision, request, evidence)
    }

    /// Completes the decision of the only state: a denial, or a decision by the overflow policy.
    #[cold]
    #[inline(never)]
    fn conclude<'a, E: Evidence<'a>>(
        &'a self,
        state: &RuleState<R>,
        extracted: &Extracted,
        mut decision: StateDecision,
        request: &'a R,
        evidence: &mut E,
    ) -> Result<Admitted, Denied<'a, R>> {
        // If the evidence finds enough capacity, permits were freed, so the request is decided again.
        while !decision.is_admitted()
            && !evidence.confirms_denial(self, iter::once((0, *extracted)), decision.at)
        {
            let at = decision.at;
            decision = state.decide(extracted, || at);
        }
        let shard = ShardId::current();
        if decision.is_overflow() {
            state.count(shard, RuleEvent::Overflowed);
        }
        if !decision.is_admitted() {
            let at = decision.at;
            let (has_denied, mut violations) = (true, SmallVec::new());
            match evidence.violations() {
                Some(seen) => violations = seen,
                None => self.add_violations(0, extracted, at, has_denied, |violation| {
                    violations.push(violation)
                }),
            }
            return Err(self.denied(shard, request, at, violations, evidence));
        }
        state.count(shard, RuleEvent::Admitted(extracted.permits));
        Ok(Admitted::new(DecidedBy::Local, decision.at))
    }

    /// Decides a request by several states, or by one that is in the shadow or has another handling than [`Handling::Charge`].
    #[inline(never)]
    pub(super) fn check_all<'a, E: Evidence<'a>>(
        &'a self,
        request: &'a R,
        now: impl FnOnce() -> Nanos,
        hashes: Option<&mut KeyHashes>,
        evidence: &mut E,
    ) -> Result<Admitted, Denied<'a, R>> {
        let mut evaluations = Evaluations::new();
        match hashes {
            Some(hashes) => self.add_evaluations(request, hashes, &mut evaluations),
            None => self.add_evaluations(request, &mut KeyHashes::new(), &mut evaluations),
        }
        // The clock is read while the memory is prefetched.
        let now = now();
        let holds_slots = false;
        let mut charged = ChargedSteps::new();
        self.charge_all(request, &evaluations, now, holds_slots, &mut charged, evidence)?;
        let decided_by = match charged.is_empty() {
            true => DecidedBy::Rules,
            false => DecidedBy::Local,
        };
        Ok(Admitted::new(decided_by, now))
    }

    /// Decides a request as [`check`](Self::check) does, and returns its charges, so that they can be refunded or settled.
    pub(crate) fn reserve<'a, E: Evidence<'a>>(
        &'a self,
        request: &'a R,
        now: impl FnOnce() -> Nanos,
        evidence: &mut E,
    ) -> Result<Reservation<R>, Denied<'a, R>> {
        let mut evaluations = Evaluations::new();
        self.add_evaluations(request, &mut KeyHashes::new(), &mut evaluations);
        let now = now();
        let holds_slots = true;
        let mut charged = ChargedSteps::new();
        self.charge_all(request, &evaluations, now, holds_slots, &mut charged, evidence)?;
        Ok(reservation(now, &evaluations, charged))
    }

    /// Returns the quotas of the enforced states in `applied` that have too little capacity left for the request. If there are
    /// any, counts the denials of states in the shadow. `applied` has the index of each state and what it extracts from the
    /// request.
    pub(crate) fn look(
        &self,
        applied: impl Iterator<Item = (u16, Extracted)>,
        now: Nanos,
    ) -> SmallVec<[Violation; 8]> {
        self.violations(&self.evaluations(applied), now, None)
    }

    /// Charges a request to all of the states in `applied` or to none. Does not count the admission, because the caller still has
    /// other charges to make, which may be denied. The error has the violated quotas.
    pub(crate) fn charge(
        &self,
        applied: impl Iterator<Item = (u16, Extracted)>,
        now: Nanos,
    ) -> Result<Reservation<R>, SmallVec<[Violation; 8]>> {
        let (evaluations, mut charged) = (self.evaluations(applied), ChargedSteps::new());
        let holds_slots = true;
        match Self::try_charge_all(&evaluations, now, holds_slots, &mut charged) {
            Ok(()) => Ok(reservation(now, &evaluations, charged)),
            Err(denied_by) => Err(self.violations(&evaluations, now, Some(denied_by))),
        }
    }

    fn evaluations(&self, applied: impl Iterator<Item = (u16, Extracted)>) -> Evaluations<'_, R> {
        let evaluations = applied.map(|(state_index, extracted)| {
            let state = &self.states[usize::from(state_index)];
            Evaluation {
                state_index,
                state,
                extracted,
                found: state.find(&extracted),
            }
        });
        evaluations.collect()
    }

    /// Adds the states that apply to the request, and prefetches their words.
    #[inline(always)]
    fn add_evaluations<'a>(
        &'a self,
        request: &R,
        hashes: &mut KeyHashes,
        evaluations: &mut Evaluations<'a, R>,
    ) {
        for (state_index, state) in (0..).zip(&self.states) {
            if let Some(extracted) = state.extractor.extract_with(request, &self.seeds, hashes) {
                evaluations.push(Evaluation {
                    state_index,
                    state,
                    extracted,
                    found: state.find(&extracted),
                });
            }
        }
    }

    /// Charges the states by [the protocol](crate::rules) at `now`, or none if an enforced one denies. Adds the charges to
    /// `charged`. With `holds_slots`, a state that limits requests in flight is charged a slot, which the caller releases later.
    /// Without it, such a state is only peeked at.
    #[inline(always)]
    fn charge_all<'a, E: Evidence<'a>>(
        &'a self,
        request: &'a R,
        evaluations: &[Evaluation<'a, R>],
        now: Nanos,
        holds_slots: bool,
        charged: &mut ChargedSteps,
        evidence: &mut E,
    ) -> Result<(), Denied<'a, R>> {
        let applied = evaluations
            .iter()
            .map(|evaluation| (evaluation.state_index, evaluation.extracted));
        loop {
            match Self::try_charge_all(evaluations, now, holds_slots, charged) {
                Ok(()) => break,
                Err(denied_by) if evidence.confirms_denial(self, applied.clone(), now) => {
                    return Err(self.deny(request, evaluations, now, denied_by, evidence));
                }
                // Permits were freed since the denial, so the request is decided again. Its charges were refunded.
                Err(_) => charged.clear(),
            }
        }
        let shard = ShardId::current();
        for step in charged {
            let Evaluation { state, extracted, .. } = &evaluations[usize::from(step.evaluation)];
            state.count(shard, RuleEvent::Admitted(extracted.permits));
        }
        Ok(())
    }

    /// Attempts once to charge the request to the states, without counting the admission. The error is the evaluation that
    /// denies; the charges in `charged` have then been refunded.
    #[inline(always)]
    fn try_charge_all(
        evaluations: &[Evaluation<'_, R>],
        now: Nanos,
        holds_slots: bool,
        charged: &mut ChargedSteps,
    ) -> Result<(), EvaluationIndex> {
        let mut steps = ChargeSteps::new();
        if let Some(denied_by) = peek_all(evaluations, now, &mut steps) {
            return Err(denied_by);
        }
        let shard = ShardId::current();
        for &ChargeStep { evaluation, .. } in &steps {
            let Evaluation {
                state,
                extracted,
                found,
                ..
            } = &evaluations[usize::from(evaluation)];
            let charge = match extracted.handling {
                Handling::Charge => state.charge(extracted, *found, now),
                Handling::Hold if holds_slots => state.charge(extracted, *found, now),
                Handling::Hold => {
                    let is_free = || state.capacity_left(extracted, *found, now).permits >= extracted.permits;
                    if !extracted.enforced && !is_free() {
                        state.count(shard, RuleEvent::ShadowDenied);
                    }
                    continue;
                }
                Handling::Block => continue,
                // Only for a state in the shadow: for an enforced one, `peek_all` denies the request. `false`: no overflow.
                Handling::Deny => Err(false),
            };
            match charge {
                Ok(Charged { receipt, overflow }) => {
                    charged.push(ChargedStep { evaluation, receipt });
                    if overflow {
                        state.count(shard, RuleEvent::Overflowed);
                    }
                }
                Err(overflow) => {
                    if overflow {
                        state.count(shard, RuleEvent::Overflowed);
                    }
                    if extracted.enforced {
                        // Claim: rules 1, one denied charge ends the request.
                        refund(shard, evaluations, charged);
                        return Err(evaluation);
                    }
                    state.count(shard, RuleEvent::ShadowDenied);
                }
            }
        }
        Ok(())
    }

    /// Denies a request. `denied_by` is the evaluation whose state has denied it.
    #[cold]
    #[inline(never)]
    fn deny<'a, E: Evidence<'a>>(
        &'a self,
        request: &'a R,
        evaluations: &[Evaluation<'a, R>],
        now: Nanos,
        denied_by: EvaluationIndex,
        evidence: &mut E,
    ) -> Denied<'a, R> {
        let violations = self.violations(evaluations, now, Some(denied_by));
        let violations = evidence.violations().unwrap_or(violations);
        self.denied(ShardId::current(), request, now, violations, evidence)
    }

    /// Collects the violated quotas of the enforced states. `denied_by` is the evaluation whose state has denied the request. If
    /// there is a violation, this also counts a shadow denial for each state in the shadow that would have denied the request.
    fn violations(
        &self,
        evaluations: &[Evaluation<'_, R>],
        now: Nanos,
        denied_by: Option<EvaluationIndex>,
    ) -> SmallVec<[Violation; 8]> {
        let (mut violations, mut in_shadow) = (SmallVec::new(), SmallVec::<[&Arc<RuleState<R>>; 4]>::new());
        for (at, evaluation) in (0..).zip(evaluations) {
            let Evaluation {
                state_index,
                state,
                extracted,
                ..
            } = evaluation;
            let before = violations.len();
            let has_denied = denied_by == Some(at);
            self.add_violations(*state_index, extracted, now, has_denied, |violation| {
                violations.push(violation);
            });
            if !extracted.enforced && violations.len() > before {
                violations.truncate(before);
                in_shadow.push(state);
            }
        }
        if !violations.is_empty() {
            for state in in_shadow {
                state.count(ShardId::current(), RuleEvent::ShadowDenied);
            }
        }
        violations
    }

    /// Counts one denial for each rule that has one of these quotas.
    #[inline]
    pub(crate) fn count_denied<Q>(&self, shard: ShardId, quotas: &[Q], rule_of: impl Fn(&Q) -> u16) {
        for (at, quota) in quotas.iter().enumerate() {
            let rule = rule_of(quota);
            if !quotas[..at].iter().any(|before| rule_of(before) == rule) {
                self.rules[usize::from(rule)].counts.add(shard, RuleEvent::Denied);
            }
        }
    }

    /// Calls `add` with each violated quota of a state, and with at least one if the state `has_denied` the request.
    pub(super) fn add_violations(
        &self,
        state_index: u16,
        extracted: &Extracted,
        now: Nanos,
        has_denied: bool,
        mut add: impl FnMut(Violation),
    ) {
        let state = &self.states[usize::from(state_index)];
        let mut add_quota = |quota| {
            add(Violation {
                state: state_index,
                quota,
            });
        };
        if has_denied && state.quotas.len() == 1 {
            return add_quota(0);
        }
        let peek = state.peek(extracted, now);
        let peek = peek.get();
        let mut any_violated = false;
        let (mut least_left, mut quota_with_least) = (u64::MAX, 0);
        for (quota, _) in (0_u16..).zip(&state.quotas) {
            let left = peek.remaining_in(usize::from(quota));
            if left < least_left {
                (least_left, quota_with_least) = (left, quota);
            }
            if extracted.is_denied() || left < extracted.permits {
                any_violated = true;
                add_quota(quota);
            }
        }
        if has_denied && !any_violated {
            // Another thread has refunded permits since the denial, so the quota with the least capacity is reported as violated.
            add_quota(quota_with_least);
        }
    }

    pub(super) fn rule_of(&self, violation: &Violation) -> u16 {
        let state = &self.states[usize::from(violation.state)];
        state.quotas[usize::from(violation.quota)].rule
    }
}

/// *Peek*: reads the capacity of all states, and sorts them into the order in which they are charged. Stops at the first
/// enforced state with too little capacity left, and returns its evaluation. Counts a denial by the overflow policy of that state.
#[inline(always)]
fn peek_all<R: ?Sized>(
    evaluations: &[Evaluation<'_, R>],
    now: Nanos,
    steps: &mut ChargeSteps,
) -> Option<EvaluationIndex> {
    for (at, evaluation) in (0..).zip(evaluations) {
        let Extracted {
            permits, enforced, ..
        } = evaluation.extracted;
        let always_denied = evaluation.extracted.is_denied();
        let left = evaluation
            .state
            .capacity_left(&evaluation.extracted, evaluation.found, now);
        if enforced && (always_denied || left.permits < permits) {
            // `Handling::Deny` needs no entry of the table, so its denial is no overflow.
            if left.overflow && !always_denied {
                evaluation.state.count(ShardId::current(), RuleEvent::Overflowed);
            }
            return Some(at);
        }
        // The least capacity comes first, because another request is most likely to take it. States in the shadow come last.
        let step = ChargeStep {
            shadow: !enforced,
            left: left.permits.saturating_sub(permits),
            evaluation: at,
        };
        steps.push(step);
        // The steps before it are sorted. It swaps places with each that is greater.
        let mut up_to_step = &mut steps[..];
        while let [rest @ .., before, step] = up_to_step
            && step < before
        {
            core::mem::swap(before, step);
            let len = rest.len() + 1;
            up_to_step = &mut up_to_step[..len];
        }
    }
    None
}

/// *Refund*: refunds the charges of a request that a later state has denied.
#[cold]
#[inline(never)]
fn refund<R: ?Sized>(shard: ShardId, evaluations: &[Evaluation<'_, R>], charged: &[ChargedStep]) {
    for ChargedStep { evaluation, receipt } in charged.iter().rev() {
        let Evaluation { state, extracted, .. } = &evaluations[usize::from(*evaluation)];
        state.undo(shard, extracted, receipt);
    }
}

/// The charges of a request, and its slots in flight.
fn reservation<R: ?Sized>(
    now: Nanos,
    evaluations: &[Evaluation<'_, R>],
    charged: ChargedSteps,
) -> Reservation<R> {
    let (mut charges, mut slots) = (SmallVec::new(), HeldSlots::new());
    for ChargedStep { evaluation, receipt } in charged {
        let Evaluation { state, extracted, .. } = &evaluations[usize::from(evaluation)];
        let charge = StateCharge {
            state: Arc::clone(state),
            extracted: *extracted,
            receipt,
        };
        match extracted.handling {
            Handling::Hold => slots.push(charge),
            Handling::Charge | Handling::Block | Handling::Deny => charges.push(charge),
        }
    }
    Reservation::new(now, charges, slots)
}
