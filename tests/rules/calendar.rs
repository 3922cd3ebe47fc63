//! Rules with a calendar: decisions with other rules, reloads, tiers, restarts, and errors.

use alloc::collections::BTreeMap;
use std::time::SystemTime;

use super::*;
use ringgate::algorithm::CalendarQuota;
use ringgate::rules::AnyRule;
use ringgate::rules::kind::Calendar;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// The 20th of October 2026, 00:00 in Berlin. The sixth day has 25 hours.
fn origin() -> SystemTime {
    SystemTime::UNIX_EPOCH + secs(1_792_447_200)
}

fn periods(text: &str) -> CalendarQuota {
    in_zone(text, "Europe/Berlin")
}

fn in_zone(text: &str, zone: &str) -> CalendarQuota {
    let quota: CalendarQuota = text.parse().expect(text);
    quota.in_zone(zone).expect("a zone")
}

fn calendar(name: &'static str, text: &str) -> Rule<Request, Calendar> {
    Rule::calendar(name, periods(text))
}

/// Rules with a manual clock whose origin is [`origin`].
fn from_origin<K: Into<AnyKind>>(rules: impl IntoIterator<Item = Rule<Request, K>>) -> (Live, ManualClock) {
    let clock = ManualClock::new();
    let rules = set(rules).origin(origin());
    let rules = rules.build_with(clock.clone(), [1, 2, 3, 4]).expect("rules");
    (LiveRules::new(rules), clock)
}

/// The permits that are left of each rule, by its name.
fn left(live: &Live, request: &Request) -> Vec<u64> {
    let rules = live.load();
    rules.peek(request).map(|peek| peek.remaining()).collect()
}

/// The number of the civil day in Berlin, from the hours since the origin.
const fn day(hours: u64) -> u64 {
    if hours < 6 * 24 {
        hours / 24
    } else {
        (hours - 1) / 24
    }
}

/// An exact count of one user: the newest period of a rule, and the permits that are charged to it.
#[derive(Clone, Copy, Default)]
struct Count {
    newest: u64,
    used: u64,
}

impl Count {
    fn used(self, now: u64) -> u64 {
        if now > self.newest { 0 } else { self.used }
    }

    fn charge(&mut self, now: u64, permits: u64) -> u64 {
        *self = Self {
            newest: self.newest.max(now),
            used: self.used(now) + permits,
        };
        self.newest
    }

    fn refund(&mut self, period: u64, permits: u64) {
        if period == self.newest {
            self.used -= permits;
        }
    }
}

/// Random requests, refunds, reloads to other limits and clocks that step back, compared with an exact count of each civil
/// day and of each window of six hours. A request is charged to both rules or to none.
#[test]
fn a_calendar_and_a_rate_are_charged_together_or_not_at_all() {
    for seed in 1..=8 {
        let mut random = Random::new(seed);
        let key = by_user();
        let rules = |limit: u64| {
            [
                calendar("day", &format!("{limit}/day"))
                    .by(&key)
                    .cost(&by_cost())
                    .capacity(100)
                    .into_any(),
                rule("rate", "5/6h")
                    .algorithm(RuleAlgorithm::Fixed)
                    .by(&key)
                    .cost(&by_cost())
                    .capacity(100)
                    .into_any(),
            ]
        };
        let (live, clock) = from_origin(rules(10));
        let (mut limit, mut hours) = (10, 0);
        let mut counts: BTreeMap<u64, [Count; 2]> = BTreeMap::new();
        let mut held: Vec<(u64, u64, [u64; 2], Reservation<Request>)> = Vec::new();
        for _ in 0..500 {
            match random.below(20) {
                0 => {
                    limit = 3 + random.below(12);
                    reload(&live, rules(limit));
                }
                1..5 => hours += random.below(9),
                5 => hours -= random.below(30).min(hours),
                6 | 7 if !held.is_empty() => {
                    let index = random.index(held.len());
                    let (id, permits, [of_day, of_window], reservation) = held.swap_remove(index);
                    let counts = counts.get_mut(&id).expect("a request of this user");
                    let is_exact = counts[0].newest == of_day && counts[1].newest == of_window;
                    let refunded = live.load().refund(reservation);
                    assert!(!is_exact || refunded == Settled::Exact);
                    counts[0].refund(of_day, permits);
                    counts[1].refund(of_window, permits);
                }
                _ => {
                    let (id, permits) = (random.below(3), 1 + random.below(4));
                    let request = Request {
                        user: id,
                        cost: permits,
                        ..Request::default()
                    };
                    let counts = counts.entry(id).or_default();
                    let (today, window) = (day(hours), hours / 6);
                    let used = [counts[0].used(today), counts[1].used(window)];
                    let expected = [limit.saturating_sub(used[0]), 5_u64.saturating_sub(used[1])];
                    assert_eq!(left(&live, &request), expected);
                    let fits = expected.iter().all(|left| permits <= *left);
                    let rules = live.load();
                    let reserved = rules.reserve(&request);
                    assert_eq!(reserved.is_ok(), fits);
                    match reserved {
                        Ok(reservation) => {
                            let of = [
                                counts[0].charge(today, permits),
                                counts[1].charge(window, permits),
                            ];
                            held.push((id, permits, of, reservation));
                        }
                        Err(denied) if permits > limit => assert_eq!(denied.retry_after(), None),
                        Err(denied) => {
                            let ready = hours + denied.retry_after().expect("a later time").as_secs() / HOUR;
                            // It is the start of the next day if the calendar denies, and the next window otherwise.
                            if permits > expected[0] {
                                assert!(day(ready) > today.max(counts[0].newest), "{hours} to {ready}");
                            }
                            clock.set(Nanos::from_duration(secs(ready * HOUR)));
                            assert!(left(&live, &request).iter().all(|left| permits <= *left));
                        }
                    }
                }
            }
            clock.set(Nanos::from_duration(secs(hours * HOUR)));
        }
    }
}

#[test]
fn a_denial_states_the_period_and_its_end() {
    let (live, clock) = from_origin([calendar("contract", "2/month from the 5th")]);
    let rules = live.load();
    assert!(rules.check(&user(1)).is_ok() && rules.check(&user(1)).is_ok());
    clock.advance(secs(DAY));
    let request = user(1);
    let denied = rules.check(&request).expect_err("two are admitted");
    // The period of 31 days began on the fifth of October, before the origin, and has 25 hours at its end of summer time.
    let wait = secs(15 * DAY + HOUR);
    assert_eq!(denied.retry_after(), Some(wait));
    let shown = denied.violations().next().expect("the rule");
    assert_eq!(shown.quota.window(), secs(31 * DAY + HOUR));
    assert_eq!((shown.limit, shown.remaining), (2, 0));
    let text = "rate limit reached: contract (0 of 2 per 2682000s left); try again in 1299600s";
    assert_eq!(denied.to_string(), text);
    clock.advance(wait - Duration::from_nanos(1));
    assert!(rules.check(&request).is_err());
    clock.advance(Duration::from_nanos(1));
    let peek = rules.peek(&request).next().expect("the rule");
    assert_eq!(
        (peek.remaining(), peek.status().quota.window()),
        (2, secs(30 * DAY))
    );
    assert_eq!(peek.status().reset_after, None);
}

/// A new name keeps the permits of the period, and the state is the same one.
#[test]
fn a_reload_to_another_name_gives_no_fresh_budget() {
    let key = by_user();
    for keyed in [false, true] {
        let by = |rule: Rule<Request, Calendar>| if keyed { rule.by(&key) } else { rule };
        let (live, clock) = from_origin([by(calendar("a", "10/month"))]);
        assert_eq!(admissions(&live, &user(1), 8), 8);
        clock.advance(secs(9 * DAY));
        let state = live.load().reserve(&user(1)).expect("the ninth");
        reload(&live, [by(calendar("b", "10/month").renamed_from("a"))]);
        assert_eq!(left(&live, &user(1)), [1]);
        assert_eq!(live.load().refund(state), Settled::Exact);
        assert_eq!(admissions(&live, &user(1), 9), 2);
        // November begins.
        clock.advance(secs(3 * DAY));
        assert_eq!(admissions(&live, &user(1), 20), 0);
        clock.advance(secs(HOUR));
        assert_eq!(admissions(&live, &user(1), 20), 10);
    }
}

/// The clock of the rule set and that of the operating system have diverged since the rules were built.
#[test]
fn a_reload_keeps_the_time_at_the_origin() {
    let clock = ManualClock::new();
    let rules = || set([calendar("a", "10/week")]);
    let live = LiveRules::new(rules().build_with(clock.clone(), [1, 2, 3, 4]).expect("rules"));
    let week = |live: &Live| {
        let rules = live.load();
        let request = user(1);
        let denied = rules.check(&request).expect_err("ten are admitted");
        denied.retry_after().expect("next week")
    };
    assert_eq!(admissions(&live, &user(1), 20), 10);
    clock.advance(week(&live));
    assert_eq!(admissions(&live, &user(1), 20), 10);
    let expected = week(&live);
    for limit in [10, 9] {
        // Another origin in the builder has no effect either.
        let rules = set([calendar("a", &format!("{limit}/week"))]).origin(origin());
        assert_eq!(live.store(&rules).expect("valid rules"), Reloaded::Done);
        assert_eq!(week(&live), expected);
    }
    // Also if no rule had a calendar meanwhile.
    reload(&live, [rule("a", "10/3h")]);
    assert_eq!(admissions(&live, &user(1), 20), 0);
    reload(&live, [calendar("a", "10/week")]);
    assert_eq!(week(&live), expected);
}

/// A rule set without a calendar knows no origin, so it takes that of the first reload with a calendar.
#[test]
fn a_reload_can_add_a_calendar() {
    let (live, _) = live([rule("a", "10/3h")]);
    assert_eq!(admissions(&live, &user(1), 7), 7);
    let rules = |zone| set([Rule::calendar("a", in_zone("10/day", zone))]);
    for (zone, hours) in [("Europe/Berlin", 23), ("UTC", 1)] {
        let store = live.store(&rules(zone).origin(origin()));
        assert_eq!(store.expect("valid rules"), Reloaded::Done);
        assert_eq!(left(&live, &user(1)), [3]);
        let rules = live.load();
        let request = user(1);
        let retry = rules.peek(&request).next().and_then(|peek| peek.retry_after(4));
        assert_eq!(retry, Some(secs(hours * HOUR)));
    }
}

/// Other periods, another zone, and windows: the permits that count are charged to the current period.
#[test]
fn a_reload_to_other_periods_carries_the_permits_over() {
    let key = by_user();
    for keyed in [false, true] {
        let by = |rule: AnyRule<Request>| if keyed { rule.by(&key) } else { rule };
        let of = |quota: CalendarQuota| by(Rule::calendar("a", quota).into_any());
        let (live, clock) = from_origin([of(periods("10/day"))]);
        clock.set(Nanos::from_duration(secs(DAY)));
        assert_eq!(admissions(&live, &user(1), 4), 4);
        // A day in Berlin begins two hours before that of UTC.
        for next in [
            periods("10/month"),
            periods("10/month from 21"),
            periods("10/day"),
            in_zone("10/day", "UTC"),
            in_zone("10/day", "Asia/Tokyo"),
            periods("10/year"),
        ] {
            reload(&live, [of(next)]);
            assert_eq!(left(&live, &user(1)), [6]);
        }
        reload(&live, [by(rule("a", "10/3h").into_any())]);
        assert_eq!(left(&live, &user(1)), [6]);
        reload(&live, [of(periods("10/day"))]);
        assert_eq!(left(&live, &user(1)), [6]);
        assert_eq!(left(&live, &user(2)), [if keyed { 10 } else { 6 }]);
        // More than a lower limit.
        reload(&live, [of(periods("3/month"))]);
        assert_eq!(left(&live, &user(1)), [0]);
        clock.set(Nanos::from_duration(secs(12 * DAY)));
        assert_eq!(left(&live, &user(1)), [0]);
        clock.advance(secs(HOUR));
        assert_eq!(left(&live, &user(1)), [3]);
    }
}

/// The table is full, so some keys are charged to the catch-all. None of them gets a fresh budget by a reload.
#[test]
fn a_reload_carries_the_permits_of_a_full_table_over() {
    let key = by_user();
    let each = |text| calendar("a", text).by(&key).capacity(1);
    for next in ["10/day", "8/day", "10/month", "10/week from sunday"] {
        let (live, clock) = from_origin([each("10/day")]);
        clock.advance(secs(HOUR));
        let before: Vec<u64> = (0..60).map(|id| admissions(&live, &user(id), 4)).collect();
        assert!(counts(&live.load(), "a").overflowed > 0);
        reload(&live, [each(next)]);
        for (id, before) in (0..).zip(before) {
            let after = admissions(&live, &user(id), 20);
            assert!(before + after <= 10, "{next}: {before} and {after} of user {id}");
        }
    }
}

#[test]
fn tiers_lists_costs_and_lower_limits_apply() {
    let tiered = calendar("a", "10/day")
        .by(&by_user())
        .cost(&by_cost())
        .tier_of(&by_plan())
        .tier("free", 2)
        .tier("paid", 100)
        .limit_by(|request: &Request| request.limit)
        .allow(7_u64)
        .deny(8_u64);
    let (live, clock) = from_origin([tiered]);
    let request = |plan, cost| user(1).cost(cost).plan(plan);
    let admits = |request: &Request| live.load().check(request).is_ok();
    assert!(!admits(&request(Some("free"), 3)) && admits(&request(Some("free"), 2)));
    // All tiers have the same counts.
    assert_eq!(left(&live, &request(None, 1)), [8]);
    assert!(admits(&request(Some("paid"), 98)) && !admits(&request(Some("paid"), 1)));
    assert_eq!(left(&live, &request(None, 1)), [0]);
    assert!(admits(&user(7)) && !admits(&user(8)));
    clock.advance(secs(DAY));
    let lower = |limit| user(1).cost(3).limit(limit);
    assert!(admits(&lower(5)) && !admits(&lower(5)) && admits(&lower(6)));
    let lowest = lower(5);
    let rules = live.load();
    let denied = rules.check(&lowest).expect_err("six are charged");
    assert_eq!(denied.violations().next().map(|peek| peek.limit), Some(5));
    assert_eq!(denied.retry_after(), Some(secs(DAY)));
}

#[test]
fn a_rule_in_the_shadow_counts_and_does_not_deny() {
    let (live, _) = from_origin([
        calendar("a", "2/day").shadow().into_any(),
        rule("b", "9/s").into_any(),
    ]);
    assert_eq!(admissions(&live, &user(1), 5), 5);
    assert_eq!(counts(&live.load(), "a").shadow_denied, 3);
}

/// The new process has another origin. The permits count until the end of their period, and no longer.
#[test]
fn a_restart_gives_no_fresh_budget() {
    let key = by_user();
    let rules = |periods: &CalendarQuota, after: u64| {
        let all = Rule::calendar("all", periods.clone()).into_any();
        let each = Rule::calendar("each", periods.clone()).by(&key).into_any();
        set([all, each, rule("rate", "99/min").into_any()]).origin(origin() + secs(after))
    };
    let month = periods("10/month");
    let clock = ManualClock::new();
    let before = rules(&month, 0)
        .build_with(clock.clone(), [1, 2, 3, 4])
        .expect("rules");
    clock.advance(secs(5 * DAY));
    assert!((0..7).all(|_| before.check(&user(1)).is_ok()));
    let file = saved(&before);
    // The month ends seven days and one hour after the save. If the elapsed time is unknown, the permits count in the period of the restart.
    for (after, elapsed, remaining) in [
        (5 * DAY, 0, 3),
        (12 * DAY, 7 * DAY, 3),
        (12 * DAY + HOUR, 7 * DAY + HOUR, 10),
        (40 * DAY, 0, 3),
    ] {
        let after = restored(&rules(&month, after), &file, secs(elapsed)).expect("the same rules");
        let left: Vec<u64> = after.peek(&user(1)).map(|peek| peek.remaining()).collect();
        assert_eq!(left[..2], [remaining, remaining], "{elapsed} s later");
    }
    // Other periods are other rules, and so are those of another zone.
    let others = ["10/month from 2", "10/day", "9/month"].map(periods);
    for other in others.iter().chain([&in_zone("10/month", "Asia/Tokyo")]) {
        assert!(
            restored(&rules(other, 0), &file, Duration::ZERO).is_err(),
            "{other:?}"
        );
    }
}

#[test]
fn invalid_rules_are_errors() {
    let tiered = calendar("a", "9/day").tier_of(&by_plan()).tier("paid", 0);
    assert_eq!(
        refused([tiered]).to_string(),
        "rule \"a\": invalid limit: 0 (expected 1 to 1000000000000 permits)"
    );
    let early = set([calendar("a", "9/day")]).origin(SystemTime::UNIX_EPOCH - secs(1));
    let error = early
        .build_with(ManualClock::new(), [1, 2, 3, 4])
        .expect_err("before 1970");
    assert_eq!((&*error.rule, error.error.field), ("a", "origin"));
}

#[test]
fn a_view_states_the_calendar() {
    let rule = calendar("a", "9/month from 5").into_any();
    let view = rule.view();
    assert_eq!(view.calendar, Some(&periods("9/month from 5")));
    assert_eq!((view.quotas, view.algorithm), (&[quota("9/31d")][..], None));
    assert_eq!(self::rule("a", "9/31d").into_any().view().calendar, None);
}

/// Equal rules share no state, and neither does a rate of the same window.
#[test]
fn a_calendar_shares_no_state() {
    let (live, _) = from_origin([
        calendar("a", "9/day").into_any(),
        calendar("b", "5/day").into_any(),
        rule("c", "7/d").into_any(),
    ]);
    assert_eq!(live.load().states(), 3);
    assert_eq!(admissions(&live, &user(1), 9), 5);
    assert_eq!(left(&live, &user(1)), [4, 0, 2]);
}

/// The default clock does not follow the time of the operating system, so a calendar needs a clock that the caller chooses: when
/// the set is built, restored, or reloaded.
#[cfg(feature = "quanta")]
#[test]
fn the_default_clock_is_refused_for_a_calendar() {
    use ringgate::QuantaClock;
    use ringgate::clock::{InstantClock, SystemClock};
    use ringgate::keyed::random_seeds;

    let message = r#"rule "plan": invalid clock: the default clock for a calendar (expected a clock that follows the time of the operating system, by build_with(SystemClock::new(), random_seeds()))"#;
    let rate = || rule("rate", "9/h").by(&by_user());
    let sets = [
        set([calendar("plan", "5/day")]),
        set([calendar("plan", "5/month").by(&by_user())]),
        set([rate()]).rule(calendar("plan", "5/week")),
        set([calendar("plan", "5/year")]).rule(rate()),
        set([calendar("plan", "5/day").shadow()]),
        set([calendar("plan", "5/day")]).origin(origin()),
    ];
    let live = LiveRules::new(set([rate()]).build().expect("a rate needs no date"));
    for rules in sets {
        assert_eq!(rules.build().expect_err("the default clock").to_string(), message);
        let reload = live.store(&rules).expect_err("the default clock");
        assert!(reload.to_string().contains("invalid clock"), "{reload}");
        let chosen = rules
            .build_with(SystemClock::new(), random_seeds())
            .expect("a clock that follows the date");
        assert!(chosen.check(&user(1)).is_ok());
        let file = saved(&chosen);
        let restored = rules
            .restore(&*file, Duration::ZERO)
            .expect_err("the default clock");
        assert_eq!(restored.to_string(), message);
        let restored = rules
            .restore_with(SystemClock::new(), &*file, Duration::ZERO)
            .expect("the same rules");
        assert!(restored.check(&user(1)).is_ok());
        // A clock that the caller passes is the caller's choice.
        assert!(rules.build_with(QuantaClock::new(), random_seeds()).is_ok());
        assert!(rules.build_with(InstantClock::new(), random_seeds()).is_ok());
    }
    assert_ne!(random_seeds(), random_seeds());
}
