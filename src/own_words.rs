use alloc::boxed::Box;

use crate::sync::{AtomicU64, Tally};

/// The words of one limiter, on cache lines of their own.
#[derive(Debug)]
pub(crate) struct OwnWords {
    /// Unique in the process, unlike an address, which may be used again.
    number: u64,
    memory: Box<[AtomicU64]>,
    first: usize,
    words: usize,
}

/// The bytes that the hardware fetches together: two lines of 64 on current x86, one of 128 on current arm.
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
        // Under an interpreter the alignment may be unknown; any offset is correct there.
        let first = memory.as_ptr().align_offset(LINES).min(line);
        Self {
            number: MADE.next(),
            memory,
            first,
            words,
        }
    }

    /// The number by which a receipt names the limiter with these words.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The words, and what fills their last line: a length of their own would be checked once more.
    #[inline]
    pub(crate) fn get(&self) -> &[AtomicU64] {
        &self.memory[self.first..]
    }

    /// The words, for a thread that has them alone.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut [AtomicU64] {
        &mut self.memory[self.first..]
    }

    /// How many words the limiter has.
    pub(crate) const fn len(&self) -> usize {
        self.words
    }
}
