use core::slice;
use core::sync::atomic::Ordering;

use crate::own_words::OwnWords;
use crate::receipt::ChargedTo;
use crate::sync::{AtomicU64, Shared, Words};
use crate::table::{Entry, OccupiedWords, SeenWord};
use crate::time::Nanos;

/// The state that a decision was made by. It is read when a value is requested.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StateRef<'a> {
    /// The words of a limiter without keys.
    Own(&'a OwnWords),
    /// The only word of a limiter that shares its policy.
    Inline(&'a AtomicU64),
    /// The entry of a key in a table. It is treated as fresh once it belongs to another key.
    Entry(Entry<'a>, u64),
    /// The fresh state of a key that has no entry and would get one.
    Fresh,
    /// The catch-all. The table is full, and the key shares these words until it gets an entry.
    CatchAll(&'a [AtomicU64], NextEntry),
    /// No state: the table is full, and the key is not limited.
    Unlimited,
    /// No state: the table is full, and the key is denied until the given time.
    Denied(Option<Nanos>),
}

/// The times at which a key that shares the catch-all can get an entry, if no other key makes a request.
///
/// From `free` on the catch-all no longer decides. Before `entered` the key cannot get an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextEntry {
    /// The time at which an entry becomes free. `None` if time ends before, or if it is unknown.
    pub(crate) free: Option<Nanos>,
    /// The time at which the key's admissions by the catch-all have expired.
    pub(crate) entered: Nanos,
}

impl NextEntry {
    /// The times are unknown, so the retry time is that of the catch-all.
    pub(crate) const UNKNOWN: Self = Self {
        free: None,
        entered: Nanos::ZERO,
    };
}

impl StateRef<'_> {
    /// The earliest reading of the clock, `reading` or later, at which a request would be admitted. `None` if it never would be.
    /// `ready_by_words` returns this time for given words, from a given time on. The state decides no request at a time before
    /// `now`, although the reading may be older.
    pub(super) fn ready_at(
        self,
        now: Nanos,
        reading: Nanos,
        ready_by_words: impl Fn(&StateWords<'_>, Nanos) -> Option<Nanos>,
    ) -> Option<Nanos> {
        let ready_from = |words: &StateWords<'_>, reading: Nanos| {
            let decided_at = now.max(reading);
            let ready = ready_by_words(words, decided_at)?;
            Some(if ready == decided_at { reading } else { ready })
        };
        let ready = |reading| ready_from(&StateWords::new(self), reading);
        match self {
            // Claim: pause 3, a retry time is no earlier than the end of the pause.
            Self::Own(_) => ready(self.decides_from(reading)),
            Self::Inline(_) | Self::Entry(..) | Self::Fresh | Self::Unlimited => ready(reading),
            Self::CatchAll(_, NextEntry { free, entered }) => match ready(reading) {
                // The catch-all decides at the reading itself, although an entry may become free soon.
                Some(ready) if ready == reading || free.is_none_or(|free| ready < free) => Some(ready),
                _ => ready_from(&StateWords::Fresh, reading.max(free?).max(entered)),
            },
            Self::Denied(until) => ready_from(&StateWords::Fresh, reading.max(until?)),
        }
    }

    /// The earliest time, `now` or later, at which no pause denies every request.
    pub(super) fn decides_from(self, now: Nanos) -> Nanos {
        match self {
            Self::Own(words) => now.max(words.pause().until()),
            Self::Inline(_)
            | Self::Entry(..)
            | Self::Fresh
            | Self::CatchAll(..)
            | Self::Unlimited
            | Self::Denied(_) => now,
        }
    }

    /// The limiter that the state belongs to. `None` for a table of keys, which adds the state to a receipt itself, and for a limiter
    /// that shares its policy, which has no number.
    pub(super) const fn limiter(self) -> Option<ChargedTo> {
        match self {
            Self::Own(words) => Some(ChargedTo::Limiter(words.number())),
            Self::Inline(_)
            | Self::Entry(..)
            | Self::Fresh
            | Self::CatchAll(..)
            | Self::Unlimited
            | Self::Denied(_) => None,
        }
    }

    /// Whether the key had no entry because the table is full.
    pub(super) const fn is_overflow(self) -> bool {
        matches!(self, Self::CatchAll(..) | Self::Unlimited | Self::Denied(_))
    }

    /// The most permits that one request gets at the time `now`, if the words do not decide: none during a pause or if a full table
    /// denies, and `most` if a full table admits.
    pub(super) fn known_remaining(self, now: Nanos, most: u64) -> Option<u64> {
        match self {
            Self::Own(words) => words.pause().ends_after(now).then_some(0),
            Self::Denied(_) => Some(0),
            Self::Unlimited => Some(most),
            Self::Inline(_) | Self::Entry(..) | Self::Fresh | Self::CatchAll(..) => None,
        }
    }
}

/// The state of a [`StateRef`] as read-only words.
pub(super) enum StateWords<'a> {
    Words(&'a [AtomicU64]),
    /// The entry, the hash of its key, and the last value of the first word.
    Entry(Entry<'a>, u64, SeenWord),
    Fresh,
}

impl<'a> StateWords<'a> {
    pub(super) fn new(state: StateRef<'a>) -> Self {
        match state {
            StateRef::Own(words) => Self::Words(words.get()),
            StateRef::Inline(word) => Self::Words(slice::from_ref(word)),
            StateRef::CatchAll(words, _) => Self::Words(words),
            StateRef::Entry(entry, key) => {
                SeenWord::read(entry, key).map_or(Self::Fresh, |seen| Self::Entry(entry, key, seen))
            }
            StateRef::Fresh | StateRef::Unlimited | StateRef::Denied(_) => Self::Fresh,
        }
    }
}

impl Words for &StateWords<'_> {
    #[inline]
    fn load(self, index: usize, order: Ordering) -> u64 {
        match self {
            StateWords::Words(words) => Shared::new(words).load(index, order),
            StateWords::Entry(entry, key, seen) => OccupiedWords::new(*entry, *key, seen).load(index, order),
            StateWords::Fresh => 0,
        }
    }

    fn exchange(self, index: usize, _current: u64, _new: u64, _order: Ordering) -> Result<u64, u64> {
        // Relaxed: as the value of a failed exchange.
        Err(self.load(index, Ordering::Relaxed))
    }
}
