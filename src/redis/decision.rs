//! What a node decides by itself: by accounts, and by rules that are its own.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use smallvec::SmallVec;

use super::answer::{DecidedBy, Look, More, Reason, SharedPassed, SharedRefused};
use super::books::Books;
use super::looks::{look_here, unknown};
use super::shared_rules::SharedRules;
use crate::account::Said;
use crate::rules::{Case, Outline, PaidHere, Plan, Planned, Step, Way};

mod asking;
mod hearing;

/// What was taken of an account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    /// Which of the request's parts.
    pub(super) part: u32,
    /// Where the account is, and in which epoch of it.
    at: u32,
    epoch: u32,
    permits: u64,
}

/// What was taken on this node for a request: given back, unless it is kept. Also when the future is dropped.
struct Held<'a, R: ?Sized> {
    rules: &'a SharedRules<R>,
    spent: SmallVec<[Spent; 2]>,
    paid: Vec<PaidHere>,
}

impl<'a, R: ?Sized> Held<'a, R> {
    fn new(rules: &'a SharedRules<R>) -> Self {
        Self {
            rules,
            spent: SmallVec::new(),
            paid: Vec::new(),
        }
    }

    fn has(&self, part: usize) -> bool {
        self.spent.iter().any(|spent| spent.part as usize == part)
    }

    /// Takes a part of an account, or says what that says.
    fn spend(&mut self, books: &Books, part: usize, key: u64, permits: u64) -> (usize, Said) {
        let (at, said) = books.spend(key, permits);
        if let Said::Room { epoch, .. } = said {
            self.spent.push(spent(part, at, epoch, permits));
        }
        (at, said)
    }

    /// Gives back what was taken of these parts.
    fn give_back(&mut self, which: impl Fn(usize) -> bool) {
        let rules = self.rules;
        self.spent.retain(|spent| {
            let back = which(spent.part as usize);
            if back {
                rules.give_back(core::slice::from_ref(spent));
            }
            !back
        });
    }

    fn keep(mut self) -> (SmallVec<[Spent; 2]>, Vec<PaidHere>) {
        (core::mem::take(&mut self.spent), core::mem::take(&mut self.paid))
    }
}

impl<R: ?Sized> Drop for Held<'_, R> {
    fn drop(&mut self) {
        self.rules.give_back(&self.spent);
        self.rules.plan.give_back_here(core::mem::take(&mut self.paid));
    }
}

fn spent(part: usize, at: usize, epoch: u32, permits: u64) -> Spent {
    // Rules have fewer parts, and a node fewer accounts, than 2^32.
    Spent {
        part: part as u32,
        at: at as u32,
        epoch,
        permits,
    }
}

/// A part that has no room, with what is known of it.
type Violation = (usize, Look);

impl<R: ?Sized> SharedRules<R> {
    /// Decides, if that needs nobody else.
    #[inline(always)]
    pub(super) fn decide_now(&self, outline: &Outline) -> Option<Result<SharedPassed, SharedRefused>> {
        match outline {
            Outline::One(case, step) => self.decide_one(case, step),
            Outline::Any(plan) => self.decide_any(plan),
        }
    }

    /// Decides by one account. All of it is inlined, down to the account, so that what that says stays in registers.
    #[inline(always)]
    fn decide_one(&self, case: &Case, step: &Step) -> Option<Result<SharedPassed, SharedRefused>> {
        let books = &*self.books.as_ref()?.books;
        let (at, said) = books.spend(step.account(0), step.permits);
        match said {
            Said::Room { epoch, .. } => {
                self.plan.count_admitted(case);
                let mut all = SmallVec::new();
                all.push(spent(step.first, at, epoch, step.permits));
                Some(Ok(passed(all, Vec::new())))
            }
            Said::Shut { left, more } => Some(Err(self.refuse_one(books, case, left, more))),
            Said::Short => {
                books.miss(at, step.permits);
                None
            }
            Said::NotYours => None,
        }
    }

    /// Refuses what one account has no room for, nor the store.
    #[cold]
    fn refuse_one(&self, books: &Books, case: &Case, left: u64, more: u64) -> SharedRefused {
        books.counts().refused.add_one();
        let (plan, now) = ([*case].into_iter().collect(), books.clock.now());
        let parts = self.plan.parts(&plan).enumerate();
        let full = parts.map(|(part, planned)| (part, shut(&planned, left, more, now)));
        let full = full.collect();
        self.refuse(&plan, full)
    }

    /// Decides by any number of accounts, and by what is this node's own: looks at all, and then takes.
    #[inline(never)]
    fn decide_any(&self, plan: &Plan) -> Option<Result<SharedPassed, SharedRefused>> {
        let steps: SmallVec<[Step; 4]> = self.plan.steps(plan).collect();
        if steps.iter().any(|step| step.way == Way::List) {
            return Some(Err(self.refuse_listed(plan)));
        }
        if steps.iter().any(|step| step.way == Way::Store) {
            return None;
        }
        let full = match self.look_on_node(plan, &steps, true) {
            Ok(full) => full,
            Err(Short) => return None,
        };
        if !full.is_empty() {
            return Some(Err(self.refuse(plan, full)));
        }
        let mut held = Held::new(self);
        if let Err(full) = self.take_own(plan, &steps, &mut held) {
            return Some(Err(self.refuse(plan, full)));
        }
        for step in steps.iter().filter(|step| step.way == Way::Accounts) {
            let books = &*self.books.as_ref()?.books;
            for quota in 0..step.parts {
                let (part, key) = (step.first + quota, step.account(quota));
                let (at, said) = books.spend(key, step.permits);
                let Said::Room { epoch, .. } = said else {
                    // Somebody was faster since the look.
                    return None;
                };
                held.spent.push(spent(part, at, epoch, step.permits));
            }
        }
        self.count(plan, &steps, &held);
        let (spent, paid) = held.keep();
        Some(Ok(passed(spent, paid)))
    }

    /// Looks at what this node decides: which parts have no room, or that somebody must be asked, unless a part has none
    /// anyhow. `misses`: whether what is short is noted.
    fn look_on_node(&self, plan: &Plan, steps: &[Step], misses: bool) -> Result<Vec<Violation>, Short> {
        let (mut full, mut short) = (Vec::new(), false);
        let books = self
            .books
            .as_ref()
            .map(|node| (&*node.books, node.books.clock.now()));
        for step in steps.iter().filter(|step| step.way == Way::Accounts) {
            let Some((books, now)) = books else {
                continue;
            };
            for quota in 0..step.parts {
                let key = step.account(quota);
                match books.look(key, step.permits, now) {
                    Said::Room { .. } => {}
                    Said::Shut { left, more } => {
                        let part = step.first + quota;
                        if let Some(planned) = self.plan.parts(plan).nth(part) {
                            full.push((part, shut(&planned, left, more, now)));
                        }
                        books.counts().refused.add_one();
                    }
                    Said::Short => {
                        short = true;
                        if let Some(at) = books.find(key).filter(|_| misses) {
                            books.miss(at, step.permits);
                        }
                    }
                    Said::NotYours => short = true,
                }
            }
        }
        if steps.iter().any(|step| step.way == Way::Here) {
            let own = self.plan.look_here(plan, |case| steps[case].way == Way::Here);
            let planned: Vec<Planned<'_>> = self.plan.parts(plan).collect();
            full.extend(
                own.iter()
                    .map(|own| (own.part, look_here(&planned[own.part], own))),
            );
        }
        match short && full.is_empty() {
            true => Err(Short),
            false => Ok(full),
        }
    }

    /// Takes what is this node's own.
    fn take_own(&self, plan: &Plan, steps: &[Step], held: &mut Held<'_, R>) -> Result<(), Vec<Violation>> {
        if !steps.iter().any(|step| step.way == Way::Here) {
            return Ok(());
        }
        match self.plan.take_here(plan, |case| steps[case].way == Way::Here) {
            Ok(paid) => {
                held.paid = paid;
                Ok(())
            }
            Err(full) => {
                let planned: Vec<Planned<'_>> = self.plan.parts(plan).collect();
                Err(full
                    .iter()
                    .map(|full| (full.part, look_here(&planned[full.part], full)))
                    .collect())
            }
        }
    }

    /// Gives back what was taken of accounts, and says how many permits could not be.
    pub(super) fn give_back(&self, spent: &[Spent]) -> u64 {
        let Some(books) = self.books.as_ref() else {
            return 0;
        };
        let lost = spent.iter().filter(|spent| {
            let account = &books.books.accounts[spent.at as usize];
            !account.give_back(spent.epoch, spent.permits)
        });
        lost.map(|spent| spent.permits).sum()
    }

    /// Refuses a request that this node has no room for.
    fn refuse(&self, plan: &Plan, full: Vec<Violation>) -> SharedRefused {
        let rules: Vec<u16> = {
            let planned: Vec<Planned<'_>> = self.plan.parts(plan).collect();
            full.iter().map(|&(part, _)| planned[part].rule).collect()
        };
        self.plan.count_denied(&rules);
        SharedRefused {
            decided_by: DecidedBy::Account,
            reason: Reason::Spent,
            violations: full.into_iter().map(|(_, look)| look).collect(),
            at: None,
            error: None,
        }
    }

    /// Refuses a request whose key is on a list.
    fn refuse_listed(&self, plan: &Plan) -> SharedRefused {
        let planned = self.plan.parts(plan);
        let listed: Vec<Planned<'_>> = planned.filter(|it| it.enforced && it.refused).collect();
        let rules: Vec<u16> = listed.iter().map(|planned| planned.rule).collect();
        self.plan.count_denied(&rules);
        SharedRefused {
            decided_by: DecidedBy::Nobody,
            reason: Reason::Listed,
            violations: listed.iter().map(unknown).collect(),
            at: None,
            error: None,
        }
    }
}

/// The store must be asked.
struct Short;

#[inline]
fn passed(spent: SmallVec<[Spent; 2]>, paid: Vec<PaidHere>) -> SharedPassed {
    let decided_by = if spent.is_empty() && paid.is_empty() {
        DecidedBy::Nobody
    } else {
        DecidedBy::Account
    };
    // Apart from what most requests need, which is moved about.
    let more = (!paid.is_empty()).then(|| {
        Box::new(More {
            paid,
            ..More::default()
        })
    });
    SharedPassed {
        decided_by,
        spent,
        more,
    }
}

/// What is known of a part whose account is shut.
fn shut(planned: &Planned<'_>, left: u64, more: u64, now: u64) -> Look {
    Look {
        remaining: left,
        retry_after: Some(Duration::from_nanos(more.saturating_sub(now))),
        ..unknown(planned)
    }
}
