use core::cell::Cell;
use core::fmt;

use crate::algorithm::{Algorithm, AnyAlgorithm};
use crate::answer::{Held, Peek};
use crate::decision::Receipt;
use crate::keyed::{Desk, OnFull, Store};
use crate::limiter::OwnWords;
use crate::sync::Shared;
use crate::table::{Entry, Seat};
use crate::time::Nanos;

/// What some rules have counted.
pub(super) enum State {
    /// All requests together.
    Everybody(OwnWords),
    /// Those of each key.
    Each(Store),
}

/// A state with an algorithm that decides over it.
#[derive(Clone, Copy)]
pub(super) enum Counter<'a> {
    Everybody(&'a AnyAlgorithm, &'a OwnWords),
    Each(Desk<'a, AnyAlgorithm>),
}

/// What was taken.
pub(super) struct Taken {
    pub(super) receipt: Receipt,
    /// Whether it was not the key's own state that paid, for want of an entry.
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

impl State {
    #[inline]
    pub(super) fn counter<'a>(&'a self, algorithm: &'a AnyAlgorithm, on_full: OnFull) -> Counter<'a> {
        match self {
            Self::Everybody(words) => Counter::Everybody(algorithm, words),
            Self::Each(store) => Counter::Each(Desk {
                store,
                algorithm,
                on_full,
            }),
        }
    }

    /// The entry that `key` seems to have.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<Entry<'_>> {
        match self {
            Self::Everybody(_) => None,
            Self::Each(store) => store.table().find(key),
        }
    }
}

impl<'a> Counter<'a> {
    /// The most permits that one request would get: a look, which somebody may be faster than.
    #[inline]
    pub(super) fn room(self, found: Option<Entry<'a>>, key: u64, now: Nanos) -> u64 {
        match self {
            Self::Everybody(algorithm, words) => algorithm.remaining(Shared::new(words.get()), now),
            Self::Each(desk) => match found {
                Some(entry) => {
                    let seen = Cell::new(Seat::UNSEEN);
                    desk.algorithm.remaining(Seat::new(entry, key, &seen), now)
                }
                None => desk.peek(key, now).remaining(),
            },
        }
    }

    /// Takes `permits`, all or none of them; an error says whether it was not the key's own state that refused, for
    /// want of an entry.
    #[inline(always)]
    pub(super) fn take(
        self,
        found: Option<Entry<'a>>,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Result<Taken, bool> {
        match self {
            Self::Everybody(algorithm, words) => algorithm
                .decide(Shared::new(words.get()), now, permits)
                .map(|receipt| Taken {
                    receipt,
                    overflow: false,
                })
                .map_err(|_| false),
            Self::Each(desk) => match desk.decide_with(found, key, now, permits) {
                Ok(admitted) => Ok(Taken {
                    overflow: admitted.is_overflow(),
                    receipt: admitted.into_receipt(),
                }),
                Err(denied) => Err(denied.is_overflow()),
            },
        }
    }

    /// Gives back what was taken; false if that can no longer be done.
    pub(super) fn give_back(self, key: u64, receipt: &Receipt, permits: u64) -> bool {
        match self {
            Self::Everybody(algorithm, words) => {
                permits == 0 || algorithm.refund(Shared::new(words.get()), receipt, permits)
            }
            Self::Each(desk) => desk.refund(key, receipt, permits),
        }
    }

    pub(super) fn peek(self, key: u64, now: Nanos) -> Peek<'a, AnyAlgorithm> {
        match self {
            Self::Everybody(algorithm, words) => Peek::new(algorithm, Held::Own(words.get()), now),
            Self::Each(desk) => desk.peek(key, now),
        }
    }

    /// Charges what of `permits` can be booked, and says how much that is.
    pub(super) fn charge(self, key: u64, now: Nanos, permits: u64) -> u64 {
        match self {
            Self::Everybody(algorithm, words) => algorithm.charge(Shared::new(words.get()), now, permits),
            Self::Each(desk) => loop {
                let permits = permits.min(desk.peek(key, now).remaining());
                // Denied only when others have taken what there was room for.
                if desk.decide(key, || now, permits).is_ok() {
                    return permits;
                }
            },
        }
    }
}
