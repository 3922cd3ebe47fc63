use super::Entry;
use super::shape::WAYS;
use crate::sync::AtomicU64;

/// Entries side by side, of which a key may have any: of one-word states a cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set<'a> {
    words: &'a [AtomicU64],
    number: usize,
    /// Where `key` begins to look: keys begin at different entries, so that of several lines most are
    /// found on the first.
    turn: usize,
}

/// One of the entries that a key may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    /// Its number in the table: the same for everybody.
    pub(crate) index: usize,
    pub(crate) entry: Entry<'a>,
}

/// A bit for each entry of a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    /// Those with the fingerprint that was looked for.
    pub(super) found: u32,
    /// Those that were never used.
    pub(super) unused: u32,
}

impl Survey {
    #[inline(always)]
    fn of<'a>(key: u64, entry: impl Fn(usize) -> (&'a AtomicU64, &'a AtomicU64)) -> Self {
        let (mut found, mut unused) = (0, 0);
        for way in 0..WAYS {
            let (fingerprint, first) = entry(way);
            found |= u32::from(Entry::is_of(fingerprint, key)) << way;
            unused |= u32::from(Entry::was_never_written(first)) << way;
        }
        Self { found, unused }
    }
}

impl<'a> Set<'a> {
    #[inline]
    pub(super) fn new(words: &'a [AtomicU64], number: usize, key: u64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the low bits, whatever the others are"
        )]
        let turn = key as usize % WAYS;
        Self { words, number, turn }
    }

    /// The entries, in the order in which the key looks at them.
    #[inline]
    pub(crate) fn candidates(self) -> impl Iterator<Item = Candidate<'a>> {
        let stride = self.words.len() / WAYS;
        (0..WAYS).map(move |step| {
            let way = (self.turn + step) % WAYS;
            Candidate {
                index: self.number * WAYS + way,
                entry: Entry::new(&self.words[way * stride..][..stride]),
            }
        })
    }

    /// What somebody sees of the set who looks for `key`, and for room.
    #[inline(always)]
    pub(super) fn survey(&self, key: u64) -> Survey {
        match <&[AtomicU64; 2 * WAYS]>::try_from(self.words).ok() {
            Some(line) => Survey::of(key, |way| (&line[2 * way], &line[2 * way + 1])),
            None => {
                let stride = self.words.len() / WAYS;
                Survey::of(key, |way| {
                    let entry = &self.words[way * stride..][..2];
                    (&entry[0], &entry[1])
                })
            }
        }
    }

    /// An entry that was never used, as the survey says.
    #[inline(always)]
    pub(super) fn first_unused(self, survey: Survey) -> Option<Candidate<'a>> {
        // From the turn on, and then from the first one.
        let twice = (survey.unused | (survey.unused << WAYS)) >> self.turn;
        let way = (self.turn + twice.trailing_zeros() as usize) % WAYS;
        let stride = self.words.len() / WAYS;
        (survey.unused != 0).then(|| Candidate {
            index: self.number * WAYS + way,
            entry: Entry::new(&self.words[way * stride..][..stride]),
        })
    }

    /// Whether some entry was never used, so that no key of this set is in the backyard: a guess.
    pub(super) fn seems_unused(self) -> bool {
        self.candidates().any(|candidate| candidate.entry.seems_unused())
    }

    /// The entry whose fingerprint is `key`, as it seems; [`WAYS`]: none.
    #[inline(always)]
    pub(super) fn way_of(self, key: u64) -> usize {
        let stride = self.words.len() / WAYS;
        let step = |found, way| {
            let fingerprint = &self.words[way * stride];
            core::hint::select_unpredictable(Entry::seems(fingerprint, key), way, found)
        };
        (0..WAYS).fold(WAYS, step)
    }
}
