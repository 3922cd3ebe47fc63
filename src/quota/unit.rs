/// A unit of 2^k permits, by k. Quotas that are too large to count permits are counted in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit(u32);

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

    /// The unit of twice as many permits.
    pub(super) const fn doubled(self) -> Self {
        Self(self.0 + 1)
    }
}
