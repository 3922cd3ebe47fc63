//! The task that renews leases. It sends the requests that are due, many in one call, and repeats each until it is
//! answered.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::time::Duration;

use tokio::time::{Instant, timeout};

use super::table::{Inner, LeaseTable};
use crate::shared::store::{Counting, LeaseGrant, LeaseRequest, StoreError, StoreErrorKind};

/// Ends all waits for answers when the task ends, with its runtime or by a panic. No lease is renewed after that.
struct EndsWaits(Weak<LeaseTable>);

impl Drop for EndsWaits {
    fn drop(&mut self) {
        if let Some(table) = self.0.upgrade() {
            table.end();
        }
    }
}

/// The task of a table, which runs until the table is dropped. It keeps the table alive only while it works, and during a call.
pub(crate) fn run(table: &Arc<LeaseTable>, period: Duration) -> impl Future<Output = ()> + Send + use<> {
    let (wake, table) = (Arc::clone(&table.wake), Arc::downgrade(table));
    // Not inside the task, because the runtime may end before it polls the task.
    let ends_waits = EndsWaits(Weak::clone(&table));
    async move {
        let _ends_waits = ends_waits;
        let mut next = Instant::now();
        loop {
            let now = Instant::now();
            let period_is_over = now >= next;
            if period_is_over {
                // A random part of the period, so that nodes do not call at the same moment.
                next = now + jittered(period);
            }
            match table.upgrade() {
                Some(table) => table.round(period_is_over),
                None => return,
            }
            // The next round begins when the task is woken or the period is over.
            let _ = timeout(next.saturating_duration_since(Instant::now()), wake.notified()).await;
        }
    }
}

/// A random time between half of `wait` and one and a half times `wait`, so that nodes do not act at the same moment.
pub(crate) fn jittered(wait: Duration) -> Duration {
    wait / 2 + crate::time::jitter(wait)
}

/// The largest weight of a call of several requests, since a script must not keep the server from other clients for long. A
/// request weighs 1, and 1 more for each [`LOGGED_PER_WEIGHT`] permits that it charges to a log.
const MAX_WEIGHT: u64 = 32;

/// The permits charged to a log that weigh as much as a request.
const LOGGED_PER_WEIGHT: u64 = 8;

/// The largest number of concurrent calls of requests that weigh 1. Heavier requests need more calls.
const MAX_CALLS: usize = 8;

/// A request to send now, and the position of its lease.
type DueRequest = (usize, LeaseRequest);

/// A call of the store. Dropping it applies the answers. A request without an answer fails: the store has returned too few
/// answers or panicked, or the runtime has ended.
struct StoreCall {
    table: Arc<LeaseTable>,
    batch: Vec<DueRequest>,
    /// The time at which the requests were sent.
    sent_at: u64,
    grants: Vec<Result<LeaseGrant, StoreError>>,
}

impl StoreCall {
    async fn run(mut self) {
        let requests: Vec<LeaseRequest> = self.batch.iter().map(|(_, request)| request.clone()).collect();
        if let Some(leases) = self.table.store.leases() {
            self.grants = leases.renew(&requests).await;
        }
    }
}

impl Drop for StoreCall {
    fn drop(&mut self) {
        let missing = || {
            let detail = "fewer answers than lease requests";
            Err(StoreError::new(StoreErrorKind::UnexpectedReply, detail))
        };
        let mut grants = core::mem::take(&mut self.grants);
        grants.resize_with(self.batch.len(), missing);
        // Claim: shared dropped futures, a call that panics fails its reports.
        self.table.answer(&self.batch, grants, self.sent_at);
    }
}

/// The requests of each call, in their order, so that no call of several requests exceeds [`MAX_WEIGHT`].
fn in_batches(requests: Vec<DueRequest>) -> Vec<Vec<DueRequest>> {
    let mut batches: Vec<Vec<DueRequest>> = Vec::new();
    let mut weight = 0;
    for (at, request) in requests {
        let logged = match request.counter.counting() {
            Counting::Log => request.charge / LOGGED_PER_WEIGHT,
            Counting::Cells(_) | Counting::Gcra(_) | Counting::Slots | Counting::Violations => 0,
        };
        match batches.last_mut() {
            Some(batch) if weight + logged < MAX_WEIGHT => batch.push((at, request)),
            Some(_) | None => {
                batches.push(alloc::vec![(at, request)]);
                weight = 0;
            }
        }
        weight += 1 + logged;
    }
    batches
}

impl LeaseTable {
    /// Sends the requests that are due: of the dirty leases, and with `period_is_over` also of all watched leases.
    fn round(self: &Arc<Self>, period_is_over: bool) {
        let now = self.clock.exact();
        let mut inner = self.lock();
        let mut requests: Vec<DueRequest> = Vec::new();
        let has_room = |inner: &Inner, requests: &Vec<DueRequest>| {
            requests.len() < (MAX_CALLS - inner.calls.min(MAX_CALLS)) * MAX_WEIGHT as usize
        };
        let mut late: Vec<usize> = Vec::new();
        // Leases that found no room in the last round come first, so that others in demand do not keep them waiting.
        self.dirty.drain(inner.late_from, |at| {
            inner.watch(at);
            if has_room(&inner, &requests) {
                requests.extend(self.request(&mut inner, at, now, true));
            } else {
                late.push(at);
            }
        });
        inner.late_from = late.first().map_or(inner.late_from, |&at| at);
        // These leases wait until a call has ended.
        for at in late {
            self.dirty.insert(at);
        }
        if period_is_over {
            let mut watched = core::mem::take(&mut inner.watched);
            watched.retain(|&at| {
                if has_room(&inner, &requests) {
                    requests.extend(self.request(&mut inner, at, now, false));
                } else {
                    self.dirty.insert(at);
                }
                let busy = inner.managers[at].is_busy(&self.states[at]);
                inner.is_watched[at] = busy;
                busy
            });
            inner.watched = watched;
        }
        let batches = in_batches(requests);
        inner.calls += batches.len();
        // Without the lock: if the runtime has ended, `spawn` drops the call at once, and the drop takes the lock.
        drop(inner);
        for batch in batches {
            let call = StoreCall {
                table: Arc::clone(self),
                batch,
                sent_at: now,
                grants: Vec::new(),
            };
            tokio::spawn(call.run());
        }
    }

    /// Returns the request about a lease, if one is due. Charges the fallback limiter, too.
    fn request(&self, inner: &mut Inner, at: usize, now: u64, dirty: bool) -> Option<DueRequest> {
        let new_id = inner.new_lease_id();
        let (manager, state) = (&mut inner.managers[at], &self.states[at]);
        match manager.request(state, now, dirty, || new_id) {
            Some((request, fallback)) => {
                self.charge_fallback_of(manager, fallback);
                Some((at, request))
            }
            None => {
                self.charge_fallback(inner, at);
                None
            }
        }
    }

    fn answer(&self, batch: &[DueRequest], grants: Vec<Result<LeaseGrant, StoreError>>, sent_at: u64) {
        let now = self.clock.exact();
        {
            let mut inner = self.lock();
            inner.calls -= 1;
            for ((at, request), grant) in batch.iter().zip(grants) {
                let new_id = inner.new_lease_id();
                let manager = &mut inner.managers[*at];
                match grant {
                    Ok(grant) => {
                        let answer = (request, grant);
                        let fallback = manager.answer(&self.states[*at], answer, (sent_at, now), || new_id);
                        self.charge_fallback_of(manager, fallback.unwrap_or(0));
                    }
                    Err(error) => {
                        manager.fail(request);
                        inner.error = Some(error);
                    }
                }
            }
        }
        for (at, _) in batch {
            self.answer_of(*at).notify_waiters();
        }
        // The flusher continues with the leases that waited for a call to end.
        self.wake.notify_one();
    }
}
