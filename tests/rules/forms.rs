//! The form that a sliding window chooses for each rule, and its decisions.

use super::*;
use ringgate::{KeyedRateLimiter, SlidingWindow, UnitRing};

fn each(limit: &str) -> Rule<Request> {
    rule("each", limit).by(&by_user()).capacity(100)
}

/// Each rule by itself in a rule set: the set, a peek and the rule name the same form.
#[test]
fn a_sliding_window_names_its_form() {
    let tiers = |limit: &str, tiers: [u64; 2]| {
        let rule = each(limit).tier_of(&by_plan());
        rule.tier("free", tiers[0]).tier("pro", tiers[1])
    };
    let explicit = |rule: Rule<Request>| rule.algorithm(RuleAlgorithm::Counter);
    let fours = "one word of 16 cells in units of 4";
    for (rule, form) in [
        (each("5/min"), "one word of 27 cells in units of 1"),
        (each("10/s"), "one word of 17 cells in units of 1"),
        (each("60/min"), fours),
        (each("1000/min"), "one word of 12 cells in units of 64"),
        (each("1000000/min"), "one word of 10 cells in units of 131072"),
        // Cells of 60 parts would be too narrow.
        (each("1000000000/s"), "one word of "),
        (each("60/min").shadow(), fours),
        (each("60/min").enforce_percent(10.0), fours),
        (each("60/min").when(&login()), fours),
        (each("60/min").deny(9_u64), fours),
        (tiers("60/min", [40, 50]), fours),
        (tiers("60/min", [10, 60]), "one word of 4 cells in units of 2"),
        (tiers("50/min", [10, 60]), "one word of 4 cells in units of 2"),
        (tiers("60/min", [1, 60]), "60 cells"),
        (tiers("10/min", [10, 1000]), "60 cells"),
        (each("60/min").cost(&by_cost()), "60 cells"),
        (each("60/min").limit_by(|_: &Request| None), "60 cells"),
        (each("60/min").cells(60), "60 cells"),
        (each("60/min").cells(29), "29 cells"),
        (each("5/min").cells(5), "one word of 5 cells in units of 1"),
        (explicit(each("60/min")), "60 cells"),
        (rule("all", "2/min"), "60 cells"),
        (rule("all", "64/min"), "60 cells"),
        (rule("all", "1000/min"), "60 cells"),
    ] {
        let (rules, _) = by_hand([rule.clone()]);
        let (quota, chosen) = match rules.algorithms().collect::<Vec<_>>()[..] {
            [(_, quota, algorithm)] => (quota, algorithm.to_string()),
            ref others => panic!("{} algorithms", others.len()),
        };
        assert!(
            chosen.starts_with(form) && (chosen == form || form.ends_with(' ')),
            "{chosen}, not {form}"
        );
        let alone = rule.algorithm_for(quota).expect("it was built");
        assert_eq!(alone.to_string(), chosen);
    }
}

/// Quotas that share a state have cells, since several windows do not fit into one word.
#[test]
fn quotas_that_share_a_state_count_in_cells() {
    let key = by_user();
    let by = |name: &'static str, limit: &str| rule(name, limit).by(&key).capacity(100);
    let forms = |rules: &[Rule<Request>]| -> Vec<String> {
        let (rules, _) = by_hand(rules.iter().cloned());
        rules
            .algorithms()
            .map(|(rule, _, it)| format!("{rule}: {it}"))
            .collect()
    };
    let word = "one word of 16 cells in units of 4";
    let found = forms(&[by("a", "60/min").also(quota("600/h"))]);
    assert_eq!(found, ["a: 60 cells", "a: 60 cells"]);
    let found = forms(&[by("a", "60/min"), by("b", "600/h")]);
    assert_eq!(found, ["a: 60 cells", "b: 60 cells"]);
    let apart = [by("a", "60/min"), by("b", "60/min").when(&login())];
    assert_eq!(forms(&apart), [format!("a: {word}"), format!("b: {word}")]);
    let apart = [
        by("a", "60/min"),
        by("b", "60/min").cost(&by_cost()),
        rule("c", "9/s"),
    ];
    assert_eq!(
        forms(&apart),
        [format!("a: {word}"), "b: 60 cells".into(), "c: 60 cells".into()]
    );
}

/// A rule decides as the default table of keys of its quota and tiers.
#[test]
fn a_rule_decides_as_a_table_of_keys() {
    for (limit, tiers) in [
        ("5/s", [5, 5]),
        ("30/s", [20, 30]),
        ("60/10s", [40, 60]),
        ("100/min", [30, 70]),
        ("1000/min", [900, 300]),
        ("60/min", [1, 60]),
    ] {
        let rule = each(limit)
            .tier_of(&by_plan())
            .tier("free", tiers[0])
            .tier("pro", tiers[1]);
        let (rules, clock) = by_hand([rule]);
        let window = SlidingWindow::new(quota(limit)).expect("a window");
        let table: KeyedRateLimiter<SlidingWindow, ManualClock, _> = KeyedRateLimiter::builder(window)
            .capacity(100)
            .tier(tiers[0])
            .tier(tiers[1])
            .build_with(clock.clone(), Tiered)
            .expect("a table");
        let form = table.algorithm().to_string();
        assert_eq!(
            rules
                .algorithms()
                .map(|(.., it)| it.to_string())
                .collect::<Vec<_>>(),
            [form]
        );
        let (mut random, mut counts) = (Random::new(7), [0, 0]);
        for step in 0..20_000 {
            let (id, tier) = (random.below(6), random.index(3));
            let plan = [None, Some("free"), Some("pro")][tier];
            let request = user(id).plan(plan);
            let admitted = rules.check(&request).is_ok();
            assert_eq!(table.check(&(id, tier)).is_ok(), admitted, "{limit}, step {step}");
            counts[usize::from(admitted)] += 1;
            // Each key asks for about half more than its limit, and seldom nothing for more than a window.
            let step = quota(limit).window() / (14 * u32::try_from(quota(limit).limit()).expect("a limit"));
            clock.advance(step * random.one_of(&[0, 0, 1, 2, 5]));
            if random.one_in(2_048) {
                clock.advance(quota(limit).window() * 2);
            }
        }
        assert!(counts.iter().all(|&count| count > 100), "{limit}: {counts:?}");
    }
}

/// Keys with the index of their tier.
#[derive(Clone, Copy, Debug)]
struct Tiered;

impl ringgate::keyed::Keys<(u64, usize)> for Tiered {
    fn hash(&self, key: &(u64, usize)) -> u64 {
        key.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn tier(&self, key: &(u64, usize)) -> usize {
        key.1
    }
}

/// A form displays its cells and its unit in each type.
#[test]
fn an_algorithm_displays_its_form() {
    let ring = UnitRing::new(quota("60/min")).expect("a ring");
    let any = AnyAlgorithm::from(ring);
    assert_eq!(
        (any.to_string(), any.cells_and_unit()),
        (ring.to_string(), Some((16, 4)))
    );
    let builder = || ringgate::CounterRing::builder(quota("600/min"));
    for (ring, text) in [
        (builder(), "60 cells"),
        (builder().cells(7), "7 cells"),
        (builder().classic(), "5 classic cells"),
        (builder().even(), "5 even cells"),
        (builder().classic().cells(1), "a fixed window"),
        (builder().classic().cells(1).unpacked(), "a fixed window"),
        (builder().also(quota("900/h")), "60 cells"),
    ] {
        let ring = ring.build().expect("a ring");
        assert_eq!((ring.to_string(), ring.cells_and_unit()), (text.to_owned(), None));
    }
    let log = ringgate::TimestampRing::new(quota("9/s")).expect("a log");
    assert_eq!(AnyAlgorithm::from(log).to_string(), "an exact log of 9 permits");
    let bucket = ringgate::Gcra::token_bucket(quota("9/s"), 4).expect("a bucket");
    assert_eq!(AnyAlgorithm::from(bucket).to_string(), "a bucket of 4 permits");
}
