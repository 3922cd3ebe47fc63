use alloc::boxed::Box;

use crossbeam_utils::CachePadded;

use crate::sync::Tally;

/// How full a table of keys is, and what has happened to it since it was made or cleared.
///
/// Each number is exact when nobody else uses the table; read under load, they may be of slightly
/// different instants.
///
/// # Examples
///
/// ```
/// use ringgate::{AnyKey, CounterRing, KeyedBuilder, ManualClock, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = KeyedBuilder::new(CounterRing::new(Quota::per_second(5)?)?)
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
    /// Keys that have an entry, those included that have been idle for long and that nobody has reclaimed yet.
    pub tracked: u64,
    /// Entries that passed from an idle key to a new one.
    pub reclaimed: u64,
    /// Decisions that [`OnFull`](crate::OnFull) made for want of an entry.
    pub overflowed: u64,
    /// Keys that lost their entry under [`OnFull::Forget`](crate::OnFull::Forget) while their window ran.
    pub forgotten: u64,
}

/// Counts, spread over several lines so that threads seldom meet.
#[derive(Debug)]
pub(super) struct Counts(Box<[CachePadded<Stripe>]>);

#[derive(Debug, Default)]
struct Stripe {
    entered: Tally,
    left: Tally,
    reclaimed: Tally,
    overflowed: Tally,
    forgotten: Tally,
}

/// What may happen to a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// It got an entry.
    Entered,
    /// It gave its entry up, on request.
    Left,
    /// It lost its entry, idle.
    Reclaimed,
    /// It had none, and the rule for that decided.
    Overflowed,
    /// It lost its entry, and its window still ran.
    Forgotten,
}

const STRIPES: usize = 16;

impl Counts {
    pub(super) fn new() -> Self {
        Self((0..STRIPES).map(|_| CachePadded::default()).collect())
    }

    #[inline]
    pub(super) fn add(&self, key: u64, event: Event) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the low bits, whatever the others are"
        )]
        let stripe = &self.0[key as usize % STRIPES];
        match event {
            Event::Entered => stripe.entered.add_one(),
            Event::Left => stripe.left.add_one(),
            Event::Reclaimed => stripe.reclaimed.add_one(),
            Event::Overflowed => stripe.overflowed.add_one(),
            Event::Forgotten => stripe.forgotten.add_one(),
        }
    }

    pub(super) fn sum(&self) -> TableCounts {
        let sum = |pick: fn(&Stripe) -> &Tally| self.0.iter().map(|stripe| pick(stripe).get()).sum::<u64>();
        let reclaimed = sum(|stripe| &stripe.reclaimed);
        let forgotten = sum(|stripe| &stripe.forgotten);
        // Read last, so that no key is seen to leave before it entered; a key may come in between.
        let gone = reclaimed + forgotten + sum(|stripe| &stripe.left);
        TableCounts {
            tracked: sum(|stripe| &stripe.entered).saturating_sub(gone),
            reclaimed,
            overflowed: sum(|stripe| &stripe.overflowed),
            forgotten,
        }
    }
}
