//! A sort of records by their first word in bounded memory. Runs that do not fit are in a temporary file, and are merged
//! while they are read.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};

use crate::failure::Failure;

/// Collects records of a fixed number of words, in any order.
#[derive(Debug)]
pub(crate) struct Sorter {
    words: usize,
    /// The number of low bits of the first word that the order ignores.
    ignored: u32,
    /// The words in memory before a file is created.
    most: usize,
    chunk: Vec<u64>,
    in_order: bool,
    runs: Vec<SortedRun>,
    file: Option<BufWriter<File>>,
    records: u64,
}

/// Sorted records in a row in the file.
#[derive(Clone, Copy, Debug)]
struct SortedRun {
    /// The position of the first record, in records.
    start: u64,
    records: u64,
    last: u64,
}

/// Bytes in memory before a file is created.
const IN_MEMORY: usize = 8 << 20;

/// Bytes of a read from a run.
const READ: usize = 1 << 16;

/// The part of a first word that the order uses.
#[inline]
fn counted(word: u64, ignored: u32) -> u64 {
    word.checked_shr(ignored).unwrap_or(0)
}

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
            words,
            ignored,
            most: (bytes / 8 / words).max(1) * words,
            chunk: Vec::new(),
            in_order: true,
            runs: Vec::new(),
            file: None,
            records: 0,
        }
    }

    /// Adds a record. Records with equal first words keep their order.
    #[inline]
    pub(crate) fn push(&mut self, record: &[u64]) -> Result<(), Failure> {
        debug_assert_eq!(record.len(), self.words, "one length for all");
        if self.chunk.len() >= self.most {
            self.write()?;
        }
        if self.in_order
            && !self.chunk.is_empty()
            && self.first(record[0]) < self.first(self.chunk[self.chunk.len() - self.words])
        {
            self.in_order = false;
        }
        self.chunk.extend_from_slice(record);
        self.records += 1;
        Ok(())
    }

    fn first(&self, word: u64) -> u64 {
        counted(word, self.ignored)
    }

    /// Writes the records in memory to the file as a run.
    fn write(&mut self) -> Result<(), Failure> {
        self.sort();
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = tempfile::tempfile().map_err(Failure::temporary)?;
                none.insert(BufWriter::with_capacity(READ, file))
            }
        };
        // In the machine's byte order, since no other program reads the file.
        file.write_all(bytemuck::cast_slice(&self.chunk))
            .map_err(Failure::temporary)?;
        let first = self.first(self.chunk[0]);
        let last = self.first(self.chunk[self.chunk.len() - self.words]);
        let records = (self.chunk.len() / self.words) as u64;
        self.chunk.clear();
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

    /// Sorts the records in memory.
    fn sort(&mut self) {
        if self.in_order {
            return;
        }
        let records = self.chunk.len() / self.words;
        // Eight megabytes hold fewer records than 32 bits count.
        let first = |at: u32| self.first(self.chunk[at as usize * self.words]);
        let places = 0..u32::try_from(records).unwrap_or(u32::MAX);
        let mut order: Vec<(u64, u32)> = places.map(|at| (first(at), at)).collect();
        // The positions make all pairs different, so the sort is stable.
        order.sort_unstable();
        let mut sorted = Vec::with_capacity(self.chunk.len());
        for (_, at) in order {
            let start = at as usize * self.words;
            sorted.extend_from_slice(&self.chunk[start..start + self.words]);
        }
        self.chunk = sorted;
        self.in_order = true;
    }

    /// Ends the collection. The result can be read in order, repeatedly.
    pub(crate) fn finish(mut self) -> Result<Sorted, Failure> {
        let in_memory = if self.file.is_none() {
            self.sort();
            core::mem::take(&mut self.chunk)
        } else {
            if !self.chunk.is_empty() {
                self.write()?;
            }
            Vec::new()
        };
        let file = match self.file {
            Some(file) => Some(
                file.into_inner()
                    .map_err(|error| Failure::temporary(error.into_error()))?,
            ),
            None => None,
        };
        Ok(Sorted {
            words: self.words,
            ignored: self.ignored,
            in_memory,
            runs: self.runs,
            file,
            records: self.records,
        })
    }
}

/// Sorted records.
#[derive(Debug)]
pub(crate) struct Sorted {
    words: usize,
    ignored: u32,
    in_memory: Vec<u64>,
    runs: Vec<SortedRun>,
    file: Option<File>,
    records: u64,
}

impl Sorted {
    pub(crate) const fn records(&self) -> u64 {
        self.records
    }

    /// The first word of the last record, without the ignored bits.
    pub(crate) fn last(&self) -> Option<u64> {
        let in_memory = self.in_memory.len().checked_sub(self.words);
        let in_memory = in_memory.map(|at| counted(self.in_memory[at], self.ignored));
        in_memory.or_else(|| self.runs.iter().map(|run| run.last).max())
    }

    /// Reads all records from the first on.
    pub(crate) fn read(&mut self) -> Result<SortedReader<'_>, Failure> {
        let mut heads = Vec::new();
        let mut next = BinaryHeap::new();
        if let Some(file) = &self.file {
            for (number, run) in self.runs.iter().enumerate() {
                let mut head = Head {
                    run: *run,
                    buffer: Vec::new(),
                    at: 0,
                };
                if head.fill(file, self.words)? {
                    next.push(Reverse((counted(head.buffer[0], self.ignored), number)));
                }
                heads.push(head);
            }
        }
        Ok(SortedReader {
            sorted: self,
            heads,
            next,
            at: 0,
            current: None,
        })
    }
}

/// The position of a reader in a run.
#[derive(Debug)]
struct Head {
    /// The part of the run that was not read yet.
    run: SortedRun,
    buffer: Vec<u64>,
    at: usize,
}

impl Head {
    /// Reads more records; false at the end.
    fn fill(&mut self, mut file: &File, words: usize) -> Result<bool, Failure> {
        let record = 8 * words;
        let records = self.run.records.min((READ / record).max(1) as u64);
        if records == 0 {
            return Ok(false);
        }
        file.seek(SeekFrom::Start(self.run.start * record as u64))
            .map_err(Failure::temporary)?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "as many as fit into the buffer, or one"
        )]
        self.buffer.resize(records as usize * words, 0);
        file.read_exact(bytemuck::cast_slice_mut(&mut self.buffer))
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
    heads: Vec<Head>,
    /// The first word of the next record of each run, except the current one.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// The position in memory.
    at: usize,
    /// The run of the last record. It stays current until another run has a smaller record.
    current: Option<usize>,
}

impl SortedReader<'_> {
    /// The next record; `None` at the end.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<&[u64]>, Failure> {
        let words = self.sorted.words;
        let Some(file) = &self.sorted.file else {
            let record = self.sorted.in_memory.get(self.at..self.at + words);
            self.at += words;
            return Ok(record);
        };
        let mut ahead = None;
        if let Some(current) = self.current.take() {
            let head = &mut self.heads[current];
            head.at += words;
            if head.at < head.buffer.len() || head.fill(file, words)? {
                ahead = Some((counted(head.buffer[head.at], self.sorted.ignored), current));
            }
        }
        let number = match (ahead, self.next.peek()) {
            // The current run has the smallest record.
            (Some(ahead), next) if next.is_none_or(|Reverse(next)| ahead < *next) => ahead.1,
            (ahead, _) => {
                self.next.extend(ahead.map(Reverse));
                match self.next.pop() {
                    Some(Reverse((_, number))) => number,
                    None => return Ok(None),
                }
            }
        };
        self.current = Some(number);
        let head = &self.heads[number];
        Ok(Some(&head.buffer[head.at..head.at + words]))
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
