//! The random numbers of the tests: the same sequence in each run.

/// A SplitMix64 generator.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Sequences of different seeds, also of consecutive ones, are independent.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 uniform bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// Whether one of so many equal cases is drawn.
    pub(crate) fn one_in(&mut self, cases: u64) -> bool {
        self.below(cases) == 0
    }

    /// An index of a list of this length.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub(crate) fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.index(values.len())]
    }
}

/// The first three are those of the published generator with this seed.
#[test]
fn random_numbers_are_repeatable_and_uniform() {
    let mut random = Random::new(1_234_567);
    let first = [(); 3].map(|()| random.bits());
    let published = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
    ];
    assert_eq!(first, published);
    let (mut counts, mut ones) = ([0; 5], 0);
    for _ in 0..5_000 {
        counts[random.one_of(&[0, 1, 2, 3, 4])] += 1;
        ones += usize::from(random.one_in(5));
    }
    let expected = 900..1_100;
    assert!(counts.iter().all(|count| expected.contains(count)), "{counts:?}");
    assert!(expected.contains(&ones), "{ones}");
}
