use core::fmt;

use crate::algorithm::{Algorithm, AnyAlgorithm, Reclaim};
use crate::decision::{Peek, StateRef};
use crate::keyed::{Desk, OnFull, Store};
use crate::limiter::OwnWords;
use crate::receipt::Receipt;
use crate::sync::{Ordering, Shared};
use crate::table::{Entry, Seat};
use crate::time::Nanos;

/// What some rules have counted.
pub(super) enum State {
    /// All requests together.
    Everybody(OwnWords),
    /// Those of each key.
    Each(Store),
}

/// What was taken.
pub(super) struct Taken {
    pub(super) receipt: Receipt,
    /// Whether it was not the key's own state that paid, for want of an entry.
    pub(super) overflow: bool,
}

/// A decision, of which nothing is ever given back.
pub(super) struct Decided {
    /// The reading of the clock that was decided at.
    pub(super) at: Nanos,
    pub(super) admitted: bool,
    /// Whether it was not the key's own state that decided, for want of an entry.
    pub(super) overflow: bool,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everybody(words) => f.debug_tuple("Everybody").field(&words.get()).finish(),
            Self::Each(store) => f.debug_tuple("Each").field(store).finish(),
        }
    }
}

/// Where the words of a key seem to be: a guess, which is validated by whoever decides.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// With those of everybody else.
    Everybody(&'a OwnWords),
    /// In an entry, or nowhere yet.
    Each(&'a Store, Option<Entry<'a>>),
}

impl<'a> Place<'a> {
    /// The place of `key`, also if it was not far away.
    #[inline(always)]
    pub(super) fn or_near(self, key: u64) -> Self {
        match self {
            Self::Each(store, None) => {
                let near = store.table().find_near(key);
                Self::Each(store, near.or_else(|| Self::find_anywhere(store, key)))
            }
            place => place,
        }
    }

    #[cold]
    #[inline(never)]
    fn find_anywhere(store: &'a Store, key: u64) -> Option<Entry<'a>> {
        store.table().find(key)
    }
}

impl State {
    /// Where the words of `key` seem to be, as far as that is in memory that is far away.
    #[inline(always)]
    pub(super) fn find_far(&self, key: u64) -> Place<'_> {
        match self {
            Self::Everybody(words) => Place::Everybody(words),
            Self::Each(store) => Place::Each(store, store.table().find_far(key)),
        }
    }

    /// Decides about `permits` of `key`, at a time that is read when memory is best waited for.
    ///
    /// By itself, so that what is before it and after it does not keep it from the registers.
    #[inline(never)]
    pub(super) fn decide(
        &self,
        algorithm: &AnyAlgorithm,
        on_full: OnFull,
        key: u64,
        now: impl FnOnce() -> Nanos,
        permits: u64,
    ) -> Decided {
        match self {
            Self::Everybody(words) => {
                let at = now();
                let decision = algorithm.decide(Shared::new(words.get()), at, permits);
                Decided {
                    at,
                    admitted: decision.is_some(),
                    overflow: false,
                }
            }
            Self::Each(store) => {
                let desk = Desk {
                    store,
                    algorithm,
                    on_full,
                };
                let mut at = Nanos::ZERO;
                let read = || {
                    at = now();
                    at
                };
                let (admitted, overflow) = match desk.decide(key, read, permits) {
                    Ok(admitted) => (true, admitted.is_overflow()),
                    Err(denied) => (false, denied.is_overflow()),
                };
                Decided {
                    at,
                    admitted,
                    overflow,
                }
            }
        }
    }

    /// The time that a key's state has reached, if it has one that knows: no clock is behind it there.
    pub(super) fn latest_time(&self, algorithm: &AnyAlgorithm, key: u64) -> Nanos {
        let first = match self {
            // Relaxed: what the caller is to see of it was seen before.
            Self::Everybody(words) => words.get()[0].load(Ordering::Relaxed),
            Self::Each(store) => store.first_word(key),
        };
        match algorithm {
            // Its time is when it will be empty.
            AnyAlgorithm::Gcra(_) => Nanos::ZERO,
            algorithm => algorithm.latest_time(first),
        }
    }
}

/// A policy that decides over a state, about one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ruling<'a> {
    pub(super) algorithm: &'a AnyAlgorithm,
    pub(super) on_full: OnFull,
    pub(super) key: u64,
}

impl<'a> Ruling<'a> {
    #[inline(always)]
    fn desk<'s>(self, store: &'s Store) -> Desk<'s, AnyAlgorithm>
    where
        'a: 's,
    {
        Desk {
            store,
            algorithm: self.algorithm,
            on_full: self.on_full,
        }
    }

    /// The most permits that one request would get: a look, which somebody may be faster than.
    #[inline(always)]
    pub(super) fn room(self, place: Place<'_>, now: Nanos) -> u64 {
        match place {
            Place::Everybody(words) => self.algorithm.remaining(Shared::new(words.get()), now),
            Place::Each(store, found) => {
                if let Some(entry) = found {
                    let seat = Seat::new(entry, self.key);
                    let room = self.algorithm.remaining(&seat, now);
                    // As with a denial: the key had the entry when it was read only if the word still stands. What another
                    // key has spent there, or nobody, says nothing of this one.
                    if entry.still(seat.seen()) {
                        return room;
                    }
                }
                Self::room_without_entry(store, self.algorithm, self.on_full, self.key, now)
            }
        }
    }

    /// With each part of the ruling by itself: one that is handed over has to be in memory.
    #[cold]
    #[inline(never)]
    fn room_without_entry(
        store: &Store,
        algorithm: &AnyAlgorithm,
        on_full: OnFull,
        key: u64,
        now: Nanos,
    ) -> u64 {
        let desk = Desk {
            store,
            algorithm,
            on_full,
        };
        desk.peek(key, now).remaining()
    }

    /// Takes `permits`, all or none of them; an error says whether it was not the key's own state that refused, for
    /// want of an entry.
    #[inline(always)]
    pub(super) fn take(self, place: Place<'_>, now: Nanos, permits: u64) -> Result<Taken, bool> {
        match place {
            Place::Everybody(words) => match self.algorithm.decide(Shared::new(words.get()), now, permits) {
                Some(receipt) => Ok(Taken {
                    receipt,
                    overflow: false,
                }),
                None => Err(false),
            },
            Place::Each(store, found) => match self.desk(store).decide_with(found, self.key, now, permits) {
                Ok(admitted) => Ok(Taken {
                    overflow: admitted.is_overflow(),
                    receipt: admitted.into_receipt(),
                }),
                Err(denied) => Err(denied.is_overflow()),
            },
        }
    }

    /// Gives back what was taken; false if that can no longer be done.
    pub(super) fn give_back(self, state: &State, receipt: &Receipt, permits: u64) -> bool {
        match state {
            State::Everybody(words) => {
                permits == 0 || self.algorithm.refund(Shared::new(words.get()), receipt, permits)
            }
            State::Each(store) => self.desk(store).refund(self.key, receipt, permits),
        }
    }

    #[inline(never)]
    pub(super) fn peek(self, state: &'a State, now: Nanos) -> Peek<'a, AnyAlgorithm> {
        match state {
            State::Everybody(words) => Peek::new(self.algorithm, StateRef::Own(words.get()), now),
            State::Each(store) => self.desk(store).peek(self.key, now),
        }
    }

    /// Charges what of `permits` can be booked, and says how much that is.
    pub(super) fn charge(self, state: &State, now: Nanos, permits: u64) -> u64 {
        match state {
            State::Everybody(words) => self.algorithm.charge(Shared::new(words.get()), now, permits),
            State::Each(store) => loop {
                let desk = self.desk(store);
                let peek = desk.peek(self.key, now);
                if peek.is_overflow() {
                    // Whatever the catch-all has room for.
                    desk.bar(self.key, now);
                }
                let permits = permits.min(peek.remaining());
                // Denied only when others have taken what there was room for.
                if desk.decide(self.key, || now, permits).is_ok() {
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
    use crate::algorithm::CounterRing;
    use crate::quota::Quota;

    /// Between finding an entry and looking at it the key may lose it, and use up its limit in another.
    #[test]
    fn a_look_is_at_no_entry_that_the_key_has_lost() {
        let quota = Quota::per_hour(2).expect("a quota");
        let algorithm = AnyAlgorithm::from(CounterRing::new(quota).expect("a ring"));
        let store = &Store::new(1, algorithm.words()).expect("a table");
        let ruling = |key| Ruling {
            algorithm: &algorithm,
            on_full: OnFull::Deny,
            key,
        };
        let at = |minutes: u64| Nanos::ZERO.saturating_add(Duration::from_secs(60 * minutes));
        let take = |key, minutes, permits| {
            ruling(key)
                .take(Place::Each(store, None), at(minutes), permits)
                .is_ok()
        };
        assert!(take(1, 60, 1));
        let lost = store.table().find(1).expect("its entry");
        let room = |minutes| ruling(1).room(Place::Each(store, Some(lost)), at(minutes));
        assert_eq!(room(60), 1);
        assert!(ruling(1).desk(store).leave(1, at(60)));
        // Others take all of the twelve entries; one of them is idle before the rest.
        assert!(take(2, 560, 1) && (3..14).all(|key| take(key, 600, 1)) && !take(14, 600, 1));
        assert!(take(1, 650, 2));
        assert_ne!(store.table().find(1).expect("another").number(), lost.number());
        assert_eq!(room(650), 0);
    }
}
