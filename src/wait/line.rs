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

/// So many are told at once that it is their turn.
const MOST_TOLD: usize = 64;

/// So long whoever was told may take to come before it is the others' turn. (A told task may be stuck behind another one
/// that computes, or not be polled at all.)
const PATIENCE: Duration = Duration::from_millis(10);

/// Those who wait for one state, in the order of their tickets: [the protocol](super).
#[derive(Debug)]
pub(super) struct Line<A> {
    /// Those who were woken because there is room for them, with what they need.
    told: BTreeMap<Ticket, u64>,
    /// Those whose turn it is here, and who wait for another state meanwhile, with what they need.
    held: BTreeMap<Ticket, u64>,
    waiting: BTreeMap<Ticket, Waiter>,
    /// What all need whose turn it is.
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
}

impl<A> Line<A> {
    pub(super) const fn new() -> Self {
        Self {
            told: BTreeMap::new(),
            held: BTreeMap::new(),
            waiting: BTreeMap::new(),
            told_permits: 0,
            permits: 0,
            told_at: Nanos::ZERO,
            lookout: None,
            due: Nanos::ZERO,
            watch: Watch::Nothing,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.told.is_empty() && self.held.is_empty() && self.waiting.is_empty()
    }

    /// What all in the line need.
    pub(super) const fn permits(&self) -> u64 {
        self.permits
    }

    /// Whether it is somebody's turn.
    pub(super) fn is_told(&self, ticket: Ticket) -> bool {
        self.told.contains_key(&ticket) || self.held.contains_key(&ticket)
    }

    /// Whether somebody with this ticket is to look whether there is room: as the first, or for a lookout that has not come.
    pub(super) fn is_to_look(&self, ticket: Ticket, now: Nanos) -> bool {
        let late = self.lookout.is_some() && self.due.saturating_add(PATIENCE) < now;
        (self.is_first(ticket) || late) && !self.is_told(ticket)
    }

    /// Whether nobody is before this ticket but those who were told.
    pub(super) fn is_first(&self, ticket: Ticket) -> bool {
        self.waiting
            .first_key_value()
            .is_none_or(|(&first, _)| first >= ticket)
    }

    pub(super) fn enter(&mut self, ticket: Ticket, permits: u64, waker: Waker) {
        self.permits = self.permits.saturating_add(permits);
        self.waiting.insert(ticket, Waiter { permits, waker });
    }

    /// Remembers who is to be woken.
    pub(super) fn renew(&mut self, ticket: Ticket, waker: &Waker, after: &mut After<A>) {
        if let Some(waiter) = self.waiting.get_mut(&ticket)
            && !waiter.waker.will_wake(waker)
        {
            after.forget(mem::replace(&mut waiter.waker, waker.clone()));
        }
    }

    /// Leaves somebody its turn, while it waits for another state: what it needs here is kept for it, and nobody waits for it to come.
    pub(super) fn hold(&mut self, ticket: Ticket, now: Nanos, after: &mut After<A>) {
        if let Some(permits) = self.told.remove(&ticket) {
            self.held.insert(ticket, permits);
            self.go_on(now, after);
        }
    }

    /// Takes back that it is somebody's turn.
    pub(super) fn untell(&mut self, ticket: Ticket, waker: Waker) {
        if let Some(permits) = self.told.remove(&ticket).or_else(|| self.held.remove(&ticket)) {
            self.told_permits = self.told_permits.saturating_sub(permits);
            self.waiting.insert(ticket, Waiter { permits, waker });
        }
    }

    /// Leaves the line, having taken what it was told that there is room for.
    pub(super) fn leave_with_it(&mut self, ticket: Ticket, now: Nanos, after: &mut After<A>) {
        self.leave(ticket, after);
        self.go_on(now, after);
    }

    /// Somebody who was told has come: if it was the last, it is the turn of others.
    ///
    /// What was told was counted as taken when an alarm was set for room. Whoever else waits is woken, rather than told: by the
    /// time that it looks, whoever has just been served may be in line again.
    fn go_on(&mut self, now: Nanos, after: &mut After<A>) {
        if self.told.is_empty() && !matches!(self.watch, Watch::Room(_)) {
            self.nudge(now, after);
        }
    }

    /// Leaves the line, having taken nothing: whoever is first from now on may have room.
    pub(super) fn leave_without(&mut self, ticket: Ticket, now: Nanos, after: &mut After<A>) {
        if self.leave(ticket, after) {
            self.nudge(now, after);
        }
    }

    /// True when others may have room now, or nobody is left who looks for them.
    fn leave(&mut self, ticket: Ticket, after: &mut After<A>) -> bool {
        let (permits, matters) =
            if let Some(permits) = self.told.remove(&ticket).or_else(|| self.held.remove(&ticket)) {
                self.told_permits = self.told_permits.saturating_sub(permits);
                (permits, true)
            } else if let Some(waiter) = self.waiting.remove(&ticket) {
                after.forget(waiter.waker);
                (waiter.permits, self.lookout == Some(ticket))
            } else {
                (0, false)
            };
        self.permits = self.permits.saturating_sub(permits);
        matters
    }

    /// Calls the alarm off.
    fn look_away(&mut self, after: &mut After<A>) {
        self.lookout = None;
        if let Watch::Room(alarm) | Watch::Patience(alarm) = mem::replace(&mut self.watch, Watch::Nothing) {
            after.call_off(alarm);
        }
    }

    /// Wakes the first who is waiting, to see for itself.
    pub(super) fn nudge(&mut self, now: Nanos, after: &mut After<A>) {
        self.look_away(after);
        self.due = now;
        self.lookout = self.waiting.first_key_value().map(|(&ticket, first)| {
            after.wake(first.waker.clone());
            ticket
        });
    }

    /// Tells those that there is room for, in the order of their tickets, when everybody has come who was told before; and
    /// sets the alarm for the next.
    ///
    /// What was told to others counts as taken. `me` is not woken, since it is what runs.
    pub(super) fn advance<C>(
        &mut self,
        state: u64,
        case: &C,
        me: Option<Ticket>,
        late_by: Duration,
        after: &mut After<A>,
    ) where
        C: Case<Runtime: Runtime<Alarm = A>>,
    {
        self.look_away(after);
        let runtime = case.room().runtime();
        let now = case.now();
        let mut patience = match self.told.is_empty() {
            true => Duration::ZERO,
            false => PATIENCE.saturating_sub(now.saturating_since(self.told_at)),
        };
        while let Some(first) = self.waiting.first_entry() {
            let (ticket, permits) = (*first.key(), first.get().permits);
            let ready = case.ready_in(state, self.told_permits.saturating_add(permits));
            let wait = match ready {
                Some(wait) => wait,
                // Never any, which it is to find out.
                None if self.told_permits == 0 => Duration::ZERO,
                // All at once are too many: when those before it have taken theirs, or do not come.
                None => {
                    patience = if patience.is_zero() { PATIENCE } else { patience };
                    patience
                }
            };
            if wait > patience {
                let wait = wait.saturating_add(late_by);
                (self.lookout, self.due) = (Some(ticket), now.saturating_add(wait));
                self.watch = Watch::Room(runtime.alarm(wait, &first.get().waker));
                return;
            }
            if !patience.is_zero() {
                (self.lookout, self.due) = (Some(ticket), now.saturating_add(patience));
                self.watch = Watch::Patience(runtime.alarm(patience, &first.get().waker));
                return;
            }
            let waiter = first.remove();
            if me != Some(ticket) {
                after.wake(waiter.waker);
            } else {
                after.forget(waiter.waker);
            }
            self.told.insert(ticket, permits);
            self.told_permits = self.told_permits.saturating_add(permits);
            self.told_at = now;
            if self.told.len() >= MOST_TOLD {
                patience = PATIENCE;
            }
        }
    }
}
