//! Rule sets by their public methods: each method, histories against a reference, reloads, and threads.
#![cfg(not(ringgate_loom))]
#![cfg(feature = "rules")]

extern crate alloc;

#[expect(dead_code, reason = "what only the tests of algorithms use")]
mod common;

#[path = "rules/block.rs"]
mod block;
#[cfg(all(feature = "calendar", not(miri)))] // Computing the periods of 20 years is too slow there.
#[path = "rules/calendar.rs"]
mod calendar;
#[path = "rules/clocks.rs"]
mod clocks;
#[expect(dead_code, reason = "a state of several windows, and its queries")]
#[path = "common/exact.rs"]
mod exact;
#[path = "rules/faults.rs"]
mod faults;
#[path = "rules/forms.rs"]
mod forms;
#[path = "rules/full.rs"]
mod full;
#[path = "rules/migration.rs"]
mod migration;
#[path = "rules/histories.rs"]
mod histories;
#[path = "rules/in_flight.rs"]
mod in_flight;
#[path = "rules/kinds.rs"]
mod kinds;
#[path = "rules/limit_by.rs"]
mod limit_by;
#[path = "rules/either.rs"]
mod either;
#[path = "rules/lists.rs"]
mod lists;
#[path = "rules/missing.rs"]
mod missing;
#[path = "common/random.rs"]
mod random;
#[path = "rules/reference.rs"]
mod reference;
#[path = "rules/refused.rs"]
mod refused;
#[path = "rules/reload.rs"]
mod reload;
#[path = "rules/reload_faults.rs"]
mod reload_faults;
#[path = "rules/reload_histories.rs"]
mod reload_histories;
#[cfg(not(miri))] // Many histories of one thread.
#[path = "rules/saved.rs"]
mod saved;
#[cfg(all(feature = "quanta", not(miri)))] // Miri's clock and threads are too slow for windows of milliseconds.
#[path = "rules/stress.rs"]
mod stress;
#[path = "rules/verbs.rs"]
mod verbs;

use core::hash::Hash;
use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::thread;

use proptest::sample::select;
use random::Random;
use ringgate::algorithm::Reclaim;
use ringgate::keyed::OnFull;
use ringgate::rules::kind::AnyKind;
use ringgate::rules::{
    Block, Condition, Cost, LoadedRules, OnMissingKey, Reloaded, Reservation, RuleAlgorithm, RuleCounts,
    RuleError, RuleSetBuilder, TierOf,
};
use ringgate::{
    AnyAlgorithm, Clock, CounterRing, Key, LiveRules, ManualClock, Nanos, Quota, Rule, RuleSet, Settled,
};

/// The requests of the tests.
#[derive(Clone, Debug, Default)]
struct Request {
    user: u64,
    address: u64,
    cost: u64,
    login: bool,
    plan: Option<&'static str>,
    limit: Option<u64>,
}

fn user(user: u64) -> Request {
    Request {
        user,
        cost: 1,
        ..Request::default()
    }
}

impl Request {
    fn cost(self, cost: u64) -> Self {
        Self { cost, ..self }
    }

    fn address(self, address: u64) -> Self {
        Self { address, ..self }
    }

    fn plan(self, plan: impl Into<Option<&'static str>>) -> Self {
        let plan = plan.into();
        Self { plan, ..self }
    }

    fn limit(self, limit: impl Into<Option<u64>>) -> Self {
        let limit = limit.into();
        Self { limit, ..self }
    }

    fn login(self) -> Self {
        Self { login: true, ..self }
    }
}

fn by_user() -> Key<Request> {
    Key::value("user", |request: &Request| Some(request.user))
}

/// A key that requests of user 0 lack.
fn by_some_user(on_missing: OnMissingKey) -> Key<Request> {
    let user = |request: &Request| Some(request.user).filter(|user| *user > 0);
    Key::value("user", user).on_missing(on_missing)
}

fn by_address() -> Key<Request> {
    Key::value("address", |request: &Request| Some(request.address))
}

fn by_cost() -> Cost<Request> {
    Cost::new("cost", |request: &Request| request.cost)
}

fn login() -> Condition<Request> {
    Condition::new("login", |request: &Request| request.login)
}

fn by_plan() -> TierOf<Request> {
    TierOf::new("plan", |request: &Request| request.plan)
}

fn quota(text: &str) -> Quota {
    text.parse().expect("a quota")
}

fn rule(name: &'static str, text: &str) -> Rule<Request> {
    Rule::new(name, quota(text))
}

fn set<K: Into<AnyKind>>(rules: impl IntoIterator<Item = Rule<Request, K>>) -> RuleSetBuilder<Request> {
    rules
        .into_iter()
        .fold(RuleSetBuilder::new(), RuleSetBuilder::rule)
}

type ByHand = RuleSet<Request, ManualClock>;
type Live = LiveRules<Request, ManualClock>;

/// Rules with a manual clock that shows one hour.
fn by_hand<K: Into<AnyKind>>(rules: impl IntoIterator<Item = Rule<Request, K>>) -> (ByHand, ManualClock) {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    let rules = set(rules).build_with(clock.clone(), [1, 2, 3, 4]).expect("rules");
    (rules, clock)
}

fn live<K: Into<AnyKind>>(rules: impl IntoIterator<Item = Rule<Request, K>>) -> (Live, ManualClock) {
    let (rules, clock) = by_hand(rules);
    (LiveRules::new(rules), clock)
}

/// The error of rules that cannot be built.
fn refused<K: Into<AnyKind>>(rules: impl IntoIterator<Item = Rule<Request, K>>) -> RuleError {
    let built = set(rules).build_with(ManualClock::new(), [1; 4]);
    built.expect_err("an invalid rule")
}

/// A reload that is complete at once.
fn reload<K: Into<AnyKind>>(live: &Live, rules: impl IntoIterator<Item = Rule<Request, K>>) {
    assert_eq!(live.store(&set(rules)).expect("valid rules"), Reloaded::Done);
}

/// A reload whose old rules stay in force, because a caller holds them.
fn reload_beside<K: Into<AnyKind>>(live: &Live, rules: impl IntoIterator<Item = Rule<Request, K>>) {
    assert_eq!(
        live.store(&set(rules)).expect("valid rules"),
        Reloaded::Pending(1)
    );
}

/// The rule, by user if it is so.
fn keyed(rule: Rule<Request>, is_keyed: bool) -> Rule<Request> {
    if is_keyed {
        rule.by(&by_user()).capacity(100)
    } else {
        rule
    }
}

/// The spent permits of each quota.
fn spent(rules: &ByHand, request: &Request) -> Vec<u64> {
    rules.peek(request).map(|peek| peek.spent()).collect()
}

/// The file of a rule set.
fn saved<C: Clock>(rules: &RuleSet<Request, C>) -> Vec<u8> {
    let mut file = Vec::new();
    rules.save(&mut file).expect("memory");
    file
}

/// The number of admissions among `calls`.
fn admissions(rules: &Live, request: &Request, calls: u64) -> u64 {
    (0..calls).filter(|_| rules.load().check(request).is_ok()).count() as u64
}

fn counts(rules: &ByHand, name: &str) -> RuleCounts {
    let mut all = rules.counts();
    all.find(|(rule, _)| *rule == name)
        .expect("a rule of this name")
        .1
}

/// The rules that a file restores after this time.
fn restored(rules: &RuleSetBuilder<Request>, file: &[u8], elapsed: Duration) -> Result<ByHand, String> {
    let restored = rules.restore_with(ManualClock::new(), file, elapsed);
    restored.map_err(|error| error.to_string())
}

/// Rules with a manual clock that shows zero.
fn built(rules: &RuleSetBuilder<Request>) -> ByHand {
    rules.build_with(ManualClock::new(), [1, 2, 3, 4]).expect("rules")
}

/// Every algorithm of rules.
fn algorithms() -> impl Iterator<Item = RuleAlgorithm> {
    RuleAlgorithm::NAMES.iter().map(|&(_, algorithm)| algorithm)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
