use crate::sync;

/// Entries of a bucket. The model checker has one, because it tries every interleaving of their reads.
pub(super) const WAYS: usize = if sync::MODELLED { 1 } else { 4 };

/// How many buckets a table has, and which of them are a key's.
///
/// A key has a *primary* and an *alternate* bucket in the *front* of the table, and three buckets in the *backyard*.
/// The backyard is a twelfth of the table. A key goes to the alternate bucket only when the primary one is full, and to
/// the backyard only when both are full. In tables of 100,000 and 1,000,000 keys, no key finds all five buckets
/// full. These are the shares of the keys in a table that holds as many keys as its capacity:
///
/// | words of a state | entries per key | primary bucket | alternate bucket | backyard |
/// |---|--:|--:|--:|--:|
/// | one | 2 | 94.7 % | 4.6 % | 0.7 % |
/// | more | 1.25 | 82 % | 11 % | 7 % |
///
/// Buckets of a cache line with an overflow area are from Arbitman, Naor and Segev, "Backyard Cuckoo Hashing", FOCS
/// 2010. Unlike there, no key is ever moved. A primary bucket, so that most lookups read one line, is from Breslow and
/// others, "Horton Tables", USENIX ATC 2016.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableLayout {
    /// At least two (for the model checker, one).
    front: usize,
    /// At least one (for the model checker, at most one).
    back: usize,
}

/// The backyard is this part of all buckets.
const BACKYARD_PART: usize = 12;

/// Buckets of the backyard that a key may have its entry in.
const BACKYARD_CHOICES: usize = 3;

/// The most buckets that a key can have. In the model checker's small tables, [`TableLayout::choices`] is smaller.
pub(super) const CHOICES: usize = if sync::MODELLED { 3 } else { 2 + BACKYARD_CHOICES };

// Odd numbers without a pattern: the bits of the golden ratio and of square roots of small primes, after the point.
const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const BACKYARD: [u64; BACKYARD_CHOICES] = [
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x9b05_688c_2b3e_6c1f,
];
const SECOND: u64 = 0xbb67_ae85_84ca_a73b;
const REGION: u64 = 0x510e_527f_ade6_82d1;

/// The bits of a key that choose its buckets and its region.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyBits(u64);

impl KeyBits {
    /// Both halves of a product of 128 bits, folded into one: each bit depends on all significant bits of the key. A user's own
    /// hasher may be weak, so there is no simple relation between these bits and the key.
    #[inline(always)]
    pub(super) const fn of(key: u64) -> Self {
        let product = key as u128 * FIRST as u128;
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let low = product as u64;
        Self((low ^ (product >> 64) as u64).wrapping_mul(SECOND))
    }

    /// The number of the key's region in a table with `regions` regions.
    #[inline(always)]
    pub(super) const fn region(self, regions: usize) -> usize {
        scale(self.0.wrapping_mul(REGION), regions)
    }
}

impl TableLayout {
    /// A layout with entries for at least `keys` keys and [`spare`](Self::spare) ones. `None` if a `usize` cannot number them.
    pub(super) fn of(keys: u64, state_words: usize) -> Option<Self> {
        if sync::MODELLED {
            // One bucket for each key: most models need one or two.
            let back = usize::from(keys > 2);
            let front = usize::try_from(keys).ok()? - back;
            return Some(Self { front, back });
        }
        let entries = usize::try_from(keys + Self::spare(keys, state_words)).ok()?;
        let buckets = entries.div_ceil(WAYS);
        let back = buckets.div_ceil(BACKYARD_PART);
        let front = (buckets - back).max(2);
        Some(Self { front, back })
    }

    /// The number of entries that a table has in addition to one for each key.
    ///
    /// With more entries, more keys are in their primary bucket. Entries with a state of one word are small, so such a table has
    /// twice as many entries as keys. Other tables have a quarter more.
    const fn spare(keys: u64, state_words: usize) -> u64 {
        if state_words == 1 { keys } else { keys.div_ceil(4) }
    }

    pub(super) const fn buckets(self) -> usize {
        self.front + self.back
    }

    /// How many buckets of the front a key has: two (in the model checker's smallest table, one).
    #[inline(always)]
    pub(super) const fn front_choices(self) -> usize {
        if sync::MODELLED && self.front == 1 { 1 } else { 2 }
    }

    /// How many buckets a key has. In a small backyard some of them are the same.
    #[inline(always)]
    pub(super) const fn choices(self) -> usize {
        let back = if sync::MODELLED {
            self.back
        } else {
            BACKYARD_CHOICES
        };
        self.front_choices() + back
    }

    /// The number of the bucket `choice` of a key: 0 is the primary, 1 the alternate, and the others are in the backyard.
    #[inline(always)]
    pub(super) fn choice(self, bits: KeyBits, choice: usize) -> usize {
        match choice {
            0 => self.primary(bits),
            1 => self.alternate(bits),
            _ => self.front + scale(bits.0.wrapping_mul(BACKYARD[choice - 2]), self.back),
        }
    }

    #[inline(always)]
    pub(super) const fn primary(self, bits: KeyBits) -> usize {
        scale(bits.0, self.front)
    }

    /// A bucket of the front other than the primary one. If the front is a single bucket, it is that bucket.
    #[inline(always)]
    pub(super) const fn alternate(self, bits: KeyBits) -> usize {
        let distance = 1 + scale(bits.0.rotate_left(32), self.front - 1);
        let alternate = self.primary(bits) + distance;
        if alternate >= self.front {
            alternate - self.front
        } else {
            alternate
        }
    }
}

/// ⌊bits · range / 2^64⌋: a number below `range`, decided by the upper bits.
#[inline(always)]
const fn scale(bits: u64, range: usize) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "below the range, a usize")]
    let scaled = ((bits as u128 * range as u128) >> 64) as usize;
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// How many of `keys` find an entry, one after the other, before the first that finds none.
    fn found(layout: TableLayout, keys: impl Iterator<Item = u64>) -> usize {
        let mut taken = vec![0; layout.buckets()];
        keys.take_while(|&key| {
            let bits = KeyBits::of(key);
            let has_room = |bucket: &usize| taken[*bucket] < WAYS;
            let mut front = [layout.primary(bits), layout.alternate(bits)].into_iter();
            let in_backyard = || {
                (2..layout.choices())
                    .map(|choice| layout.choice(bits, choice))
                    .filter(has_room)
                    .min_by_key(|&bucket| taken[bucket])
            };
            let bucket = front.find(has_room).or_else(in_backyard);
            if let Some(bucket) = bucket {
                taken[bucket] += 1;
            }
            bucket.is_some()
        })
        .count()
    }

    /// The shares of the keys with an entry in the primary bucket, the alternate one, and the backyard, in thousandths.
    #[cfg(not(miri))] // 100,000 keys take too long.
    #[test]
    fn shares_of_the_buckets_are_as_documented() {
        let shares = |state_words| {
            let layout = TableLayout::of(100_000, state_words).expect("buckets");
            let mut taken = vec![0; layout.buckets()];
            let mut shares = [0; 3];
            for key in 1..=100_000_u64 {
                let bits = KeyBits::of(key.wrapping_mul(BACKYARD[0]));
                let buckets = (0..layout.choices()).map(|choice| layout.choice(bits, choice));
                let vacant = buckets.enumerate().filter(|&(_, bucket)| taken[bucket] < WAYS);
                let (choice, bucket) = vacant
                    .min_by_key(|&(choice, bucket)| (choice.min(2), taken[bucket] * usize::from(choice > 1)))
                    .expect("a vacant entry");
                taken[bucket] += 1;
                shares[choice.min(2)] += 1;
            }
            shares.map(|keys| keys / 100)
        };
        assert!(
            matches!(shares(1), [945..=954, 45..=46, 6..=7]),
            "{:?}",
            shares(1)
        );
        assert!(
            matches!(shares(2), [815..=824, 110..=119, 60..=69]),
            "{:?}",
            shares(2)
        );
    }

    /// The hashes are small numbers, shifted numbers, multiples, pairs of numbers, and numbers with reversed bytes or
    /// bits.
    #[test]
    fn keys_of_a_plain_hasher_find_room_too() {
        let count = if cfg!(miri) { 100 } else { 10_000 };
        let layout = TableLayout::of(count, 2).expect("buckets");
        for shift in (0..=u64::BITS - 14).step_by(if cfg!(miri) { 16 } else { 1 }) {
            assert!(
                found(layout, (1..=count).map(|number| number << shift)) as u64 == count,
                "multiples of 2^{shift}"
            );
        }
        let plain: [fn(u64) -> u64; 8] = [
            |number| number * 1_000,
            |number| number * 1_000_000,
            |number| number | number << 32,
            |number| ((number / 100) << 32) | (number % 100),
            |number| ((number / 100) << 48) | (number % 100),
            u64::swap_bytes,
            u64::reverse_bits,
            |number| !number,
        ];
        for (which, plain) in plain.into_iter().enumerate() {
            assert_eq!(found(layout, (1..=count).map(plain)) as u64, count, "{which}");
        }
    }

    /// A key's two buckets in the front differ, and every bucket is some key's.
    #[test]
    fn every_bucket_is_of_some_keys() {
        for keys in [1, 3, 5, 10, 11, 100] {
            let layout = TableLayout::of(keys, 2).expect("buckets");
            let mut seen = vec![[false; 2]; layout.buckets()];
            for key in 1..if cfg!(miri) { 300_u64 } else { 100_000 } {
                let bits = KeyBits::of(key);
                let (primary, alternate) = (layout.primary(bits), layout.alternate(bits));
                assert!(primary < layout.front && alternate < layout.front && primary != alternate);
                seen[primary][0] = true;
                seen[alternate][1] = true;
                for bucket in (2..layout.choices()).map(|choice| layout.choice(bits, choice)) {
                    assert!((layout.front..layout.buckets()).contains(&bucket));
                    seen[bucket] = [true; 2];
                }
            }
            assert!(seen.iter().all(|seen| *seen == [true; 2]), "{keys}");
        }
    }
}
