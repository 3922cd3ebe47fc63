//! Rule sets that are saved, and restored in another process.

use super::*;

/// States of each kind: one for all, of one key with several quotas, with tiers, and of each algorithm.
fn builder() -> RuleSetBuilder<Request> {
    use RuleAlgorithm::{Even, Gcra, Log};
    set([
        rule("all", "100/min"),
        rule("user", "10/min").also(quota("20/h")).by(&by_user()).cells(5),
        rule("plan", "8/min")
            .by(&by_user())
            .tier_of(&by_plan())
            .tier("paid", 12),
        rule("log", "15/min").by(&by_address()).algorithm(Log),
        rule("bucket", "30/min")
            .by(&by_address())
            .algorithm(Gcra)
            .burst(9),
        rule("even", "50/min").by(&by_user()).algorithm(Even),
    ])
}

fn remaining(rules: &ByHand, request: &Request) -> Vec<(String, u64)> {
    let peeks = rules
        .peek(request)
        .map(|peek| (peek.rule().to_owned(), peek.remaining()));
    peeks.collect()
}

#[test]
fn every_kind_of_state_is_restored() {
    let rules = builder()
        .build_with(ManualClock::new(), [5, 6, 7, 8])
        .expect("valid rules");
    for id in [1, 1, 1, 1, 1, 2] {
        assert!(rules.check(&user(id)).is_ok());
    }
    let file = saved(&rules);
    let restored = |file: &[u8], elapsed| super::restored(&builder(), file, elapsed).expect("the same rules");
    let after = restored(&file, Duration::ZERO);
    let again = restored(&saved(&after), Duration::ZERO);
    for number in [1, 2, 3] {
        assert_eq!(remaining(&after, &user(number)), remaining(&rules, &user(number)));
        assert_eq!(remaining(&again, &user(number)), remaining(&rules, &user(number)));
    }
    assert!(remaining(&after, &user(1)).contains(&("plan".to_owned(), 3)));
    // After the longest window nothing counts.
    let fresh = restored(&file, secs(7200));
    assert_eq!(remaining(&fresh, &user(1)), remaining(&fresh, &user(9)));
    assert!(remaining(&fresh, &user(1)).contains(&("all".to_owned(), 100)));
}

#[test]
fn a_file_of_other_rules_is_refused() {
    use RuleAlgorithm::{Classic, Gcra};
    let plain = |name, text| rule(name, text).by(&by_user());
    let own = || plain("user", "10/min").cells(5).capacity(10);
    let file = saved(&built(&set([own()])));
    let restore = |rule| restored(&set([rule]), &file, Duration::ZERO).map(drop);
    assert_eq!(restore(own()), Ok(()));
    // A reload may change these without losing counts.
    assert_eq!(restore(own().capacity(20).when(&login())), Ok(()));
    let refuses = |found: Result<(), String>, expected: &str| {
        let own = r#""user" 10 in 60s by "user", Strict of 5 cells"#;
        let message = format!("the saved state has another list of rules: {own} (expected {expected})");
        assert_eq!(found, Err(message));
    };
    let gcra = plain("user", "10/min").algorithm(Gcra);
    for (other, expected) in [
        (
            plain("users", "10/min").cells(5),
            "'users' 10 in 60s by 'user', Strict",
        ),
        (
            plain("user", "11/min").cells(5),
            "'user' 11 in 60s by 'user', Strict",
        ),
        (own().algorithm(Classic), "'user' 10 in 60s by 'user', Classic"),
        (own().by(&by_address()), "'user' 10 in 60s by 'address', Strict"),
        (rule("user", "10/min").cells(5), "'user' 10 in 60s, Strict"),
        (
            own().also(quota("20/h")),
            "'user' 10 in 60s and 'user' 20 in 3600s by 'user', Strict",
        ),
    ] {
        refuses(
            restore(other),
            &format!("{} of 5 cells", expected.replace('\'', "\"")),
        );
    }
    for (other, rest) in [
        (own().cells(6), "Strict of 6 cells"),
        (gcra, "Gcra with burst 10"),
        (
            own().tier_of(&by_plan()).tier("paid", 12),
            "Strict of 5 cells, tier of 12",
        ),
    ] {
        refuses(restore(other), &format!(r#""user" 10 in 60s by "user", {rest}"#));
    }
    let two = restored(&set([own(), rule("all", "1/s").cells(5)]), &file, Duration::ZERO);
    let expected = r#""user" 10 in 60s by "user", Strict of 5 cells; "all" 1 in 1s, Strict of 5 cells"#;
    refuses(two.map(drop), expected);
    let invalid = r#"rule "user": invalid cells: 0 (expected 1 to 4096)"#.to_owned();
    assert_eq!(restore(own().cells(0)), Err(invalid));
}

/// A file is restored after a change of anything that is not saved, and refused after a change of anything else.
#[test]
fn only_what_is_saved_must_be_equal() {
    use ringgate::keyed::OnFull;
    use ringgate::rules::Block;

    let user = || rule("user", "10/min").by(&by_user()).capacity(10);
    let own = || set([user()]);
    let blocked = |after, seconds| set([user().block(Block::new(quota(after), secs(seconds)))]);
    let slots = || Rule::in_flight("slots", 3).by(&by_user());
    let cells = |rule: Rule<Request>| set([rule.cells(60)]);
    for (what, before, after) in [
        ("block.after", blocked("3/min", 60), blocked("4/min", 60)),
        ("block.after's window", blocked("3/min", 60), blocked("3/h", 60)),
        ("block.for", blocked("3/min", 60), blocked("3/min", 90)),
        ("a block removed", blocked("3/min", 60), own()),
        ("a block added", own(), blocked("3/min", 60)),
        ("slots in flight added", own(), own().rule(slots())),
        ("slots in flight first", own(), set([slots()]).rule(user())),
        ("a condition", own(), set([user().when(&login())])),
        ("a capacity", own(), set([user().capacity(50)])),
        ("a policy", own(), set([user().on_full(OnFull::Deny)])),
        ("the shadow", own(), set([user().shadow()])),
        ("a cost of cells", cells(user()), cells(user().cost(&by_cost()))),
    ] {
        let before = built(&before);
        assert!(before.check(&super::user(1)).is_ok());
        let after = restored(&after, &saved(&before), Duration::ZERO);
        let after = after.unwrap_or_else(|error| panic!("{what}: {error}"));
        let login = super::user(1).login();
        let spent = after
            .peek(&login)
            .filter(|peek| peek.rule() == "user")
            .map(|peek| peek.spent());
        assert_eq!(spent.max(), Some(1), "{what}");
    }
}

/// The description of a sliding window names the cells and the unit of its word, so a file of another form is refused. The
/// first is the form of earlier versions.
#[test]
fn a_file_of_another_form_of_a_sliding_window_is_refused() {
    let own = || rule("user", "60/min").by(&by_user()).capacity(10);
    let file = |rule| saved(&built(&set([rule])));
    let restore = |rule, file: &[u8]| restored(&set([rule]), file, Duration::ZERO).map(drop);
    let free = |limit| own().tier_of(&by_plan()).tier("free", limit);
    let word = "one word of 16 cells in units of 4";
    assert_eq!(restore(own(), &file(own())), Ok(()));
    for (other, of) in [
        (own().algorithm(RuleAlgorithm::Counter), "Strict of 60 cells"),
        (own().cells(60), "Strict of 60 cells"),
        (own().cells(16), "Strict of 16 cells"),
        (own().cost(&by_cost()), "Strict of 60 cells"),
        (own().limit_by(|_: &Request| None), "Strict of 60 cells"),
        (free(1), "Strict of 60 cells, tier of 1"),
        (free(10), "one word of 4 cells in units of 2, tier of 10"),
        (free(40), "one word of 16 cells in units of 4, tier of 40"),
    ] {
        let message = |found, expected| {
            let rule = r#""user" 60 in 60s by "user","#;
            format!("the saved state has another list of rules: {rule} {found} (expected {rule} {expected})")
        };
        assert_eq!(restore(other.clone(), &file(other.clone())), Ok(()), "{of}");
        assert_eq!(restore(own(), &file(other.clone())), Err(message(of, word)));
        assert_eq!(restore(other, &file(own())), Err(message(word, of)));
    }
}

/// A table of one limiter is no rule set, and the other way round.
#[test]
fn a_file_of_a_table_is_refused() {
    use ringgate::KeyedRateLimiter;
    use ringgate::keyed::AnyKey;

    let ring = ringgate::CounterRing::new(quota("10/min")).expect("a ring");
    let keys = || AnyKey::with_seeds([1, 2, 3, 4]);
    let table = KeyedRateLimiter::builder(ring.clone()).build_with(ManualClock::new(), keys());
    let mut file = Vec::new();
    table.expect("a table").save(&mut file).expect("memory");
    let error = restored(&builder(), &file, Duration::ZERO).expect_err("a table");
    assert!(
        error.starts_with("the saved state has another list of rules: bound 10 in 60s"),
        "{error}"
    );
    let file = saved(&built(&builder()));
    let table =
        KeyedRateLimiter::builder(ring).restore_with(ManualClock::new(), keys(), &*file, Duration::ZERO);
    let error = table.map(drop).expect_err("a rule set").to_string();
    assert!(
        error.starts_with(r#"the saved state has another table: "all" 100 in 60s"#),
        "{error}"
    );
}

/// While old states are enforced beside new ones, a file could not hold both.
#[test]
fn a_pending_reload_is_not_saved() {
    let (live, _) = live([rule("all", "10/s")]);
    let held = live.load();
    assert!(held.check(&user(1)).is_ok());
    reload_beside(&live, [rule("all", "10/min")]);
    let error = live.load().save(std::io::sink()).expect_err("pending");
    let message = "1 old states are still enforced (expected 0): finish the reload first";
    assert_eq!(error.to_string(), message);
    drop(held);
    assert_eq!(live.finish(), Reloaded::Done);
    let after = restored(
        &set([rule("all", "10/min")]),
        &saved(&live.load()),
        Duration::ZERO,
    );
    let found = remaining(&after.expect("the new rules"), &user(1));
    assert_eq!(found, [("all".to_owned(), 9)]);
}

/// A reload may reuse wider words than the new rules need. The file is restored by the rules as they are.
#[test]
fn rules_after_a_reload_are_restored() {
    let each = |text| rule("user", text).by(&by_user()).cells(5);
    let (live, _) = live([each("1000/min")]);
    assert_eq!(admissions(&live, &user(1), 4), 4);
    reload(&live, [each("5/min")]);
    let after = restored(&set([each("5/min")]), &saved(&live.load()), Duration::ZERO);
    let found = remaining(&after.expect("the new rules"), &user(1));
    assert_eq!(found, [("user".to_owned(), 1)]);
}
