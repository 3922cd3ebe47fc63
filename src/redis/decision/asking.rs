//! What a node decides with the help of the store: accounts that have to be heard of first, and parts that are the
//! store's.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use tokio::time::timeout;

use super::{Held, Violation, shut};
use crate::account::Said;
use crate::redis::answer::{DecidedBy, Look, More, Reason, SharedPassed, SharedRefused};
use crate::redis::desk::{Ticket, nanos};
use crate::redis::looks::{complete, look, look_here, part, unknown};
use crate::redis::shared_rules::{NodeBooks, SharedRules};
use crate::redis::store::{Found, Part, Verdict};
use crate::redis::store_error::{StoreError, StoreErrorKind};
use crate::rules::{Mode, OnError, Plan, Planned, Step, Taken, Way};

/// What became of a part that an account is to decide.
enum Outcome {
    Held,
    Full(Look),
    /// The store decides, and leaves so much of the limit alone.
    Ask {
        reserve: u64,
    },
    Failed(StoreError),
}

/// What the account of a part says that the store has refused.
enum OwnHold {
    HasRoom,
    WasInTheWay,
    IsNotInTheWay,
}

/// A request on its way to a decision.
struct Case<'a> {
    plan: &'a Plan,
    planned: Vec<Planned<'a>>,
    steps: Vec<Step>,
}

impl Case<'_> {
    fn way_of(&self, case: usize) -> Way {
        self.steps[case].way
    }

    /// The step that a part belongs to.
    fn step_of(&self, part: usize) -> &Step {
        let of = |step: &&Step| (step.first..step.first + step.parts).contains(&part);
        // There is one for each part.
        self.steps.iter().find(of).unwrap_or(&self.steps[0])
    }
}

/// How often somebody waits for an account of a budget, before the store decides about it like about any other.
const ROUNDS: u32 = 8;

/// The longest that an account may not be heard of while somebody waits: calls end long before.
const PATIENCE: Duration = Duration::from_secs(1);

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

    /// Looks at the account of a part that the store has refused: what was in the way may be what this very node holds, or
    /// is about to be granted, or to give back. Nobody is refused for that.
    async fn own_hold(&self, case: &Case<'_>, part: usize, held: &mut Held<'_, R>) -> OwnHold {
        let step = case.step_of(part);
        let (Some(node), Mode::Lease { .. }, Way::Accounts) =
            (&self.books, case.planned[part].mode, step.way)
        else {
            return OwnHold::IsNotInTheWay;
        };
        let (books, key) = (&node.books, step.account(part - step.first));
        let Some(at) = books.find(key) else {
            return OwnHold::IsNotInTheWay;
        };
        // Before the look: whoever is heard of after it tells us.
        let heard = books.heard_of(at).notified();
        match held.spend(books, part, key, step.permits).1 {
            Said::Room { .. } => return OwnHold::HasRoom,
            Said::Shut { .. } | Said::NotYours => return OwnHold::IsNotInTheWay,
            Said::Short => {}
        }
        if !books.lock().desks[at].is_asking() {
            return OwnHold::IsNotInTheWay;
        }
        let _ = timeout(Duration::from_nanos(node.period), heard).await;
        match held.spend(books, part, key, step.permits).1 {
            Said::Room { .. } => OwnHold::HasRoom,
            Said::Shut { .. } | Said::NotYours => OwnHold::IsNotInTheWay,
            Said::Short => OwnHold::WasInTheWay,
        }
    }

    /// Takes a part of its account, and waits for that if it is of a budget.
    async fn by_account(
        &self,
        planned: &Planned<'_>,
        step: &Step,
        quota: usize,
        held: &mut Held<'_, R>,
    ) -> Outcome {
        let Some(node) = &self.books else {
            return Outcome::Ask { reserve: 0 };
        };
        let (books, part, key) = (&node.books, step.first + quota, step.account(quota));
        let permits = step.permits;
        let full = |left, more| Outcome::Full(shut(planned, left, more, books.clock.now()));
        let (mut at, said) = held.spend(books, part, key, permits);
        match said {
            Said::Room { .. } => return Outcome::Held,
            Said::Shut { left, more } => return full(left, more),
            Said::Short => {}
            Said::NotYours => match books.find_or_make(key, || ticket(planned, node)) {
                Some(made) => {
                    at = made;
                    books.miss(at, permits);
                }
                None => return Outcome::Ask { reserve: 0 },
            },
        }
        let Mode::Sync { pending, .. } = planned.mode else {
            return self.by_hold(planned, (at, part, key), permits, held).await;
        };
        let reserve = pending.min(planned.limit);
        if permits > reserve {
            // No budget is ever so large. What this node may have of one is left alone.
            return Outcome::Ask { reserve };
        }
        let failures = books.lock().desks[at].failures();
        for _ in 0..ROUNDS {
            // Before the look: whoever is heard of after it tells us.
            let heard = books.heard_of(at).notified();
            match held.spend(books, part, key, permits).1 {
                Said::Room { .. } => return Outcome::Held,
                Said::Shut { left, more } => return full(left, more),
                Said::NotYours => return Outcome::Ask { reserve },
                Said::Short => books.miss(at, permits),
            }
            books.nudge(at, true);
            if timeout(PATIENCE, heard).await.is_err() {
                let detail = "an account was not heard of";
                return Outcome::Failed(StoreError::new(StoreErrorKind::TimedOut, detail));
            }
            let inside = books.lock();
            if inside.desks[at].failures() != failures
                && let Some(error) = &inside.error
            {
                return Outcome::Failed(error.clone());
            }
        }
        Outcome::Ask { reserve }
    }

    /// Waits for the question about an account that many ask for, once and for no longer than a period: one call for all of
    /// them, instead of one for each.
    async fn by_hold(
        &self,
        planned: &Planned<'_>,
        (at, part, key): (usize, usize, u64),
        permits: u64,
        held: &mut Held<'_, R>,
    ) -> Outcome {
        let Some(node) = &self.books else {
            return Outcome::Ask { reserve: 0 };
        };
        let books = &node.books;
        let is_hot = books.lock().desks[at].is_hot(&books.accounts[at]);
        if !is_hot || books.accounts[at].is_shut(books.clock.now()) {
            return Outcome::Ask { reserve: 0 };
        }
        // Before the look: whoever is heard of after it tells us.
        let heard = books.heard_of(at).notified();
        match held.spend(books, part, key, permits).1 {
            Said::Room { .. } => return Outcome::Held,
            Said::Shut { left, more } => return Outcome::Full(shut(planned, left, more, books.clock.now())),
            Said::NotYours => return Outcome::Ask { reserve: 0 },
            Said::Short => {}
        }
        books.miss(at, permits);
        books.nudge(at, true);
        let _ = timeout(Duration::from_nanos(node.period), heard).await;
        match held.spend(books, part, key, permits).1 {
            Said::Room { .. } => Outcome::Held,
            Said::Shut { left, more } => Outcome::Full(shut(planned, left, more, books.clock.now())),
            Said::Short | Said::NotYours => Outcome::Ask { reserve: 0 },
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

/// What an account is made for.
fn ticket(planned: &Planned<'_>, node: &NodeBooks) -> Ticket {
    let (is_hold, most, period) = match planned.mode {
        Mode::Sync { period, pending } => (false, pending, nanos(period)),
        Mode::Lease { permits } => (true, permits, node.period),
        // Which need none.
        Mode::Local | Mode::Strict => (true, 0, node.period),
    };
    // A budget must outlast some pushes.
    let term = if is_hold {
        node.term
    } else {
        node.term.max(4 * period)
    };
    Ticket {
        part: part(planned),
        is_hold,
        most: most.min(planned.limit),
        period,
        term,
        margin: node.books.clock.margin(term),
        // Of several quotas that are judged by one state, one charges it.
        stand_in: (planned.place == 0).then_some((planned.group, planned.key, planned.tier)),
    }
}
