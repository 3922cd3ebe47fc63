//! The requests of one entry, key by key and each key's in order of time.

use crate::failure::Failure;
use crate::judge::Judged;
use crate::layout::time_of_word;
use crate::plan::Entry;
use crate::progress::Progress;
use crate::sorter::{Sorted, Sorter};

/// What is left of a request for one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Nanoseconds since 1970.
    pub(crate) time: i64,
    pub(crate) permits: u64,
    /// Whether all rules admitted it.
    pub(crate) admitted: bool,
    /// Whether this entry had no room for it.
    pub(crate) denied: bool,
}

/// Looks at one key after the other.
pub(crate) trait Visitor {
    /// A request of the present key, not before the last one.
    fn asked(&mut self, asked: Asked);

    /// The present key has no more; the next request is another's.
    fn end(&mut self, key: u64);
}

/// Requests by their keys.
#[derive(Debug)]
pub(crate) struct ByKey {
    records: Sorted,
}

/// Words of a record: key, time, permits, verdict.
const WORDS: usize = 4;

const ADMITTED: u64 = 1;
const DENIED: u64 = 2;

impl ByKey {
    /// The requests that an entry is about, as they were judged.
    pub(crate) fn of(judged: &mut Judged, entry: &Entry, place: usize) -> Result<Self, Failure> {
        let verdicts = judged.verdicts;
        let mut sorter = Sorter::new(WORDS);
        let mut reading = judged.events.read()?;
        while let Some(record) = reading.next()? {
            let verdict = verdicts.of(record, place);
            if !verdict.about {
                continue;
            }
            let admitted = if verdicts.is_refused(record) { 0 } else { ADMITTED };
            let denied = if verdict.denied { DENIED } else { 0 };
            sorter.push(&[
                entry.key_of(record),
                record[0],
                entry.cost_of(record),
                admitted | denied,
            ])?;
        }
        Ok(Self {
            records: sorter.finish()?,
        })
    }

    /// The requests that an entry is about, as they are in the input.
    pub(crate) fn of_events(events: &mut Sorted, entry: &Entry) -> Result<Self, Failure> {
        let mut sorter = Sorter::new(WORDS);
        let mut reading = events.read()?;
        while let Some(record) = reading.next()? {
            if entry.is_about(record) {
                sorter.push(&[entry.key_of(record), record[0], entry.cost_of(record), ADMITTED])?;
            }
        }
        Ok(Self {
            records: sorter.finish()?,
        })
    }

    /// How many there are.
    pub(crate) const fn requests(&self) -> u64 {
        self.records.records()
    }

    /// Shows all requests to a visitor.
    pub(crate) fn visit(
        &mut self,
        visitor: &mut impl Visitor,
        progress: &mut Progress,
        what: &'static str,
    ) -> Result<(), Failure> {
        progress.begin(what);
        let mut reading = self.records.read()?;
        let mut present = None;
        let mut seen = 0_u64;
        while let Some(record) = reading.next()? {
            let &[key, time, permits, verdict] = record else {
                continue;
            };
            if let Some(before) = present.filter(|present| *present != key) {
                visitor.end(before);
            }
            present = Some(key);
            visitor.asked(Asked {
                time: time_of_word(time),
                permits,
                admitted: verdict & ADMITTED != 0,
                denied: verdict & DENIED != 0,
            });
            seen += 1;
            if seen.is_multiple_of(1 << 14) {
                progress.go_on();
            }
        }
        if let Some(last) = present {
            visitor.end(last);
        }
        Ok(())
    }
}
