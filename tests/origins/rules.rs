//! Histories and faults of several limits for one request.

use core::hash::Hash;

use ringgate::rules::{RuleAlgorithm, RuleSetBuilder};
use ringgate::{Key, Rule, RuleSet};

use super::*;

struct Request {
    user: &'static str,
    address: [u8; 4],
}

fn by_user() -> Key<Request> {
    Key::new("user", |request: &Request, key| request.user.hash(key))
}

fn by_address() -> Key<Request> {
    Key::new("address", |request: &Request, key| request.address.hash(key))
}

fn by_hand(rules: RuleSetBuilder<Request>) -> (RuleSet<Request, ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    let rules = rules.build_with(clock.clone(), [1, 2, 3, 4]).expect("rules");
    (rules, clock)
}

/// Every algorithm of rules, but not the one that admits only the share of a cell at once.
fn algorithms() -> impl Iterator<Item = RuleAlgorithm> {
    let all = RuleAlgorithm::NAMES.iter().map(|&(_, algorithm)| algorithm);
    all.filter(|&algorithm| algorithm != RuleAlgorithm::Even)
}

/// A user limited to 2 per second on an endpoint limited to 50 per 10 s and 100 per 60 s: the third call in a
/// second is refused, and charges no rule. (Fault of O4: a rule that admits adds its record even though a later
/// rule refuses.)
#[test]
fn o4_several_rules_on_one_endpoint() {
    for algorithm in algorithms() {
        let endpoint = || Rule::new("endpoint", quota("50/10s")).also(quota("100/60s"));
        let user = || Rule::new("user", quota("2/s")).by(&by_user());
        for order in [[endpoint(), user()], [user(), endpoint()]] {
            let rules = order.into_iter().map(|rule| rule.algorithm(algorithm));
            let (rules, _) = by_hand(rules.fold(RuleSetBuilder::new(), RuleSetBuilder::rule));
            let alice = Request {
                user: "alice",
                address: [10, 0, 0, 1],
            };
            assert!(rules.check(&alice).is_ok() && rules.check(&alice).is_ok());
            for _ in 0..100 {
                let refused = rules.check(&alice).expect_err("the third in a second");
                let violated: Vec<_> = refused.violations().map(|it| it.rule.to_string()).collect();
                assert_eq!(violated, ["user"]);
                assert!(refused.retry_after().is_some_and(|after| !after.is_zero()));
                assert!(
                    refused
                        .to_string()
                        .starts_with("rate limit reached: user (0 of 2 per 1s left)")
                );
            }
            let left: Vec<_> = rules
                .peek(&alice)
                .filter(|peek| peek.rule() == "endpoint")
                .map(|peek| (peek.status().quota.limit(), peek.spent(), peek.remaining()))
                .collect();
            // Two, not three.
            assert_eq!(left, [(50, 2, 48), (100, 2, 98)], "{algorithm:?}");
            // Another user has a limit of its own.
            let bob = Request { user: "bob", ..alice };
            assert!(rules.check(&bob).is_ok());
        }
    }
}

/// Address: 100 per 50 s and 10 per 20 s; all callers: 1000 per 60 s.
#[test]
fn o4_by_address_and_by_all() {
    for algorithm in algorithms() {
        let (rules, clock) = by_hand(
            RuleSetBuilder::new()
                .rule(
                    Rule::new("address", quota("100/50s"))
                        .also(quota("10/20s"))
                        .by(&by_address())
                        .algorithm(algorithm),
                )
                .rule(Rule::new("all", quota("1000/60s")).algorithm(algorithm)),
        );
        let from = |last| Request {
            user: "alice",
            address: [10, 0, 0, last],
        };
        // A hundred and one addresses at once, eleven calls each: ten pass, until a thousand have.
        for last in 0..101 {
            let passed = (0..11).filter(|_| rules.check(&from(last)).is_ok()).count();
            assert_eq!(passed, if last < 100 { 10 } else { 0 }, "{algorithm:?}");
        }
        let violated = |last| -> Vec<_> {
            let request = from(last);
            let refused = rules.check(&request).expect_err("all callers are denied");
            refused
                .violations()
                .map(|it| (it.rule.to_string(), it.limit))
                .collect()
        };
        assert_eq!(violated(200), [("all".to_string(), 1000)]);
        let found = violated(0);
        assert_eq!(found, [("address".to_string(), 10), ("all".to_string(), 1000)]);
        // A denied request has charged nothing: neither its address, which has capacity, nor the rule of all callers.
        for peek in rules.peek(&from(200)) {
            let spent = if peek.rule() == "all" { 1000 } else { 0 };
            assert_eq!(peek.spent(), spent);
        }
        clock.advance(Duration::from_secs(3600));
        assert!(rules.check(&from(0)).is_ok());
    }
}
