use super::state_decision::StateDecision;
use crate::algorithm::{Algorithm, AnyAlgorithm, Reclaim};
use crate::decision::{Peek, StateRef};
use crate::keyed::{CapacityLeft, Charged, Decider, KeyStates, OnFull};
use crate::own_words::OwnWords;
use crate::receipt::Receipt;
use crate::sync::{Ordering, Shared};
use crate::table::{Entry, SeenWord};
use crate::time::Nanos;

/// The words of one state.
#[derive(Debug)]
pub(crate) enum StateStorage {
    /// The words of one limiter, for all requests together.
    Single(OwnWords),
    /// A table with words for each key.
    Keyed(KeyStates),
}

/// The place where the words of a key were found. In a keyed state it is only a hint, which each operation validates.
#[derive(Clone, Copy)]
pub(crate) enum StorageLookup<'a> {
    Single(&'a OwnWords),
    /// The table, and the result of the lookup.
    Keyed(&'a KeyStates, Option<Entry<'a>>),
}

impl StateStorage {
    #[inline(always)]
    pub(crate) fn find(&self, key: u64) -> StorageLookup<'_> {
        match self {
            Self::Single(words) => StorageLookup::Single(words),
            Self::Keyed(states) => StorageLookup::Keyed(states, states.table().find(key)),
        }
    }

    /// Decides a request for `permits` of `key`, at the time that `now` returns. `now` is called while memory is being prefetched.
    ///
    /// It is never inlined, because the caller's variables would take the registers that the decision needs.
    #[inline(never)]
    pub(crate) fn decide(
        &self,
        algorithm: &impl Reclaim,
        on_full: &OnFull,
        key: u64,
        now: impl FnOnce() -> Nanos,
        permits: u64,
    ) -> StateDecision {
        match self {
            Self::Single(words) => {
                let at = now();
                let receipt = algorithm.decide(Shared::new(words.get()), at, permits);
                StateDecision::new(at, receipt.is_some(), false)
            }
            Self::Keyed(states) => {
                let found = states.table().find_in_primary(key);
                let at = now();
                match Decider::new(states, algorithm, on_full).charge_found(found, key, at, permits) {
                    Some(receipt) => StateDecision::new(at, receipt.is_some(), false),
                    None => match Decider::charge_inserting(states, algorithm, on_full, key, at, permits) {
                        Ok(charged) => StateDecision::new(at, true, charged.overflow),
                        Err(overflow) => StateDecision::new(at, false, overflow),
                    },
                }
            }
        }
    }

    /// The number of keys with an entry. `None` if the words are of all requests together.
    pub(crate) fn tracked_keys(&self) -> Option<u64> {
        match self {
            Self::Single(_) => None,
            Self::Keyed(states) => Some(states.table().counts().sum().tracked),
        }
    }

    /// Removes the counts of `key`. Returns false if it has no entry, or if these words are not those of one key.
    pub(crate) fn reset(&self, algorithm: &AnyAlgorithm, key: u64, now: Nanos) -> bool {
        match self {
            Self::Single(_) => false,
            Self::Keyed(states) => Decider::new(states, algorithm, &OnFull::Share).reset(key, now),
        }
    }

    /// The latest time in the key's words, or zero if they have none. Later operations must not use an earlier time.
    pub(crate) fn latest_time(&self, algorithm: &AnyAlgorithm, key: u64) -> Nanos {
        let first = match self {
            // Relaxed: the caller has synchronized with the writers that it needs to see (*grace* in rules/protocol.md).
            Self::Single(words) => words.get()[0].load(Ordering::Relaxed),
            Self::Keyed(states) => states.table().first_state_word(key),
        };
        // The word of a bucket is the time at which the bucket will be full, and not the time of an event.
        if algorithm.is_bucket() {
            Nanos::ZERO
        } else {
            algorithm.latest_time(first)
        }
    }

    /// Refunds a charge. Returns false if the algorithm can no longer refund it.
    pub(crate) fn refund(
        &self,
        algorithm: &AnyAlgorithm,
        on_full: &OnFull,
        key: u64,
        receipt: &Receipt,
        permits: u64,
    ) -> bool {
        match self {
            Self::Single(words) => {
                permits == 0 || algorithm.refund(Shared::new(words.get()), receipt, permits)
            }
            Self::Keyed(states) => Decider::new(states, algorithm, on_full).refund(key, receipt, permits),
        }
    }

    #[inline(never)]
    pub(crate) fn peek<'a>(
        &'a self,
        algorithm: &'a AnyAlgorithm,
        on_full: &'a OnFull,
        key: u64,
        now: Nanos,
    ) -> Peek<'a, AnyAlgorithm> {
        match self {
            Self::Single(words) => Peek::new(algorithm, StateRef::Own(words), now),
            Self::Keyed(states) => {
                // Most keys have an entry in their primary bucket. A search of the whole table would give the same view.
                if let Some(entry) = states.table().find_in_primary(key)
                    && SeenWord::read(entry, key).is_some()
                {
                    return Peek::new(algorithm, StateRef::Entry(entry, key), now);
                }
                Decider::new(states, algorithm, on_full).peek(key, now)
            }
        }
    }

    /// Charges as many of `permits` as the key's state can hold, and returns this number. The algorithm must have no limit of its own.
    /// A key without an entry is charged to the catch-all, and cannot get an entry until that charge expires.
    pub(crate) fn charge_debt(&self, algorithm: &AnyAlgorithm, key: u64, now: Nanos, permits: u64) -> u64 {
        match self {
            Self::Single(words) => algorithm.charge(Shared::new(words.get()), now, permits),
            Self::Keyed(states) => {
                Decider::new(states, algorithm, &OnFull::Share).charge_debt(key, now, permits)
            }
        }
    }
}

impl StorageLookup<'_> {
    /// The most permits that one request would be granted now.
    #[inline(always)]
    pub(crate) fn capacity_left(
        self,
        algorithm: &AnyAlgorithm,
        on_full: &OnFull,
        key: u64,
        now: Nanos,
    ) -> CapacityLeft {
        match self {
            Self::Single(words) => CapacityLeft {
                permits: algorithm.remaining(Shared::new(words.get()), now),
                overflow: false,
            },
            Self::Keyed(states, found) => {
                Decider::new(states, algorithm, on_full).capacity_left(found, key, now)
            }
        }
    }

    /// Charges all `permits` or none. The error is whether the overflow policy denied, because the key had no entry.
    #[inline(always)]
    pub(crate) fn charge(
        self,
        algorithm: &AnyAlgorithm,
        on_full: &OnFull,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Result<Charged, bool> {
        match self {
            Self::Single(words) => match algorithm.decide(Shared::new(words.get()), now, permits) {
                Some(receipt) => Ok(Charged {
                    receipt,
                    overflow: false,
                }),
                None => Err(false),
            },
            Self::Keyed(states, found) => {
                Decider::new(states, algorithm, on_full).charge_with(found, key, now, permits)
            }
        }
    }
}
