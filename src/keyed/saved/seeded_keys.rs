use core::hash::BuildHasher;

use crate::keyed::key_hasher::SeededState;
use crate::keyed::keys::{AnyKey, Tiers};

/// Keys whose hashes another process can compute again, as a saved table needs.
///
/// [`AnyKey`] implements it, and so do [`Tiers`] over keys that do. Implement it for [`Keys`](crate::keyed::Keys) of your
/// own to save their tables.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::keyed::{Keys, SeededKeys};
/// use ringgate::{CounterRing, KeyedRateLimiter, ManualClock, Quota};
///
/// /// Customers by number. The hash has no seeds, because the service assigns the numbers.
/// struct Customers;
///
/// impl Keys<u64> for Customers {
///     fn hash(&self, customer: &u64) -> u64 {
///         customer.wrapping_mul(0x9E37_79B9_7F4A_7C15)
///     }
/// }
///
/// impl SeededKeys for Customers {
///     fn seeds(&self) -> [u64; 4] {
///         [0; 4]
///     }
///
///     fn reseeded(self, _seeds: [u64; 4]) -> Self {
///         self
///     }
///
///     fn sample(&self) -> u64 {
///         self.hash(&1)
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let builder = KeyedRateLimiter::builder(CounterRing::new(Quota::per_minute(5)?)?);
/// let limiter = builder.clone().build_with(ManualClock::new(), Customers)?;
/// assert!(limiter.check_n(&7, 5).is_ok());
/// let mut file = Vec::new();
/// limiter.save(&mut file)?;
/// let restored = builder.restore_with(ManualClock::new(), Customers, &*file, Duration::ZERO)?;
/// assert!(restored.check(&7).is_err());
/// # Ok(())
/// # }
/// ```
pub trait SeededKeys {
    /// Returns the seeds of the hashes. Keys without seeds return zeros.
    fn seeds(&self) -> [u64; 4];

    /// Returns these keys with other seeds. Keys without seeds return themselves.
    #[must_use]
    fn reseeded(self, seeds: [u64; 4]) -> Self
    where
        Self: Sized;

    /// Returns the hash of a fixed value. A restore compares it with that of the process that saved the table, and so detects
    /// another hash function.
    fn sample(&self) -> u64;
}

impl SeededKeys for SeededState {
    fn seeds(&self) -> [u64; 4] {
        Self::seeds(self)
    }

    fn reseeded(self, seeds: [u64; 4]) -> Self {
        Self::with_seeds(seeds)
    }

    fn sample(&self) -> u64 {
        self.hash_one(("ringgate", 1_u64, [2_u8, 3]))
    }
}

impl SeededKeys for AnyKey {
    fn seeds(&self) -> [u64; 4] {
        self.seeded.seeds()
    }

    fn reseeded(self, seeds: [u64; 4]) -> Self {
        Self::with_seeds(seeds)
    }

    fn sample(&self) -> u64 {
        self.seeded.sample()
    }
}

impl<F, K: SeededKeys> SeededKeys for Tiers<F, K> {
    fn seeds(&self) -> [u64; 4] {
        self.keys.seeds()
    }

    fn reseeded(self, seeds: [u64; 4]) -> Self {
        Self::new(self.resolver, self.keys.reseeded(seeds))
    }

    fn sample(&self) -> u64 {
        self.keys.sample()
    }
}
