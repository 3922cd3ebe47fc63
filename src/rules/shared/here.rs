//! The limiters of this node: of rules that are its own, and those that stand in for the store.

use alloc::vec::Vec;
use core::cell::LazyCell;
use core::time::Duration;

use super::{Case, Plan, SharedPlan};
use crate::clock::Clock;
use crate::receipt::Receipt;
use crate::rules::evaluate::extractor::Extracted;
use crate::rules::rule::mode::Mode;
use crate::rules::rule::on_error::OnError;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId};

/// A quota of this node's own that has no room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full {
    /// Its place among the [parts](SharedPlan::parts).
    pub(crate) part: usize,
    pub(crate) remaining: u64,
    pub(crate) retry_after: Option<Duration>,
}

/// What was taken of a limiter of this node.
#[derive(Debug)]
pub(crate) struct PaidHere {
    case: usize,
    group: u16,
    subject: Extracted,
    receipt: Receipt,
}

/// Whether a part was taken, of a request that was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Not,
    ByAccount,
    ByStore,
}

impl<R: ?Sized> SharedPlan<R> {
    /// Which quotas of these cases have no room in this node's own limiters.
    pub(crate) fn look_here(&self, plan: &Plan, which: impl Fn(usize) -> bool) -> Vec<Full> {
        let (now, mut full) = (self.clock.now(), Vec::new());
        for (at, case) in plan.cases.iter().enumerate() {
            if !which(at) || !self.is_counted(case) {
                continue;
            }
            let (group, subject) = (self.group(case), &case.subject);
            let room = group.capacity_left(subject, group.find(subject), now).permits;
            if subject.enforced && (subject.denied || room < subject.permits) {
                self.say_full(plan, case, &mut full);
            }
        }
        full
    }

    /// Takes what these cases cost of this node's own limiters, all or nothing; of rules that need none, nothing.
    pub(crate) fn take_here(
        &self,
        plan: &Plan,
        which: impl Fn(usize) -> bool,
    ) -> Result<Vec<PaidHere>, Vec<Full>> {
        // At all, before anything is taken.
        let mut full = self.look_here(plan, &which);
        if !full.is_empty() {
            return Err(full);
        }
        let now = self.clock.now();
        let cases = plan.cases.iter().enumerate();
        let cases = cases.filter(|&(at, case)| which(at) && self.is_counted(case));
        let me = ShardId::current();
        let mut paid = Vec::new();
        for (at, case) in cases {
            let (group, subject) = (self.group(case), &case.subject);
            let taken = match subject.denied {
                true => Err(false),
                false => group.charge(subject, group.find(subject), now),
            };
            match taken {
                Ok(taken) => paid.push(PaidHere {
                    case: at,
                    group: case.group,
                    subject: *subject,
                    receipt: taken.receipt,
                }),
                Err(_) if !subject.enforced => group.count(me, RuleEvent::ShadowDenied),
                Err(_) => {
                    self.give_back_here(paid);
                    self.say_full(plan, case, &mut full);
                    return Err(full);
                }
            }
        }
        Ok(paid)
    }

    /// Gives back what was taken, and says how many permits could not be.
    pub(crate) fn give_back_here(&self, paid: Vec<PaidHere>) -> u64 {
        let lost = paid.into_iter().filter_map(|paid| {
            let group = &self.here.states[usize::from(paid.group)];
            let permits = paid.subject.permits;
            let given = group.refund(&paid.subject, &paid.receipt, permits);
            (!given).then_some(permits)
        });
        lost.sum()
    }

    /// Counts these cases of a request that was admitted: what was paid for, and what nobody had to pay for.
    pub(crate) fn count_here(&self, plan: &Plan, paid: &[PaidHere], which: impl Fn(usize) -> bool) {
        let me = ShardId::current();
        for (at, case) in plan.cases.iter().enumerate() {
            let is_paid = || paid.iter().any(|paid| paid.case == at);
            if which(at) && (!self.is_counted(case) || is_paid()) {
                self.group(case)
                    .count(me, RuleEvent::Admitted(case.subject.permits));
            }
        }
    }

    /// Counts a case of a request that was admitted.
    #[inline]
    pub(crate) fn count_admitted(&self, case: &Case) {
        self.group(case)
            .count(ShardId::current(), RuleEvent::Admitted(case.subject.permits));
    }

    /// Whether a limiter of this node is charged at all.
    fn is_counted(&self, case: &Case) -> bool {
        self.modes[usize::from(case.group)] == Mode::Local || self.on_error(case) != OnError::Admit
    }

    /// Counts what the store has admitted, and charges this node's own limiters with it, whether they have room or
    /// not. `which`: of which cases; `taken`: which of the parts.
    pub(crate) fn charge_here(
        &self,
        plan: &Plan,
        which: impl Fn(usize) -> bool,
        taken: impl Fn(usize) -> Taken,
    ) {
        let (now, me) = (LazyCell::new(|| self.clock.now()), ShardId::current());
        let mut part = 0;
        for (at, case) in plan.cases.iter().enumerate() {
            let (group, subject) = (self.group(case), &case.subject);
            let taken = taken(part);
            if !which(at) {
                // Counted elsewhere.
            } else if taken != Taken::Not || subject.permits == 0 {
                group.count(me, RuleEvent::Admitted(subject.permits));
                // What an account has admitted is charged when it is charged to the store.
                if taken != Taken::ByAccount && self.on_error(case) != OnError::Admit {
                    group.charge_debt(subject.key, Some(subject.tier), *now, subject.permits);
                }
            } else {
                // It was admitted all the same.
                group.count(me, RuleEvent::ShadowDenied);
            }
            part += group.quotas.len();
        }
    }

    /// The rules of one state agree in it.
    fn on_error(&self, case: &Case) -> OnError {
        let first = usize::from(self.group(case).quotas[0].rule);
        self.rules[first].rule.on_error
    }

    /// Names the quotas of a case that have no room, one at least.
    fn say_full(&self, plan: &Plan, case: &Case, full: &mut Vec<Full>) {
        let (group, subject) = (self.group(case), &case.subject);
        let before = plan
            .cases
            .iter()
            .take_while(|other| other.group != case.group)
            .map(|other| self.group(other).quotas.len());
        let first: usize = before.sum();
        let peek = group.peek(subject, self.clock.now());
        let retry_after = if subject.denied {
            None
        } else {
            peek.retry_after(subject.permits)
        };
        let quotas = (0..group.quotas.len()).map(|member| Full {
            part: first + member,
            remaining: if subject.denied { 0 } else { peek.room_of(member) },
            retry_after,
        });
        let some = quotas
            .clone()
            .any(|quota| subject.denied || quota.remaining < subject.permits);
        full.extend(quotas.filter(|quota| !some || subject.denied || quota.remaining < subject.permits));
    }

    /// Counts a request that these rules have refused.
    pub(crate) fn count_denied(&self, rules: &[u16]) {
        let me = ShardId::current();
        for (at, &rule) in rules.iter().enumerate() {
            if !rules[..at].contains(&rule) {
                self.here.rules[usize::from(rule)]
                    .counts
                    .add(me, RuleEvent::Denied);
            }
        }
    }

    /// Counts a request that these rules would have refused, had they not been in the shadow.
    pub(crate) fn count_shadow_denied(&self, plan: &Plan, full: impl Fn(usize) -> bool) {
        let me = ShardId::current();
        let mut part = 0;
        for case in &plan.cases {
            let group = self.group(case);
            if !case.subject.enforced && (part..part + group.quotas.len()).any(&full) {
                group.count(me, RuleEvent::ShadowDenied);
            }
            part += group.quotas.len();
        }
    }
}
