//! All leases of a node: the position of each key's lease, and the fields that the leases share.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;
use tokio::sync::Notify;

use super::clock::{TermClock, nanos};
use super::dirty_set::DirtySet;
use super::manager::LeaseManager;
use super::state::{LeaseState, SpendResult, VACANT};
use super::stats::LeaseStats;
use super::terms::Lease;
use crate::rules::ShardId;
use crate::shared::plan::FallbackLimiters;
use crate::shared::store::{CounterStore, StoreError, StoreErrorKind};
use crate::sync::Tally;

/// The leases of a node.
pub(crate) struct LeaseTable {
    pub(crate) states: Box<[LeaseState]>,
    /// The leases that the flusher looks at before their period is over.
    pub(super) dirty: DirtySet,
    /// Notified when a lease must not wait for the next round. The flusher waits for it, and does not keep the table alive.
    pub(super) wake: Arc<Notify>,
    /// For each lease, a notification that its request was answered, or was not answered in time. There is one for each, so that
    /// an answer about another lease wakes no request.
    answers: Box<[Notify]>,
    pub(crate) clock: TermClock,
    pub(super) store: Arc<dyn CounterStore>,
    fallbacks: FallbackLimiters,
    /// Held for a few instructions for each lease, and never across an await. Spending does not need it.
    inner: Mutex<Inner>,
    counts: [CachePadded<LeaseCounts>; SHARDS],
}

/// The fields that the lock protects.
pub(crate) struct Inner {
    pub(crate) managers: Box<[LeaseManager]>,
    /// The leases that the flusher looks at in every period.
    pub(super) watched: Vec<usize>,
    /// For each lease, whether it is in `watched`.
    pub(super) is_watched: Box<[bool]>,
    /// The first half of the number of each lease of this node.
    node: u64,
    /// The number of leases so far.
    leases: u64,
    /// The first lease that had to wait for a call to end. The next round begins with it.
    pub(super) late_from: usize,
    /// Calls in progress.
    pub(super) calls: usize,
    pub(crate) error: Option<StoreError>,
    /// The error of every wait for an answer, once the task that renews leases has ended.
    pub(crate) error_at_end: Option<StoreError>,
}

/// Counts of requests that leases denied, and of those about which the store was asked although one of their rules uses leases.
#[derive(Debug, Default)]
pub(crate) struct LeaseCounts {
    pub(crate) denied: Tally,
    pub(crate) remote: Tally,
}

/// The number of adjacent leases of which a key may have one.
const BUCKET: usize = 4;

const ENDED: &str = "the runtime of the task that renews leases has ended";

/// The number of copies of the counts. There are several, so that few threads write to the same cache line.
const SHARDS: usize = 64;

impl LeaseTable {
    pub(crate) fn new(
        capacity: u64,
        clock: TermClock,
        store: Arc<dyn CounterStore>,
        fallbacks: FallbackLimiters,
        node: u64,
    ) -> Self {
        let buckets = usize::try_from(capacity).unwrap_or(usize::MAX).div_ceil(BUCKET);
        let all = buckets * BUCKET;
        Self {
            states: (0..all).map(|_| LeaseState::new()).collect(),
            dirty: DirtySet::new(all),
            wake: Arc::default(),
            answers: (0..all).map(|_| Notify::new()).collect(),
            clock,
            store,
            fallbacks,
            inner: Mutex::new(Inner {
                managers: (0..all).map(|_| LeaseManager::default()).collect(),
                watched: Vec::new(),
                is_watched: (0..all).map(|_| false).collect(),
                node,
                leases: 0,
                late_from: 0,
                calls: 0,
                error: None,
                error_at_end: None,
            }),
            counts: [(); SHARDS].map(|()| CachePadded::default()),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        // No operation under the lock panics half way, so a poisoned lock protects whole values.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn bucket_of(&self, key: u64) -> usize {
        let buckets = (self.states.len() / BUCKET) as u128;
        // The quotient is below the number of buckets.
        ((u128::from(key) * buckets) >> 64) as usize * BUCKET
    }

    /// The position of the key's lease, if it has one.
    #[inline]
    pub(crate) fn find(&self, key: u64) -> Option<usize> {
        let first = self.bucket_of(key);
        let own = |state: &LeaseState| state.owner() == key;
        let at = self.states[first..first + BUCKET].iter().position(own)?;
        Some(first + at)
    }

    /// The answer of the key's lease at this time. Takes nothing.
    #[inline]
    pub(crate) fn peek(&self, key: u64, permits: u64, now: u64) -> SpendResult {
        match self.find(key) {
            Some(at) => self.states[at].peek(key, permits, now),
            None => SpendResult::NotOwner,
        }
    }

    /// The permits that the key has left as far as this node knows: those of its lease, and those that the store had left
    /// for others at its last answer. `None`: the key has no lease.
    pub(crate) fn remaining(&self, key: u64) -> Option<u64> {
        let state = &self.states[self.find(key)?];
        Some(state.remaining(self.clock.now()))
    }

    /// Spends permits of the key's lease, and returns its position with the answer.
    #[inline(always)]
    pub(crate) fn spend(&self, key: u64, permits: u64) -> (usize, SpendResult) {
        let Some(at) = self.find(key) else {
            return (0, SpendResult::NotOwner);
        };
        let result = self.states[at].spend(key, permits, || self.clock.now());
        if let SpendResult::Covered {
            reached_half: true, ..
        } = result
        {
            self.mark_urgent(at);
        }
        (at, result)
    }

    /// The counters of this thread.
    pub(crate) fn counts(&self) -> &LeaseCounts {
        &self.counts[ShardId::current().index() % SHARDS]
    }

    /// The notification of answers about the lease.
    pub(crate) fn answer_of(&self, at: usize) -> &Notify {
        &self.answers[at]
    }

    /// The reason why no request waits for the next answer about the lease, if there is one: the last copy of the lease's request
    /// was not answered, and the next copy is sent a period later; or no lease is renewed any more.
    pub(crate) fn error_instead_of_wait(&self, at: usize) -> Option<StoreError> {
        let inner = self.lock();
        let is_failing = inner.managers[at].is_failing();
        let ended = inner.error_at_end.as_ref();
        ended
            .or_else(|| inner.error.as_ref().filter(|_| is_failing))
            .cloned()
    }

    /// The most unspent permits that the store may have registered for the key's lease.
    pub(crate) fn most_unspent(&self, key: u64) -> u64 {
        let Some(at) = self.find(key) else {
            return 0;
        };
        let inner = self.lock();
        // The lease may have been reassigned before this thread took the lock.
        match self.states[at].owner() == key {
            true => inner.managers[at].most_unspent(&self.states[at]),
            false => 0,
        }
    }

    /// Whether the next answer about the lease may grant permits.
    pub(crate) fn is_worth_waiting(&self, at: usize) -> bool {
        let is_worth_waiting = self.lock().managers[at].is_worth_waiting(&self.states[at]);
        is_worth_waiting && !self.states[at].is_closed(self.clock.now())
    }

    /// Ends all waits, since no lease is renewed any more.
    pub(super) fn end(&self) {
        self.lock().error_at_end = Some(StoreError::new(StoreErrorKind::Down, ENDED));
        for answer in &self.answers {
            answer.notify_waiters();
        }
    }

    /// Makes the flusher look at the lease at once.
    #[cold]
    pub(crate) fn mark_urgent(&self, at: usize) {
        self.dirty.insert(at);
        self.wake.notify_one();
    }

    /// Counts permits that a request asked for and the lease does not cover. A request of more than the lease may ever have is no
    /// demand for it: the lease would get permits that other nodes lack, and would still not cover the request.
    #[cold]
    pub(crate) fn note_shortage(&self, at: usize, permits: u64) {
        let inner = self.lock();
        let lease = inner.managers[at].lease();
        if lease.is_none_or(|lease| permits > lease.most_permits) {
            return;
        }
        drop(inner);
        let state = &self.states[at];
        state.note_shortage(permits);
        // A lease without a budget had no demand lately, so it waits for the next round.
        match state.balance().budget() > 0 {
            true => self.mark_urgent(at),
            false => self.dirty.insert(at),
        }
    }

    /// Returns the position of the key's lease. Begins a lease if the key has none and one is free.
    #[cold]
    pub(crate) fn find_or_begin(&self, key: u64, lease: impl FnOnce() -> Lease) -> Option<usize> {
        if let Some(at) = self.find(key) {
            return Some(at);
        }
        let now = self.clock.now();
        let mut inner = self.lock();
        // Another thread may have begun the key's lease before this one took the lock. No thread can begin it from here on.
        if let Some(at) = self.find(key) {
            return Some(at);
        }
        let first = self.bucket_of(key);
        let free = |at: &usize| inner.managers[*at].is_free(&self.states[*at], now);
        // A lease without an owner, or else the one with the least demand.
        let at = (first..first + BUCKET).filter(free).min_by_key(|&at| {
            (
                self.states[at].owner() != VACANT,
                inner.managers[at].target_permits(),
            )
        })?;
        // Before `assign`, which forgets the use of the former key.
        self.charge_fallback(&mut inner, at);
        if !self.states[at].reassign(key) {
            return None;
        }
        let lease_id = inner.new_lease_id();
        inner.managers[at].assign(lease(), lease_id, now);
        Some(at)
    }

    /// Charges the fallback limiter what the lease has admitted so far.
    pub(super) fn charge_fallback(&self, inner: &mut Inner, at: usize) {
        let more = inner.managers[at].take_fallback_charge(&self.states[at]);
        self.charge_fallback_of(&inner.managers[at], more);
    }

    pub(super) fn charge_fallback_of(&self, manager: &LeaseManager, permits: u64) {
        if let Some(lease) = manager.lease()
            && let Some((group, key, limit)) = lease.fallback
            && permits > 0
        {
            self.fallbacks.charge(group, key, limit, permits);
        }
    }

    /// Charges the fallback limiter what the key's lease has admitted so far, before that limiter decides.
    pub(crate) fn charge_fallback_of_key(&self, key: u64) {
        if let Some(at) = self.find(key) {
            self.charge_fallback(&mut self.lock(), at);
        }
    }

    /// Makes the key's lease deny by itself for a while, because the store has only `left` permits, and room for `permits` after
    /// the time `after`.
    pub(crate) fn close(&self, key: u64, left: u64, permits: u64, after: Duration) {
        let Some(at) = self.find(key) else { return };
        let now = self.clock.now();
        let inner = self.lock();
        // The lease may have been reassigned before this thread took the lock. It keeps its key from here on.
        if self.states[at].owner() == key
            && let Some(lease) = inner.managers[at].lease()
        {
            let after = nanos(after);
            let until = now.saturating_add(after.min(lease.period));
            self.states[at].close((now, until), left, (permits, now.saturating_add(after)));
        }
    }

    /// Lets the leases of these keys request permits again, since the store may have room.
    pub(crate) fn reopen(&self, keys: impl IntoIterator<Item = u64>) {
        for key in keys {
            let Some(at) = self.find(key) else { continue };
            let _inner = self.lock();
            // The lease may have been reassigned before this thread took the lock. It keeps its key from here on.
            if self.states[at].owner() == key {
                self.states[at].reopen();
            }
        }
    }

    pub(crate) fn stats(&self) -> LeaseStats {
        let now = self.clock.now();
        let mut stats = LeaseStats {
            capacity: self.states.len() as u64,
            denied: self.counts.iter().map(|counts| counts.denied.get()).sum(),
            remote: self.counts.iter().map(|counts| counts.remote.get()).sum(),
            ..LeaseStats::default()
        };
        let inner = self.lock();
        for (state, manager) in self.states.iter().zip(&inner.managers) {
            if state.owner() == VACANT {
                continue;
            }
            let (balance, reported) = (state.balance(), manager.reported_permits());
            stats.leases += 1;
            stats.uncharged += balance.used() + reported;
            stats.held += balance.budget() + reported;
            if balance.budget() + reported > 0 {
                let stale = Duration::from_nanos(now.saturating_sub(manager.term_began_at()));
                stats.stale = stats.stale.max(Some(stale));
            }
        }
        stats
    }
}

impl Inner {
    /// A number that no other lease of any node has had.
    pub(super) fn new_lease_id(&mut self) -> u128 {
        self.leases += 1;
        u128::from(self.node) << 64 | u128::from(self.leases)
    }

    pub(super) fn watch(&mut self, at: usize) {
        if !core::mem::replace(&mut self.is_watched[at], true) {
            self.watched.push(at);
        }
    }
}

impl fmt::Debug for LeaseTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeaseTable").field(&self.stats()).finish()
    }
}
