//! The requests that one quota applies to, grouped by key and in order of time.

use crate::failure::Failure;
use crate::progress::Progress;
use crate::replay::evaluator::Evaluated;
use crate::replay::key_request::RequestOfKey;
use crate::replay::survey::Survey;
use crate::rules::PlanEntry;
use crate::rules::record_layout::time_of_word;
use crate::sorter::{Sorted, SortedReader, Sorter};

/// A visitor of one key after the other.
pub(crate) trait Visitor {
    /// Begins a key that requests at peak_in_two `peak_in_two` permits in any two windows.
    fn begin(&mut self, _peak_in_two: u64) {}

    /// Visits a request of the present key, in order of time.
    fn request(&mut self, request: RequestOfKey);

    /// Ends the present key.
    ///
    /// # Errors
    ///
    /// When a temporary file fails.
    fn end(&mut self, key: u64) -> Result<(), Failure>;
}

/// Requests grouped by key.
#[derive(Debug)]
pub(crate) struct ByKey {
    records: Sorted,
    /// For each key, in the same order, the most permits that it requests in two windows.
    peak_in_two: Sorted,
    pub(crate) survey: Survey,
}

/// The verdict, stored in the low bits of a key's hash, which are zero in every hash.
const ADMITTED: u64 = 1;
const DENIED: u64 = 2;
const VERDICT_BITS: u32 = 2;

/// A sorter of records: key and verdict, time, and the permits if the entry has a cost.
fn sorter(entry: &PlanEntry) -> Sorter {
    Sorter::without_low_bits(if entry.cost.is_some() { 3 } else { 2 }, VERDICT_BITS)
}

fn push(sorter: &mut Sorter, entry: &PlanEntry, record: &[u64], verdict: u64) -> Result<(), Failure> {
    let key = entry.key_of(record) | verdict;
    match entry.cost {
        Some(_) => sorter.push(&[key, record[0], entry.cost_of(record)]),
        None => sorter.push(&[key, record[0]]),
    }
}

impl ByKey {
    /// Groups the requests that an entry applies to, with their verdicts.
    pub(crate) fn of(
        evaluated: &mut Evaluated,
        entry: &PlanEntry,
        entry_index: usize,
        progress: &mut Progress,
    ) -> Result<Self, Failure> {
        progress.begin(BY_KEY);
        let mut sorter = sorter(entry);
        evaluated.visit(|record, verdict| {
            if !verdict.applies(entry_index) {
                return Ok(());
            }
            let admitted = if verdict.is_denied() { 0 } else { ADMITTED };
            let denied = if verdict.denied_by(entry_index) { DENIED } else { 0 };
            push(&mut sorter, entry, record, admitted | denied)
        })?;
        Self::surveyed(sorter.finish()?, entry, progress)
    }

    /// Groups the requests that an entry applies to, all of them as admitted.
    pub(crate) fn of_events(
        events: &mut Sorted,
        entry: &PlanEntry,
        progress: &mut Progress,
    ) -> Result<Self, Failure> {
        progress.begin(BY_KEY);
        let mut sorter = sorter(entry);
        let mut reading = events.read()?;
        while let Some(record) = reading.next()? {
            if entry.applies(record) {
                push(&mut sorter, entry, record, ADMITTED)?;
            }
        }
        Self::surveyed(sorter.finish()?, entry, progress)
    }

    fn surveyed(mut records: Sorted, entry: &PlanEntry, progress: &mut Progress) -> Result<Self, Failure> {
        let mut surveying = Surveying {
            survey: Survey::new(entry.window(), entry.max_request()),
            peak_in_two: Sorter::new(2),
        };
        visit(&mut records, None, &mut surveying, progress)?;
        Ok(Self {
            records,
            peak_in_two: surveying.peak_in_two.finish()?,
            survey: surveying.survey,
        })
    }

    /// The number of requests.
    pub(crate) const fn requests(&self) -> u64 {
        self.records.records()
    }

    /// Visits all requests.
    pub(crate) fn visit(
        &mut self,
        visitor: &mut impl Visitor,
        progress: &mut Progress,
        what: &'static str,
    ) -> Result<(), Failure> {
        progress.begin(what);
        let peak_in_two = self.peak_in_two.read()?;
        visit(&mut self.records, Some(peak_in_two), visitor, progress)
    }
}

/// The phase that the progress line shows.
const BY_KEY: &str = "counting by key";

/// Requests between two updates of the progress line.
const REQUESTS_PER_UPDATE: u64 = 1 << 14;

fn visit(
    records: &mut Sorted,
    mut peak_in_two: Option<SortedReader<'_>>,
    visitor: &mut impl Visitor,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let all = records.records();
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
                visitor.end(before)?;
            }
            present = Some(key);
            if let Some(peak_in_two) = &mut peak_in_two {
                // Both readers have the same order of keys.
                visitor.begin(peak_in_two.next()?.map_or(u64::MAX, |record| record[1]));
            }
        }
        visitor.request(RequestOfKey {
            time: time_of_word(time),
            permits,
            admitted: verdict & ADMITTED != 0,
            denied: verdict & DENIED != 0,
        });
        seen += 1;
        if seen.is_multiple_of(REQUESTS_PER_UPDATE) {
            progress.show_phase(seen, all);
        }
    }
    if let Some(last) = present {
        visitor.end(last)?;
    }
    Ok(())
}

/// Surveys the keys, and records for each the most permits in two windows.
struct Surveying {
    survey: Survey,
    peak_in_two: Sorter,
}

impl Visitor for Surveying {
    #[inline]
    fn request(&mut self, request: RequestOfKey) {
        self.survey.request(request);
    }

    fn end(&mut self, key: u64) -> Result<(), Failure> {
        self.peak_in_two.push(&[key, self.survey.end(key)])
    }
}
