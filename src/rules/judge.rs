use alloc::sync::Arc;

use smallvec::SmallVec;

use super::Rules;
use super::counts::{Me, Outcome};
use super::group::{Group, Subject};
use super::refused::{Passed, Refused, Violated};
use super::reservation::{Charge, Reservation};
use super::state::{Place, Taken};
use crate::receipt::Receipt;
use crate::time::Nanos;

/// One state that decides about a request.
struct Case<'a, R: ?Sized> {
    /// The group's place in the rule set.
    place: u16,
    group: &'a Arc<Group<R>>,
    subject: Subject,
    found: Place<'a>,
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
                let decided = group.decide(&subject, now);
                let me = Me::new();
                if decided.overflow {
                    group.count(me, Outcome::Overflowed);
                }
                if !decided.admitted {
                    return Err(self.refuse_one(me, request, decided.at));
                }
                group.count(me, Outcome::Admitted(subject.permits));
                return Ok(Passed::charged(decided.at));
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
        // After what is asked for far away, and before what is near, as a keyed limiter does.
        let now = now();
        let mut paid = AllPaid::new();
        self.take_all(request, &mut cases, now, &mut paid)?;
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
        self.take_all(request, &mut cases, now, &mut paid)?;
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

    /// Adds the states that decide about the request, with their memory on its way where it is far away.
    #[inline(always)]
    fn add_cases<'a>(&'a self, request: &R, cases: &mut Cases<'a, R>) {
        for (place, group) in (0..).zip(&self.groups) {
            if let Some(subject) = group.subject(request, &self.seeds) {
                cases.push(Case {
                    place,
                    group,
                    subject,
                    found: group.find_far(&subject),
                });
            }
        }
    }

    /// Takes what the request costs in every case, or nothing: [the protocol](super). What was taken is added to `paid`.
    #[inline(always)]
    fn take_all<'a>(
        &'a self,
        request: &'a R,
        cases: &mut [Case<'a, R>],
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

    /// Says which rules have no room, where all are of one state, which has refused.
    #[cold]
    #[inline(never)]
    fn refuse_one<'a>(&'a self, me: Me, request: &'a R, now: Nanos) -> Refused<'a, R> {
        let mut violated = SmallVec::new();
        let group = &self.groups[0];
        if group.members.len() == 1 {
            violated.push(Violated { group: 0, member: 0 });
        } else if let Some(subject) = group.subject(request, &self.seeds) {
            // Asked again, so that no admission has to keep it.
            self.look_for_violations(0, &subject, now, true, |violation| violated.push(violation));
        }
        self.count_denials(me, &violated);
        Refused::new(self, request, now, violated)
    }

    /// Says which rules have no room; `full`: the case that was seen to have none.
    #[cold]
    #[inline(never)]
    fn refuse<'a>(&'a self, request: &'a R, cases: &[Case<'a, R>], now: Nanos, full: u16) -> Refused<'a, R> {
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
fn look<R: ?Sized>(cases: &mut [Case<'_, R>], now: Nanos, order: &mut Order) -> Option<u16> {
    for (index, case) in (0..).zip(cases.iter_mut()) {
        let Subject {
            permits,
            enforced,
            refused,
            ..
        } = case.subject;
        let found = case.found.or_near(case.subject.key);
        case.found = found;
        let room = case.group.room(&case.subject, found, now);
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
        let mut turns = &mut order[..];
        while let [rest @ .., before, last] = turns
            && last < before
        {
            core::mem::swap(before, last);
            let sorted = rest.len() + 1;
            turns = &mut turns[..sorted];
        }
    }
    None
}

/// *Give back*: what was taken for a request that is refused after all.
#[cold]
#[inline(never)]
fn give_back<R: ?Sized>(me: Me, cases: &[Case<'_, R>], paid: &[Paid]) {
    for Paid { case, receipt } in paid.iter().rev() {
        let Case { group, subject, .. } = &cases[usize::from(*case)];
        if !group.give_back(subject, receipt, subject.permits) {
            group.count_here(me, Outcome::Forfeited(subject.permits));
        }
    }
}
