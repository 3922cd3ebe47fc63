use alloc::boxed::Box;
use core::fmt;
use core::mem::size_of;
use core::ops::Range;
use core::sync::atomic::Ordering;

use crate::sync::{self, AtomicU64};
use crate::table::layout::WAYS;

/// Words of a cache line. The model checker uses lines of one word, because each further word costs it time.
const LINE: usize = if sync::MODELLED { 1 } else { 64 / size_of::<u64>() };

/// The number of words at the beginning of a state that are in the hot part of the memory. A counter ring with one window reads
/// one or two in a decision, and a third to enter a cell. With a third word of each state, the second line of the bucket is full.
const HOT_WORDS: usize = 3;

/// The fingerprints of a bucket, then the first words of their states.
pub(in crate::table) type Line = [AtomicU64; 2 * WAYS];

/// The memory of all entries of a table, in two parts.
///
/// The *hot* part has the words that most decisions read, in one or two lines for each bucket. The *cold* part has the other words of
/// the states. So even if the states are long, the lines that decisions read are on few pages.
pub(in crate::table) struct EntryMemory {
    pub(in crate::table) words: Box<[AtomicU64]>,
    /// The number of words of a state.
    pub(in crate::table) state_words: usize,
    /// The index of the first bucket's line. The hot part begins there.
    pub(in crate::table) hot: usize,
    /// The index at which the cold part begins.
    cold: usize,
    /// The number of words of a bucket in the cold part.
    cold_len: usize,
}

impl EntryMemory {
    /// Allocates the memory of `buckets` buckets, with states of `state_words` words. `None` if it cannot be allocated.
    pub(in crate::table) fn new(buckets: usize, state_words: usize) -> Option<Self> {
        let bucket_len = Self::bucket_len(state_words);
        // One line more, so that the first bucket can begin where a cache line does.
        let words: Box<[AtomicU64]> = sync::zeroed(buckets.checked_mul(bucket_len)?.checked_add(LINE)?)?;
        // Under Miri, `align_offset` may return `usize::MAX`. Then the first bucket can begin anywhere.
        let hot = words.as_ptr().align_offset(64).min(LINE);
        let hot_len = Self::hot_len(state_words);
        Some(Self {
            words,
            state_words,
            hot,
            cold: hot + buckets * hot_len,
            cold_len: bucket_len - hot_len,
        })
    }

    /// Word `index` of a state, for an index of at least 1. Word 0 is on the `line` of the bucket.
    #[inline(always)]
    pub(in crate::table) fn further_word(&self, line: &Line, way: usize, index: usize) -> &AtomicU64 {
        // The position follows from the address of the line. An `Entry` does not store the number of its bucket,
        // because states of one word do not need it.
        let start = self.index_of(line);
        if index < HOT_WORDS {
            &self.words[start + WAYS * (1 + index) + way]
        } else {
            &self.words[self.cold_at(start, way) + index - HOT_WORDS]
        }
    }

    /// The words `indices` of a state. `None` if the first of them is not in the cold part.
    #[inline]
    pub(in crate::table) fn cold_words(
        &self,
        line: &Line,
        way: usize,
        indices: Range<usize>,
    ) -> Option<&[AtomicU64]> {
        let first = indices.start.checked_sub(HOT_WORDS)?;
        let start = self.cold_at(self.index_of(line), way) + first;
        Some(&self.words[start..][..indices.len()])
    }

    /// The index of the first cold word of a state. `start` is the index of the line of its bucket.
    #[inline(always)]
    fn cold_at(&self, start: usize, way: usize) -> usize {
        let number = (start - self.hot) / (WAYS * (1 + HOT_WORDS));
        self.cold + number * self.cold_len + way * (self.state_words - HOT_WORDS)
    }

    /// Writes to the pages of a bucket that are not in `pages`, and changes no word. Sets `pages` to those of its line and of its
    /// last cold word.
    ///
    /// If a page is read before it is written, the operating system maps it twice: to zeros at the read, and to memory at the first
    /// write.
    pub(in crate::table) fn touch(&self, line: &Line, pages: &mut [usize; 2]) {
        const PAGE: usize = 4096;
        let start = self.index_of(line);
        let cold = self.cold + (start - self.hot) / Self::hot_len(self.state_words) * self.cold_len;
        let [hot_page, cold_page] = pages;
        let touch = |index: usize, last: &mut usize| {
            let word = &self.words[index];
            let page = core::ptr::from_ref(word).addr() / PAGE;
            if page != *last {
                *last = page;
                // An exchange of zero for zero is a write for the processor. The compiler replaces `fetch_or(0)` by a read.
                // Relaxed, both: no other thread accesses the table.
                let _ = word.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
            }
        };
        touch(start, hot_page);
        // The cold part of a larger bucket may have pages that are never written.
        if (1..PAGE / size_of::<AtomicU64>()).contains(&self.cold_len) {
            touch(cold, cold_page);
            touch(cold + self.cold_len - 1, cold_page);
        }
    }

    /// The index of the first word of a line.
    #[inline(always)]
    pub(in crate::table) fn index_of(&self, line: &Line) -> usize {
        (line.as_ptr().addr() - self.words.as_ptr().addr()) / size_of::<AtomicU64>()
    }

    /// The number of words of a bucket in the hot part.
    #[inline(always)]
    pub(in crate::table) const fn hot_len(state_words: usize) -> usize {
        WAYS * (1 + if state_words == 1 { 1 } else { HOT_WORDS })
    }

    /// The number of words of a bucket in both parts, in whole lines.
    pub(in crate::table) const fn bucket_len(state_words: usize) -> usize {
        let len = (WAYS * (1 + state_words)).next_multiple_of(LINE);
        if len < Self::hot_len(state_words) {
            Self::hot_len(state_words)
        } else {
            len
        }
    }
}

impl fmt::Debug for EntryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryMemory")
            .field("words", &self.words.len())
            .field("state_words", &self.state_words)
            .finish()
    }
}
