use alloc::boxed::Box;

use crate::sync::AtomicU64;

/// The words of one limiter, zeroed, on cache lines that nothing else is on.
pub(crate) struct OwnWords {
    memory: Box<[AtomicU64]>,
    first: usize,
    words: usize,
}

/// Bytes that the hardware fetches together: two lines of 64 on current x86, one of 128 on current arm.
const LINES: usize = 128;

impl OwnWords {
    pub(crate) fn new(words: usize) -> Self {
        let line = LINES / size_of::<AtomicU64>();
        // Room for moving the beginning to a line's, and for filling up the last line.
        let memory: Box<[AtomicU64]> = (0..words.next_multiple_of(line) + line)
            .map(|_| AtomicU64::new(0))
            .collect();
        // An interpreter may decline to say where a line begins; any place will do there.
        let first = memory.as_ptr().align_offset(LINES).min(line);
        Self { memory, first, words }
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
