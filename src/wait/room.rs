use alloc::collections::BTreeMap;
use core::fmt;
use core::hash::BuildHasher;
use core::sync::atomic::Ordering;
use core::task::{Poll, Waker};
use core::time::Duration;
use std::hash::RandomState;
use std::sync::PoisonError;

use super::after::After;
use super::ask::{Case, Claim};
use super::error::WaitError;
use super::line::{Line, Look, Ticket};
use super::runtime::Runtime;
use super::streak::Streak;
use crate::sync::{AtomicU64, Mutex, MutexGuard};
use crate::time::Nanos;

/// Where those wait who ask one limiter: a line for each state that somebody waits for.
#[expect(unnameable_types, reason = "sealed: nobody else is to have one")]
pub struct Room<T: Runtime> {
    /// How many wait: written with the lock, read without.
    waiting: AtomicU64,
    streak: Streak,
    lines: Mutex<Lines<T::Alarm>>,
    runtime: T,
    pub(super) allowed: usize,
    pub(super) jitter: Duration,
}

#[derive(Debug)]
struct Lines<A> {
    next: Ticket,
    waiting: usize,
    of: BTreeMap<u64, Line<A>>,
}

impl<A> Lines<A> {
    /// Whether anybody waits for one of the states.
    fn is_queued(&self, claims: &[Claim]) -> bool {
        claims.iter().any(|claim| self.of.contains_key(&claim.state))
    }

    /// Has somebody leave the line for a state, which goes with the last.
    fn leave(&mut self, state: u64, leave: impl FnOnce(&mut Line<A>)) {
        if let Some(line) = self.of.get_mut(&state) {
            leave(line);
            if line.is_empty() {
                self.of.remove(&state);
            }
        }
    }
}

/// Where somebody stands.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// `None`: nowhere.
    ticket: Option<Ticket>,
    /// In whose line.
    state: u64,
    /// Whether it has given way before it asked.
    rested: bool,
    /// Whether it waits even when as many wait as may.
    insists: bool,
}

/// One poll of somebody who waits, or has to find out whether to.
struct Visit<'a, C: Case> {
    case: &'a C,
    place: &'a mut Place,
    deadline: Option<Nanos>,
    waker: &'a Waker,
    after: After<'a, C::Runtime>,
}

impl Place {
    pub(super) const fn insist(&mut self) {
        self.insists = true;
    }

    pub(super) const fn is_taken(&self) -> bool {
        self.ticket.is_some()
    }
}

impl<T: Runtime> Room<T> {
    /// How many may wait when nothing else is said.
    const ALLOWED: usize = 1_000_000;

    pub(super) fn new(runtime: T) -> Self {
        Self {
            waiting: AtomicU64::new(0),
            streak: Streak::new(),
            lines: Mutex::new(Lines {
                next: 0,
                waiting: 0,
                of: BTreeMap::new(),
            }),
            runtime,
            allowed: Self::ALLOWED,
            jitter: Duration::ZERO,
        }
    }

    pub(super) const fn runtime(&self) -> &T {
        &self.runtime
    }

    pub(super) fn waiting(&self) -> u64 {
        // Relaxed: a line that began before the call, for the caller, is seen; of one that begins meanwhile, the call
        // came first.
        self.waiting.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Lines<T::Alarm>> {
        // What panics is a function of the user's or the runtime, which is asked before anything is changed.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody waits for one of the states.
    pub(super) fn is_queued<C: Case<Runtime = T>>(&self, case: &C) -> bool {
        if self.waiting() == 0 {
            return false;
        }
        let claims = case.claims();
        self.lock().is_queued(&claims)
    }

    /// Takes what the case needs, if it is its turn and there is room; otherwise finds it a place in line, or says why
    /// not.
    pub(super) fn poll<C: Case<Runtime = T>>(
        &self,
        case: &C,
        place: &mut Place,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Poll<Result<C::Taken, WaitError>> {
        let mut visit = Visit {
            case,
            place,
            deadline,
            waker,
            after: After::new(&self.runtime),
        };
        let polled = match visit.place.ticket {
            Some(ticket) => self.go_on(&mut visit, ticket),
            None => self.arrive(&mut visit),
        };
        if polled.is_ready() {
            visit.place.rested = false;
        }
        polled
    }

    fn arrive<C: Case<Runtime = T>>(&self, visit: &mut Visit<'_, C>) -> Poll<Result<C::Taken, WaitError>> {
        let case = visit.case;
        let task = self.runtime.task();
        if self.waiting() == 0 {
            if let Some(task) = task
                && !visit.place.rested
                && self.streak.is_over(task)
            {
                visit.place.rested = true;
                visit.after.wake(visit.waker.clone());
                return Poll::Pending;
            }
            if let Some(taken) = self.take(case, task) {
                return Poll::Ready(Ok(taken));
            }
        }
        let claims = case.claims();
        let mut lines = self.lock();
        if !lines.is_queued(&claims)
            && let Some(taken) = self.take(case, task)
        {
            return Poll::Ready(Ok(taken));
        }
        // How long each state takes at the least; of two that take as long, the one that somebody waits for comes
        // first.
        let mut slowest = None;
        for &claim in &claims {
            let ready = case.ready_in(claim.state, claim.permits);
            let line = lines.of.get(&claim.state);
            let before = line.map_or(0, Line::permits);
            let needed = case.earliest_in(claim.state, before, claim.permits);
            let (Some(_), Some(needed)) = (ready, needed) else {
                return Poll::Ready(Err(WaitError::Never));
            };
            if slowest.is_none_or(|(_, most)| most < (needed, line.is_some())) {
                slowest = Some((claim, (needed, line.is_some())));
            }
        }
        let Some((claim, (needed, _))) = slowest else {
            return Poll::Ready(Err(WaitError::Never));
        };
        if lines.waiting >= self.allowed && !visit.place.insists {
            let allowed = self.allowed;
            return Poll::Ready(Err(WaitError::QueueFull { allowed, needed }));
        }
        if let Some(deadline) = visit.deadline {
            let allowed = deadline.saturating_since(case.now());
            if needed > allowed {
                return Poll::Ready(Err(WaitError::TooLate { needed, allowed }));
            }
        }
        let ticket = lines.next;
        lines.next += 1;
        lines.waiting += 1;
        self.note(&lines);
        visit.place.ticket = Some(ticket);
        self.enter(visit, claim, &mut lines);
        Poll::Pending
    }

    fn go_on<C: Case<Runtime = T>>(
        &self,
        visit: &mut Visit<'_, C>,
        ticket: Ticket,
    ) -> Poll<Result<C::Taken, WaitError>> {
        let case = visit.case;
        let (now, here) = (case.now(), self.runtime.here());
        let over = visit.deadline.is_some_and(|deadline| deadline <= now);
        let mut lines = self.lock();
        let state = visit.place.state;
        let Some(line) = lines.of.get_mut(&state) else {
            return Poll::Pending;
        };
        line.renew(ticket, visit.waker, here, &mut visit.after);
        if line.is_to_look(ticket, now) || (over && !line.is_told(ticket)) {
            line.advance(&mut self.look(visit, ticket, here), Some(ticket));
        }
        if line.is_told(ticket) {
            // Somebody who came before it, and waits for another state that it needs.
            let is_before = |claim: &Claim| {
                let line = lines.of.get(&claim.state);
                claim.state != state && line.is_some_and(|line| !line.is_first(ticket))
            };
            let next = match case.claims().into_iter().find(is_before) {
                Some(claim) => Ok(claim),
                None => match self.take(case, None) {
                    Some(taken) => {
                        let mut look = self.look(visit, ticket, here);
                        lines.leave(state, |line| line.leave_with_it(&mut look, ticket));
                        self.gone(visit.place, &mut lines);
                        return Poll::Ready(Ok(taken));
                    }
                    None => slowest(case),
                },
            };
            match next {
                Ok(claim) if !over => {
                    lines.leave(state, |line| line.leave_without(ticket, now, &mut visit.after));
                    self.enter(visit, claim, &mut lines);
                }
                Ok(_) => {}
                Err(error) => {
                    self.give_up(visit.place, now, &mut lines, &mut visit.after);
                    return Poll::Ready(Err(error));
                }
            }
        }
        if over {
            self.give_up(visit.place, now, &mut lines, &mut visit.after);
            let waits = case.claims().into_iter();
            let needed = waits
                .filter_map(|claim| case.ready_in(claim.state, claim.permits))
                .max();
            return Poll::Ready(Err(WaitError::TooLate {
                needed: needed.unwrap_or_default(),
                allowed: Duration::ZERO,
            }));
        }
        Poll::Pending
    }

    /// Puts the case in line for a state; the first in line sees to the alarm.
    fn enter<C: Case<Runtime = T>>(
        &self,
        visit: &mut Visit<'_, C>,
        claim: Claim,
        lines: &mut Lines<T::Alarm>,
    ) {
        let Some(ticket) = visit.place.ticket else {
            return;
        };
        let (state, here) = (claim.state, self.runtime.here());
        let line = lines.of.entry(state).or_insert_with(Line::new);
        visit.place.state = state;
        line.enter(ticket, claim.permits, visit.waker.clone(), here);
        if line.is_to_look(ticket, visit.case.now()) {
            line.advance(&mut self.look(visit, ticket, here), None);
        }
    }

    /// A look at the line that the visitor stands in.
    fn look<'v, 'a, C: Case<Runtime = T>>(
        &self,
        visit: &'v mut Visit<'a, C>,
        ticket: Ticket,
        here: Option<u64>,
    ) -> Look<'v, 'a, C> {
        Look {
            case: visit.case,
            state: visit.place.state,
            here,
            late_by: self.late_by(ticket),
            after: &mut visit.after,
        }
    }

    /// Leaves the line, without having taken anything.
    ///
    /// Whoever is first then sets the alarm itself: this may run outside of any runtime.
    pub(super) fn abandon(&self, place: &mut Place, now: impl FnOnce() -> Nanos) {
        if place.is_taken() {
            let (now, mut after) = (now(), After::new(&self.runtime));
            self.give_up(place, now, &mut self.lock(), &mut after);
        }
    }

    /// Has those look who are first in all lines.
    #[cfg(feature = "rules")]
    pub(super) fn look_again(&self, now: impl FnOnce() -> Nanos) {
        // Whoever comes after this look finds how things are.
        if self.waiting() > 0 {
            let (now, mut after) = (now(), After::new(&self.runtime));
            for line in self.lock().of.values_mut() {
                line.nudge(now, &mut after);
            }
        }
    }

    /// Has those look who are first in line for what somebody has given back: their alarms are set for later.
    pub(super) fn given_back<C: Case<Runtime = T>>(&self, case: &C) {
        // Whoever comes after this look finds what was given back.
        if self.waiting() == 0 {
            return;
        }
        let (claims, now) = (case.claims(), case.now());
        let mut after = After::new(&self.runtime);
        let mut lines = self.lock();
        for claim in &claims {
            if let Some(line) = lines.of.get_mut(&claim.state) {
                line.nudge(now, &mut after);
            }
        }
    }

    fn give_up(&self, place: &mut Place, now: Nanos, lines: &mut Lines<T::Alarm>, after: &mut After<'_, T>) {
        if let Some(ticket) = place.ticket {
            lines.leave(place.state, |line| line.leave_without(ticket, now, after));
            self.gone(place, lines);
        }
    }

    /// Counts one fewer who waits: the one who stood here.
    fn gone(&self, place: &mut Place, lines: &mut Lines<T::Alarm>) {
        place.ticket = None;
        lines.waiting -= 1;
        self.note(lines);
    }

    fn note(&self, lines: &Lines<T::Alarm>) {
        // Relaxed: as in `waiting`.
        self.waiting.store(lines.waiting as u64, Ordering::Relaxed);
    }

    fn take<C: Case<Runtime = T>>(&self, case: &C, task: Option<u64>) -> Option<C::Taken> {
        let taken = case.take()?;
        if let Some(task) = task {
            self.streak.note(task);
        }
        Some(taken)
    }

    /// How much later an alarm is set than it might be.
    fn late_by(&self, ticket: Ticket) -> Duration {
        if self.jitter.is_zero() {
            return Duration::ZERO;
        }
        let share = u128::from(RandomState::new().hash_one(ticket));
        // Both factors are below 2^64: a jitter of more nanoseconds than that is as good as this.
        let nanos = (self.jitter.as_nanos().min(u128::from(u64::MAX)) * share) >> 64;
        Duration::from_nanos(nanos as u64)
    }
}

/// The state that has room for the case last; or never has.
fn slowest<C: Case>(case: &C) -> Result<Claim, WaitError> {
    let mut slowest = None;
    for claim in case.claims() {
        let ready = case
            .ready_in(claim.state, claim.permits)
            .ok_or(WaitError::Never)?;
        if slowest.is_none_or(|(_, latest)| latest < ready) {
            slowest = Some((claim, ready));
        }
    }
    slowest.map(|(claim, _)| claim).ok_or(WaitError::Never)
}

impl<T: Runtime> fmt::Debug for Room<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room")
            .field("waiting", &self.waiting())
            .field("allowed", &self.allowed)
            .field("jitter", &self.jitter)
            .finish_non_exhaustive()
    }
}
