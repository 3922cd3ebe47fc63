//! The requests of one entry, key by key and each key's in order of time.

use crate::asked::Asked;
use crate::failure::Failure;
use crate::judge::Judged;
use crate::layout::time_of_word;
use crate::plan::Entry;
use crate::progress::Progress;
use crate::sorter::{Reading, Sorted, Sorter};
use crate::survey::Survey;

/// Looks at one key after the other.
pub(crate) trait Visitor {
    /// A key begins, which asks for so many permits in two windows at the most.
    fn begin(&mut self, _most: u64) {}

    /// A request of the present key, not before the last one.
    fn asked(&mut self, asked: Asked);

    /// The present key has no more; the next request is another's.
    fn end(&mut self, key: u64);
}

/// Requests by their keys.
#[derive(Debug)]
pub(crate) struct ByKey {
    records: Sorted,
    /// For each key, in the same order, the most permits that it asks for in two windows.
    most: Sorted,
    pub(crate) survey: Survey,
}

/// The verdict, which stands in the low bits of the key, which has none there.
const ADMITTED: u64 = 1;
const DENIED: u64 = 2;
const VERDICT: u32 = 2;

/// A sorter of records: key and verdict, time, and permits where they are not always one.
fn sorter(entry: &Entry) -> Sorter {
    Sorter::without_low_bits(if entry.cost.is_some() { 3 } else { 2 }, VERDICT)
}

fn push(sorter: &mut Sorter, entry: &Entry, record: &[u64], verdict: u64) -> Result<(), Failure> {
    let key = entry.key_of(record) | verdict;
    match entry.cost {
        Some(_) => sorter.push(&[key, record[0], entry.cost_of(record)]),
        None => sorter.push(&[key, record[0]]),
    }
}

impl ByKey {
    /// The requests that an entry is about, as they were judged.
    pub(crate) fn of(
        judged: &mut Judged,
        entry: &Entry,
        place: usize,
        progress: &mut Progress,
    ) -> Result<Self, Failure> {
        progress.begin(BY_KEY);
        let mut sorter = sorter(entry);
        judged.visit(|record, verdict| {
            if !verdict.is_about(place) {
                return Ok(());
            }
            let admitted = if verdict.is_refused() { 0 } else { ADMITTED };
            let denied = if verdict.is_denied(place) { DENIED } else { 0 };
            push(&mut sorter, entry, record, admitted | denied)
        })?;
        Self::surveyed(sorter.finish()?, entry, progress)
    }

    /// The requests that an entry is about, as they are in the input.
    pub(crate) fn of_events(
        events: &mut Sorted,
        entry: &Entry,
        progress: &mut Progress,
    ) -> Result<Self, Failure> {
        progress.begin(BY_KEY);
        let mut sorter = sorter(entry);
        let mut reading = events.read()?;
        while let Some(record) = reading.next()? {
            if entry.is_about(record) {
                push(&mut sorter, entry, record, ADMITTED)?;
            }
        }
        Self::surveyed(sorter.finish()?, entry, progress)
    }

    fn surveyed(mut records: Sorted, entry: &Entry, progress: &mut Progress) -> Result<Self, Failure> {
        let mut surveying = Surveying {
            survey: Survey::new(entry.window()),
            most: Sorter::new(1 + 1),
            failed: None,
        };
        visit(&mut records, None, &mut surveying, progress)?;
        match surveying.failed {
            Some(failure) => Err(failure),
            None => Ok(Self {
                records,
                most: surveying.most.finish()?,
                survey: surveying.survey,
            }),
        }
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
        let most = self.most.read()?;
        visit(&mut self.records, Some(most), visitor, progress)
    }
}

/// What is done while requests are sorted.
const BY_KEY: &str = "counting by key";

/// Requests between two looks at the clock.
const UNSHOWN: u64 = 1 << 14;

fn visit(
    records: &mut Sorted,
    mut most: Option<Reading<'_>>,
    visitor: &mut impl Visitor,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut reading = records.read()?;
    let mut present = None;
    let mut seen = 0_u64;
    while let Some(record) = reading.next()? {
        let &[word, time, ref permits @ ..] = record else {
            continue;
        };
        let verdict = word & (ADMITTED | DENIED);
        let key = word ^ verdict;
        let permits = permits.first().copied().unwrap_or(1);
        if present != Some(key) {
            if let Some(before) = present {
                visitor.end(before);
            }
            present = Some(key);
            if let Some(most) = &mut most {
                // One for each key, in the same order.
                visitor.begin(most.next()?.map_or(u64::MAX, |record| record[1]));
            }
        }
        visitor.asked(Asked {
            time: time_of_word(time),
            permits,
            admitted: verdict & ADMITTED != 0,
            denied: verdict & DENIED != 0,
        });
        seen += 1;
        if seen.is_multiple_of(UNSHOWN) {
            progress.go_on();
        }
    }
    if let Some(last) = present {
        visitor.end(last);
    }
    Ok(())
}

/// Surveys the keys, and keeps of each what later visitors are told.
struct Surveying {
    survey: Survey,
    most: Sorter,
    failed: Option<Failure>,
}

impl Visitor for Surveying {
    #[inline]
    fn asked(&mut self, asked: Asked) {
        self.survey.asked(asked);
    }

    fn end(&mut self, key: u64) {
        let most = self.survey.end(key);
        if self.failed.is_none() {
            self.failed = self.most.push(&[key, most]).err();
        }
    }
}
