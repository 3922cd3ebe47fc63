//! Requests and denials over time.

use crate::input::time::calendar::millis;
use crate::replay::span::Span;

/// Counts in equal steps from the first request on.
#[derive(Debug)]
pub(crate) struct Series {
    from: i64,
    /// Milliseconds.
    pub(crate) step: i64,
    pub(crate) requests: Vec<u64>,
    pub(crate) denied: Vec<u64>,
    /// Denials of each quota.
    pub(crate) by_rule: Vec<Vec<u64>>,
}

/// The largest number of steps.
const MAX_STEPS: i64 = 500;

/// Common steps: units in milliseconds, and multiples of each.
const STEPS: [(i64, &[i64]); 5] = [
    (1, &[1, 2, 5, 10, 20, 50, 100, 200, 500]),
    (1_000, &[1, 2, 5, 10, 15, 30]),
    (60_000, &[1, 2, 5, 10, 15, 30]),
    (3_600_000, &[1, 2, 3, 6, 12]),
    (86_400_000, &[1, 2, 7, 14, 30]),
];

impl Series {
    pub(crate) fn new(span: Span, rules: usize) -> Self {
        let from = millis(span.first);
        let length = millis(span.last) - from;
        let steps = STEPS.into_iter();
        let mut steps =
            steps.flat_map(|(unit, multiples)| multiples.iter().map(move |multiple| unit * multiple));
        let step = steps.find(|step| length / step < MAX_STEPS);
        let step = step.unwrap_or(length / MAX_STEPS + 1);
        let steps = usize::try_from(length / step + 1).unwrap_or(1);
        Self {
            from,
            step,
            requests: vec![0; steps],
            denied: vec![0; steps],
            by_rule: vec![vec![0; steps]; rules],
        }
    }

    /// The step of a time in nanoseconds.
    #[inline]
    pub(crate) fn step_of(&self, time: i64) -> usize {
        usize::try_from((millis(time) - self.from) / self.step).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_STEPS, Series};
    use crate::replay::span::{Span, TooLong};

    #[test]
    fn the_number_of_steps_is_bounded() -> Result<(), TooLong> {
        const MILLI: i64 = 1_000_000;
        for (length, step, steps) in [
            (0, 1, 1),
            (499 * MILLI, 1, 500),
            (500 * MILLI, 2, 251),
            (86_400_000 * MILLI, 300_000, 289),
            (14 * 366 * 86_400_000 * MILLI, 14 * 86_400_000, 367),
        ] {
            for first in [-MILLI - 1, 0, 7] {
                let span = Span::new(first, first + length, [1_000].into_iter())?;
                let series = Series::new(span, 2);
                assert_eq!(series.step, step, "{length}");
                assert!(
                    series.requests.len().abs_diff(steps) <= 1 && series.requests.len() <= MAX_STEPS as usize
                );
                assert_eq!(series.step_of(first), 0);
                assert_eq!(series.step_of(first + length), series.requests.len() - 1);
            }
        }
        Ok(())
    }
}
