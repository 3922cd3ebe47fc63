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

    /// Whether some entry was never used, so that no key has gone on to the backyard: a guess.
    pub(super) fn seems_unused(self) -> bool {
        self.candidates().any(|candidate| candidate.entry.seems_unused())
    }

    /// The entry that `key` seems to have.
    #[inline]
    pub(super) fn find(self, key: u64) -> Option<Entry<'a>> {
        self.candidates()
            .map(|candidate| candidate.entry)
            .find(|entry| entry.seems_of(key))
    }
}

/// The entry that `key` seems to have in two neighbouring sets with one word of state each. Which
/// entry it is cannot be foretold, so nothing branches on it.
#[inline(always)]
pub(super) fn find_in_pair(pair: &[AtomicU64; 4 * WAYS], key: u64) -> Option<Entry<'_>> {
    let found = (0..2 * WAYS).fold(0_u32, |found, way| {
        found | (u32::from(Entry::seems(&pair[2 * way], key)) << way)
    });
    // Below the number of entries whenever there is one.
    let way = found.trailing_zeros() as usize % (2 * WAYS);
    (found != 0).then(|| Entry::pair(&pair[2 * way], &pair[2 * way + 1]))
}
