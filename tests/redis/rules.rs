//! Rules over one store: the store applies all settings of a rule.

use core::hash::Hash;
use core::time::Duration;

use ringgate::rules::{Condition, Cost, RuleAlgorithm, TierOf};
use ringgate::shared::{DecidedBy, OnError, Reason, SharedRules, SharedRulesBuilder};
use ringgate::{Key, Quota, Rule, Settled};

use crate::server::Server;

/// A request of the tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) user: &'static str,
    pub(crate) address: u8,
    pub(crate) permits: u64,
}

impl Request {
    pub(crate) fn of(user: &'static str, address: u8) -> Self {
        Self {
            user,
            address,
            permits: 1,
        }
    }
}

pub(crate) fn by_user() -> Key<Request> {
    Key::text("user", |request: &Request| Some(request.user))
}

pub(crate) fn by_address() -> Key<Request> {
    Key::new("address", |request: &Request, key| request.address.hash(key)).shared_as(|request, key| {
        key.part([request.address]);
    })
}

pub(crate) fn quota(text: &str) -> Quota {
    text.parse().expect("a quota")
}

/// A rule by a key, and a rule for all requests. Without an answer of the server, requests are denied.
pub(crate) fn shared(
    log: bool,
    own: &str,
    key: &Key<Request>,
    endpoint: &[&str],
) -> SharedRulesBuilder<Request> {
    let by = if log {
        RuleAlgorithm::Log
    } else {
        RuleAlgorithm::Counter
    };
    let user = Rule::new("user", quota(own)).by(key);
    let first = Rule::new("endpoint", quota(endpoint[0]));
    let all = endpoint[1..]
        .iter()
        .fold(first, |rule, other| rule.also(quota(other)));
    SharedRules::builder()
        .rule(user.algorithm(by).on_error(OnError::Deny))
        .rule(all.algorithm(by).on_error(OnError::Deny))
}

#[tokio::test(flavor = "multi_thread")]
async fn several_permits_are_charged_together_or_not_at_all() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let cost = Cost::new("permits", |request: &Request| request.permits);
    for by in [RuleAlgorithm::Log, RuleAlgorithm::Counter] {
        let rules = SharedRules::builder()
            .rule(
                Rule::new(format!("{by:?}"), quota("2500/h"))
                    .by(&by_user())
                    .cost(&cost)
                    .algorithm(by),
            )
            .build(store.clone())
            .expect("rules");
        let asks = |permits| Request {
            permits,
            ..Request::of("alice", 1)
        };
        // More permits than one call of ZADD accepts.
        assert!(rules.check(&asks(2100)).await.is_ok());
        let refused = rules.check(&asks(401)).await.expect_err("400 are left");
        let look = refused.violations().next().expect("a rule");
        assert_eq!((look.remaining, look.permits, look.limit), (400, 401, 2500));
        assert!(
            look.retry_after
                .is_some_and(|after| after > Duration::from_secs(3000))
        );
        let never = rules.check(&asks(2501)).await.expect_err("more than the limit");
        assert_eq!(never.retry_after(), None);
        assert!(never.to_string().ends_with("; never admitted"), "{never}");
        assert!(rules.check(&asks(u64::MAX)).await.is_err());
        let passed = rules.check(&asks(400)).await.expect("they are left");
        assert_eq!(passed.statuses().next().expect("a rule").remaining, 0);
        // A request for zero permits costs nothing.
        let free = rules.check(&asks(0)).await.expect("nothing");
        assert_eq!(free.decided_by(), DecidedBy::Rules);
        assert!(rules.check(&asks(1)).await.is_err());
        assert_eq!(rules.refund(passed).await.expect("an answer"), Settled::Exact);
        assert_eq!(rules.peek(&asks(1)).await.expect("an answer")[0].remaining, 400);
        rules.reset(&asks(1)).await.expect("an answer");
        assert_eq!(rules.peek(&asks(1)).await.expect("an answer")[0].remaining, 2500);
    }
}

/// Conditions, tiers, lists and shadow rules apply as in a rule set of one process.
#[tokio::test(flavor = "multi_thread")]
async fn every_setting_of_a_rule_applies_in_the_store() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let plan = TierOf::new("plan", |request: &Request| {
        (request.address > 100).then_some("paid")
    });
    let rules = SharedRules::builder()
        .rule(
            Rule::new("user", quota("3/h"))
                .by(&by_user())
                .tier_of(&plan)
                .tier("paid", 5)
                .allow("backup")
                .deny("mallory"),
        )
        .rule(
            Rule::new("even", quota("1/h"))
                .when(&Condition::new("even", |request: &Request| {
                    request.address.is_multiple_of(2)
                }))
                .by(&by_user())
                .algorithm(RuleAlgorithm::Log)
                .shadow(),
        )
        .build(store)
        .expect("rules");
    let passes = async |user, address| {
        let mut passed = 0;
        for _ in 0..10 {
            passed += u32::from(rules.check(&Request::of(user, address)).await.is_ok());
        }
        passed
    };
    assert_eq!(passes("alice", 1).await, 3);
    // The paid tier of a user with three spent permits.
    assert_eq!(passes("alice", 101).await, 2);
    assert_eq!(passes("bob", 102).await, 5);
    assert_eq!(passes("backup", 1).await, 10);
    let refused = rules
        .check(&Request::of("mallory", 1))
        .await
        .expect_err("on the list");
    assert_eq!(
        (refused.reason(), refused.decided_by()),
        (Reason::Listed, DecidedBy::Rules)
    );
    assert_eq!(
        refused
            .violations()
            .map(|look| look.rule.to_string())
            .collect::<Vec<_>>(),
        ["user"]
    );
    let counts = |name| rules.counts().find(|(rule, _)| *rule == name).expect("a rule").1;
    // Of ten calls by bob the rule would have denied nine. Five of these were denied by another rule.
    assert_eq!((counts("even").admitted, counts("even").shadow_denied), (1, 9));
    assert_eq!(counts("even").denied, 0);
    assert_eq!(
        (counts("user").admitted, counts("user").denied),
        (10, 7 + 8 + 5 + 1)
    );
}

/// A shadow rule is not charged if one of its quotas has no room, as if it had denied.
#[tokio::test(flavor = "multi_thread")]
async fn a_shadow_rule_is_charged_as_one_rule() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let shadow = |name: &'static str| Rule::new(name, quota("2/h")).also(quota("100/d"));
    let rules = SharedRules::builder()
        .rule(Rule::new("all", quota("10/h")))
        .rule(shadow("one").shadow())
        .rule(shadow("other").also(quota("3/h")).shadow())
        .build(store.clone())
        .expect("rules");
    let request = Request::of("alice", 1);
    let mut last = None;
    for _ in 0..5 {
        last = Some(rules.check(&request).await.expect("room"));
    }
    let spent = async || -> Vec<u64> {
        let looks = rules.peek(&request).await.expect("an answer");
        looks.iter().map(|look| look.limit - look.remaining).collect()
    };
    assert_eq!(spent().await, [5, 2, 2, 2, 2, 2]);
    // A request that was not charged is not refunded.
    let last = last.expect("the last of five");
    assert_eq!(rules.refund(last).await, Ok(Settled::Exact));
    assert_eq!(spent().await, [4, 2, 2, 2, 2, 2]);
    let counts: Vec<_> = rules
        .counts()
        .map(|(_, counts)| (counts.admitted, counts.shadow_denied))
        .collect();
    assert_eq!(counts, [(5, 0), (2, 3), (2, 3)]);
}

/// The text of a key is not its name in the store: text of clients is neither stored nor reported.
#[tokio::test(flavor = "multi_thread")]
async fn stored_names_reveal_no_client() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let rules = |secret| {
        let builder = shared(false, "2/h", &by_user(), &["3/h"]);
        builder.secret([secret; 16]).build(store.clone()).expect("rules")
    };
    for secret in [1, 2] {
        let rules = rules(secret);
        for user in ["alice", "{alice}", "a\r\nlice"] {
            assert!(rules.check(&Request::of(user, 1)).await.is_ok(), "{user}");
        }
        assert!(
            rules.check(&Request::of("bob", 1)).await.is_err(),
            "of all requests"
        );
    }
    let names: Vec<String> = server.ask("KEYS *");
    assert_eq!(names.len(), 8, "{names:?}");
    for name in names {
        let (prefix, rest) = name.split_once(":{").expect("a tag");
        let (tag, rest) = rest.split_once("}:").expect("a rule");
        assert_eq!((prefix, tag.len()), ("ringgate", 32));
        assert!(
            ["user:0:cells:60x60000000", "endpoint:0:cells:60x60000000"].contains(&rest),
            "{rest}"
        );
    }
}
