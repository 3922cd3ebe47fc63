//! Streams of keys.

use crate::contestant::Key;

/// SplitMix64: an addition and a bijective mix.
pub struct Random(u64);

impl Random {
    pub fn new(seed: usize) -> Self {
        Self(mix(seed as u64 + 1))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    pub fn below(&mut self, range: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(range)) >> 64) as u64
    }
}

/// Maps different numbers to different numbers.
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The order in which keys are requested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// All keys are equally likely.
    Uniform,
    /// The n-th most frequent key is 1/n times as frequent as the first.
    Zipf,
    /// There is only one key.
    OneHot,
}

impl Order {
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
            Self::OneHot => "one hot key",
        }
    }

    /// Requests of one thread before its stream repeats. Of 100,000 keys, a uniform stream has about half.
    pub fn stream<K: Key>(self, keys: u64, thread: usize) -> Vec<K> {
        const LENGTH: usize = 1 << 16;
        let mut random = Random::new(thread);
        let total = harmonic(keys);
        let rank = || match self {
            Self::Uniform => random.below(keys),
            Self::Zipf => {
                let at = random.next() as f64 / 2_f64.powi(64) * total[total.len() - 1];
                total.partition_point(|&sum| sum < at) as u64
            }
            Self::OneHot => 0,
        };
        let length = if self == Self::OneHot { 1024 } else { LENGTH };
        std::iter::repeat_with(rank).take(length).map(K::number).collect()
    }
}

/// Returns 1, 1 + 1/2, 1 + 1/2 + 1/3, …
fn harmonic(terms: u64) -> Vec<f64> {
    let mut sum = 0.0;
    let mut next = |rank: u64| {
        sum += 1.0 / rank as f64;
        sum
    };
    (1..=terms).map(&mut next).collect()
}
