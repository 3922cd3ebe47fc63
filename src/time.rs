//! Instants as nanoseconds since a clock's origin, and their division into cells.

use core::time::Duration;

/// Twenty years in nanoseconds. The words of all rings can hold the times up to this one.
pub(crate) const HORIZON: u64 = 20 * 366 * 24 * 3600 * 1_000_000_000;

/// Returns a random time below `max`, or zero if `max` is zero. A `max` above 2^64 ns (584 years) is treated as 2^64 ns.
#[cfg(feature = "std")]
pub(crate) fn jitter(max: Duration) -> Duration {
    use core::hash::BuildHasher;

    if max.is_zero() {
        return Duration::ZERO;
    }
    // The standard library's hasher has random keys, other ones for each hasher.
    let random = std::hash::RandomState::new().hash_one(0_u8);
    let nanos = (max.as_nanos().min(u128::from(u64::MAX)) * u128::from(random)) >> 64;
    Duration::from_nanos(nanos as u64)
}

/// A reading of a [`Clock`](crate::Clock): nanoseconds since the clock's origin.
///
/// The range is 0 to 2^63 − 1 (292 years). Later instants saturate at the end of the range. For a limiter, time stops at the
/// end of its range, so it denies requests and never admits too many.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::Nanos;
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let second = Nanos::from_duration(Duration::from_secs(1));
/// assert_eq!(second.saturating_since(Nanos::ZERO), Duration::from_secs(1));
/// // Addition saturates at the end of time.
/// assert_eq!(Nanos::MAX.saturating_add(Duration::from_secs(1)), Nanos::MAX);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Nanos {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);

    /// The last instant, 2^63 − 1 nanoseconds after the origin.
    pub const MAX: Self = Self(u64::MAX >> 1);

    /// Creates an instant from nanoseconds since the origin, saturating at [`MAX`](Self::MAX).
    #[must_use]
    #[inline]
    pub const fn new(nanos: u64) -> Self {
        if nanos > Self::MAX.0 {
            Self::MAX
        } else {
            Self(nanos)
        }
    }

    /// Creates an instant from the time since the origin, saturating at [`MAX`](Self::MAX).
    #[must_use]
    pub const fn from_duration(since_origin: Duration) -> Self {
        let nanos = since_origin.as_nanos();
        if nanos > Self::MAX.0 as u128 {
            Self::MAX
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "at most 2^63 - 1, as checked")]
            Self(nanos as u64)
        }
    }

    /// Returns the nanoseconds since the origin.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns this instant plus `later`, saturating at [`MAX`](Self::MAX).
    #[must_use]
    pub const fn saturating_add(self, later: Duration) -> Self {
        // Both are at most 2^63 - 1, so their sum fits into a u64.
        Self::new(self.0 + Self::from_duration(later).0)
    }

    /// Returns the time from `earlier` to this instant, or zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Exact division by an invariant divisor: one multiplication and one shift.
///
/// Let the dividend be n < 2^63, the divisor d, and l = ⌈log₂ d⌉. The factor m = ⌈2^(63+l) / d⌉ satisfies
/// 2^(63+l) ≤ m·d ≤ 2^(63+l) + 2^l. So ⌊m·n / 2^(63+l)⌋ = ⌊n / d⌋. The proof is theorem 4.2, with N = 63, of Granlund and
/// Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994. Since n has at most 63 bits, m fits into 64 bits
/// for every d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divider {
    divisor: u64,
    factor: u64,
    shift: u32,
}

impl Divider {
    /// Prepares a division by `divisor`, which is 1 to 2^62.
    pub(crate) const fn new(divisor: u64) -> Self {
        assert!(divisor > 0 && divisor <= 1 << 62, "a divisor is 1 to 2^62");
        let shift = divisor.next_power_of_two().trailing_zeros();
        let factor = (1_u128 << (63 + shift)).div_ceil(divisor as u128);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "d > 2^(l-1) for l > 0, so the factor is below 2^64; for d = 1 it is 2^63"
        )]
        let factor = factor as u64;
        Self {
            divisor,
            factor,
            shift,
        }
    }

    pub(crate) const fn divisor(self) -> u64 {
        self.divisor
    }

    /// `dividend / divisor`, for a dividend below 2^63.
    #[inline]
    pub(crate) const fn quotient(self, dividend: u64) -> u64 {
        debug_assert!(dividend < 1 << 63);
        // Doubling the dividend moves the quotient into the upper 64 bits of the product, which are in a separate register.
        let product = (dividend << 1) as u128 * self.factor as u128;
        let high = (product >> 64) as u64;
        high >> self.shift
    }

    /// `dividend % divisor`, for a dividend below 2^63.
    #[inline]
    pub(crate) const fn remainder(self, dividend: u64) -> u64 {
        dividend - self.quotient(dividend) * self.divisor
    }
}

/// A division of time into cells of equal width, numbered by ticks that never end.
///
/// The first tick is `first`, not 0, so a zeroed word (tick 0) is older than any window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    width: u64,
    /// The factor of the division by `width`.
    factor: u64,
    /// The first tick, above the shift of the division by `width`. In one word, so that a limiter of a
    /// [`UnitRing`](crate::UnitRing) takes three cache lines.
    first_and_shift: u64,
}

impl Ticks {
    /// Cells `width` nanoseconds wide, counted from tick `first`.
    pub(crate) const fn new(width: u64, first: u64) -> Self {
        let divider = Divider::new(width);
        assert!(
            first >> (u64::BITS - Self::SHIFT_BITS) == 0,
            "a tick is below 2^58"
        );
        Self {
            width,
            factor: divider.factor,
            first_and_shift: (first << Self::SHIFT_BITS) | divider.shift as u64,
        }
    }

    /// The bits of a shift, which is at most 62.
    const SHIFT_BITS: u32 = 6;

    #[inline(always)]
    const fn divider(&self) -> Divider {
        Divider {
            divisor: self.width,
            factor: self.factor,
            shift: (self.first_and_shift & ((1 << Self::SHIFT_BITS) - 1)) as u32,
        }
    }

    #[inline(always)]
    const fn first(&self) -> u64 {
        self.first_and_shift >> Self::SHIFT_BITS
    }

    /// The tick of the cell that contains `now`.
    #[inline(always)]
    pub(crate) const fn at(&self, now: Nanos) -> u64 {
        // At most 2^63 plus the first tick: no overflow.
        self.divider().quotient(now.get()) + self.first()
    }

    /// The stamp of a decision that charged the cell at `tick`. `now` is the caller's reading, and `now_tick` is its tick. The
    /// stamp is `now`, or the beginning of the charged cell if that is later.
    #[inline(always)]
    pub(crate) fn stamp(&self, now: Nanos, now_tick: u64, tick: u64) -> Nanos {
        if tick <= now_tick {
            now
        } else {
            self.adopted_stamp(tick)
        }
    }

    #[cold]
    fn adopted_stamp(&self, tick: u64) -> Nanos {
        self.start(tick).unwrap_or(Nanos::MAX)
    }

    /// The first instant of the cell at `tick`. `None` if time ends before.
    fn start(&self, tick: u64) -> Option<Nanos> {
        let cells = tick.saturating_sub(self.first());
        cells
            .checked_mul(self.width)
            .filter(|&nanos| nanos <= Nanos::MAX.get())
            .map(Nanos::new)
    }

    /// These cells up to the tick `last`.
    #[inline(always)]
    pub(crate) const fn until(self, last: u64) -> Cells {
        Cells { ticks: self, last }
    }
}

/// A division of time into cells of equal width, numbered by [ticks](Ticks) up to the tick `last`. All instants after the cell of
/// that tick have it, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells {
    ticks: Ticks,
    last: u64,
}

impl Cells {
    /// Cells `width` nanoseconds wide, counted from tick `first` to tick `last`.
    pub(crate) const fn new(width: u64, first: u64, last: u64) -> Self {
        Ticks::new(width, first).until(last)
    }

    /// The tick of the cell that contains `now`.
    #[inline]
    pub(crate) fn tick(&self, now: Nanos) -> u64 {
        self.ticks.at(now).min(self.last)
    }

    /// These cells without an end.
    #[inline(always)]
    pub(crate) const fn ticks(&self) -> &Ticks {
        &self.ticks
    }

    /// The first instant of the cell at `tick`. `None` if time ends before.
    pub(crate) fn start(&self, tick: u64) -> Option<Nanos> {
        if tick > self.last {
            return None;
        }
        self.ticks.start(tick)
    }

    /// The start of the first cell after a restore at the time `now`, to which the saved permits are charged. They counted for
    /// `idle_after` when they were saved, which is at most `longest` and a cell unless the state was ahead of its clock. `span`
    /// is the time for which a permit of the newest cell counted. It is zero if that is unknown, because there are several
    /// windows.
    pub(crate) fn restored_at(
        &self,
        now: Nanos,
        idle_after: Duration,
        span: Duration,
        longest: Duration,
    ) -> Nanos {
        let cell = Duration::from_nanos(self.width());
        let latest = if idle_after <= longest + cell {
            // A state that was itself restored within the last cell begins up to a cell after the reading.
            now
        } else if span.is_zero() {
            now.saturating_add(idle_after)
        } else {
            // The state was ahead of its clock. Its newest permits were admitted in the cell that it counts last.
            now.saturating_add(idle_after - span + cell)
        };
        // Claim: saved no fresh budget, a restored ring begins in the next cell.
        self.start(self.tick(latest) + 1).unwrap_or(Nanos::MAX)
    }

    /// These cells up to the tick `last`.
    pub(crate) const fn with_last(self, last: u64) -> Self {
        Self { last, ..self }
    }

    /// The last tick.
    pub(crate) const fn last(&self) -> u64 {
        self.last
    }

    /// The width of a cell in nanoseconds.
    pub(crate) const fn width(&self) -> u64 {
        self.ticks.width
    }
}

#[cfg(test)]
mod tests {
    use super::{Cells, Divider, Nanos};
    use alloc::vec::Vec;
    use core::time::Duration;
    use proptest::prelude::*;

    const END: u64 = (1 << 63) - 1;

    #[test]
    fn division_is_exact_at_every_edge() {
        let mut divisors: Vec<u64> = (1..300).collect();
        for power in 1..=62 {
            divisors.extend([(1 << power) - 1, 1 << power, (1 << power) + 1]);
        }
        for power in 0..19 {
            divisors.extend([10_u64.pow(power), 7 * 10_u64.pow(power.min(17))]);
        }
        for divisor in divisors {
            if divisor == 0 || divisor > 1 << 62 {
                continue;
            }
            let divider = Divider::new(divisor);
            let most = END / divisor;
            for quotient in [0, 1, 2, 3, most / 3, most / 2, most - 1, most] {
                let edge = quotient.min(most) * divisor;
                for dividend in [edge.saturating_sub(1), edge, (edge + 1).min(END), END] {
                    assert_eq!(
                        divider.quotient(dividend),
                        dividend / divisor,
                        "{dividend}/{divisor}"
                    );
                    assert_eq!(divider.remainder(dividend), dividend % divisor);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn division_is_exact(dividend in 0..=END, divisor in 1..=1_u64 << 62, bits in 0..62_u32) {
            let divisor: u64 = (divisor >> bits).max(1);
            prop_assert_eq!(Divider::new(divisor).quotient(dividend), dividend / divisor);
        }
    }

    #[test]
    fn instants_stay_within_their_range() {
        assert_eq!(Nanos::new(u64::MAX), Nanos::MAX);
        assert_eq!(Nanos::from_duration(Duration::MAX), Nanos::MAX);
        assert_eq!(Nanos::MAX.saturating_add(Duration::MAX), Nanos::MAX);
        assert_eq!(Nanos::ZERO.saturating_since(Nanos::MAX), Duration::ZERO);
    }

    #[test]
    fn later_instants_have_the_last_tick() {
        let cells = Cells::new(1_000, 7, 1_000_000);
        assert_eq!(cells.tick(Nanos::ZERO), 7);
        assert_eq!(cells.tick(Nanos::new(999)), 7);
        assert_eq!(cells.tick(Nanos::new(1_000)), 8);
        assert_eq!(cells.tick(Nanos::MAX), 1_000_000);
        assert_eq!(cells.start(8), Some(Nanos::new(1_000)));
        assert_eq!(cells.start(1_000_001), None);
    }
}
