//! The slots in flight that this node holds in the store.
//!
//! # Protocol
//!
//! A slot has a name that no other slot has. The store keeps the name with the time at which the slot ends.
//!
//! | event | step of the store | by |
//! |---|---|---|
//! | *hold* | add the slot, which ends a term later | a decision, while fewer slots than the limit are held |
//! | *renew* | make the slot end a term later | the task of the node, four times in a term |
//! | *release* | remove the slot | the task, after the admission is dropped |
//!
//! A *renew* adds the slot again if the store has lost it.
//!
//! # Proof sketch
//!
//! 1. **At most the limit is held**, while the store forgets nothing and each node renews its slots in time. *Hold* compares the
//!    number of slots with the limit and adds one in a single step of the store. A slot counts until its release, because each
//!    *renew* comes before its end. Releases do not delay it: the task sends them in parts, and a *renew* that is due before the
//!    next part. A wait for releases makes no calls. (tests
//!    `random_histories_of_nodes_hold_at_most_the_limit`, `slots_are_renewed_in_time_beside_any_number_of_releases`)
//! 2. **No slot stays held.** A slot that is not renewed ends. The task renews the slots in `held`, and a slot leaves `held` when
//!    its admission is dropped. A *renew* that was sent before is answered before the *release* is sent, because renewals and
//!    releases are made one after the other. If the future that sends a *release* is dropped, the task sends it again. The task
//!    releases a slot also if its admission was the last owner of the keeper, such as after a reload. If a *renew* has failed, it
//!    may still be executed after the *release*. Then the slot ends a term after it. (tests
//!    `the_slots_of_a_node_that_vanishes_are_free_within_a_term`, `a_renewal_is_answered_before_a_release_is_sent`,
//!    `a_flush_that_is_dropped_releases_everything`)
//! 3. **A release frees no slot of another request**, because no other slot has its name.
//! 4. **The store learns of all slots again after it has forgotten them**, from the next *renew*. Until then it admits too many.
//!    (test `the_store_learns_of_the_slots_again_after_a_reset`)

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::plan::CountedSlot;
use super::store::{
    CheckResult, CounterRequest, CounterStatus, CounterStore, SlotId, StoreError, StoreErrorKind,
    StoreFuture, join_all,
};
use crate::rules::evaluate::needed_state::RELEASE_CHECK;
use crate::sync::AtomicU64;

/// The slots of an admitted request in the store. Dropping it releases them.
#[derive(Debug)]
pub(super) struct StoreSlots {
    keeper: Arc<SlotKeeper>,
    slots: Vec<SlotId>,
    _counted: Vec<CountedSlot>,
}

impl Drop for StoreSlots {
    fn drop(&mut self) {
        self.keeper.release(&self.slots);
    }
}

/// The slots that this node holds in the store, for the task that renews and releases them.
pub(super) struct SlotKeeper {
    store: Arc<dyn CounterStore>,
    term: Duration,
    /// The first number of the names of this node's slots.
    node: u64,
    /// The second number of the next name.
    next: AtomicU64,
    /// Held for a few instructions for each slot, and never across an await.
    slots: Mutex<Slots>,
    /// Held during a call, so that no renewal of a slot is sent beside its release.
    calls: tokio::sync::Mutex<()>,
    /// Notified when a slot is released. The task waits for it, and keeps nothing else alive.
    wake: Arc<Notify>,
}

/// The slots of a node, as its tasks know them.
#[derive(Default)]
struct Slots {
    held: HashMap<SlotId, CounterRequest>,
    /// The slots that the store is to release.
    released: VecDeque<CounterRequest>,
    /// The number of slots that were dropped so far, which is the number of the last one.
    dropped: u64,
    /// The number of the last slot whose release was answered or has failed. Releases are sent in the order of these numbers.
    answered: u64,
    /// The waits for the answer to the release with this number, in the order of the numbers.
    waits: VecDeque<(u64, oneshot::Sender<()>)>,
    /// The keeper itself, until the task has released these slots. The admission may have been the last owner of the keeper.
    alive: Option<Arc<SlotKeeper>>,
    /// Whether the task has ended, with its runtime. No slot is renewed after that.
    has_ended: bool,
}

/// The most slots of one call, since a script must not keep the server from other clients for long.
const SLOTS_PER_CALL: usize = 32;

/// The most slots of the calls that are made at once.
const SLOTS_AT_ONCE: usize = 8 * SLOTS_PER_CALL;

/// The renewals of a slot in a term.
const RENEWALS: u32 = 4;

/// The largest number in a name. Stores may keep numbers as floating-point values, which are exact below 2^53.
const MAX_NUMBER: u64 = (1 << 53) - 1;

impl SlotKeeper {
    /// Creates a keeper without slots. `node` is a random number.
    pub(super) fn new(store: Arc<dyn CounterStore>, term: Duration, node: u64) -> Self {
        Self {
            store,
            term,
            node: node & MAX_NUMBER,
            next: AtomicU64::new(0),
            slots: Mutex::default(),
            calls: tokio::sync::Mutex::new(()),
            wake: Arc::new(Notify::new()),
        }
    }

    /// A name for a slot.
    pub(super) fn name(&self) -> SlotId {
        // Relaxed: the number is only unique. It publishes no other memory.
        // Claim: slots 3, no two slots have one name.
        (self.node, self.next.fetch_add(1, Ordering::Relaxed) & MAX_NUMBER)
    }

    /// The error of a request that needs a slot, once no slot is renewed any more.
    pub(super) fn error_at_end(&self) -> Option<StoreError> {
        let ended = "the runtime of the task that renews slots in flight has ended";
        self.lock()
            .has_ended
            .then(|| StoreError::new(StoreErrorKind::Down, ended))
    }

    /// Keeps slots that the store has admitted, and that are counted for their rules.
    pub(super) fn hold(
        self: &Arc<Self>,
        requests: Vec<CounterRequest>,
        counted: Vec<CountedSlot>,
    ) -> Option<StoreSlots> {
        if requests.is_empty() {
            return None;
        }
        let slots = requests.iter().map(CounterRequest::slot).collect();
        self.lock()
            .held
            .extend(requests.into_iter().map(|request| (request.slot(), request)));
        Some(StoreSlots {
            keeper: Arc::clone(self),
            slots,
            _counted: counted,
        })
    }

    fn release(self: &Arc<Self>, slots: &[SlotId]) {
        let mut inner = self.lock();
        for slot in slots {
            let request = inner.held.remove(slot);
            if !inner.has_ended {
                inner.dropped += u64::from(request.is_some());
                inner.released.extend(request);
            }
        }
        if !inner.has_ended {
            inner.alive = Some(Arc::clone(self));
        }
        drop(inner);
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        // No operation under the lock panics half way, so a poisoned lock protects whole values.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the task has released the slots that were dropped before, for at most the time after which a waiter asks again
    /// anyway. It makes no calls itself, so no number of waits delays a renewal.
    pub(super) async fn wait_for_releases(&self) {
        let answered = {
            let mut inner = self.lock();
            if inner.has_ended || inner.answered == inner.dropped {
                return;
            }
            let (done, answered) = oneshot::channel();
            let dropped = inner.dropped;
            inner.waits.push_back((dropped, done));
            answered
        };
        // The answer is that the sender was dropped.
        let _ = timeout(RELEASE_CHECK, answered).await;
    }

    /// Releases the dropped slots in the store, and returns the first error. The slots of a failed call end after their term.
    pub(super) async fn release_in_store(&self) -> Result<(), StoreError> {
        let mut result = Ok(());
        let released = self.lock().released.len();
        // At least once, because the task may be releasing some, and `release_some` waits for that.
        for _ in 0..=released / SLOTS_AT_ONCE {
            result = result.and(self.release_some().await);
        }
        result
    }

    /// Releases some slots in the store, at most as many as may be sent without delaying a due renewal for long.
    async fn release_some(&self) -> Result<(), StoreError> {
        let _one_call = self.calls.lock().await;
        let mut sent = self.take_released();
        let calls = sent
            .slots
            .chunks(SLOTS_PER_CALL)
            .map(|slots| -> StoreFuture<'_, u64> {
                let statuses = slots.iter().map(|_| CounterStatus::with_room(0)).collect();
                let held = CheckResult::admitted(0, statuses);
                Box::pin(async move { self.store.refund(slots, &held).await })
            });
        let answers = join_all(calls).await;
        sent.finish();
        answers.into_iter().try_for_each(|answer| answer.map(drop))
    }

    fn take_released(&self) -> SentReleases<'_> {
        let mut inner = self.lock();
        let some = inner.released.len().min(SLOTS_AT_ONCE);
        SentReleases {
            keeper: self,
            slots: inner.released.drain(..some).collect(),
            alive: match inner.released.is_empty() {
                true => inner.alive.take(),
                false => inner.alive.clone(),
            },
        }
    }

    /// Renews all slots in the store. A call that has failed is repeated by the next renewal.
    async fn renew(&self) {
        // Claim: slots 2, a release is sent after the answer to a renewal.
        let _one_call = self.calls.lock().await;
        let held: Vec<CounterRequest> = self.lock().held.values().cloned().collect();
        for some in held.chunks(SLOTS_AT_ONCE) {
            let calls = some.chunks(SLOTS_PER_CALL);
            // Claim: slots 1, a slot is renewed before it ends.
            join_all(calls.map(|slots| self.store.charge(slots))).await;
        }
    }

    /// Renews the slots if that `is_due`, and releases some of those that were dropped.
    async fn call(self: Arc<Self>, is_due: bool) {
        if is_due {
            self.renew().await;
        }
        // A slot that is not released ends after its term.
        let _ = self.release_some().await;
        if !self.lock().released.is_empty() {
            // A renewal that is due comes before the next releases.
            self.wake.notify_one();
        }
    }
}

/// Releases on their way to the store. If the future that waits for the answers is dropped, the task sends them again.
struct SentReleases<'a> {
    keeper: &'a SlotKeeper,
    slots: Vec<CounterRequest>,
    alive: Option<Arc<SlotKeeper>>,
}

impl SentReleases<'_> {
    /// Ends the waits for these releases.
    fn finish(&mut self) {
        let mut inner = self.keeper.lock();
        inner.answered += self.slots.len() as u64;
        self.slots.clear();
        let answered = inner.answered;
        // A dropped sender ends its wait.
        let ended = inner.waits.partition_point(|&(number, _)| number <= answered);
        inner.waits.drain(..ended);
    }
}

impl Drop for SentReleases<'_> {
    fn drop(&mut self) {
        if self.slots.is_empty() {
            return;
        }
        // If the store panics, the slots end after their term, as after an error. To send them again could panic for ever.
        if std::thread::panicking() {
            return self.finish();
        }
        let mut inner = self.keeper.lock();
        if !inner.has_ended {
            // In front, because releases are sent in the order of their numbers.
            for slot in self.slots.drain(..).rev() {
                inner.released.push_front(slot);
            }
            inner.alive = inner.alive.take().or(self.alive.take());
        }
        drop(inner);
        self.keeper.wake.notify_one();
    }
}

impl fmt::Debug for SlotKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotKeeper")
            .field("held", &self.lock().held.len())
            .finish_non_exhaustive()
    }
}

/// Records the end of the task when it is dropped, also if the runtime ends before it polls the task.
struct NotesEnd(Weak<SlotKeeper>);

impl Drop for NotesEnd {
    fn drop(&mut self) {
        if let Some(keeper) = self.0.upgrade() {
            let mut slots = keeper.lock();
            slots.has_ended = true;
            (slots.released, slots.waits) = Default::default();
            slots.alive = None;
        }
    }
}

/// The task of a keeper, which runs until the rules and all admissions with slots are dropped.
pub(super) fn run(keeper: &Arc<SlotKeeper>) -> impl Future<Output = ()> + Send + use<> {
    let (wake, period) = (Arc::clone(&keeper.wake), keeper.term / RENEWALS);
    let keeper = Arc::downgrade(keeper);
    // Not inside the task, which may never be polled.
    let notes_end = NotesEnd(Weak::clone(&keeper));
    async move {
        let _notes_end = notes_end;
        let mut next = Instant::now() + period;
        loop {
            let _ = timeout_at(next, wake.notified()).await;
            let Some(keeper) = keeper.upgrade() else { return };
            let is_due = Instant::now() >= next;
            if is_due {
                next = Instant::now() + period;
            }
            // In a task of its own, so that a panic of the store ends only this call.
            let _ = tokio::spawn(keeper.call(is_due)).await;
        }
    }
}
