use alloc::boxed::Box;

use crate::sync::{AtomicU64, Tally};

/// The words of one limiter, zeroed, on cache lines that nothing else is on.
#[derive(Debug)]
pub(crate) struct OwnWords {
    /// No other words have had it, whatever memory they were in: an address would be used again.
    number: u64,
    memory: Box<[AtomicU64]>,
    first: usize,
    words: usize,
}

/// Bytes that the hardware fetches together: two lines of 64 on current x86, one of 128 on current arm.
const LINES: usize = 128;

/// How many words of limiters there have been.
static MADE: Tally = Tally::new();

impl OwnWords {
    pub(crate) fn new(words: usize) -> Self {
        let line = LINES / size_of::<AtomicU64>();
        // Room for moving the beginning to a line's, and for filling up the last line.
        let memory: Box<[AtomicU64]> = (0..words.next_multiple_of(line) + line)
            .map(|_| AtomicU64::new(0))
            .collect();
        // An interpreter may decline to say where a line begins; any place will do there.
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

    #[inline]
    pub(crate) fn get(&self) -> &[AtomicU64] {
        &self.memory[self.first..][..self.words]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut [AtomicU64] {
        &mut self.memory[self.first..][..self.words]
    }
}
