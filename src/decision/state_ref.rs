use core::sync::atomic::Ordering;

use crate::own_words::OwnWords;
use crate::receipt::ChargedTo;
use crate::sync::{AtomicU64, Shared, Words};
use crate::table::{Entry, OccupiedWords, SeenWord};
use crate::time::Nanos;

/// The state that an answer is about, read when the answer is requested.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StateRef<'a> {
    /// Words that belong to one limiter for ever.
    Own(&'a OwnWords),
    /// The entry of a key in a table: a fresh state once the key has lost it.
    Entry(Entry<'a>, u64),
    /// A key that has no entry, and would get one: as fresh.
    Fresh,
    /// A key that finds the table full, and shares the words of the catch-all until it gets an entry.
    Shared(&'a [AtomicU64], NextEntry),
    /// A key that finds the table full, and is not limited.
    Unlimited,
    /// A key that finds the table full, and is refused until the given time.
    Denied(Option<Nanos>),
}

/// When a key that shares the catch-all gets an entry of its own, if no other key asks.
///
/// From `free` on the catch-all no longer decides, and before `entered` the key is denied an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextEntry {
    /// The time at which an entry comes free.
    pub(crate) free: Nanos,
    /// The time at which the key's admissions by the catch-all have expired.
    pub(crate) entered: Nanos,
}

impl NextEntry {
    /// Unknown: an admission by the catch-all is not worse for the key than one by an entry.
    pub(crate) const UNKNOWN: Self = Self {
        free: Nanos::MAX,
        entered: Nanos::ZERO,
    };
}

impl StateRef<'_> {
    /// The earliest time, `now` or later, at which a request would be admitted; `None`: never. `ready_at` returns it for
    /// the state's words, or fresh ones, from a given time on.
    pub(super) fn ready_at(
        self,
        now: Nanos,
        ready_at: impl Fn(&StateWords<'_>, Nanos) -> Option<Nanos>,
    ) -> Option<Nanos> {
        let ready = || ready_at(&StateWords::new(self), now);
        match self {
            Self::Own(_) => ready(),
            Self::Entry(..) | Self::Fresh | Self::Unlimited => ready(),
            Self::Shared(_, NextEntry { free, entered }) => match ready() {
                Some(ready) if ready < free => Some(ready),
                _ => ready_at(&StateWords::Fresh, now.max(free).max(entered)),
            },
            Self::Denied(until) => ready_at(&StateWords::Fresh, now.max(until?)),
        }
    }

    /// Whose state it is, if that is a limiter's; a table says it itself.
    pub(super) const fn limiter(self) -> Option<ChargedTo> {
        match self {
            Self::Own(words) => Some(ChargedTo::Limiter(words.number())),
            Self::Entry(..) | Self::Fresh | Self::Shared(..) | Self::Unlimited | Self::Denied(_) => None,
        }
    }

    /// Whether it is not the key's own state for want of an entry.
    pub(super) const fn is_overflow(self) -> bool {
        matches!(self, Self::Shared(..) | Self::Unlimited | Self::Denied(_))
    }

    /// Whether every request for permits is refused, for want of an entry.
    pub(super) const fn is_denied(self) -> bool {
        match self {
            Self::Own(_) => false,
            Self::Denied(_) => true,
            Self::Entry(..) | Self::Fresh | Self::Shared(..) | Self::Unlimited => false,
        }
    }
}

/// A [`StateRef`] state as words that an algorithm may look at, and not change.
pub(super) enum StateWords<'a> {
    Words(&'a [AtomicU64]),
    /// The words of an entry: whose, and the first as it was last read.
    Entry(Entry<'a>, u64, SeenWord),
    Fresh,
}

impl<'a> StateWords<'a> {
    pub(super) fn new(state: StateRef<'a>) -> Self {
        match state {
            StateRef::Own(words) => Self::Words(words.get()),
            StateRef::Shared(words, _) => Self::Words(words),
            StateRef::Entry(entry, key) => {
                SeenWord::read(entry, key).map_or(Self::Fresh, |seen| Self::Entry(entry, key, seen))
            }
            StateRef::Fresh | StateRef::Unlimited | StateRef::Denied(_) => Self::Fresh,
        }
    }
}

impl Words for &StateWords<'_> {
    fn load(self, index: usize, order: Ordering) -> u64 {
        match self {
            StateWords::Words(words) => Shared::new(words).load(index, order),
            StateWords::Entry(entry, key, seen) => OccupiedWords::new(*entry, *key, seen).load(index, order),
            StateWords::Fresh => 0,
        }
    }

    fn exchange(
        self,
        index: usize,
        _current: u64,
        _new: u64,
        _success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        Err(self.load(index, failure))
    }
}
