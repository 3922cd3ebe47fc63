//! The requests that one quota applies to, grouped by key and in order of time.

use crate::failure::Failure;
use crate::progress::Progress;
use crate::replay::batch::{BATCH, Batch, Part, RequestOfKey};
use crate::replay::evaluator::Evaluated;
use crate::replay::survey::Survey;
use crate::rules::PlanEntry;
use crate::rules::record_layout::time_of_word;
use crate::sorter::{Sorted, SortedReader, Sorter};

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
        let mut survey = Survey::new(entry.window(), entry.max_request());
        let mut peak_in_two = Sorter::new(2);
        visit(&mut records, None, progress, |batch| {
            for (part, requests) in batch.parts() {
                requests.iter().for_each(|request| survey.request(*request));
                if part.ends {
                    peak_in_two.push(&[part.key, survey.end(part.key)])?;
                }
            }
            Ok(())
        })?;
        Ok(Self {
            records,
            peak_in_two: peak_in_two.finish()?,
            survey,
        })
    }

    /// The number of requests.
    pub(crate) const fn requests(&self) -> u64 {
        self.records.records()
    }

    /// Visits all requests.
    pub(crate) fn visit(
        &mut self,
        progress: &mut Progress,
        what: &'static str,
        mut each: impl FnMut(&Batch),
    ) -> Result<(), Failure> {
        progress.begin(what);
        let peak_in_two = self.peak_in_two.read()?;
        visit(&mut self.records, Some(peak_in_two), progress, |batch| {
            each(batch);
            Ok(())
        })
    }
}

/// The phase that the progress line shows.
const BY_KEY: &str = "counting by key";

/// Visits the requests in batches. Without the peaks of the keys, those of the parts are unknown.
fn visit(
    records: &mut Sorted,
    mut peak_in_two: Option<SortedReader<'_>>,
    progress: &mut Progress,
    mut each: impl FnMut(&Batch) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let all = records.records();
    let mut reading = records.read()?;
    let (mut batch, mut present, mut seen) = (Batch::default(), None::<Part>, 0);
    while let Some(record) = reading.next()? {
        let &[word, time, ref permits @ ..] = record else {
            continue;
        };
        let verdict = word & (ADMITTED | DENIED);
        let key = word ^ verdict;
        if present.is_none_or(|part| part.key != key) {
            present.iter().for_each(|part| batch.end(*part));
            let peak = match &mut peak_in_two {
                // Both readers have the same order of keys.
                Some(peaks) => peaks.next()?.map(|record| record[1]),
                None => None,
            };
            present = Some(Part {
                key,
                peak_in_two: peak.unwrap_or(u64::MAX),
                ends: true,
            });
        }
        batch.requests.push(RequestOfKey {
            time: time_of_word(time),
            permits: permits.first().copied().unwrap_or(1),
            admitted: verdict & ADMITTED != 0,
            denied: verdict & DENIED != 0,
        });
        if batch.requests.len() == BATCH {
            present
                .iter()
                .for_each(|part| batch.end(Part { ends: false, ..*part }));
            each(&batch)?;
            batch.clear();
            seen += BATCH as u64;
            progress.show_phase(seen, all);
        }
    }
    present.iter().for_each(|part| batch.end(*part));
    each(&batch)
}
