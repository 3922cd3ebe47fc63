use alloc::sync::Arc;

use smallvec::SmallVec;

use super::Rules;
use super::counts::{Me, Outcome};
use super::group::{Group, Subject};
use super::refused::{Passed, Refused, Violated};
use super::reservation::{Charge, Reservation};
use super::state::Taken;
use crate::decision::Receipt;
use crate::table::Entry;
use crate::time::Nanos;

/// One state that decides about a request.
struct Case<'a, R: ?Sized> {
    /// The group's place in the rule set.
    place: u16,
    group: &'a Arc<Group<R>>,
    subject: Subject,
    found: Option<Entry<'a>>,
}

/// When a case's turn to be charged comes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    shadow: bool,
    /// What was left of the room after this request, when it was looked at.
    left: u64,
    case: u16,
}

/// What was taken for a case.
struct Paid {
    case: u16,
    receipt: Receipt,
}

/// All states that decide about a request: on the stack, for as many as that.
type Cases<'a, R> = SmallVec<[Case<'a, R>; MOST_ON_STACK]>;
type Order = SmallVec<[Turn; MOST_ON_STACK]>;
type AllPaid = SmallVec<[Paid; MOST_ON_STACK]>;

/// The states that a request is decided by without an allocation.
const MOST_ON_STACK: usize = 16;

impl<R: ?Sized> Rules<R> {
    #[inline]
    pub(super) fn check<'a>(
        &'a self,
        request: &'a R,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Passed, Refused<'a, R>> {
        if let [group] = &*self.groups {
            let Some(subject) = group.subject(request, &self.seeds) else {
                return Ok(Passed::free(now()));
            };
            if subject.enforced && !subject.refused {
                let found = group.find(&subject);
                // Read only now, so that the entry is on its way meanwhile.
                let now = now();
                let me = Me::new();
                let taken = group.take(&subject, found, now);
                return match taken {
                    Ok(taken) => {
                        if taken.overflow {
                            group.count(me, Outcome::Overflowed);
                        }
                        group.count(me, Outcome::Admitted(subject.permits));
                        Ok(Passed::charged(now))
                    }
                    Err(overflow) => Err(self.refuse_one(me, request, subject, now, overflow)),
                };
            }
        }
        self.check_all(request, now)
    }

    #[inline(never)]
    fn check_all<'a>(
        &'a self,
        request: &'a R,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Passed, Refused<'a, R>> {
        let mut cases = Cases::new();
        self.add_cases(request, &mut cases);
        let now = now();
        let mut paid = AllPaid::new();
        self.take_all(request, &cases, now, &mut paid)?;
        Ok(if paid.is_empty() {
            Passed::free(now)
        } else {
            Passed::charged(now)
        })
    }

    pub(super) fn reserve<'a>(
        &'a self,
        request: &'a R,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Reservation<R>, Refused<'a, R>> {
        let mut cases = Cases::new();
        self.add_cases(request, &mut cases);
        let now = now();
        let mut paid = AllPaid::new();
        self.take_all(request, &cases, now, &mut paid)?;
        let charge = |Paid { case, receipt }: Paid| {
            let case = &cases[usize::from(case)];
            Charge {
                group: Arc::clone(case.group),
                subject: case.subject,
                receipt,
            }
        };
        Ok(Reservation::new(now, paid.into_iter().map(charge).collect()))
    }

    /// Adds the states that decide about the request, with their memory on its way.
    #[inline(always)]
    fn add_cases<'a>(&'a self, request: &R, cases: &mut Cases<'a, R>) {
        for (place, group) in (0..).zip(&self.groups) {
            if let Some(subject) = group.subject(request, &self.seeds) {
                cases.push(Case {
                    place,
                    group,
                    subject,
                    found: group.find(&subject),
                });
            }
        }
    }

    /// Takes what the request costs in every case, or nothing: [the protocol](super). What was taken is added to `paid`.
    #[inline(always)]
    fn take_all<'a>(
        &'a self,
        request: &'a R,
        cases: &Cases<'a, R>,
        now: Nanos,
        paid: &mut AllPaid,
    ) -> Result<(), Refused<'a, R>> {
        // *Look*: at all, before anything is taken.
        let mut order = Order::new();
        if let Some(full) = look(cases, now, &mut order) {
            return Err(self.refuse(request, cases, now, full));
        }
        let me = Me::new();
        for &Turn { case: index, .. } in &order {
            let Case {
                group,
                subject,
                found,
                ..
            } = &cases[usize::from(index)];
            let taken = match *subject {
                Subject { refused: true, .. } => Err(false),
                _ => group.take(subject, *found, now),
            };
            match taken {
                Ok(Taken { receipt, overflow }) => {
                    if overflow {
                        group.count(me, Outcome::Overflowed);
                    }
                    paid.push(Paid { case: index, receipt });
                }
                Err(overflow) => {
                    if overflow {
                        group.count(me, Outcome::Overflowed);
                    }
                    if subject.enforced {
                        give_back(me, cases, paid);
                        return Err(self.refuse(request, cases, now, index));
                    }
                    group.count(me, Outcome::ShadowDenied);
                }
            }
        }
        for paid in paid {
            let Case { group, subject, .. } = &cases[usize::from(paid.case)];
            group.count(me, Outcome::Admitted(subject.permits));
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn refuse_one<'a>(
        &'a self,
        me: Me,
        request: &'a R,
        subject: Subject,
        now: Nanos,
        overflow: bool,
    ) -> Refused<'a, R> {
        if overflow {
            self.groups[0].count(me, Outcome::Overflowed);
        }
        let mut violated = SmallVec::new();
        self.look_for_violations(0, &subject, now, true, |violation| violated.push(violation));
        self.count_denials(me, &violated);
        Refused::new(self, request, now, violated)
    }

    /// Says which rules have no room; `full`: the case that was seen to have none.
    #[cold]
    #[inline(never)]
    fn refuse<'a>(&'a self, request: &'a R, cases: &Cases<'a, R>, now: Nanos, full: u16) -> Refused<'a, R> {
        let me = Me::new();
        let mut violated = SmallVec::new();
        for (index, case) in (0..).zip(cases) {
            let before = violated.len();
            let certain = full == index;
            self.look_for_violations(case.place, &case.subject, now, certain, |violation| {
                violated.push(violation);
            });
            if !case.subject.enforced && violated.len() > before {
                violated.truncate(before);
                case.group.count(me, Outcome::ShadowDenied);
            }
        }
        self.count_denials(me, &violated);
        Refused::new(self, request, now, violated)
    }

    /// Counts a denial for each rule that has a violated quota.
    fn count_denials(&self, me: Me, violated: &[Violated]) {
        for (at, violation) in violated.iter().enumerate() {
            let rule = self.rule_of(violation);
            if !violated[..at].iter().any(|before| self.rule_of(before) == rule) {
                self.names[usize::from(rule)].tallies.add(me, Outcome::Denied);
            }
        }
    }

    /// Names the quotas of a group that have no room; if it is certain that some had none, at least one.
    fn look_for_violations(
        &self,
        place: u16,
        subject: &Subject,
        now: Nanos,
        certain: bool,
        mut violation: impl FnMut(Violated),
    ) {
        let group = &self.groups[usize::from(place)];
        let mut violated = |member| violation(Violated { group: place, member });
        if certain && group.members.len() == 1 {
            return violated(0);
        }
        let peek = group.peek(subject, now);
        let (mut some, mut scarcest) = (false, (u64::MAX, 0));
        for (member, _) in (0_u16..).zip(&group.members) {
            let room = peek.room_of(usize::from(member));
            scarcest = scarcest.min((room, member));
            if subject.refused || room < subject.permits {
                some = true;
                violated(member);
            }
        }
        if certain && !some {
            // Others have given back since.
            violated(scarcest.1);
        }
    }

    fn rule_of(&self, violated: &Violated) -> u16 {
        let group = &self.groups[usize::from(violated.group)];
        group.members[usize::from(violated.member)].rule
    }
}

/// Looks at all cases, and adds them to the order in which to take; stops at the first that counts and has no room, and
/// says which it is.
#[inline(always)]
fn look<R: ?Sized>(cases: &Cases<'_, R>, now: Nanos, order: &mut Order) -> Option<u16> {
    for (index, case) in (0..).zip(cases) {
        let Subject {
            permits,
            enforced,
            refused,
            ..
        } = case.subject;
        let room = case.group.room(&case.subject, case.found, now);
        if enforced && (refused || room < permits) {
            return Some(index);
        }
        // What is scarcest first, since that is where others are likeliest to be faster; shadows last.
        let turn = Turn {
            shadow: !enforced,
            left: room.saturating_sub(permits),
            case: index,
        };
        order.push(turn);
        let mut at = order.len() - 1;
        while at > 0 && order[at] < order[at - 1] {
            order.swap(at, at - 1);
            at -= 1;
        }
    }
    None
}

/// *Give back*: what was taken for a request that is refused after all.
#[cold]
#[inline(never)]
fn give_back<R: ?Sized>(me: Me, cases: &Cases<'_, R>, paid: &AllPaid) {
    for Paid { case, receipt } in paid.iter().rev() {
        let Case { group, subject, .. } = &cases[usize::from(*case)];
        if !group.give_back(subject, receipt, subject.permits) {
            group.count_here(me, Outcome::Forfeited(subject.permits));
        }
    }
}
