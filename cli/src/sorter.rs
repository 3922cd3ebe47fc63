//! A sort of records by their first word in bounded memory. Runs that do not fit are in a temporary file, and are merged
//! while they are read.
//!
//! The records are read several times, which the crates for external sorting do not offer.

use alloc::borrow::Cow;
use alloc::collections::BinaryHeap;
use alloc::collections::binary_heap::PeekMut;
use core::cmp::Reverse;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use crate::failure::Failure;

/// Collects records of a fixed number of words, in any order.
#[derive(Debug)]
pub(crate) struct Sorter {
    /// The records, of which those in memory are not sorted yet.
    sorted: Sorted,
    /// The words in memory before a file is created.
    most: usize,
}

/// Sorted records in a row in the file.
#[derive(Clone, Copy, Debug, Default)]
struct SortedRun {
    /// The position of the first record, in records.
    start: u64,
    records: u64,
    /// The part of the last record's first word that the order uses.
    last: u64,
}

/// Bytes in memory before a file is created.
const IN_MEMORY: usize = 8 << 20;

/// Bytes of a read from a run.
const READ: usize = 1 << 16;

impl Sorter {
    pub(crate) fn new(words: usize) -> Self {
        Self::with_memory(words, 0, IN_MEMORY)
    }

    /// A sorter by the first word without its low bits.
    pub(crate) fn without_low_bits(words: usize, ignored: u32) -> Self {
        Self::with_memory(words, ignored, IN_MEMORY)
    }

    /// A sorter that keeps the order of the pushes.
    pub(crate) fn unsorted(words: usize) -> Self {
        Self::with_memory(words, 64, IN_MEMORY)
    }

    fn with_memory(words: usize, ignored: u32, bytes: usize) -> Self {
        Self {
            sorted: Sorted {
                words,
                ignored,
                in_memory: Vec::new(),
                runs: Vec::new(),
                file: None,
                records: 0,
            },
            most: (bytes / 8 / words).max(1) * words,
        }
    }

    /// Adds a record. Records with equal first words keep their order.
    #[inline]
    pub(crate) fn push(&mut self, record: &[u64]) -> Result<(), Failure> {
        debug_assert_eq!(record.len(), self.sorted.words, "one length for all");
        if self.sorted.in_memory.len() >= self.most {
            self.sorted.write()?;
        }
        self.sorted.in_memory.extend_from_slice(record);
        self.sorted.records += 1;
        Ok(())
    }

    /// Ends the collection. The result can be read in order, repeatedly.
    pub(crate) fn finish(mut self) -> Result<Sorted, Failure> {
        match self.sorted.file {
            None => self.sorted.sort(),
            Some(_) => self.sorted.write()?,
        }
        Ok(self.sorted)
    }
}

/// Sorted records: in memory, or as runs in a file.
#[derive(Debug)]
pub(crate) struct Sorted {
    words: usize,
    /// The number of low bits of the first word that the order ignores.
    ignored: u32,
    in_memory: Vec<u64>,
    runs: Vec<SortedRun>,
    file: Option<File>,
    records: u64,
}

impl Sorted {
    /// The part of a record's first word that the order uses.
    #[inline]
    fn first(&self, record: &[u64]) -> u64 {
        record[0].checked_shr(self.ignored).unwrap_or(0)
    }

    /// Sorts the records in memory.
    fn sort(&mut self) {
        let records = || self.in_memory.chunks_exact(self.words);
        if !records().is_sorted_by_key(|record| self.first(record)) {
            let mut sorted: Vec<&[u64]> = records().collect();
            sorted.sort_by_cached_key(|record| self.first(record));
            self.in_memory = sorted.concat();
        }
    }

    /// Moves the records from memory to the file, as a run.
    fn write(&mut self) -> Result<(), Failure> {
        self.sort();
        let mut ends = self.in_memory.chunks_exact(self.words);
        let Some(first) = ends.next() else {
            return Ok(());
        };
        let (first, last) = (self.first(first), self.first(ends.next_back().unwrap_or(first)));
        let records = (self.in_memory.len() / self.words) as u64;
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile().map_err(Failure::temporary)?),
        };
        // In the machine's byte order, since no other program reads the file.
        file.write_all(bytemuck::cast_slice(&self.in_memory))
            .map_err(Failure::temporary)?;
        self.in_memory.clear();
        match self.runs.last_mut() {
            // The records continue the last run.
            Some(run) if run.last <= first => {
                run.records += records;
                run.last = last;
            }
            _ => self.runs.push(SortedRun {
                start: self.records - records,
                records,
                last,
            }),
        }
        Ok(())
    }

    pub(crate) const fn records(&self) -> u64 {
        self.records
    }

    /// Reads all records from the first on.
    pub(crate) fn read(&mut self) -> Result<SortedReader<'_>, Failure> {
        // The records in memory are a run whose records are all in the buffer.
        let in_memory = (SortedRun::default(), &self.in_memory[..]);
        let runs = self.runs.iter().map(|run| (*run, &[] as &[u64]));
        let mut heads: Vec<Head<'_>> = runs
            .chain([in_memory])
            .map(|(run, buffer)| Head {
                run,
                buffer: Cow::Borrowed(buffer),
                at: 0,
            })
            .collect();
        let mut next = BinaryHeap::new();
        for (number, head) in heads.iter_mut().enumerate() {
            next.extend(head.first(self)?.map(|first| Reverse((first, number))));
        }
        Ok(SortedReader {
            sorted: self,
            heads,
            next,
            has_begun: false,
        })
    }
}

/// The position of a reader in a run.
#[derive(Debug)]
struct Head<'s> {
    /// The part of the run that was not read yet.
    run: SortedRun,
    buffer: Cow<'s, [u64]>,
    at: usize,
}

impl Head<'_> {
    /// The part of the next record's first word that the order uses; `None` at the end of the run.
    fn first(&mut self, sorted: &Sorted) -> Result<Option<u64>, Failure> {
        if self.at == self.buffer.len() && !self.fill(sorted)? {
            return Ok(None);
        }
        Ok(Some(sorted.first(&self.buffer[self.at..])))
    }

    /// Reads more records; false at the end.
    fn fill(&mut self, sorted: &Sorted) -> Result<bool, Failure> {
        let record = 8 * sorted.words;
        let records = self.run.records.min((READ / record).max(1) as u64);
        let Some(mut file) = sorted.file.as_ref().filter(|_| records > 0) else {
            return Ok(false);
        };
        file.seek(SeekFrom::Start(self.run.start * record as u64))
            .map_err(Failure::temporary)?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "as many as fit into the buffer, or one"
        )]
        let words = records as usize * sorted.words;
        let buffer = self.buffer.to_mut();
        buffer.resize(words, 0);
        file.read_exact(bytemuck::cast_slice_mut(buffer))
            .map_err(Failure::temporary)?;
        self.at = 0;
        self.run.start += records;
        self.run.records -= records;
        Ok(true)
    }
}

/// A reader of all records in order.
#[derive(Debug)]
pub(crate) struct SortedReader<'s> {
    sorted: &'s Sorted,
    heads: Vec<Head<'s>>,
    /// The first word of the next record of each run that is not at its end, and the number of the run. The order is stable by
    /// that number.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// Whether the next record of the first run was returned.
    has_begun: bool,
}

impl SortedReader<'_> {
    /// The next record; `None` at the end.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<&[u64]>, Failure> {
        let words = self.sorted.words;
        if core::mem::replace(&mut self.has_begun, true)
            && let Some(mut top) = self.next.peek_mut()
        {
            let head = &mut self.heads[top.0.1];
            head.at += words;
            match head.first(self.sorted)? {
                Some(first) => top.0.0 = first,
                None => {
                    PeekMut::pop(top);
                }
            }
        }
        Ok(self.next.peek().map(|Reverse((_, number))| {
            let head = &self.heads[*number];
            &head.buffer[head.at..head.at + words]
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::Sorter;
    use crate::failure::Failure;

    fn sorted(
        records: &[[u64; 2]],
        ignored: u32,
        bytes: usize,
    ) -> Result<(Vec<[u64; 2]>, usize, bool), Failure> {
        let mut sorter = Sorter::with_memory(2, ignored, bytes);
        for record in records {
            sorter.push(record)?;
        }
        let mut sorted = sorter.finish()?;
        assert_eq!(sorted.records(), records.len() as u64);
        let mut all = Vec::new();
        // A second read returns the same records.
        for _ in 0..2 {
            all.clear();
            let mut reading = sorted.read()?;
            while let Some(record) = reading.next()? {
                all.push([record[0], record[1]]);
            }
            assert_eq!(reading.next()?, None);
        }
        Ok((all, sorted.runs.len(), sorted.file.is_some()))
    }

    #[test]
    fn the_sort_is_stable() -> Result<(), Failure> {
        let mut seed = 88_172_645_463_325_252_u64;
        for (count, bytes, in_file) in [
            (0, 64, false),
            (1, 64, false),
            (4, 64, false),
            (5, 64, true),
            (40_000, 16 * 5_000, true),
            (1_000, 16, true),
            (1_000, 1 << 20, false),
        ] {
            let records: Vec<[u64; 2]> = (0..count)
                .map(|number| {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    [seed % (count / 3 + 1), number]
                })
                .collect();
            for ignored in [0, 3] {
                let mut expected = records.clone();
                expected.sort_by_key(|record| record[0] >> ignored);
                let (all, _, file) = sorted(&records, ignored, bytes)?;
                assert!(all == expected, "{count} records in {bytes} bytes");
                assert_eq!(file, in_file);
            }
        }
        Ok(())
    }

    #[test]
    fn ordered_records_are_one_run() -> Result<(), Failure> {
        let records: Vec<[u64; 2]> = (0..10_000).map(|number| [number / 3, number]).collect();
        let (all, runs, _) = sorted(&records, 0, 160)?;
        assert!(all == records);
        assert_eq!(runs, 1);
        Ok(())
    }
}
