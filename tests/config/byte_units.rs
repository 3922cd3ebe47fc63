//! Limits in bytes that are too large to count byte by byte.

use core::time::Duration;

use ringgate::algorithm::InUnits;
use ringgate::rules::{FileFormat, RuleSetBuilder};
use ringgate::{
    AnyAlgorithm, ConfigError, CounterRing, Gcra, LiveRules, ManualClock, Quota, RateLimiter, RuleSet,
    TimestampRing,
};

use super::{Request, invalid, read};
use crate::random::Random;

const SEEDS: [u64; 4] = [1, 2, 3, 4];

fn toml(rule: &str) -> RuleSetBuilder<Request> {
    read(FileFormat::Toml, &format!("[[rules]]\nname = 'rate'\n{rule}"))
}

fn build(rule: &str) -> RuleSet<Request, ManualClock> {
    toml(rule)
        .build_with(ManualClock::new(), SEEDS)
        .expect("a rule set")
}

fn of(bytes: u64) -> Request {
    Request {
        bytes,
        ..Request::default()
    }
}

fn remaining(rules: &RuleSet<Request, ManualClock>) -> u64 {
    let one = of(1);
    let mut peeks = rules.peek(&one);
    peeks.next().expect("a quota").remaining()
}

/// A rule decides a long history as `InUnits` does with the same quota and algorithm, in the same unit.
#[test]
fn a_rule_decides_as_the_algorithm_in_units() -> Result<(), ConfigError> {
    type Build = fn(Quota, u64) -> Result<AnyAlgorithm, ConfigError>;
    let algorithms: [(&str, Build); 6] = [
        ("", |quota, _| Ok(CounterRing::new(quota)?.into())),
        ("algorithm = 'classic'", |quota, _| {
            Ok(CounterRing::builder(quota).classic().build()?.into())
        }),
        ("algorithm = 'even'", |quota, _| {
            Ok(CounterRing::builder(quota).even().build()?.into())
        }),
        ("algorithm = 'fixed'", |quota, _| {
            Ok(CounterRing::fixed_window(quota)?.into())
        }),
        ("algorithm = 'log'", |quota, _| {
            Ok(TimestampRing::new(quota)?.into())
        }),
        ("algorithm = 'gcra'\nburst = 500_000_000", |quota, unit| {
            Ok(Gcra::token_bucket(quota, 500_000_000 / unit)?.into())
        }),
    ];
    for quota in ["25Gbit/s", "400Gbit/s"] {
        for (algorithm, build_algorithm) in algorithms {
            let rules = build(&format!("quota = '{quota}'\ncost = 'bytes'\n{algorithm}"));
            let rate: Quota = quota.parse()?;
            // The words of a fixed window hold 25 Gbit in bytes.
            let in_units = match build_algorithm(rate, 1) {
                Ok(single) => single,
                Err(_) => InUnits::new(rate, build_algorithm)?.into(),
            };
            let limit = rate.limit();
            let alone = RateLimiter::with_clock(in_units, ManualClock::new());
            let (mut random, mut denied) = (Random::new(1), 0);
            // A log reads each of its slots for a denial.
            let steps = if algorithm == "algorithm = 'log'" {
                200
            } else {
                2_000
            };
            for _ in 0..steps {
                let step = Duration::from_micros(random.below(20_000));
                rules.clock().advance(step);
                alone.clock().advance(step);
                let bytes = random.below(limit / 40) + random.below(3);
                let request = of(bytes);
                let (one, other) = (rules.check(&request), alone.check_n(bytes));
                let waits = |retry: Option<Option<Duration>>| format!("{retry:?}");
                assert_eq!(
                    waits(one.err().map(|denied| denied.retry_after())),
                    waits(other.as_ref().err().map(|denied| denied.retry_after())),
                    "{quota} {algorithm}"
                );
                denied += u64::from(other.is_err());
                assert_eq!(remaining(&rules), alone.peek().remaining(), "{quota} {algorithm}");
            }
            assert!((1..steps).contains(&denied), "{quota} {algorithm}: {denied}");
        }
    }
    Ok(())
}

/// A limit that is small enough is exact, whether or not it is written in bytes.
#[test]
fn a_limit_that_fits_is_counted_in_bytes() {
    for algorithm in ["counter", "classic", "fixed", "log", "gcra"] {
        let rules = build(&format!(
            "quota = '100kB/s'\ncost = 'bytes'\nalgorithm = '{algorithm}'"
        ));
        assert!(rules.check(&of(99_999)).is_ok());
        assert_eq!(remaining(&rules), 1, "{algorithm}");
        assert!(rules.check(&of(1)).is_ok());
        assert!(rules.check(&of(1)).is_err());
    }
}

/// The unit is not chosen by the largest of all quotas: a small limit remains exact beside a large one.
#[test]
fn a_small_quota_beside_a_large_one_is_exact() {
    for quotas in ["['1kB/s', '50GB/s']", "['50GB/s', '1kB/s']"] {
        let rules = build(&format!("quotas = {quotas}\ncost = 'bytes'\nkey = 'user'"));
        assert_eq!(rules.states(), 2);
        for _ in 0..1_000 {
            assert!(rules.check(&of(1)).is_ok());
        }
        assert!(rules.check(&of(1)).is_err());
    }
    let same = build("quotas = ['50GB/s', '500GB/10s']\ncost = 'bytes'");
    assert!(same.check(&of(50_000_000_000 / 4096 * 4096)).is_ok());
    assert_eq!(remaining(&same), 0);
}

/// Between 1 and 8 Gbit/s, a nanosecond is more than a byte, and half a nanosecond is many percent of one.
#[test]
fn the_rate_of_a_bucket_is_at_most_one_percent_too_low() {
    for mbit in [100, 400, 1_000, 2_500, 3_000, 5_000, 7_900, 8_100, 400_000] {
        let rules = build(&format!(
            "quota = '{mbit}Mbit/s'\ncost = 'bytes'\nalgorithm = 'gcra'"
        ));
        let full = remaining(&rules);
        assert!(rules.check(&of(full)).is_ok());
        let request = of(full);
        let wait = rules.check(&request).expect_err("empty").retry_after();
        let wait = wait.expect("a wait").as_nanos();
        let exact = u128::from(full) * 1_000_000_000 / (mbit * 125_000);
        assert!(
            (exact..=exact * 101 / 100 + 1).contains(&wait),
            "{mbit} Mbit/s: {wait} ns instead of {exact}"
        );
    }
}

/// A tier has the unit of its rule.
#[test]
fn tiers_are_counted_in_the_unit_of_the_rule() {
    let rule = "quota = '1GB/s'\ncost = 'bytes'\ntiers = { by = 'plan', limits = { free = 10_000, paid = 50_000_000_000 } }";
    let rules = build(rule);
    let free = Request {
        plan: Some("free"),
        ..of(1)
    };
    // 10,000 bytes are two units of 4096.
    assert!(rules.check(&free).is_ok());
    assert!(rules.check(&free).is_ok());
    assert!(rules.check(&free).is_err());
    let paid = Request {
        plan: Some("paid"),
        ..of(49_000_000_000)
    };
    assert!(rules.check(&paid).is_ok());
}

/// A reload keeps the counts: the same rule its words, and a changed one its permits.
#[test]
fn a_reload_keeps_what_was_charged() {
    for after in ["50GB/s", "40GB/s", "49GB/s", "50MB/s"] {
        let live = LiveRules::new(build("quota = '50GB/s'\ncost = 'bytes'"));
        assert!(live.load().check(&of(39_999_000_000)).is_ok());
        live.store(&toml(&format!("quota = '{after}'\ncost = 'bytes'")))
            .expect("a reload");
        let limit = after.parse::<Quota>().expect("a quota").limit();
        let most = limit.saturating_sub(39_999_000_000);
        let (rules, request) = (live.load(), of(1));
        let left = rules.peek(&request).next().expect("a quota").remaining();
        assert!(
            (most.saturating_sub(8_192)..=most).contains(&left),
            "{after}: {left} of {most}"
        );
    }
}

/// While a reload carries counts over, a removed quota no longer limits.
#[test]
fn a_removed_quota_no_longer_limits() {
    let two = "quota = '50GB/s'\ncost = 'bytes'\n[[rules]]\nname = 'hour'\nquota = '60GB/h'\ncost = 'bytes'";
    let live = LiveRules::new(build(two));
    assert!(live.load().check(&of(50_000_000_000 / 4096 * 4096)).is_ok());
    live.load().clock().advance(Duration::from_secs(2));
    assert!(live.load().check(&of(20_000_000_000)).is_err());
    live.store(&toml("quota = '50GB/s'\ncost = 'bytes'"))
        .expect("a reload");
    assert!(live.load().check(&of(20_000_000_000)).is_ok());
}

#[test]
fn a_limit_that_needs_a_unit_needs_a_cost() {
    for (rule, message) in [
        (
            "quota = '25Gbit/s'\nalgorithm = 'gcra'",
            "rule \"rate\": invalid limit: 3125000000 permits in 1s (expected at most one permit per nanosecond, here \
             1000000000 permits, or a rule with a cost)",
        ),
        (
            "quota = '25Gbit/s'\nalgorithm = 'gcra'\ncost = 'bytes'\nburst = 200",
            "rule \"rate\": invalid burst: 200 (expected at least 256, one unit of such a limit)",
        ),
        (
            "quota = '25Gb/s'",
            "rule \"rate\": invalid limit: \"25Gb\" (expected a number of permits, or of B, kB, MB, GB, TB, KiB, MiB, \
             GiB, TiB, kbit, Mbit, Gbit or Tbit)",
        ),
    ] {
        let (_, _, error) = invalid(FileFormat::Toml, &format!("[[rules]]\nname = 'rate'\n{rule}"));
        assert_eq!(error, message);
    }
}

#[cfg(feature = "shared")]
#[test]
fn a_store_takes_no_limit_that_needs_a_unit() {
    use alloc::sync::Arc;

    use ringgate::shared::MemoryStore;
    use ringgate::shared::SharedRules;

    let shared = |rule: &str| {
        let store = Arc::new(MemoryStore::new());
        let read = toml(rule);
        let rules = read.rules().iter().cloned();
        let builder = rules.fold(SharedRules::builder(), |builder, rule| builder.rule(rule));
        builder.build(store).map(drop).map_err(|error| error.to_string())
    };
    for algorithm in ["counter", "gcra"] {
        for mode in ["", "mode = { lease = { permits = 1_000_000 } }"] {
            let rule = format!("quota = '25Gbit/s'\nalgorithm = '{algorithm}'\ncost = 'bytes'\n{mode}");
            assert_eq!(
                shared(&rule),
                Err(String::from(
                    "rule \"rate\": invalid limit: 3125000000 permits in 1s (expected a limit that needs no unit in a \
                     store, or the mode `Local`)"
                ))
            );
        }
    }
    let found = shared("quota = '25Gbit/s'\ncost = 'bytes'\nmode = 'local'");
    assert_eq!(found, Ok(()));
}
