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
    memory: Box<[AtomicU64]>,
    /// The index of the first word, which is aligned to [`LINES`].
    first: usize,
    words: usize,
}

/// The bytes that the hardware fetches together: two lines of 64 bytes on current x86, and one of 128 bytes on current Arm.
const LINES: usize = 128;

/// The number of [`OwnWords`] that were created.
static MADE: Tally = Tally::new();

impl OwnWords {
    pub(crate) fn new(words: usize) -> Self {
        let line = LINES / size_of::<AtomicU64>();
        // Extra words align the first one to a line and fill the last line.
        let memory: Box<[AtomicU64]> = (0..words.next_multiple_of(line) + line)
            .map(|_| AtomicU64::new(0))
            .collect();
        // Under an interpreter the alignment may be unknown. Any offset is correct then.
        let first = memory.as_ptr().align_offset(LINES).min(line);
        Self {
            number: MADE.next(),
            pause: Pause::new(),
            memory,
            first,
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

    /// The words, followed by the padding of their last line. Excluding the padding would cost another bounds check.
    #[inline]
    pub(crate) fn get(&self) -> &[AtomicU64] {
        &self.memory[self.first..]
    }

    /// The words for exclusive access, followed by the padding of their last line.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut [AtomicU64] {
        &mut self.memory[self.first..]
    }

    /// The number of words, without the padding.
    pub(crate) const fn len(&self) -> usize {
        self.words
    }
}
