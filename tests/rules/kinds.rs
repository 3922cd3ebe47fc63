//! Reloads in which a rule becomes one of another kind: a quota, a limit of requests in flight, or a rule with another key.

use super::*;

/// Debt of a quota is not charged as slots, which no release would reach.
#[test]
fn debt_of_a_quota_is_not_charged_as_slots() {
    let (cost, slots) = (by_cost(), || Rule::in_flight("a", 10));
    for (old, new) in [
        (rule("a", "1000/min").by(&by_user()), slots().by(&by_user())),
        (rule("a", "1000/min"), slots()),
        (rule("b", "1000/min"), slots().renamed_from("b")),
    ] {
        let (live, _) = live([old.cost(&cost)]);
        let held = live.load().reserve(&user(1)).unwrap();
        reload(&live, [new]);
        assert_eq!(live.load().settle(held, &cost, 40), Settled::Exact);
        assert_eq!(spent(&live.load(), &user(1)), [0]);
    }
}

/// While the carry-over of a state is pending, it enforces no quota whose rule does not continue.
#[test]
fn a_quota_whose_rule_does_not_continue_is_not_enforced_while_a_reload_is_pending() {
    for new in [
        Rule::in_flight("a", 10).into_any(),
        rule("a", "2/h").by(&by_user()).into_any(),
        rule("c", "2/h").into_any(),
    ] {
        let (live, _) = live([rule("a", "2/h"), rule("b", "100/h")]);
        let loaded = live.load();
        assert!(loaded.check(&user(1)).is_ok() && loaded.check(&user(1)).is_ok());
        reload_beside(&live, [new, rule("b", "100/min").into_any()]);
        assert!(live.load().check(&user(1)).is_ok());
        drop(loaded);
        assert_eq!(live.finish(), Reloaded::Done);
        let rules = live.load();
        let spent = rules
            .peek(&user(1))
            .find(|peek| peek.rule() == "b")
            .unwrap()
            .spent();
        // A permit that is spent while the reload is pending counts twice.
        assert_eq!(spent, 4);
    }
}
