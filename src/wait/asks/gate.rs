use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use crate::shared::QuotaStatus;
use crate::time::Nanos;
use crate::wait::queue::Ticket;

/// The number of an ask. A later ask has a higher one.
pub(super) type AskNumber = u64;

/// The longest time for which an ask keeps later waiters from asking. Most calls of a store end before, and a task that is not
/// polled must not delay the others for longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// A denial of a request by one state.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateDenial {
    pub(super) at: Nanos,
    /// The time at which the request asks again.
    pub(super) until: Nanos,
    /// The earliest time at which the state may have capacity for the request.
    pub(super) earliest: Nanos,
    /// The number of rechecks when the decision began.
    pub(super) began: u64,
    pub(super) ticket: Ticket,
}

/// The gate of one state, through which its waiters ask for a decision: [the protocol](super).
#[derive(Debug)]
pub(super) struct Gate {
    /// The waits that have entered. Without any, the gate is removed.
    pub(super) waits: usize,
    /// The asks of this state that have not ended, with the time at which each began.
    asking: BTreeMap<AskNumber, Nanos>,
    /// The admissions of asks that began since the last denial. `None`: the gate is not limited, because no denial has named the state.
    admissions: Option<usize>,
    /// The number of the first ask that begins after the last denial.
    counted: AskNumber,
    /// The denial that has closed the gate for its wait and for later ones.
    closed: Option<StateDenial>,
    /// The number of the last recheck of this state. A denial of an ask that began before does not close the gate.
    rechecked: u64,
    /// The statuses of the quotas that the last denial has named.
    statuses: Vec<QuotaStatus>,
}

impl Gate {
    /// An open gate without a limit, after this number of rechecks.
    pub(super) const fn new(rechecked: u64) -> Self {
        Self {
            waits: 0,
            asking: BTreeMap::new(),
            admissions: None,
            counted: 0,
            closed: None,
            rechecked,
            statuses: Vec::new(),
        }
    }

    pub(super) const fn is_limited(&self) -> bool {
        self.admissions.is_some()
    }

    /// The time until this number of waiters may ask together, of which the first has this ticket. `None` if they are more than may
    /// ask at once.
    pub(super) fn ready_in(&self, now: Nanos, ticket: Ticket, asks: usize) -> Option<Duration> {
        let closed = self.closed_in(now, ticket);
        let Some(admissions) = self.admissions else {
            return Some(closed);
        };
        let excess = (self.asking.len() + asks).saturating_sub(admissions.max(1));
        match excess {
            0 => Some(closed),
            // So many asks must end first, or exceed the patience. They are in the order in which they began.
            1.. => {
                let began = self.asking.values().nth(excess - 1)?;
                Some(closed.max(began.saturating_add(PATIENCE).saturating_since(now)))
            }
        }
    }

    /// The denial that has closed the gate for the wait with this ticket.
    fn closed_for(&self, ticket: Ticket) -> Option<&StateDenial> {
        // Claim: asks 4, a gate is open for the waits before the one that has closed it.
        self.closed.as_ref().filter(|denied| denied.ticket <= ticket)
    }

    /// The time until the gate is no longer closed for the wait with this ticket.
    pub(super) fn closed_in(&self, now: Nanos, ticket: Ticket) -> Duration {
        let closed = self.closed_for(ticket);
        closed.map_or(Duration::ZERO, |denied| denied.until.saturating_since(now))
    }

    /// A lower bound of the time until the wait with this ticket is admitted.
    pub(super) fn earliest_in(&self, now: Nanos, ticket: Ticket) -> Duration {
        let closed = self.closed_for(ticket);
        closed.map_or(Duration::ZERO, |denied| denied.earliest.saturating_since(now))
    }

    pub(super) fn begin(&mut self, ask: AskNumber, now: Nanos) {
        self.asking.insert(ask, now);
    }

    pub(super) fn end(&mut self, ask: AskNumber) {
        self.asking.remove(&ask);
    }

    /// Counts the admission of an ask that began after the last denial. Then one more waiter may ask at once.
    pub(super) fn count_admission(&mut self, ask: AskNumber) {
        if ask >= self.counted {
            self.admissions = self.admissions.map(|admissions| admissions.saturating_add(1));
        }
    }

    /// Keeps the statuses of a denial. From then on one waiter asks at a time. The next ask will have this number.
    pub(super) fn deny(&mut self, next: AskNumber, statuses: Vec<QuotaStatus>) {
        (self.admissions, self.counted, self.statuses) = (Some(0), next, statuses);
    }

    /// Closes the gate for the denied wait and for later ones until this time, unless it was rechecked since the ask began, or is
    /// closed by an earlier wait.
    pub(super) fn close(&mut self, denied: StateDenial) {
        if self.closed_in(denied.at, denied.ticket).is_zero() {
            // A later wait that has closed the gate will be behind this one.
            self.closed = None;
            // Claim: asks 3, a denial that may be older than a recheck does not close the gate.
            if self.rechecked <= denied.began {
                self.closed = Some(denied);
            }
        }
    }

    /// Opens the gate if this wait has closed it. Returns whether it was closed.
    pub(super) fn open_by(&mut self, ticket: Ticket, now: Nanos) -> bool {
        let own = self.closed.take_if(|denied| denied.ticket == ticket);
        own.is_some_and(|denied| denied.until > now)
    }

    /// Opens the gate, because capacity may have been freed.
    pub(super) const fn recheck(&mut self, rechecks: u64) {
        self.rechecked = rechecks;
        self.closed = None;
    }

    /// Opens the gate without a limit, because the store does not answer, so that each waiter finds this out at once.
    pub(super) fn remove_limit(&mut self) {
        (self.admissions, self.closed) = (None, None);
        self.statuses = Vec::new();
    }

    /// The statuses of the quotas that keep the wait with this ticket from asking, with the time that is left.
    pub(super) fn statuses(&self, now: Nanos, ticket: Ticket) -> impl Iterator<Item = QuotaStatus> {
        let left = self.closed_in(now, ticket);
        self.statuses.iter().map(move |status| QuotaStatus {
            retry_after: status.retry_after.map(|_| left),
            reset_after: status.reset_after.map(|_| left),
            ..status.clone()
        })
    }
}
