use alloc::boxed::Box;

use crossbeam_utils::CachePadded;

use crate::sync::Tally;

/// How full a table of keys is, and what has happened in it since it was made or cleared.
///
/// Each number is exact when no other thread uses the table. Under load the numbers may be of slightly different
/// instants. A key that two threads insert at once may be counted twice until they agree on one entry.
///
/// # Examples
///
/// ```
/// use ringgate::keyed::AnyKey;
/// use ringgate::{CounterRing, KeyedRateLimiter, ManualClock, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = KeyedRateLimiter::builder(CounterRing::new(Quota::per_second(5)?)?)
///     .capacity(1_000)
///     .build_with(ManualClock::new(), AnyKey::with_seeds([1, 2, 3, 4]))?;
/// for key in 0..10_u64 {
///     assert!(limiter.check(&key).is_ok());
/// }
/// let counts = limiter.counts();
/// assert_eq!((counts.tracked, counts.overflowed), (10, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableCounts {
    /// Keys that have an entry. An idle key counts until another key takes over its entry.
    pub tracked: u64,
    /// Entries that passed from an idle key to another one.
    pub reclaimed: u64,
    /// Decisions that [`OnFull`](crate::keyed::OnFull) made because the key had no entry.
    pub overflowed: u64,
    /// Keys that lost their entry under [`OnFull::Forget`](crate::keyed::OnFull::Forget) while their window ran.
    pub forgotten: u64,
}

/// Counts, spread over several cache lines so that two threads seldom write the same line.
#[derive(Debug)]
pub(crate) struct Counts(Box<[CachePadded<CountShard>; STRIPES]>);

/// A tally for each [`Event`].
type CountShard = [Tally; 5];

/// An event of an entry, or of a key without one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// An entry without a key was given to a key.
    Filled,
    /// An entry was taken from its key, and no other key got it.
    Emptied,
    /// An entry passed from an idle key to another.
    Reclaimed,
    /// [`OnFull`](crate::keyed::OnFull) decided for a key without an entry.
    Overflowed,
    /// An entry passed to another key while the window of its former key still ran.
    Forgotten,
}

const STRIPES: usize = 16;

impl Counts {
    pub(super) fn new() -> Self {
        Self(Box::default())
    }

    #[inline]
    pub(crate) fn add(&self, key: u64, event: Event) {
        self.tally(key, event).add_one();
    }

    /// Adds an event in a table that no other thread uses, without a locked instruction.
    #[inline]
    pub(super) fn add_alone(&self, key: u64, event: Event) {
        self.tally(key, event).add_alone(1);
    }

    #[inline]
    fn tally(&self, key: u64, event: Event) -> &Tally {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the low bits, whatever the others are"
        )]
        let stripe = &self.0[key as usize % STRIPES];
        &stripe[event as usize]
    }

    pub(crate) fn sum(&self) -> TableCounts {
        let sum = |event: Event| {
            let tallies = self.0.iter().map(|stripe| &stripe[event as usize]);
            tallies.map(Tally::get).sum::<u64>()
        };
        // Read first, so that `Filled` includes every key that `Emptied` counts. Keys that enter in between are
        // counted.
        let emptied = sum(Event::Emptied);
        TableCounts {
            tracked: sum(Event::Filled).saturating_sub(emptied),
            reclaimed: sum(Event::Reclaimed),
            overflowed: sum(Event::Overflowed),
            forgotten: sum(Event::Forgotten),
        }
    }
}
