use alloc::boxed::Box;
use alloc::format;
use core::fmt;

use crate::error::ConfigError;
use crate::sync::{self, AtomicU64, Ordering};
use crate::time::Nanos;

/// The latest end of the blocks of the keys that share a word, or 0. If it has passed, a request reads this word, and no words of
/// its key.
///
/// The thread that begins or extends a block raises the word before it returns a denial, and so does each thread whose violation finds
/// the block. A word never becomes smaller. So after such a denial has returned, a later request reads the end of the block or a later
/// one, and looks for the block. (model `block_begins_once`: the second thread raises the filter if the first has not)
pub(crate) struct BlockFilter(Box<[AtomicU64]>);

/// The keys of a rule for each word of the filter.
const KEYS_PER_WORD: u64 = 8;

impl BlockFilter {
    /// Creates the filter of a rule whose table holds this number of keys.
    pub(crate) fn new(keys: u64) -> Result<Self, ConfigError> {
        let words = usize::try_from(keys.div_ceil(KEYS_PER_WORD).next_power_of_two());
        let words = words.ok().and_then(sync::zeroed);
        words.map(Self).ok_or_else(|| {
            let given = format!("{keys} keys");
            ConfigError::new("capacity", given, "no more than the available memory can hold")
        })
    }

    /// The instant from which on no block of the key is in force.
    #[inline(always)]
    pub(crate) fn end(&self, key: u64) -> Nanos {
        // Relaxed: a thread that was told of a block has raised this word before, or happens after a thread that has.
        Nanos::new(self.word(key).load(Ordering::Relaxed))
    }

    pub(crate) fn raise(&self, key: u64, end: Nanos) {
        let word = self.word(key);
        // Relaxed, all: see `end`. The exchange validates the word that was read.
        let mut seen = word.load(Ordering::Relaxed);
        while seen < end.get() {
            match word.compare_exchange(seen, end.get(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(newer) => seen = newer,
            }
        }
    }

    #[inline(always)]
    fn word(&self, key: u64) -> &AtomicU64 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a part of the hash, which has a power of two of values"
        )]
        let part = key as usize & (self.0.len() - 1);
        &self.0[part]
    }
}

impl fmt::Debug for BlockFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockFilter")
            .field("words", &self.0.len())
            .finish()
    }
}
