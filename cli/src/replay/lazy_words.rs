//! The state of one key, which takes memory only for the words that were written.

use core::cell::RefCell;

use ringgate::sync::{Ordering, Words};

/// The words of one key, for one thread. Words that were never written are zero and take no memory.
///
/// A timestamp ring has a word for each permit of its limit. With lazy words, a key takes memory for the permits that it
/// was admitted.
#[derive(Debug, Default)]
pub(crate) struct LazyWords(RefCell<Vec<u64>>);

impl LazyWords {
    /// Resets all words to zero, and keeps the memory.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0.get_mut().clear();
    }
}

impl Words for &LazyWords {
    #[inline]
    fn load(self, index: usize, _order: Ordering) -> u64 {
        self.0.borrow().get(index).copied().unwrap_or(0)
    }

    #[inline]
    fn exchange(self, index: usize, current: u64, new: u64, _order: Ordering) -> Result<u64, u64> {
        let mut words = self.0.borrow_mut();
        let seen = words.get(index).copied().unwrap_or(0);
        if seen != current {
            return Err(seen);
        }
        if index >= words.len() {
            words.resize(index + 1, 0);
        }
        words[index] = new;
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::LazyWords;
    use ringgate::sync::{AtomicU64, Exclusive};
    use ringgate::{Algorithm, CounterRing, Gcra, Nanos, Quota, TimestampRing};

    /// Every algorithm decides over lazy words as over the crate's own.
    fn agrees(policy: &impl Algorithm) {
        let mut lazy = LazyWords::default();
        assert!(policy.decide(&lazy, Nanos::new(1), 1).is_some());
        lazy.clear();
        let mut eager: Vec<AtomicU64> = (0..policy.words()).map(|_| AtomicU64::new(0)).collect();
        let (mut now, mut step, mut denied) = (0, 1_u64, 0);
        for _ in 0..2_000 {
            // Marsaglia's xorshift: gaps of up to half a second, and some of two.
            step ^= step << 13;
            step ^= step >> 7;
            step ^= step << 17;
            now += step % 500_000_000 + if step.is_multiple_of(50) { 2_000_000_000 } else { 0 };
            let expected = policy.decide(Exclusive::new(&mut eager), Nanos::new(now), 1);
            assert_eq!(policy.decide(&lazy, Nanos::new(now), 1), expected);
            denied += u32::from(expected.is_none());
        }
        assert!(denied > 0 && denied < 2_000, "both answers were seen");
    }

    #[test]
    fn unwritten_words_are_zero() -> Result<(), ringgate::ConfigError> {
        let quota: Quota = "3/s".parse()?;
        agrees(&TimestampRing::new(quota)?);
        agrees(&CounterRing::new(quota)?);
        agrees(&CounterRing::builder(quota).unpacked().build()?);
        agrees(&CounterRing::builder(quota).even().cells(3).unpacked().build()?);
        agrees(&Gcra::new(quota)?);
        Ok(())
    }
}
