//! A decision reads the same by its methods, whether rules of one process, local rules of a node, or a store has made it.

use alloc::sync::Arc;
use core::slice;

use ringgate::rules::{
    Admitted, AnyRule, Cost, DecidedBy, Denied, Mode, OnMissingKey, Reason, RuleSetBuilder,
};
use ringgate::shared::{MemoryStore, SharedRules};
use ringgate::{Key, Quota, Rule};

/// A user, or "" for none, and a cost.
type Request = (&'static str, u64);

fn quota(text: &str) -> Quota {
    text.parse().expect("a quota")
}

/// A request without a user is denied.
fn by_user() -> Key<Request> {
    let key = Key::text("user", |request: &Request| {
        Some(request.0).filter(|user| !user.is_empty())
    });
    key.on_missing(OnMissingKey::Deny)
}

struct Case {
    rules: Vec<AnyRule<Request>>,
    request: Request,
    /// The equal requests that are admitted before.
    admitted: usize,
    reason: Reason,
    text: &'static str,
}

fn cases() -> [Case; 8] {
    let case = |rules: &[AnyRule<Request>], request, admitted, reason, text| Case {
        rules: rules.to_vec(),
        request,
        admitted,
        reason,
        text,
    };
    let cost = Cost::new("tokens", |request: &Request| request.1);
    let each = Rule::new("each", quota("2/min")).by(&by_user()).into_any();
    let all = Rule::new("all", quota("2/min")).into_any();
    let wide = Rule::new("wide", quota("9/min")).into_any();
    let tokens = Rule::new("tokens", quota("2/min")).cost(&cost).into_any();
    let slots = Rule::in_flight("slots", 2).into_any();
    let listed = each.clone().deny("mallory");
    [
        case(
            &[each.clone(), wide.clone()],
            ("ann", 1),
            2,
            Reason::Spent,
            "rate limit reached: each (0 of 2 per 60s left)",
        ),
        case(
            &[each.clone(), all],
            ("ann", 1),
            2,
            Reason::Spent,
            "rate limit reached: each (0 of 2 per 60s left), all (0 of 2 per 60s left)",
        ),
        case(
            slice::from_ref(&tokens),
            ("ann", 5),
            0,
            Reason::Spent,
            "rate limit reached: tokens (2 of 2 per 60s left); never admitted",
        ),
        case(
            &[tokens, slots.clone()],
            ("ann", 1),
            2,
            Reason::Spent,
            "rate limit reached: tokens (0 of 2 per 60s left), slots (0 of 2 in flight left); try again when a request has ended",
        ),
        case(
            &[slots, wide.clone()],
            ("ann", 1),
            2,
            Reason::Spent,
            "rate limit reached: slots (0 of 2 in flight left); try again when a request has ended",
        ),
        case(
            slice::from_ref(&listed),
            ("mallory", 1),
            0,
            Reason::Listed,
            "key is always denied: each; never admitted",
        ),
        case(
            &[wide, listed],
            ("mallory", 1),
            0,
            Reason::Listed,
            "key is always denied: each; never admitted",
        ),
        case(
            &[each],
            ("", 1),
            0,
            Reason::Listed,
            "request lacks a key: each; never admitted",
        ),
    ]
}

/// Compares one decision with its case. `decider` decides unless a list does.
fn assert_denied<R: ?Sized>(denied: &Denied<'_, R>, case: &Case, decider: DecidedBy) {
    let Case { reason, text, .. } = case;
    assert_eq!(denied.reason(), *reason, "{text}");
    let by_rules = *reason == Reason::Listed;
    let decider = if by_rules { DecidedBy::Rules } else { decider };
    assert_eq!(denied.decided_by(), decider, "{text}");
    let written = denied.to_string();
    let (before, after) = written.split_once("; try again in ").unwrap_or((&written, ""));
    assert_eq!(before, *text);
    assert_eq!(denied.retry_after().is_some(), !after.is_empty(), "{text}");
    for quota in denied.violations() {
        assert!(text.contains(&*quota.rule) && quota.is_enforced, "{text}");
        assert_eq!(quota.lacks_key, case.request.0.is_empty(), "{text}");
        assert_eq!(quota.permits, case.request.1, "{text}");
        assert!(by_rules || quota.remaining < quota.permits, "{text}");
    }
    assert!(denied.error().is_none());
    assert_eq!(
        denied.store_time().is_some(),
        denied.decided_by() == DecidedBy::Store
    );
}

#[tokio::test]
async fn a_denial_reads_the_same_wherever_it_is_decided() {
    for case in cases() {
        let rules = case.rules.iter().cloned();
        let rules = rules.fold(RuleSetBuilder::new(), RuleSetBuilder::rule);
        let rules = rules.build().expect("rules");
        let reserve = || rules.reserve(&case.request);
        let held: Vec<_> = (0..case.admitted).map(|_| reserve().expect("room")).collect();
        assert_denied(&reserve().expect_err(case.text), &case, DecidedBy::Local);
        assert_denied(
            &rules.check(&case.request).expect_err(case.text),
            &case,
            DecidedBy::Local,
        );
        drop(held);
        for (mode, decider) in [(Mode::Local, DecidedBy::Local), (Mode::Strict, DecidedBy::Store)] {
            let rules = case.rules.iter().cloned().map(|rule| rule.mode(mode));
            let rules = rules.fold(SharedRules::builder(), |builder, rule| builder.rule(rule));
            let rules = rules.build(Arc::new(MemoryStore::new())).expect("rules");
            let mut held = Vec::new();
            for _ in 0..case.admitted {
                let admitted = rules.check(&case.request).await.expect("room");
                assert!(admitted.is_limited() && admitted.decided_by() == decider);
                held.push(admitted);
            }
            let denied: Denied<'static> = rules.check(&case.request).await.expect_err(case.text);
            drop(rules);
            assert_denied(&denied, &case, decider);
            assert_denied(&denied.clone(), &case, decider);
        }
    }
}

/// A rule that is only used up is not the reason for which a request is never admitted.
#[test]
fn a_denial_names_the_rules_that_never_admit() {
    let each = Rule::new("each", quota("2/min")).by(&by_user()).into_any();
    let all =
        Rule::new("all", quota("9/min")).limit_by(|request: &Request| (request.0 == "eve").then_some(0));
    let rules = RuleSetBuilder::new()
        .rule(each.deny("mallory"))
        .rule(all)
        .rule(Rule::new("two", quota("2/min")));
    let rules = rules.build().expect("rules");
    for _ in 0..2 {
        assert!(rules.check(&("ann", 1)).is_ok());
    }
    for (user, text) in [
        ("eve", "limit is 0: all; never admitted"),
        ("mallory", "key is always denied: each; never admitted"),
    ] {
        let denied = rules.check(&(user, 1)).expect_err(text).to_string();
        assert_eq!(denied, text);
    }
}

/// A rule that does not apply limits nothing.
#[tokio::test]
async fn an_admission_says_whether_a_rule_applied() {
    let key = by_user();
    let rule = || Rule::new("each", quota("9/min")).by(&key).allow("ann");
    let rules = RuleSetBuilder::new().rule(rule()).build().expect("rules");
    let decided = |admitted: Admitted| (admitted.decided_by(), admitted.is_limited());
    let check = |user| decided(rules.check(&(user, 1)).expect("room"));
    let shared = SharedRules::builder().rule(rule().mode(Mode::Local));
    let shared = shared.build(Arc::new(MemoryStore::new())).expect("rules");
    for (user, expected) in [
        ("ann", (DecidedBy::Rules, false)),
        ("bob", (DecidedBy::Local, true)),
    ] {
        assert_eq!(check(user), expected);
        let admitted = shared.check(&(user, 1)).await.expect("room");
        assert_eq!((admitted.decided_by(), admitted.is_limited()), expected);
    }
}
