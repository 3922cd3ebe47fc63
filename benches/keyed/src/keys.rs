//! Streams of keys.

use std::net::Ipv4Addr;
use std::sync::Arc;

/// One key after the other, for ever.
pub trait Source {
    type Key: ?Sized;

    fn next(&mut self) -> &Self::Key;
}

/// SplitMix64: an add, and a mix that is a bijection.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: usize) -> Self {
        Self(mix(seed as u64 + 1))
    }

    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    #[inline]
    pub fn below(&mut self, range: u64) -> u64 {
        scale(self.next(), range)
    }
}

/// Different numbers for different numbers.
#[inline]
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A number below `range`, decided by the upper bits.
#[inline]
pub fn scale(bits: u64, range: u64) -> u64 {
    ((u128::from(bits) * u128::from(range)) >> 64) as u64
}

/// Numbers from 0 on, each as likely as any other.
pub struct Uniform {
    random: Random,
    keys: u64,
    key: u64,
}

impl Uniform {
    pub fn of(keys: u64) -> impl Fn(usize) -> Self + Sync + Copy {
        move |thread| Self {
            random: Random::new(thread),
            keys,
            key: 0,
        }
    }
}

impl Source for Uniform {
    type Key = u64;

    #[inline]
    fn next(&mut self) -> &u64 {
        self.key = self.random.below(self.keys);
        &self.key
    }
}

/// A few keys, each as likely as any other.
pub struct Few {
    random: Random,
    keys: Arc<[u64]>,
}

impl Few {
    pub fn of(keys: &Arc<[u64]>) -> impl Fn(usize) -> Self + Sync + use<> {
        let keys = Arc::clone(keys);
        move |thread| Self {
            random: Random::new(thread),
            keys: Arc::clone(&keys),
        }
    }
}

impl Source for Few {
    type Key = u64;

    #[inline]
    fn next(&mut self) -> &u64 {
        &self.keys[self.random.below(self.keys.len() as u64) as usize]
    }
}

/// Addresses as strings, the n-th most frequent 1/n times as frequent as the first: in the order in which they
/// are asked for, as a server finds them in one request after the other.
pub struct Addresses {
    stream: Arc<[String]>,
    at: usize,
}

impl Addresses {
    /// How many keys come before they repeat: few enough to stay in the cache, since a server has just read
    /// the request.
    const LENGTH: usize = 1 << 16;

    pub fn of(keys: u64) -> impl Fn(usize) -> Self + Sync {
        let total: Vec<f64> = (1..=keys)
            .scan(0.0, |sum, rank| {
                *sum += 1.0 / rank as f64;
                Some(*sum)
            })
            .collect();
        let mut random = Random::new(0);
        let mut draw = || {
            let at = random.next() as f64 / 2_f64.powi(64) * total[total.len() - 1];
            Self::name(total.partition_point(|&sum| sum < at) as u64)
        };
        let streams: Vec<Arc<[String]>> = (0..crate::measure::cores().len())
            .map(|_| (0..Self::LENGTH).map(|_| draw()).collect())
            .collect();
        move |thread| Self {
            stream: Arc::clone(&streams[thread]),
            at: 0,
        }
    }

    /// The address of the key with this rank.
    pub fn name(rank: u64) -> String {
        // 10.0.0.0/8, in no order.
        let host = (rank as u32).wrapping_mul(0x9e_3779) & 0xff_ffff;
        Ipv4Addr::from(0x0a00_0000 | host).to_string()
    }
}

impl Source for Addresses {
    type Key = String;

    #[inline]
    fn next(&mut self) -> &String {
        self.at = (self.at + 1) % self.stream.len();
        &self.stream[self.at]
    }
}
