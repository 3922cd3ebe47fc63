//! Paths, status codes and user agents of the denied requests of the top keys, where the log has them.

use std::collections::HashMap;

use serde::Serialize;

use crate::failure::Failure;
use crate::input::row::{Row, shown};
use crate::replay::evaluator::Evaluated;
use crate::rules::PlanEntry;

/// The fields for details. In a row they follow the fields that rules name and the time.
pub(crate) const FIELDS: [&str; 3] = ["path", "status", "agent"];

/// Distinct values of a field. Others are counted together.
const MAX_VALUES: u64 = 1 << 14;

/// The number of leading bytes by which values are told apart.
const LONGEST: usize = 200;

/// Listed values of a field.
const LISTED: usize = 5;

/// Bits of a value's number in the last word of a record.
const BITS: u32 = 16;

/// The number of a missing value, and that of every value beyond the first `MAX_VALUES`.
const NONE: u64 = 0;
const OTHER: u64 = 1;

/// The values of the fields of all requests, each with its number.
#[derive(Debug, Default)]
pub(crate) struct Details {
    values: [HashMap<Box<[u8]>, u64>; FIELDS.len()],
}

/// The most frequent values of a field; the fields are those of the JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FieldReport {
    pub(crate) field: String,
    /// Values with the number of denied requests, in descending order.
    pub(crate) denied: Vec<(String, u64)>,
}

impl Details {
    /// The numbers of a request's values in one word. The first value is at `start` in the row.
    pub(crate) fn word(&mut self, row: &Row, start: usize) -> u64 {
        let mut word = 0;
        for (index, values) in self.values.iter_mut().enumerate() {
            let Some(value) = row.get(start + index).filter(|value| !value.is_empty()) else {
                continue;
            };
            let value = &value[..value.len().min(LONGEST)];
            let next = OTHER + 1 + values.len() as u64;
            let number = match values.get(value) {
                Some(number) => *number,
                None if next >= MAX_VALUES => OTHER,
                None => *values.entry(value.into()).or_insert(next),
            };
            word |= number << (BITS * index as u32);
        }
        word
    }

    /// The most frequent values of the denied requests of each key, given by the position of its entry and its hash.
    ///
    /// # Errors
    ///
    /// When a temporary file fails.
    pub(crate) fn of_keys(
        &self,
        evaluated: &mut Evaluated,
        entries: &[PlanEntry],
        keys: &[(usize, u64)],
    ) -> Result<Vec<Vec<FieldReport>>, Failure> {
        let mut counts: Vec<[HashMap<u64, u64>; FIELDS.len()]> =
            keys.iter().map(|_| Default::default()).collect();
        evaluated.visit(|record, verdict| {
            for (&(entry, key), counts) in keys.iter().zip(&mut counts) {
                if verdict.denied_by(entry) && entries[entry].key_of(record) == key {
                    let word = record.last().copied().unwrap_or(0);
                    for (index, counts) in counts.iter_mut().enumerate() {
                        let number = word >> (BITS * index as u32) & ((1 << BITS) - 1);
                        *counts.entry(number).or_default() += 1;
                    }
                }
            }
            Ok(())
        })?;
        Ok(counts.iter().map(|counts| self.reports(counts)).collect())
    }

    fn reports(&self, counts: &[HashMap<u64, u64>; FIELDS.len()]) -> Vec<FieldReport> {
        let fields = FIELDS.iter().zip(counts).zip(&self.values);
        let reports = fields.map(|((field, counts), values)| {
            let mut denied: Vec<(String, u64)> = counts
                .iter()
                .filter(|(number, _)| **number != NONE)
                .map(|(number, count)| {
                    let value = values.iter().find(|(_, known)| *known == number);
                    (
                        value.map_or_else(|| "(other)".to_owned(), |(value, _)| shown(value)),
                        *count,
                    )
                })
                .collect();
            denied.sort_unstable_by(|(a, first), (b, second)| second.cmp(first).then_with(|| a.cmp(b)));
            denied.truncate(LISTED);
            FieldReport {
                field: (*field).to_owned(),
                denied,
            }
        });
        reports.filter(|report| !report.denied.is_empty()).collect()
    }
}
