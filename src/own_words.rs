use alloc::boxed::Box;

use crate::pause::Pause;
use crate::sync::{AtomicU64, Tally};
use crate::time::Nanos;

/// The words of one limiter, on cache lines that hold no other data.
#[derive(Debug)]
pub(crate) struct OwnWords {
    /// The number of the limiter. It is unique in the process, unlike an address.
    number: u64,
    /// The pause of the limiter. Decisions by other owners of words, such as rules, do not read it.
    pause: Pause,
    /// [`BEFORE`] unused words, the words, and [`AFTER`] unused words.
    memory: Box<[AtomicU64]>,
    words: usize,
}

/// The unused words before the words: as many as the hardware fetches together. That is two lines of 64 bytes on current x86, and
/// one of 128 bytes on current Arm.
///
/// So the words share no line with other data, wherever the lines begin. An index that is not a constant, to align the words,
/// would cost each decision a load and a comparison.
const BEFORE: usize = 128 / size_of::<AtomicU64>();

/// The unused words after the words. At most this many are in the line of the last word.
const AFTER: usize = BEFORE - 1;

/// The number of [`OwnWords`] that were created.
static MADE: Tally = Tally::new();

impl OwnWords {
    pub(crate) fn new(words: usize) -> Self {
        Self {
            number: MADE.next(),
            pause: Pause::new(),
            memory: (0..BEFORE + words + AFTER).map(|_| AtomicU64::new(0)).collect(),
            words,
        }
    }

    /// The number by which a receipt identifies the limiter of these words.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The pause of the limiter.
    #[inline(always)]
    pub(crate) const fn pause(&self) -> &Pause {
        &self.pause
    }

    /// Whether the pause denies a request for `permits` at the time `now`.
    #[inline(always)]
    pub(crate) fn is_paused(&self, now: Nanos, permits: u64) -> bool {
        self.pause.is_set() && self.pause.denies(now, permits)
    }

    /// The words, followed by unused words. Excluding those would cost another bounds check.
    #[inline]
    pub(crate) fn get(&self) -> &[AtomicU64] {
        &self.memory[BEFORE..]
    }

    /// The words for exclusive access, followed by unused words.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut [AtomicU64] {
        &mut self.memory[BEFORE..]
    }

    /// The number of words, without the unused ones.
    pub(crate) const fn len(&self) -> usize {
        self.words
    }
}
