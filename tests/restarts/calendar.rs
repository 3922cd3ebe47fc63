//! A rule with a calendar, of which each process computes the periods by its own clock.

use std::time::SystemTime;

use super::*;
use proptest::prelude::*;

const DAY: u64 = 24 * 3600 * WINDOW;

proptest! {
    // Each restart computes the days of twenty years.
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    /// No civil day of a key holds more than the limit, however often the process is restarted.
    #[test]
    fn no_day_exceeds_the_limit(limit in 1..12_u64, acts in history(24)) {
        let rules = |line: &Line| {
            let key = Key::new("key", |key: &u64, hash| key.hash(hash));
            let quota = format!("{limit}/day").parse().expect("a quota");
            RuleSetBuilder::new()
                .rule(Rule::calendar("plan", quota).by(&key).capacity(10))
                .origin(SystemTime::UNIX_EPOCH + Duration::from_nanos(line.origin))
        };
        let mut line = Line::new(1_000 * DAY + 17 * WINDOW, 3 * DAY);
        // A history is of seconds, and this one of days.
        line.pace = |time| time * (DAY / WINDOW) / 4;
        line.pace_of_readings = line.pace;
        let mut days = BTreeMap::<(u64, u64), u64>::new();
        for admission in follow_rules(line, &acts, rules).read {
            let day = admission.at.get() / DAY;
            *days.entry((admission.key, day)).or_default() += admission.permits;
        }
        for ((key, day), admitted) in days {
            prop_assert!(admitted <= limit, "{admitted} of {limit} of key {key} on day {day}");
        }
    }
}
