//! Rule sets that are saved, and restored in another process.

use proptest::prelude::*;
use ringgate::rules::{Reloaded, RuleAlgorithm};

use super::*;

const SEEDS: [u64; 4] = [1, 2, 3, 4];

/// States of each kind: one for all, of one key with several quotas, with tiers, and of each algorithm.
fn builder() -> RuleSetBuilder<Request> {
    let user = by_user();
    RuleSetBuilder::new()
        .rule(Rule::new("all", quota("100/min")))
        .rule(
            Rule::new("user", quota("10/min"))
                .also(quota("20/h"))
                .by(&user)
                .cells(5),
        )
        .rule(
            Rule::new("plan", quota("8/min"))
                .by(&user)
                .tier_of(&by_plan())
                .tier("paid", 12),
        )
        .rule(
            Rule::new("log", quota("15/min"))
                .by(&by_address())
                .algorithm(RuleAlgorithm::Log),
        )
        .rule(
            Rule::new("bucket", quota("30/min"))
                .by(&by_address())
                .algorithm(RuleAlgorithm::Gcra)
                .burst(9),
        )
        .rule(
            Rule::new("even", quota("50/min"))
                .by(&user)
                .algorithm(RuleAlgorithm::Even),
        )
}

fn remaining(rules: &RuleSet<Request, ManualClock>, request: &Request) -> Vec<(String, u64)> {
    let peeks = rules.peek(request);
    peeks
        .map(|peek| (peek.rule().to_owned(), peek.remaining()))
        .collect()
}

#[test]
fn every_kind_of_state_is_restored() {
    let rules = builder()
        .build_with(ManualClock::new(), [5, 6, 7, 8])
        .expect("valid rules");
    for _ in 0..5 {
        assert!(rules.check(&user(1)).is_ok());
    }
    assert!(rules.check(&user(2)).is_ok());
    let file = saved(&rules);
    let after = builder()
        .restore_with(ManualClock::new(), &*file, Duration::ZERO)
        .expect("the same rules");
    for number in [1, 2, 3] {
        assert_eq!(remaining(&after, &user(number)), remaining(&rules, &user(number)));
    }
    assert!(remaining(&after, &user(1)).contains(&("plan".to_owned(), 3)));
    let again = builder()
        .restore_with(ManualClock::new(), &*saved(&after), Duration::ZERO)
        .expect("the same rules");
    for number in [1, 2, 3] {
        assert_eq!(remaining(&again, &user(number)), remaining(&rules, &user(number)));
    }
    // After the longest window nothing counts.
    let fresh = builder()
        .restore_with(ManualClock::new(), &*file, Duration::from_secs(7200))
        .expect("the same rules");
    assert_eq!(remaining(&fresh, &user(1)), remaining(&fresh, &user(9)));
    assert!(remaining(&fresh, &user(1)).contains(&("all".to_owned(), 100)));
}

#[test]
fn a_file_of_other_rules_is_refused() {
    let rule = || {
        Rule::new("user", quota("10/min"))
            .by(&by_user())
            .cells(5)
            .capacity(10)
    };
    let set = |rule: Rule<Request>| RuleSetBuilder::new().rule(rule);
    let file = saved(&set(rule()).build_with(ManualClock::new(), SEEDS).expect("a rule"));
    let restore = |builder: RuleSetBuilder<Request>| {
        let restored = builder.restore_with(ManualClock::new(), &*file, Duration::ZERO);
        restored.map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(restore(set(rule())), Ok(()));
    // A reload may change these without losing counts.
    assert_eq!(restore(set(rule().capacity(20).when(&login()))), Ok(()));
    let found = r#""user" 10 in 60s by "user", Strict of 5 cells"#;
    for (other, expected) in [
        (
            set(Rule::new("users", quota("10/min")).by(&by_user()).cells(5)),
            r#""users" 10 in 60s by "user", Strict of 5 cells"#,
        ),
        (
            set(Rule::new("user", quota("11/min")).by(&by_user()).cells(5)),
            r#""user" 11 in 60s by "user", Strict of 5 cells"#,
        ),
        (
            set(rule().cells(6)),
            r#""user" 10 in 60s by "user", Strict of 6 cells"#,
        ),
        (
            set(rule().algorithm(RuleAlgorithm::Classic)),
            r#""user" 10 in 60s by "user", Classic of 5 cells"#,
        ),
        (
            set(Rule::new("user", quota("10/min"))
                .by(&by_user())
                .algorithm(RuleAlgorithm::Gcra)),
            r#""user" 10 in 60s by "user", Gcra with burst 10"#,
        ),
        (
            set(Rule::new("user", quota("10/min")).by(&by_address()).cells(5)),
            r#""user" 10 in 60s by "address", Strict of 5 cells"#,
        ),
        (
            set(Rule::new("user", quota("10/min")).cells(5)),
            r#""user" 10 in 60s, Strict of 5 cells"#,
        ),
        (
            set(rule().tier_of(&by_plan()).tier("paid", 12)),
            r#""user" 10 in 60s by "user", Strict of 5 cells, tier of 12"#,
        ),
        (
            set(rule().also(quota("20/h"))),
            r#""user" 10 in 60s and "user" 20 in 3600s by "user", Strict of 5 cells"#,
        ),
        (
            set(rule()).rule(Rule::new("all", quota("1/s")).cells(5)),
            r#""user" 10 in 60s by "user", Strict of 5 cells; "all" 1 in 1s, Strict of 5 cells"#,
        ),
    ] {
        let message = format!("the saved state has another list of rules: {found} (expected {expected})");
        assert_eq!(restore(other), Err(message));
    }
    let invalid = restore(set(rule().cells(0)));
    assert_eq!(
        invalid,
        Err(r#"rule "user": invalid cells: 0 (expected 1 to 4096)"#.to_owned())
    );
}

/// A file is restored after a change of anything that is not saved, and refused after a change of anything else.
#[test]
fn only_what_is_saved_must_be_equal() {
    use ringgate::keyed::OnFull;
    use ringgate::rules::Block;

    let rule = || Rule::new("user", quota("10/min")).by(&by_user()).capacity(10);
    let block = |after: &str| Block::new(after.parse().expect("a quota"), Duration::from_secs(60));
    let set = |rule: Rule<Request>| super::set([rule]);
    let build = |builder: &RuleSetBuilder<Request>| {
        let rules = builder.build_with(ManualClock::new(), SEEDS).expect("a rule");
        assert!(rules.check(&user(1)).is_ok());
        saved(&rules)
    };
    let blocked = || set(rule().block(block("3/min")));
    let accepted = [
        ("block.after", blocked(), set(rule().block(block("4/min")))),
        ("block.after's window", blocked(), set(rule().block(block("3/h")))),
        (
            "block.for",
            blocked(),
            set(rule().block(Block::new(quota("3/min"), Duration::from_secs(90)))),
        ),
        ("a block removed", blocked(), set(rule())),
        ("a block added", set(rule()), blocked()),
        (
            "slots in flight added",
            set(rule()),
            set(rule()).rule(Rule::in_flight("slots", 3).by(&by_user())),
        ),
        (
            "slots in flight first",
            set(rule()),
            RuleSetBuilder::new()
                .rule(Rule::in_flight("slots", 3))
                .rule(rule()),
        ),
        ("a condition", set(rule()), set(rule().when(&login()))),
        ("a capacity", set(rule()), set(rule().capacity(50))),
        ("a policy", set(rule()), set(rule().on_full(OnFull::Deny))),
        ("the shadow", set(rule()), set(rule().shadow())),
        (
            "a cost of cells",
            set(rule().cells(60)),
            set(rule().cells(60).cost(&by_cost())),
        ),
    ];
    for (what, before, after) in accepted {
        let restored = after.restore_with(ManualClock::new(), &*build(&before), Duration::ZERO);
        let restored = restored.unwrap_or_else(|error| panic!("{what}: {error}"));
        let spent = |rules: &RuleSet<Request, ManualClock>| {
            let login = Request {
                login: true,
                ..user(1)
            };
            let peeks = rules.peek(&login);
            peeks
                .filter(|peek| peek.rule() == "user")
                .map(|peek| peek.spent())
                .max()
        };
        assert_eq!(spent(&restored), Some(1), "{what}");
    }
}

/// The description of a sliding window names the cells and the unit of its word, so a file of another form is refused. The
/// first is the form of earlier versions.
#[test]
fn a_file_of_another_form_of_a_sliding_window_is_refused() {
    let rule = || Rule::new("user", quota("60/min")).by(&by_user()).capacity(10);
    let set = |rule: Rule<Request>| super::set([rule]);
    let file = |rule| saved(&set(rule).build_with(ManualClock::new(), SEEDS).expect("a rule"));
    let restore = |rule, file: &[u8]| {
        let restored = set(rule).restore_with(ManualClock::new(), file, Duration::ZERO);
        restored.map(|_| ()).map_err(|error| error.to_string())
    };
    let own = "one word of 16 cells in units of 4";
    assert_eq!(restore(rule(), &file(rule())), Ok(()));
    for (other, of) in [
        (rule().algorithm(RuleAlgorithm::Counter), "Strict of 60 cells"),
        (rule().cells(60), "Strict of 60 cells"),
        (rule().cells(16), "Strict of 16 cells"),
        (rule().cost(&by_cost()), "Strict of 60 cells"),
        (rule().limit_by(|_: &Request| None), "Strict of 60 cells"),
        (
            rule().tier_of(&by_plan()).tier("free", 1),
            "Strict of 60 cells, tier of 1",
        ),
        (
            rule().tier_of(&by_plan()).tier("free", 10),
            "one word of 4 cells in units of 2, tier of 10",
        ),
        (
            rule().tier_of(&by_plan()).tier("free", 40),
            "one word of 16 cells in units of 4, tier of 40",
        ),
    ] {
        let message = |found, expected| {
            let rule = r#""user" 60 in 60s by "user","#;
            format!("the saved state has another list of rules: {rule} {found} (expected {rule} {expected})")
        };
        assert_eq!(restore(other.clone(), &file(other.clone())), Ok(()), "{of}");
        assert_eq!(restore(rule(), &file(other.clone())), Err(message(of, own)));
        assert_eq!(restore(other, &file(rule())), Err(message(own, of)));
    }
}

/// A table of one limiter is no rule set, and the other way round.
#[test]
fn a_file_of_a_table_is_refused() {
    use ringgate::keyed::{AnyKey, KeyedBuilder};

    let ring = ringgate::CounterRing::new(quota("10/min")).expect("a ring");
    let keys = || AnyKey::with_seeds(SEEDS);
    let table = KeyedBuilder::new(ring.clone())
        .build_with(ManualClock::new(), keys())
        .expect("a table");
    let mut file = Vec::new();
    table.save(&mut file).expect("memory");
    let error = builder().restore_with(ManualClock::new(), &*file, Duration::ZERO);
    let error = error.map(|_| ()).expect_err("a table").to_string();
    assert!(
        error.starts_with("the saved state has another list of rules: bound 10 in 60s"),
        "{error}"
    );
    let rules = builder()
        .build_with(ManualClock::new(), SEEDS)
        .expect("valid rules");
    let restored =
        KeyedBuilder::new(ring).restore_with(ManualClock::new(), keys(), &*saved(&rules), Duration::ZERO);
    let error = restored.map(|_| ()).expect_err("a rule set").to_string();
    assert!(
        error.starts_with(r#"the saved state has another table: "all" 100 in 60s"#),
        "{error}"
    );
}

/// While old states are enforced beside new ones, a file could not hold both.
#[test]
fn a_pending_reload_is_not_saved() {
    let rules = |text| RuleSetBuilder::<Request>::new().rule(Rule::new("all", quota(text)));
    let first = rules("10/s").build_with(ManualClock::new(), SEEDS);
    let live = LiveRules::new(first.expect("a rule"));
    let held = live.load();
    assert!(held.check(&user(1)).is_ok());
    assert_eq!(
        live.store(&rules("10/min")).expect("a rule"),
        Reloaded::Pending(1)
    );
    let error = live.load().save(std::io::sink()).expect_err("pending");
    assert_eq!(
        error.to_string(),
        "1 old states are still enforced (expected 0): finish the reload first"
    );
    drop(held);
    assert_eq!(live.finish(), Reloaded::Done);
    let file = saved(&live.load());
    let after = rules("10/min").restore_with(ManualClock::new(), &*file, Duration::ZERO);
    assert_eq!(
        remaining(&after.expect("the new rules"), &user(1)),
        [("all".to_owned(), 9)]
    );
}

/// A reload may reuse wider words than the new rules need. The file is restored by the rules as they are.
#[test]
fn rules_after_a_reload_are_restored() {
    let rules =
        |text| RuleSetBuilder::<Request>::new().rule(Rule::new("user", quota(text)).by(&by_user()).cells(5));
    let first = rules("1000/min").build_with(ManualClock::new(), SEEDS);
    let live = LiveRules::new(first.expect("a rule"));
    for _ in 0..4 {
        assert!(live.load().check(&user(1)).is_ok());
    }
    assert_eq!(live.store(&rules("5/min")).expect("a rule"), Reloaded::Done);
    let file = saved(&live.load());
    let after = rules("5/min").restore_with(ManualClock::new(), &*file, Duration::ZERO);
    assert_eq!(
        remaining(&after.expect("the new rules"), &user(1)),
        [("user".to_owned(), 1)]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
}
