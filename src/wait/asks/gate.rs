use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use crate::shared::QuotaStatus;
use crate::time::Nanos;

/// The number of an ask. A later ask has a higher one.
pub(super) type AskNumber = u64;

/// The longest time for which an ask keeps later waiters from asking. Most calls of a store end before, and a task that is not
/// polled must not delay the others for longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// A denial of a request by one state.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateDenial {
    pub(super) at: Nanos,
    /// The time at which the state may have capacity.
    pub(super) until: Nanos,
    /// The number of rechecks when the decision began.
    pub(super) began: u64,
    /// Whether it was the turn of the request to ask. Otherwise it was decided without a turn.
    pub(super) had_turn: bool,
}

/// The gate of one state, through which its waiters ask for a decision: [the protocol](super).
#[derive(Debug)]
pub(super) struct Gate {
    /// The waits that have entered. Without any, the gate is removed.
    pub(super) waits: usize,
    /// The asks of this state that have not ended, with the time at which each began.
    asking: BTreeMap<AskNumber, Nanos>,
    /// The admissions since the last denial. `None`: the gate is not limited, because no denial has named the state.
    admissions: Option<usize>,
    /// The time at which the state may have capacity again, as the last denial has said.
    closed_until: Nanos,
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
            closed_until: Nanos::ZERO,
            rechecked,
            statuses: Vec::new(),
        }
    }

    pub(super) const fn is_limited(&self) -> bool {
        self.admissions.is_some()
    }

    /// The time until this number of waiters may ask together. `None` if they are more than may ask at once.
    pub(super) fn ready_in(&self, now: Nanos, asks: usize) -> Option<Duration> {
        let closed = self.closed_in(now);
        let Some(admissions) = self.admissions else {
            return Some(closed);
        };
        match (self.asking.len() + asks).saturating_sub(admissions.max(1)) {
            0 => Some(closed),
            // The asks are in the order in which they began.
            before => {
                let began = self.asking.values().nth(before - 1)?;
                Some(closed.max(began.saturating_add(PATIENCE).saturating_since(now)))
            }
        }
    }

    /// The time until the gate is no longer closed.
    pub(super) fn closed_in(&self, now: Nanos) -> Duration {
        self.closed_until.saturating_since(now)
    }

    pub(super) fn begin(&mut self, ask: AskNumber, now: Nanos) {
        self.asking.insert(ask, now);
    }

    pub(super) fn end(&mut self, ask: AskNumber) {
        self.asking.remove(&ask);
    }

    /// Counts an admission, after which one more waiter may ask at once.
    pub(super) fn count_admission(&mut self) {
        self.admissions = self.admissions.map(|admissions| admissions.saturating_add(1));
    }

    /// Keeps the statuses of a denial, and closes the gate until this time, unless it was rechecked since the ask began. From then on
    /// one waiter asks at a time.
    pub(super) fn close(&mut self, denied: StateDenial, statuses: Vec<QuotaStatus>) {
        (self.admissions, self.statuses) = (Some(0), statuses);
        // Claim: asks 3, a denial that may be older than a recheck does not close the gate.
        if self.rechecked <= denied.began {
            self.closed_until = match self.closed_until > denied.at {
                // Of several waiters that asked together, the one that may be admitted first decides.
                true if denied.had_turn => self.closed_until.min(denied.until),
                // The request will be behind the waiter that has closed the gate.
                true => self.closed_until,
                false => denied.until,
            };
        }
    }

    /// Opens the gate, because capacity may have been freed.
    pub(super) const fn recheck(&mut self, rechecks: u64) {
        self.rechecked = rechecks;
        self.closed_until = Nanos::ZERO;
    }

    /// Opens the gate without a limit, because the store does not answer, so that each waiter finds this out at once.
    pub(super) fn remove_limit(&mut self) {
        (self.admissions, self.closed_until) = (None, Nanos::ZERO);
        self.statuses = Vec::new();
    }

    /// The statuses of the quotas that keep waiters from asking, with the time that is left.
    pub(super) fn statuses(&self, now: Nanos) -> impl Iterator<Item = QuotaStatus> {
        let left = self.closed_in(now);
        self.statuses.iter().map(move |status| QuotaStatus {
            retry_after: status.retry_after.map(|_| left),
            reset_after: status.reset_after.map(|_| left),
            ..status.clone()
        })
    }
}
