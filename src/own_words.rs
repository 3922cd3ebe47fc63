use alloc::boxed::Box;
use core::slice;

use crate::pause::Pause;
use crate::sync::{AtomicU64, CacheLine, Tally};
use crate::time::Nanos;

/// The words of one limiter, on cache lines that hold no other data than the limiter's identity and pause.
///
/// A single word is stored here, without an allocation. Its line also holds the other fields. A decision reads the pause before
/// the word, so they cost it no other line, and they are written only by calls that pause the limiter. The alignment keeps the
/// line free of the policy, the clock and whatever is next to the limiter.
///
/// Several words are in a heap block.
#[derive(Debug)]
pub(crate) struct OwnWords {
    _line: CacheLine,
    /// The only word of the limiter. Unused if there are `several`.
    single: AtomicU64,
    /// The pause of the limiter. Decisions by other owners of words, such as rules, do not read it.
    pause: Pause,
    /// [`BEFORE`] unused words, the words, and [`AFTER`] unused words. Empty for a limiter of one word.
    several: Box<[AtomicU64]>,
    /// The number of the limiter. It is unique in the process, unlike an address.
    number: u64,
    words: usize,
}

/// The unused words before several words: as many as the hardware fetches together. That is two lines of 64 bytes on current
/// x86, and one of 128 bytes on current Arm.
///
/// So the words share no line with other data, wherever the lines begin. To align the words instead, their index could not be a
/// constant, which would cost each decision a load and a comparison.
const BEFORE: usize = 128 / size_of::<AtomicU64>();

/// The unused words after several words. The line of the last word has room for at most this many more.
const AFTER: usize = BEFORE - 1;

/// The number of [`OwnWords`] that were created.
static MADE: Tally = Tally::new();

impl OwnWords {
    pub(crate) fn new(words: usize) -> Self {
        let several = if words > 1 { BEFORE + words + AFTER } else { 0 };
        Self {
            _line: CacheLine,
            single: AtomicU64::new(0),
            pause: Pause::new(),
            several: (0..several).map(|_| AtomicU64::new(0)).collect(),
            number: MADE.next(),
            words,
        }
    }

    /// The number by which a receipt identifies the limiter of these words.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    #[inline(always)]
    pub(crate) const fn pause(&self) -> &Pause {
        &self.pause
    }

    /// Whether the pause denies a request for `permits` at the time `now`.
    #[inline(always)]
    pub(crate) fn is_paused(&self, now: Nanos, permits: u64) -> bool {
        self.pause.is_set() && self.pause.denies(now, permits)
    }

    // The comparison of the length with `BEFORE` also tells one word from several, so it costs a decision no instruction more.

    /// The words. Several words are followed by unused ones, because excluding those would cost another bounds check.
    #[inline]
    pub(crate) fn get(&self) -> &[AtomicU64] {
        match self.several.get(BEFORE..) {
            Some(several) => several,
            None => slice::from_ref(&self.single),
        }
    }

    /// The words for exclusive access. Several words are followed by unused ones.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut [AtomicU64] {
        match self.several.get_mut(BEFORE..) {
            Some(several) => several,
            None => slice::from_mut(&mut self.single),
        }
    }

    /// The number of words, without the unused ones.
    pub(crate) const fn len(&self) -> usize {
        self.words
    }
}
