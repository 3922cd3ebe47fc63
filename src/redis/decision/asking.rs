//! What a node decides with the help of the store: accounts that have to be heard of first, and parts that are the
//! store's.

use super::hearing::{Outcome, OwnHold};
use super::{Held, Violation};
use crate::redis::answer::{DecidedBy, More, Reason, SharedPassed, SharedRefused};
use crate::redis::looks::{complete, look, look_here, part, unknown};
use crate::redis::shared_rules::SharedRules;
use crate::redis::store::{Found, Part, Verdict};
use crate::redis::store_error::StoreError;
use crate::rules::{Mode, OnError, Plan, Planned, Step, Taken, Way};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A request on its way to a decision.
pub(super) struct Case<'a> {
    plan: &'a Plan,
    pub(super) planned: Vec<Planned<'a>>,
    steps: Vec<Step>,
}

impl Case<'_> {
    fn way_of(&self, case: usize) -> Way {
        self.steps[case].way
    }

    /// The step that a part belongs to.
    pub(super) fn step_of(&self, part: usize) -> &Step {
        let of = |step: &&Step| (step.first..step.first + step.parts).contains(&part);
        // There is one for each part.
        self.steps.iter().find(of).unwrap_or(&self.steps[0])
    }
}

impl<R: ?Sized> SharedRules<R> {
    pub(in crate::redis) async fn decide(&self, plan: Plan) -> Result<SharedPassed, SharedRefused> {
        let case = Case {
            plan: &plan,
            planned: self.plan.parts(&plan).collect(),
            steps: self.plan.steps(&plan).collect(),
        };
        if case.steps.iter().any(|step| step.way == Way::List) {
            return Err(self.refuse_listed(&plan));
        }
        if let Ok(full) = self.look_on_node(&plan, &case.steps, false)
            && !full.is_empty()
        {
            return Err(self.refuse(&plan, full));
        }
        let mut held = Held::new(self);
        if let Err(full) = self.take_own(&plan, &case.steps, &mut held) {
            return Err(self.refuse(&plan, full));
        }
        let (mut asked, mut error): (Vec<usize>, Option<StoreError>) = (Vec::new(), None);
        let mut parts: Vec<Part> = Vec::new();
        for step in &case.steps {
            for quota in 0..step.parts {
                let at = step.first + quota;
                let outcome = match step.way {
                    Way::Store => Outcome::Ask { reserve: 0 },
                    Way::Accounts => self.by_account(&case.planned[at], step, quota, &mut held).await,
                    Way::Nobody | Way::List | Way::Here => continue,
                };
                let reserve = match outcome {
                    Outcome::Held => continue,
                    Outcome::Full(look) => return Err(self.refuse(&plan, alloc::vec![(at, look)])),
                    Outcome::Ask { reserve } => reserve,
                    Outcome::Failed(failed) => {
                        error = Some(failed);
                        0
                    }
                };
                asked.push(at);
                parts.push(Part {
                    reserve,
                    ..part(&case.planned[at])
                });
            }
        }
        if parts.is_empty() {
            self.count(&plan, &case.steps, &held);
            let (spent, paid) = held.keep();
            return Ok(super::passed(spent, paid));
        }
        if let Some(books) = &self.books
            && case.steps.iter().any(|step| step.way == Way::Accounts)
        {
            books.books.counts().asked.add_one();
        }
        if let Some(error) = error {
            return self.decide_here(&case, &asked, parts, held, error);
        }
        let mut asks_again = true;
        loop {
            let verdict = match self.store.take(&parts).await {
                Ok(verdict) => complete(&verdict, &parts).map(|()| verdict),
                Err(error) => Err(error),
            };
            let verdict = match verdict {
                Err(error) => return self.decide_here(&case, &asked, parts, held, error),
                Ok(verdict) if verdict.is_admitted() => {
                    return Ok(self.admit(&case, &asked, parts, held, verdict));
                }
                Ok(verdict) => verdict,
            };
            let own = match asked[..] {
                [part] if asks_again => self.own_hold(&case, part, &mut held).await,
                _ => OwnHold::IsNotInTheWay,
            };
            match own {
                OwnHold::HasRoom => {
                    self.count(&plan, &case.steps, &held);
                    let (spent, paid) = held.keep();
                    return Ok(super::passed(spent, paid));
                }
                OwnHold::WasInTheWay => asks_again = false,
                OwnHold::IsNotInTheWay => return Err(self.refuse_by_store(&case, &asked, &verdict)),
            }
        }
    }

    /// Counts a request that was admitted, what accounts and this node's own limiters have taken of it.
    pub(super) fn count(&self, plan: &Plan, steps: &[Step], held: &Held<'_, R>) {
        let own = |case: usize| steps[case].way == Way::Here;
        let taken = |part| match held.has(part) {
            true => Taken::ByAccount,
            false => Taken::Not,
        };
        self.plan.charge_here(plan, |case| !own(case), taken);
        self.plan.count_here(plan, &held.paid, own);
    }

    /// Admits what the store has taken.
    fn admit(
        &self,
        case: &Case<'_>,
        asked: &[usize],
        parts: Vec<Part>,
        held: Held<'_, R>,
        verdict: Verdict,
    ) -> SharedPassed {
        let own = |at: usize| case.way_of(at) == Way::Here;
        let taken = |part| {
            let found = asked.iter().position(|&at| at == part);
            match found.map(|at| verdict.found()[at].is_taken()) {
                Some(true) => Taken::ByStore,
                None if held.has(part) => Taken::ByAccount,
                _ => Taken::Not,
            }
        };
        self.plan.charge_here(case.plan, |at| !own(at), taken);
        self.plan.count_here(case.plan, &held.paid, own);
        let found = asked.iter().map(|&at| &case.planned[at]).zip(verdict.found());
        let looks = found.map(look).collect();
        let (spent, paid) = held.keep();
        SharedPassed {
            decided_by: DecidedBy::Store,
            spent,
            more: Some(Box::new(More {
                looks,
                error: None,
                parts,
                verdict: Some(verdict),
                paid,
            })),
        }
    }

    /// Refuses what the store has no room for. What was taken on this node is given back by whoever held it.
    fn refuse_by_store(&self, case: &Case<'_>, asked: &[usize], verdict: &Verdict) -> SharedRefused {
        let found_of = |part| {
            let at = asked.iter().position(|&at| at == part);
            at.map(|at| verdict.found()[at])
        };
        let full = |part: usize| found_of(part).map_or(case.planned[part].refused, |found| !found.has_room());
        self.plan.count_shadow_denied(case.plan, full);
        let found = asked.iter().copied().zip(verdict.found());
        let full: Vec<(usize, &Found)> = found
            .filter(|&(at, found)| case.planned[at].enforced && !found.has_room())
            .collect();
        for &(part, found) in &full {
            self.shut_account(case, part, found);
        }
        let rules: Vec<u16> = full.iter().map(|&(at, _)| case.planned[at].rule).collect();
        self.plan.count_denied(&rules);
        let violations = full
            .into_iter()
            .map(|(at, found)| look((&case.planned[at], found)));
        SharedRefused {
            decided_by: DecidedBy::Store,
            reason: Reason::Spent,
            violations: violations.collect(),
            at: Some(verdict.at()),
            error: None,
        }
    }

    /// Has a part's account refuse by itself for a while, since the store has no room. (Not that of a budget, which hears
    /// so when it is pushed: what was left alone for it may have been all that was in the way.)
    fn shut_account(&self, case: &Case<'_>, part: usize, found: &Found) {
        let step = case.step_of(part);
        if let (Some(node), Mode::Lease { .. }) = (&self.books, case.planned[part].mode)
            && step.way == Way::Accounts
            && let Some(after) = found.retry_after()
        {
            let key = step.account(part - step.first);
            node.books.shut(key, found.remaining(), after);
        }
    }

    /// Decides without the store what the store was to decide.
    fn decide_here(
        &self,
        case: &Case<'_>,
        asked: &[usize],
        parts: Vec<Part>,
        mut held: Held<'_, R>,
        error: StoreError,
    ) -> Result<SharedPassed, SharedRefused> {
        let needs = |at: usize| {
            let step = &case.steps[at];
            asked
                .iter()
                .any(|part| (step.first..step.first + step.parts).contains(part))
        };
        let part_needs = |part: usize| needs(case.step_of(part).case);
        self.plan.count_by_node(case.plan, needs);
        let refuse = |reason, full: Vec<Violation>| {
            let rules: Vec<u16> = full.iter().map(|&(at, _)| case.planned[at].rule).collect();
            self.plan.count_denied(&rules);
            SharedRefused {
                decided_by: DecidedBy::Node,
                reason,
                violations: full.into_iter().map(|(_, look)| look).collect(),
                at: None,
                error: Some(error.clone()),
            }
        };
        let denying = |(part, planned): &(usize, &Planned<'_>)| {
            let denies = planned.permits > 0 && planned.on_error == OnError::Deny;
            planned.enforced && denies && part_needs(*part)
        };
        let denying = case.planned.iter().enumerate().filter(denying);
        let denying: Vec<Violation> = denying.map(|(part, planned)| (part, unknown(planned))).collect();
        if !denying.is_empty() {
            return Err(refuse(Reason::Unavailable, denying));
        }
        // A state that stands in for several quotas decides about all of them.
        held.give_back(part_needs);
        if let Some(node) = &self.books {
            for step in case
                .steps
                .iter()
                .filter(|step| step.way == Way::Accounts && needs(step.case))
            {
                for quota in 0..step.parts {
                    node.books.warm_key(step.account(quota));
                }
            }
        }
        match self.plan.take_here(case.plan, needs) {
            Ok(paid) => {
                self.plan.count_here(case.plan, &paid, needs);
                let own = |at: usize| case.way_of(at) == Way::Here;
                let taken = |part| match held.has(part) {
                    true => Taken::ByAccount,
                    false => Taken::Not,
                };
                self.plan
                    .charge_here(case.plan, |at| !needs(at) && !own(at), taken);
                self.plan.count_here(case.plan, &held.paid, own);
                let (spent, paid) = held.keep();
                Ok(SharedPassed {
                    decided_by: DecidedBy::Node,
                    spent,
                    more: Some(Box::new(More {
                        looks: Vec::new(),
                        error: Some(error),
                        parts,
                        verdict: None,
                        paid,
                    })),
                })
            }
            Err(full) => {
                let full = full.iter();
                let full = full.map(|full| (full.part, look_here(&case.planned[full.part], full)));
                Err(refuse(Reason::Spent, full.collect()))
            }
        }
    }
}
