use core::fmt;

use super::state_decision::StateDecision;
use crate::algorithm::{AnyAlgorithm, Reclaim};
use crate::decision::{Peek, StateRef};
use crate::keyed::{self, OnFull, Store};
use crate::own_words::OwnWords;
use crate::receipt::Receipt;
use crate::sync::{Ordering, Shared};
use crate::table::{Entry, OccupiedWords, SeenWord};
use crate::time::Nanos;

/// The words of one state.
pub(crate) enum StateStorage {
    /// The words of one limiter, for all requests together.
    Single(OwnWords),
    /// A table with words for each key.
    Keyed(Store),
}

/// The capacity that was read for one request.
#[derive(Clone, Copy)]
pub(crate) struct CapacityLeft {
    /// The most permits that the request would be granted.
    pub(crate) permits: u64,
    /// Whether the overflow policy would decide, because the key found no entry.
    pub(crate) overflow: bool,
}

/// A charge to one state.
pub(crate) struct Charged {
    pub(crate) receipt: Receipt,
    /// Whether the overflow policy decided, because the key found no entry.
    pub(crate) overflow: bool,
}

impl fmt::Debug for StateStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single(words) => f.debug_tuple("Single").field(words).finish(),
            Self::Keyed(store) => f.debug_tuple("Keyed").field(store).finish(),
        }
    }
}

/// The place where the words of a key were found. In a keyed state it is only a hint, which each operation validates.
#[derive(Clone, Copy)]
pub(crate) enum StorageLookup<'a> {
    Single(&'a OwnWords),
    /// The table, and the result of the lookup.
    Keyed(&'a Store, Option<Entry<'a>>),
}

impl StateStorage {
    /// Looks up the words of `key`.
    #[inline(always)]
    pub(crate) fn find(&self, key: u64) -> StorageLookup<'_> {
        match self {
            Self::Single(words) => StorageLookup::Single(words),
            Self::Keyed(store) => StorageLookup::Keyed(store, store.table().find(key)),
        }
    }

    /// Decides a request for `permits` of `key`, at the time that `now` returns. `now` is called while memory is being prefetched.
    ///
    /// It is never inlined, because the caller's variables would take the registers that the decision needs.
    #[inline(never)]
    pub(crate) fn decide(
        &self,
        algorithm: &impl Reclaim,
        on_full: OnFull,
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
            Self::Keyed(store) => {
                let found = store.table().find_in_primary(key);
                let at = now();
                let decider = KeyDecider {
                    algorithm,
                    on_full,
                    key,
                };
                match decider.charge_found(store, found, at, permits) {
                    Some(receipt) => StateDecision::new(at, receipt.is_some(), false),
                    None => match KeyDecider::charge_inserting(store, algorithm, on_full, key, at, permits) {
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
            Self::Keyed(store) => Some(store.table().counts().sum().tracked),
        }
    }

    /// Removes the counts of `key`. Returns false if it has no entry, or if these words are not those of one key.
    pub(crate) fn reset(&self, algorithm: &AnyAlgorithm, key: u64, now: Nanos) -> bool {
        match self {
            Self::Single(_) => false,
            Self::Keyed(store) => {
                let decider = keyed::Decider {
                    store,
                    algorithm,
                    on_full: OnFull::Share,
                };
                decider.reset(key, now)
            }
        }
    }

    /// The latest time in the key's words, or zero if they have none. Later operations must not use an earlier time.
    pub(crate) fn latest_time(&self, algorithm: &AnyAlgorithm, key: u64) -> Nanos {
        let first = match self {
            // Relaxed: the caller has synchronized with the writers that it needs to see (*grace* in rules/protocol.md).
            Self::Single(words) => words.get()[0].load(Ordering::Relaxed),
            Self::Keyed(store) => store.table().first_state_word(key),
        };
        // The word of a bucket is the time at which the bucket will be full, and not the time of an event.
        if algorithm.is_bucket() {
            Nanos::ZERO
        } else {
            algorithm.latest_time(first)
        }
    }
}

/// An algorithm and an overflow policy, for one key of a state.
#[derive(Debug)]
pub(crate) struct KeyDecider<'a, A = AnyAlgorithm> {
    pub(crate) algorithm: &'a A,
    pub(crate) on_full: OnFull,
    pub(crate) key: u64,
}

impl<A> Clone for KeyDecider<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for KeyDecider<'_, A> {}

impl<'a, A: Reclaim> KeyDecider<'a, A> {
    #[inline(always)]
    fn keyed<'s>(self, store: &'s Store) -> keyed::Decider<'s, A>
    where
        'a: 's,
    {
        keyed::Decider {
            store,
            algorithm: self.algorithm,
            on_full: self.on_full,
        }
    }

    /// The most permits that one request would be granted now. Another thread may take them first.
    #[inline(always)]
    pub(crate) fn capacity_left(self, found: StorageLookup<'_>, now: Nanos) -> CapacityLeft {
        let own = |permits| CapacityLeft {
            permits,
            overflow: false,
        };
        match found {
            StorageLookup::Single(words) => own(self.algorithm.remaining(Shared::new(words.get()), now)),
            StorageLookup::Keyed(store, found) => {
                if let Some(entry) = found
                    && let Some(seen) = SeenWord::read(entry, self.key)
                {
                    let words = OccupiedWords::new(entry, self.key, &seen);
                    let left = self.algorithm.remaining(words, now);
                    // If the word is unchanged, the entry belonged to the key while the capacity was read. Otherwise the
                    // capacity may be that of another key.
                    if words.are_valid() {
                        return own(left);
                    }
                }
                Self::capacity_left_without_entry(store, self.algorithm, self.on_full, self.key, now)
            }
        }
    }

    /// The fields are separate arguments, so that the caller does not have to store them in memory.
    #[cold]
    #[inline(never)]
    fn capacity_left_without_entry(
        store: &Store,
        algorithm: &A,
        on_full: OnFull,
        key: u64,
        now: Nanos,
    ) -> CapacityLeft {
        let decider = keyed::Decider {
            store,
            algorithm,
            on_full,
        };
        let peek = decider.peek(key, now);
        CapacityLeft {
            permits: peek.remaining(),
            overflow: peek.is_overflow(),
        }
    }

    /// Charges all `permits` or none. The error is whether the overflow policy denied, because the key had no entry.
    #[inline(always)]
    pub(crate) fn charge(self, found: StorageLookup<'_>, now: Nanos, permits: u64) -> Result<Charged, bool> {
        match found {
            StorageLookup::Single(words) => {
                match self.algorithm.decide(Shared::new(words.get()), now, permits) {
                    Some(receipt) => Ok(Charged {
                        receipt,
                        overflow: false,
                    }),
                    None => Err(false),
                }
            }
            StorageLookup::Keyed(store, found) => match self.charge_found(store, found, now, permits) {
                Some(Some(receipt)) => Ok(Charged {
                    receipt,
                    overflow: false,
                }),
                Some(None) => Err(false),
                None => Self::charge_inserting(store, self.algorithm, self.on_full, self.key, now, permits),
            },
        }
    }

    /// Charges the entry that was found. `Some(None)` is a denial. `None` if none was found, the key has lost it, or another
    /// thread has changed the state first.
    #[inline(always)]
    fn charge_found(
        self,
        store: &Store,
        found: Option<Entry<'_>>,
        now: Nanos,
        permits: u64,
    ) -> Option<Option<Receipt>> {
        let entry = found?;
        let seen = SeenWord::read(entry, self.key)?;
        self.keyed(store).charge(entry, self.key, seen, now, permits)
    }

    /// Charges a key that was not found in its primary bucket, or whose state another thread has changed meanwhile. The fields
    /// are separate arguments, so that the caller does not have to store them in memory.
    #[cold]
    #[inline(never)]
    fn charge_inserting(
        store: &Store,
        algorithm: &A,
        on_full: OnFull,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Result<Charged, bool> {
        let decider = keyed::Decider {
            store,
            algorithm,
            on_full,
        };
        match decider.decide_with(None, key, now, permits) {
            Ok(admitted) => Ok(Charged {
                overflow: admitted.is_overflow(),
                receipt: admitted.into_receipt(),
            }),
            Err(denied) => Err(denied.is_overflow()),
        }
    }

    /// Refunds a charge. Returns false if the algorithm can no longer refund it.
    pub(crate) fn refund(self, storage: &StateStorage, receipt: &Receipt, permits: u64) -> bool {
        match storage {
            StateStorage::Single(words) => {
                permits == 0 || self.algorithm.refund(Shared::new(words.get()), receipt, permits)
            }
            StateStorage::Keyed(store) => self.keyed(store).refund(self.key, receipt, permits),
        }
    }

    #[inline(never)]
    pub(crate) fn peek(self, storage: &'a StateStorage, now: Nanos) -> Peek<'a, A> {
        match storage {
            StateStorage::Single(words) => Peek::new(self.algorithm, StateRef::Own(words), now),
            StateStorage::Keyed(store) => {
                // Most keys have an entry in their primary bucket, which is then the view of the table, too.
                if let Some(entry) = store.table().find_in_primary(self.key)
                    && SeenWord::read(entry, self.key).is_some()
                {
                    return Peek::new(self.algorithm, StateRef::Entry(entry, self.key), now);
                }
                self.keyed(store).peek(self.key, now)
            }
        }
    }

    /// Charges as many of `permits` as the key's state can hold, and returns this number. A key that gets no entry is charged as its
    /// overflow policy admits. The algorithm must have no limit of its own, because a table charges by a decision.
    pub(crate) fn charge_debt(self, storage: &StateStorage, now: Nanos, permits: u64) -> u64 {
        match storage {
            StateStorage::Single(words) => self.algorithm.charge(Shared::new(words.get()), now, permits),
            StateStorage::Keyed(store) => loop {
                let decider = self.keyed(store);
                let peek = decider.peek(self.key, now);
                if peek.is_overflow() {
                    // The catch-all may hold less than the debt. The key must not get an entry before the debt expires.
                    decider.bar(self.key, now, permits);
                }
                let permits = permits.min(peek.remaining());
                // If it is denied, another thread has taken the capacity, which is then read again.
                if decider.decide(self.key, || now, permits).is_ok() {
                    return permits;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::algorithm::{Algorithm, CounterRing};
    use crate::quota::Quota;

    /// Between the lookup of an entry and the read of its words, the key may lose the entry, and use up its limit in another one.
    #[test]
    fn capacity_is_not_read_from_an_entry_that_the_key_has_lost() {
        let quota = Quota::per_hour(2).expect("a quota");
        let algorithm = AnyAlgorithm::from(CounterRing::new(quota).expect("a ring"));
        let store = &Store::new(1, algorithm.words()).expect("a table");
        let decider = |key| KeyDecider {
            algorithm: &algorithm,
            on_full: OnFull::Deny,
            key,
        };
        let at = |minutes: u64| Nanos::ZERO.saturating_add(Duration::from_secs(60 * minutes));
        let charge = |key, minutes, permits| {
            decider(key)
                .charge(StorageLookup::Keyed(store, None), at(minutes), permits)
                .is_ok()
        };
        assert!(charge(1, 60, 1));
        let lost = store.table().find(1).expect("its entry");
        let left = |minutes| decider(1).capacity_left(StorageLookup::Keyed(store, Some(lost)), at(minutes));
        assert_eq!(left(60).permits, 1);
        assert!(decider(1).keyed(store).reset(1, at(60)));
        // Other keys take all twelve entries. One of these entries becomes idle before the others.
        assert!(charge(2, 560, 1) && (3..14).all(|key| charge(key, 600, 1)) && !charge(14, 600, 1));
        assert!(charge(1, 650, 2));
        assert_ne!(store.table().find(1).expect("another").number(), lost.number());
        assert_eq!(left(650).permits, 0);
    }
}
