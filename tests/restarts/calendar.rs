//! A rule with a calendar, of which each process computes the periods by its own clock.

use std::time::SystemTime;

use super::*;
use proptest::prelude::*;

const DAY: u64 = 24 * 3600 * WINDOW;

/// The rule of a process that begins at `now`, with a clock that shows `reading`.
fn builder(limit: u64, now: u64, reading: u64) -> (RuleSetBuilder<u64>, ManualClock) {
    let clock = ManualClock::new();
    clock.set(Nanos::new(reading));
    let key = Key::new("key", |key: &u64, hash| key.hash(hash));
    let quota = format!("{limit}/day").parse().expect("a quota");
    let rules = RuleSetBuilder::new()
        .rule(Rule::calendar("plan", quota).by(&key).capacity(10))
        .origin(SystemTime::UNIX_EPOCH + Duration::from_nanos(now - reading));
    (rules, clock)
}

proptest! {
    // Each restart computes the days of twenty years.
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    /// No civil day of a key holds more than the limit, however often the process is restarted.
    #[test]
    fn no_day_exceeds_the_limit(limit in 1..12_u64, acts in history(24)) {
        // A history is of seconds, and this one of days.
        let scaled = |time: u64| time * (DAY / WINDOW) / 4;
        let mut now = 1_000 * DAY + 17 * WINDOW;
        let mut origin = now - 3 * DAY;
        let (rules, mut clock) = builder(limit, now, now - origin);
        let mut current: RuleSet<u64, ManualClock> =
            rules.build_with(clock.clone(), [1, 2, 3, 4]).expect("a rule");
        let mut days = BTreeMap::<(u64, u64), u64>::new();
        for &act in &acts {
            match act {
                Act::Take { key, .. } => {
                    if current.check(&key).is_ok() {
                        *days.entry((key, now / DAY)).or_default() += 1;
                    }
                }
                Act::Wait(time) => now += scaled(time),
                Act::Back(_) => {}
                Act::Restart { gap, known, phase } => {
                    let mut file = Vec::new();
                    current.save(&mut file).expect("memory");
                    now += scaled(gap);
                    origin = now - scaled(phase);
                    let (rules, next) = builder(limit, now, now - origin);
                    clock = next;
                    let elapsed = Duration::from_nanos(scaled(gap) / 1_000 * known);
                    current = rules
                        .restore_with(clock.clone(), &*file, elapsed)
                        .expect("the same rules");
                }
            }
            clock.set(Nanos::new(now - origin));
        }
        for ((key, day), admitted) in days {
            prop_assert!(admitted <= limit, "{admitted} of {limit} of key {key} on day {day}");
        }
    }
}
