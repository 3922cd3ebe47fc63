//! The years of timestamps without a year.

use crate::input::time::calendar::{self, SECOND};

/// Infers the year of one timestamp after the other: the year in which it is nearest to the timestamp before it. So the
/// turn of a year is recognized in both directions.
#[derive(Debug)]
pub(crate) struct YearInference {
    said: Option<i16>,
    /// Nanoseconds since 1970.
    now: i64,
    last: Option<i64>,
    assumed: Option<i16>,
}

/// The largest time from now to the first timestamp, because clocks and zones differ.
const AHEAD: i64 = 24 * 3600 * SECOND;

/// The largest distance of a timestamp from the one before it: more than half a year, so that one year has a candidate.
const NEAR: u64 = 200 * AHEAD.unsigned_abs();

impl YearInference {
    /// The first timestamp is in `year` if given, or else in the last year in which it is not after `now`.
    pub(crate) const fn new(said: Option<i16>, now: i64) -> Self {
        Self {
            said,
            now,
            last: None,
            assumed: None,
        }
    }

    /// The year of the first timestamp, if it was not given.
    pub(crate) const fn assumed(&self) -> Option<i16> {
        self.assumed
    }

    /// The instant in the inferred year, where `at` converts a year to an instant; `None` if no candidate year has it.
    pub(crate) fn resolve(&mut self, at: impl Fn(i16) -> Option<i64>) -> Option<i64> {
        let nearest = |last: i64| {
            let year = calendar::year(last);
            let inference = [year - 1, year, year + 1].into_iter();
            let times = inference.filter_map(&at);
            // 29 February is missing in most years; a candidate that is too far away is not the nearest.
            times
                .filter(|time| time.abs_diff(last) < NEAR)
                .min_by_key(|time| time.abs_diff(last))
        };
        let time = match (self.last, self.said) {
            (Some(last), _) => nearest(last)?,
            (None, Some(year)) => at(year)?,
            (None, None) => {
                let year = calendar::year(self.now);
                let past = |time: &i64| *time <= self.now.saturating_add(AHEAD);
                // 29 February recurs within eight years.
                let time = (0..=8).find_map(|ago| at(year - ago).filter(past))?;
                self.assumed = Some(calendar::year(time));
                time
            }
        };
        self.last = Some(time);
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::YearInference;
    use crate::input::time::calendar;
    use jiff::civil::Date;

    fn at(month: i8, day: i8) -> impl Fn(i16) -> Option<i64> {
        move |year| calendar::nanos(Date::new(year, month, day).ok()?.at(12, 0, 0, 0))
    }

    fn inference(inference: &mut YearInference, days: &[(i8, i8)]) -> Vec<Option<i16>> {
        let resolved = days
            .iter()
            .map(|&(month, day)| inference.resolve(at(month, day)).map(calendar::year));
        resolved.collect()
    }

    #[test]
    fn a_turn_of_the_year_is_recognized_in_both_directions() {
        let days = [(12, 30), (1, 2), (12, 31), (1, 1), (7, 1), (12, 1), (1, 5)];
        assert_eq!(
            inference(&mut YearInference::new(Some(2015), 0), &days),
            [2015, 2016, 2015, 2016, 2016, 2016, 2017].map(Some)
        );
    }

    #[test]
    fn the_first_timestamp_is_not_in_the_future() -> Result<(), &'static str> {
        let now = at(1, 10)(2026).ok_or("a time")?;
        assert_eq!(
            inference(&mut YearInference::new(None, now), &[(1, 10)]),
            [Some(2026)]
        );
        // A clock may be a day behind.
        assert_eq!(
            inference(&mut YearInference::new(None, now), &[(1, 11)]),
            [Some(2026)]
        );
        assert_eq!(
            inference(&mut YearInference::new(None, now), &[(1, 12)]),
            [Some(2025)]
        );
        assert_eq!(
            inference(&mut YearInference::new(None, now), &[(12, 31), (1, 1)]),
            [Some(2025), Some(2026)]
        );
        assert_eq!(
            inference(&mut YearInference::new(None, now), &[(2, 29)]),
            [Some(2024)]
        );
        Ok(())
    }

    #[test]
    fn a_day_that_the_year_lacks_is_rejected() {
        let mut some = YearInference::new(Some(2015), 0);
        assert_eq!(
            inference(&mut some, &[(2, 29), (2, 28), (2, 29), (8, 1), (12, 31), (2, 29)]),
            [None, Some(2015), None, Some(2015), Some(2015), Some(2016)]
        );
    }
}
