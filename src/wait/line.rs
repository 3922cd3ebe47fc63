use alloc::collections::BTreeMap;
use core::mem;
use core::task::Waker;
use core::time::Duration;

use super::after::After;
use super::ask::Case;
use super::runtime::Runtime;
use crate::time::Nanos;

/// A place in the order of arrival.
pub(super) type Ticket = u64;

/// The most who are told at once that it is their turn.
const MOST_TOLD: usize = 64;

/// How long whoever was told may take to come, before it is the others' turn. (A told task may be stuck behind another
/// one that computes, or not be polled at all.)
pub(crate) const PATIENCE: Duration = Duration::from_millis(10);

/// Those who wait for one state, in the order of their tickets: [the protocol](super).
#[derive(Debug)]
pub(super) struct Line<A> {
    waiting: BTreeMap<Ticket, Waiter>,
    /// Those who were woken because there is room for them, with what they need.
    told: BTreeMap<Ticket, u64>,
    /// Those who were told and have not come, with what they need.
    late: BTreeMap<Ticket, u64>,
    /// What all who were told need.
    told_permits: u64,
    /// What all need.
    permits: u64,
    /// When they were told, the last of them.
    told_at: Nanos,
    /// Of those who are waiting, the one who is to look next whether there is room.
    lookout: Option<Ticket>,
    /// When the lookout is woken, or was.
    due: Nanos,
    watch: Watch<A>,
}

/// What wakes the lookout.
#[derive(Debug)]
enum Watch<A> {
    /// Nothing, or it has been woken.
    Nothing,
    /// An alarm for when there is room.
    Room(A),
    /// An alarm for when those who were told have not come.
    Patience(A),
}

#[derive(Debug)]
struct Waiter {
    permits: u64,
    waker: Waker,
    /// Where it was polled.
    runtime: Option<u64>,
}

/// Somebody who looks whether there is room for those in a line, in the course of a poll of its own.
pub(super) struct Look<'v, 'a, C: Case> {
    pub(super) case: &'a C,
    /// What the line is for.
    pub(super) state: u64,
    /// The runtime that it is polled in.
    pub(super) here: Option<u64>,
    /// How much later an alarm for room is set than it might be.
    pub(super) late_by: Duration,
    pub(super) after: &'v mut After<'a, C::Runtime>,
}

impl<A> Line<A> {
    pub(super) const fn new() -> Self {
        Self {
            waiting: BTreeMap::new(),
            told: BTreeMap::new(),
            late: BTreeMap::new(),
            told_permits: 0,
            permits: 0,
            told_at: Nanos::ZERO,
            lookout: None,
            due: Nanos::ZERO,
            watch: Watch::Nothing,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.told.is_empty() && self.late.is_empty() && self.waiting.is_empty()
    }

    /// What all in the line need.
    pub(super) const fn permits(&self) -> u64 {
        self.permits
    }

    pub(super) fn is_told(&self, ticket: Ticket) -> bool {
        self.told.contains_key(&ticket)
    }

    /// Whether somebody with this ticket is to look whether there is room: as the first, or for a lookout that has not
    /// come.
    pub(super) fn is_to_look(&self, ticket: Ticket, now: Nanos) -> bool {
        let late = self.lookout.is_some() && self.due.saturating_add(PATIENCE) < now;
        (self.is_first(ticket) || late) && !self.is_told(ticket)
    }

    /// Whether nobody is waiting before this ticket.
    pub(super) fn is_first(&self, ticket: Ticket) -> bool {
        self.waiting
            .first_key_value()
            .is_none_or(|(&first, _)| first >= ticket)
    }

    pub(super) fn enter(&mut self, ticket: Ticket, permits: u64, waker: Waker, runtime: Option<u64>) {
        self.permits = self.permits.saturating_add(permits);
        let waiter = Waiter {
            permits,
            waker,
            runtime,
        };
        self.waiting.insert(ticket, waiter);
    }

    /// Remembers whom to wake from now on; one who was late is waiting again.
    pub(super) fn renew(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        runtime: Option<u64>,
        after: &mut After<'_, impl Runtime<Alarm = A>>,
    ) {
        if let Some(permits) = self.late.remove(&ticket) {
            let waker = waker.clone();
            let waiter = Waiter {
                permits,
                waker,
                runtime,
            };
            self.waiting.insert(ticket, waiter);
        } else if let Some(waiter) = self.waiting.get_mut(&ticket)
            && !waiter.waker.will_wake(waker)
        {
            waiter.runtime = runtime;
            after.forget(mem::replace(&mut waiter.waker, waker.clone()));
        }
    }

    /// Leaves the line, having taken what it was told that there is room for.
    ///
    /// That was counted as taken when an alarm was set for room. If it was the last who was told, and there is room for
    /// the next one too, the next is woken rather than told: by the time that it looks, whoever has just been served
    /// may be in line again.
    pub(super) fn leave_with_it<C>(&mut self, look: &mut Look<'_, '_, C>, ticket: Ticket)
    where
        C: Case<Runtime: Runtime<Alarm = A>>,
    {
        let (case, here) = (look.case, look.here);
        let is_last = self.told.len() == 1 && self.is_told(ticket);
        let is_woken = self.lookout.is_some() && matches!(self.watch, Watch::Nothing | Watch::Room(_));
        let next = self.waiting.first_key_value().filter(|_| is_last && !is_woken);
        // Before anything is changed: what is asked may panic.
        let wait = next.and_then(|(&next, first)| {
            let wait = case.ready_in(look.state, first.permits)?;
            (first.runtime == here && !wait.is_zero()).then_some((next, wait))
        });
        let is_next = next.is_some();
        self.leave(ticket, look.after);
        match wait {
            Some((next, wait)) => self.watch_for_room(look, next, case.now(), wait),
            None if is_next => self.nudge(case.now(), look.after),
            None => {}
        }
    }

    /// Leaves the line, having taken nothing: whoever is first from now on may have room.
    pub(super) fn leave_without(
        &mut self,
        ticket: Ticket,
        now: Nanos,
        after: &mut After<'_, impl Runtime<Alarm = A>>,
    ) {
        let had_room = !self.waiting.contains_key(&ticket);
        self.leave(ticket, after);
        // Without a lookout and anybody who was told, somebody has panicked when it was to look.
        let is_watched = self.lookout.is_some() || !self.told.is_empty();
        if had_room || self.lookout == Some(ticket) || !is_watched {
            self.nudge(now, after);
        }
    }

    fn leave(&mut self, ticket: Ticket, after: &mut After<'_, impl Runtime<Alarm = A>>) {
        let permits = if let Some(permits) = self.told.remove(&ticket) {
            self.told_permits = self.told_permits.saturating_sub(permits);
            permits
        } else if let Some(waiter) = self.waiting.remove(&ticket) {
            after.forget(waiter.waker);
            waiter.permits
        } else {
            self.late.remove(&ticket).unwrap_or(0)
        };
        self.permits = self.permits.saturating_sub(permits);
    }

    /// Calls the alarm off.
    fn look_away(&mut self, after: &mut After<'_, impl Runtime<Alarm = A>>) {
        self.lookout = None;
        if let Watch::Room(alarm) | Watch::Patience(alarm) = mem::replace(&mut self.watch, Watch::Nothing) {
            after.call_off(alarm);
        }
    }

    /// Wakes the first who is waiting, to see for itself.
    pub(super) fn nudge(&mut self, now: Nanos, after: &mut After<'_, impl Runtime<Alarm = A>>) {
        self.look_away(after);
        self.due = now;
        self.lookout = self.waiting.first_key_value().map(|(&ticket, first)| {
            after.wake(first.waker.clone());
            ticket
        });
    }

    /// Makes somebody the lookout, to be woken when there is room for it.
    fn watch_for_room<C>(&mut self, look: &mut Look<'_, '_, C>, ticket: Ticket, now: Nanos, wait: Duration)
    where
        C: Case<Runtime: Runtime<Alarm = A>>,
    {
        let Some(waiter) = self.waiting.get(&ticket) else {
            return;
        };
        let wait = wait.saturating_add(look.late_by);
        let alarm = look.case.room().runtime().alarm(wait, &waiter.waker);
        self.look_away(look.after);
        (self.lookout, self.due) = (Some(ticket), now.saturating_add(wait));
        self.watch = Watch::Room(alarm);
    }

    /// Tells those that there is room for, in the order of their tickets, when everybody has come who was told before;
    /// and sets the alarm for the next.
    ///
    /// What was told to others counts as taken. `me` is not woken, since it is what runs. An alarm is kept by the
    /// runtime in which this runs, so it is set for nobody who waits in another one, which may go on when this one does
    /// not.
    pub(super) fn advance<C>(&mut self, look: &mut Look<'_, '_, C>, me: Option<Ticket>)
    where
        C: Case<Runtime: Runtime<Alarm = A>>,
    {
        let (case, state) = (look.case, look.state);
        let now = case.now();
        let mut patience = PATIENCE.saturating_sub(now.saturating_since(self.told_at));
        if patience.is_zero() {
            self.late.append(&mut self.told);
            self.told_permits = 0;
        } else if self.told.is_empty() {
            patience = Duration::ZERO;
        }
        while let Some((&ticket, first)) = self.waiting.first_key_value() {
            let ready = case.ready_in(state, self.told_permits.saturating_add(first.permits));
            let wait = match ready {
                Some(wait) => wait,
                // Never any, which it is to find out.
                None if self.told.is_empty() => Duration::ZERO,
                // All at once are too many.
                None => Duration::MAX,
            };
            if wait.is_zero() && patience.is_zero() && self.told.len() < MOST_TOLD {
                self.tell(ticket, me, now, look.after);
            } else {
                if first.runtime != look.here {
                    self.nudge(now, look.after);
                } else if self.told.is_empty() {
                    self.watch_for_room(look, ticket, now, wait);
                } else {
                    let patience = if patience.is_zero() { PATIENCE } else { patience };
                    let alarm = case.room().runtime().alarm(patience, &first.waker);
                    self.look_away(look.after);
                    (self.lookout, self.due) = (Some(ticket), now.saturating_add(patience));
                    self.watch = Watch::Patience(alarm);
                }
                return;
            }
        }
        self.look_away(look.after);
    }

    /// Tells the one with this ticket that there is room for it.
    fn tell(
        &mut self,
        ticket: Ticket,
        me: Option<Ticket>,
        now: Nanos,
        after: &mut After<'_, impl Runtime<Alarm = A>>,
    ) {
        let Some(waiter) = self.waiting.remove(&ticket) else {
            return;
        };
        if me == Some(ticket) {
            after.forget(waiter.waker);
        } else {
            after.wake(waiter.waker);
        }
        self.told.insert(ticket, waiter.permits);
        self.told_permits = self.told_permits.saturating_add(waiter.permits);
        self.told_at = now;
    }
}
