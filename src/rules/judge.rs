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
    /// What was left of the room after this request, when it was looked at.
    left: u64,
}

/// What was taken for a case.
struct Paid {
    case: u16,
    receipt: Receipt,
}

/// All states that decide about a request: on the stack, for as many as that.
type Cases<'a, R> = SmallVec<[Case<'a, R>; 16]>;
type AllPaid = SmallVec<[Paid; 16]>;

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
                let taken = group
                    .counter(&subject)
                    .take(found, subject.key, now, subject.permits);
                return match taken {
                    Ok(taken) => {
                        self.count_admission(Me::new(), group, &subject, taken.overflow);
                        Ok(Passed::charged(now))
                    }
                    Err(overflow) => Err(self.refuse_one(request, subject, now, overflow)),
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
        let mut cases = self.cases(request);
        let now = now();
        self.take_all(request, &mut cases, now).map(|paid| {
            if paid.is_empty() {
                Passed::free(now)
            } else {
                Passed::charged(now)
            }
        })
    }

    pub(super) fn reserve<'a>(
        &'a self,
        request: &'a R,
        now: impl FnOnce() -> Nanos,
    ) -> Result<Reservation<R>, Refused<'a, R>> {
        let mut cases = self.cases(request);
        let now = now();
        let paid = self.take_all(request, &mut cases, now)?;
        let charge = |Paid { case, receipt }: Paid| {
            let case = &cases[usize::from(case)];
            let tallies = case.group.counted.iter();
            Charge {
                group: Arc::clone(case.group),
                tallies: tallies
                    .map(|&rule| Arc::clone(&self.names[usize::from(rule)].tallies))
                    .collect(),
                subject: case.subject,
                receipt,
            }
        };
        Ok(Reservation::new(now, paid.into_iter().map(charge).collect()))
    }

    /// The states that decide about the request, with their memory on its way.
    fn cases<'a>(&'a self, request: &R) -> Cases<'a, R> {
        let mut cases = Cases::new();
        for (place, group) in (0..).zip(&self.groups) {
            if let Some(subject) = group.subject(request, &self.seeds) {
                cases.push(Case {
                    place,
                    group,
                    subject,
                    found: group.find(&subject),
                    left: 0,
                });
            }
        }
        cases
    }

    /// Takes what the request costs in every case, or nothing: [the protocol](super).
    #[inline(always)]
    fn take_all<'a>(
        &'a self,
        request: &'a R,
        cases: &mut Cases<'a, R>,
        now: Nanos,
    ) -> Result<AllPaid, Refused<'a, R>> {
        let me = Me::new();
        // *Look*: at all, before anything is taken.
        let mut full = false;
        for case in cases.iter_mut() {
            let Subject { key, permits, .. } = case.subject;
            let room = case.group.counter(&case.subject).room(case.found, key, now);
            case.left = room.saturating_sub(permits);
            full |= case.subject.enforced && (case.subject.refused || room < permits);
        }
        if full {
            return Err(self.refuse(request, cases, now, None));
        }
        // What is scarcest first, since that is where others are likeliest to be faster; shadows last.
        cases.sort_unstable_by_key(|case| (!case.subject.enforced, case.left));
        let mut paid = AllPaid::new();
        for (index, case) in (0..).zip(cases.iter()) {
            let Subject { key, permits, .. } = case.subject;
            let counter = case.group.counter(&case.subject);
            let taken = match case.subject {
                Subject { refused: true, .. } => Err(false),
                _ => counter.take(case.found, key, now, permits),
            };
            match taken {
                Ok(Taken { receipt, overflow }) => {
                    if !case.subject.enforced {
                        // Those that are enforced are counted when all of them have been taken.
                        self.count_admission(me, case.group, &case.subject, overflow);
                    } else if overflow {
                        self.count(me, case.group, Outcome::Overflowed);
                    }
                    paid.push(Paid { case: index, receipt });
                }
                Err(overflow) => {
                    if overflow {
                        self.count(me, case.group, Outcome::Overflowed);
                    }
                    if case.subject.enforced {
                        self.give_back(me, cases, paid);
                        return Err(self.refuse(request, cases, now, Some(index)));
                    }
                    self.count(me, case.group, Outcome::ShadowDenied);
                }
            }
        }
        for case in cases.iter().filter(|case| case.subject.enforced) {
            self.count_admission(me, case.group, &case.subject, false);
        }
        Ok(paid)
    }

    /// *Give back*: what was taken for a request that is refused after all.
    #[cold]
    #[inline(never)]
    fn give_back(&self, me: Me, cases: &Cases<'_, R>, paid: AllPaid) {
        for Paid { case, receipt } in paid.into_iter().rev() {
            let Case { group, subject, .. } = &cases[usize::from(case)];
            if !group
                .counter(subject)
                .give_back(subject.key, &receipt, subject.permits)
            {
                self.count(me, group, Outcome::Forfeited(subject.permits));
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse_one<'a>(
        &'a self,
        request: &'a R,
        subject: Subject,
        now: Nanos,
        overflow: bool,
    ) -> Refused<'a, R> {
        let me = Me::new();
        if overflow {
            self.count(me, &self.groups[0], Outcome::Overflowed);
        }
        let mut violated = SmallVec::new();
        self.look_for_violations(0, &subject, now, true, |violation| violated.push(violation));
        self.count_denials(me, &violated);
        Refused::new(self, request, now, violated)
    }

    /// Says which rules have no room; `taken`: the case that turned out to have none when it was to be taken.
    #[cold]
    #[inline(never)]
    fn refuse<'a>(
        &'a self,
        request: &'a R,
        cases: &Cases<'a, R>,
        now: Nanos,
        taken: Option<u16>,
    ) -> Refused<'a, R> {
        let me = Me::new();
        let mut violated = SmallVec::new();
        for (index, case) in (0..).zip(cases) {
            let before = violated.len();
            let certain = taken == Some(index);
            self.look_for_violations(case.place, &case.subject, now, certain, |violation| {
                violated.push(violation);
            });
            if !case.subject.enforced && violated.len() > before {
                violated.truncate(before);
                self.count(me, case.group, Outcome::ShadowDenied);
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
        let peek = group.counter(subject).peek(subject.key, now);
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

    #[inline]
    fn count_admission(&self, me: Me, group: &Group<R>, subject: &Subject, overflow: bool) {
        self.count(me, group, Outcome::Admitted(subject.permits));
        if overflow {
            self.count(me, group, Outcome::Overflowed);
        }
    }

    #[inline]
    fn count(&self, me: Me, group: &Group<R>, outcome: Outcome) {
        for &rule in &group.counted {
            self.names[usize::from(rule)].tallies.add(me, outcome);
        }
    }
}
