//! Dates of the Gregorian calendar.

/// A day, as the number of days since the 1st of January 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day(pub(super) i64);

/// The days of 400 years, after which the calendar repeats.
const CYCLE: i64 = 146_097;
/// The days from the 1st of March of year 0 to the 1st of January 1970.
const TO_1970: i64 = 719_468;

impl Day {
    /// The day with the number `day`, from 1, in a month that is counted from January of year 0.
    pub(super) const fn in_month(month: i64, day: i64) -> Self {
        // A year from March to February ends with the leap day. Its months repeat every five: 31, 30, 31, 30 and 31 days.
        let since_march = month - 2;
        let (year, month) = (since_march.div_euclid(12), since_march.rem_euclid(12));
        let before_month = (153 * month + 2) / 5;
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        Self(365 * year + leap_days + before_month + day - 1 - TO_1970)
    }

    /// The month of this day, counted from January of year 0, and the day in it, from 1.
    pub(super) const fn month_and_day(self) -> (i64, i64) {
        let since_march = self.0 + TO_1970;
        let (cycle, in_cycle) = (since_march.div_euclid(CYCLE), since_march.rem_euclid(CYCLE));
        // Without the leap days, each year of the cycle has 365 days.
        let year = (in_cycle - in_cycle / 1460 + in_cycle / 36_524 - in_cycle / 146_096) / 365;
        let in_year = in_cycle - (365 * year + year / 4 - year / 100);
        let month = (5 * in_year + 2) / 153;
        let day = in_year - (153 * month + 2) / 5 + 1;
        ((400 * cycle + year) * 12 + month + 2, day)
    }

    /// The number of the week that contains this day. Weeks begin with the weekday `from`: 1 is Monday, 7 is Sunday.
    pub(super) const fn week(self, from: i64) -> i64 {
        (self.0 - Self::first_of_week(0, from).0).div_euclid(7)
    }

    /// The first day of a week.
    pub(super) const fn first_of_week(week: i64, from: i64) -> Self {
        // The 29th of December 1969 was a Monday.
        Self(7 * week - 4 + from)
    }
}

#[cfg(test)]
mod tests {
    use super::Day;

    /// Counts through 8,000 years, from the 1st of March 1968. Miri counts through eight.
    #[test]
    fn dates_follow_one_another() {
        let (mut year, mut month, mut day) = (1968_i64, 3_i64, 1_i64);
        let mut number = -671;
        let last = if cfg!(miri) { 3000 } else { 2_932_896 };
        while number <= last {
            let months = year * 12 + month - 1;
            assert_eq!(Day(number).month_and_day(), (months, day), "{year}-{month}-{day}");
            assert_eq!(Day::in_month(months, day), Day(number), "{year}-{month}-{day}");
            let is_leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
            let length = match month {
                2 => 28 + i64::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, day) if day == length => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
            number += 1;
        }
        // The last day is the 31st of December 9999.
        assert!(cfg!(miri) || (year, month, day) == (10_000, 1, 1));
    }

    /// The 26th of November 2026, day 20,783, is a Thursday.
    #[test]
    fn weeks_begin_with_their_weekday() {
        for (from, first) in [(1, 20_780), (3, 20_782), (4, 20_783), (5, 20_777), (7, 20_779)] {
            let week = Day(20_783).week(from);
            assert_eq!(Day::first_of_week(week, from), Day(first), "{from}");
            assert_eq!(Day(first - 1).week(from), week - 1, "{from}");
            assert_eq!(Day(first + 6).week(from), week, "{from}");
        }
        // Before 1970.
        assert_eq!(Day::first_of_week(Day(-1).week(1), 1), Day(-3));
        assert_eq!(Day::first_of_week(Day(-4).week(1), 1), Day(-10));
    }
}
