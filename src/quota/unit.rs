use super::Quota;
use crate::error::ConfigError;

/// A unit of 2^k permits, by k. Quotas that are too large to count permits are counted in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit(u32);

/// The largest limit in units. A counter ring of 60 cells accepts it for a window of one second.
const MAX_UNITS: u64 = (1 << 24) - 1;

/// The shortest time per unit, in nanoseconds. [`Gcra`](crate::Gcra) rounds the time up to a multiple of half a nanosecond,
/// which lowers the rate by less than one percent.
const MIN_TIME: u64 = 64;

impl Unit {
    /// A unit of one permit.
    pub(crate) const ONE: Self = Self(0);

    /// The number of permits in the unit.
    pub(crate) const fn get(self) -> u64 {
        1 << self.0
    }

    /// The permits of a request in units, rounded up.
    #[inline(always)]
    pub(crate) const fn units(self, permits: u64) -> u64 {
        permits.div_ceil(self.get())
    }

    /// A limit in units, rounded down.
    #[inline(always)]
    pub(crate) const fn whole_units(self, limit: u64) -> u64 {
        limit >> self.0
    }

    pub(crate) const fn permits(self, units: u64) -> u64 {
        units.saturating_mul(self.get())
    }

    /// Builds by the smallest unit that `build` accepts for these quotas, and in which each limit is less than 2^24 units and at
    /// most one unit per 64 ns of its window. Returns the result and the unit.
    ///
    /// # Errors
    ///
    /// The error of `build`. If it is about the limit, `build` has rejected every larger unit up to the lowest limit.
    pub(crate) fn smallest<T>(
        quotas: &[Quota],
        build: impl Fn(Self) -> Result<T, ConfigError>,
    ) -> Result<(T, Self), ConfigError> {
        let all = |unit: Self, fits: fn(u64, u64) -> bool| {
            let fit = |quota: &Quota| {
                let most = MAX_UNITS.min(quota.window_nanos() / MIN_TIME).max(1);
                fits(unit.whole_units(quota.limit()), most)
            };
            quotas.iter().all(fit)
        };
        let mut unit = Self::ONE;
        while !all(unit, |units, most| units <= most) {
            unit.0 += 1;
        }
        let mut built = build(unit);
        while matches!(&built, Err(error) if error.field == "limit")
            && all(Self(unit.0 + 1), |units, _| units > 0)
        {
            unit.0 += 1;
            built = build(unit);
        }
        Ok((built?, unit))
    }
}

impl Quota {
    /// This quota in units of `unit` permits, rounded down.
    pub(crate) fn in_units(self, unit: Unit) -> Result<Self, ConfigError> {
        Self::new(unit.whole_units(self.limit()), self.window())
    }
}
