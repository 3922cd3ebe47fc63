//! The validation of rules, and the construction of their states.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::collections::HashSet;

use super::clock_origin::ClockOrigin;
use crate::error::ConfigError;
use crate::keyed::OnFull;
use crate::rules::evaluate::key_hashes::Seeds;
use crate::rules::evaluate::request_limit::RequestLimit;
use crate::rules::evaluate::rule_state::{QuotaOfRule, RuleState};
use crate::rules::evaluate::state_algorithms::StateAlgorithms;
use crate::rules::rule::Rule;
use crate::rules::rule::algorithm::RuleAlgorithm;
use crate::rules::rule::block::Block;
use crate::rules::rule::enforcement::Enforcement;
use crate::rules::rule::error::RuleError;

/// The maximum number of rules in a set.
pub(crate) const MAX_RULES: usize = 1000;

/// The maximum number of quotas of a rule, and of a state. Each quota makes a decision of the state longer.
const MAX_QUOTAS: usize = 16;

/// A state, and the quotas that it is built from.
type Draft<'a, R> = (RuleState<R>, Vec<QuotaOfRule<'a, R>>);

/// Builds the states of the rules. All states are empty.
pub(crate) fn states<R: ?Sized>(
    rules: &[Rule<R>],
    seeds: &Seeds,
    origin: ClockOrigin,
) -> Result<Vec<RuleState<R>>, RuleError> {
    let mut drafts: Vec<Draft<'_, R>> = Vec::new();
    for (at, rule) in (0..).zip(rules) {
        for index in 0..rule.quotas.len() {
            let alone = [(at, rule, index)];
            // The quota shares the first state that it can, unless the words cannot hold one more window.
            let shared = drafts.iter_mut().find_map(|(state, quotas)| {
                if quotas.len() >= MAX_QUOTAS || !quotas[0].1.shares_state_with(rule) {
                    return None;
                }
                let all: Vec<_> = quotas.iter().copied().chain(alone).collect();
                let with = RuleState::new(&all, seeds, origin).ok()?;
                // A unit is chosen by the largest limit. A smaller limit keeps its own state, in which it counts exactly.
                let unit = with.algorithms.unit();
                let alone = || StateAlgorithms::new(rule, &rule.quotas[index..=index], origin);
                if unit != state.algorithms.unit() || unit > 1 && alone().ok()?.unit() != unit {
                    return None;
                }
                (*state, *quotas) = (with, all);
                Some(())
            });
            if shared.is_none() {
                let state =
                    RuleState::new(&alone, seeds, origin).map_err(|error| RuleError::new(rule, error))?;
                drafts.push((state, alone.to_vec()));
            }
        }
    }
    // Blocks come last, so that a rule set of one rule with a block begins with the state of that rule.
    let blocks = (0..).zip(rules).filter_map(|(at, rule)| {
        let state = RuleState::of_block(at, rule, rule.block.as_ref()?, seeds);
        Some(state.map_err(|error| RuleError::new(rule, error)))
    });
    let states = drafts.into_iter().map(|(state, _)| Ok(state));
    states.chain(blocks).collect()
}

/// Checks the conditions that building the states does not check.
pub(crate) fn validate<R: ?Sized>(rules: &[Rule<R>]) -> Result<(), RuleError> {
    for (at, rule) in rules.iter().enumerate() {
        if at >= MAX_RULES {
            let given = format!("{} rules", rules.len());
            let error = ConfigError::new("rules", given, format!("at most {MAX_RULES}"));
            return Err(RuleError::new(rule, error));
        }
        let others = || {
            let others = rules.iter().enumerate();
            others
                .filter(move |(other, _)| *other != at)
                .map(|(_, other)| other)
        };
        validate_names(rule, &rules[..at], others)
            .and_then(|()| rule.mode.validate())
            .and_then(|()| validate_in_flight(rule))
            .and_then(|()| validate_calendar(rule))
            .and_then(|()| rule.block.as_ref().map_or(Ok(()), Block::validate))
            .and_then(|()| validate_quotas(rule))
            .and_then(|()| validate_tiers(rule))
            .and_then(|()| validate_limit_by(rule))
            .map_err(|error| RuleError::new(rule, error))?;
    }
    Ok(())
}

fn validate_names<'a, R: ?Sized + 'a, I: Iterator<Item = &'a Rule<R>>>(
    rule: &Rule<R>,
    before: &[Rule<R>],
    others: impl Fn() -> I,
) -> Result<(), ConfigError> {
    if rule.name.is_empty() {
        return Err(ConfigError::new("name", "empty", "a name"));
    }
    if before.iter().any(|other| other.name == rule.name) {
        return Err(ConfigError::new(
            "name",
            format!("{:?} again", rule.name),
            "a different name for each rule",
        ));
    }
    if let Some(old) = &rule.renamed_from {
        let has_it = |other: &Rule<R>| other.name == *old || other.renamed_from.as_ref() == Some(old);
        if others().any(has_it) {
            return Err(ConfigError::new(
                "renamed_from",
                format!("{old:?}"),
                "a name that no other rule has or was renamed from",
            ));
        }
    }
    Ok(())
}

/// Checks that a rule of requests in flight has only the fields that such a rule can have.
fn validate_in_flight<R: ?Sized>(rule: &Rule<R>) -> Result<(), ConfigError> {
    if !rule.is_in_flight() {
        return Ok(());
    }
    let no_field = "no such field for a rule of requests in flight";
    validate_plain(rule, "one limit of requests in flight", no_field)?;
    if rule.cost.is_some() {
        return Err(ConfigError::new("cost", "a cost", no_field));
    }
    match rule.on_full {
        OnFull::Deny | OnFull::Admit => Ok(()),
        on_full @ (OnFull::Share | OnFull::Forget) => Err(ConfigError::new(
            "on_full",
            format!("{on_full:?}"),
            "Deny or Admit for a rule of requests in flight",
        )),
    }
}

/// Checks that a rule with a calendar has only the fields that such a rule can have.
fn validate_calendar<R: ?Sized>(rule: &Rule<R>) -> Result<(), ConfigError> {
    if !rule.is_calendar() {
        return Ok(());
    }
    validate_plain(rule, "one calendar", "no such field for a rule with a calendar")
}

/// Checks that a rule has one limit, and no field of an algorithm.
fn validate_plain<R: ?Sized>(rule: &Rule<R>, one_limit: &str, no_field: &str) -> Result<(), ConfigError> {
    let number = |given: Option<u64>| given.map(|given| format!("{given}"));
    let algorithm = (rule.algorithm != RuleAlgorithm::default()).then(|| format!("{:?}", rule.algorithm));
    let quotas = (rule.quotas.len() > 1).then(|| format!("{} quotas", rule.quotas.len()));
    let fields = [
        ("quotas", quotas, one_limit),
        ("algorithm", algorithm, no_field),
        ("cells", number(rule.cells), no_field),
        ("burst", number(rule.burst), no_field),
    ];
    for (field, given, expected) in fields {
        if let Some(given) = given {
            return Err(ConfigError::new(field, given, expected));
        }
    }
    Ok(())
}

fn validate_quotas<R: ?Sized>(rule: &Rule<R>) -> Result<(), ConfigError> {
    let quotas = rule.quotas.len();
    if quotas > MAX_QUOTAS {
        let given = format!("{quotas} quotas");
        return Err(ConfigError::new("quotas", given, format!("at most {MAX_QUOTAS}")));
    }
    if quotas > 1 && rule.enforced != Enforcement::All && !rule.is_one_state() {
        return Err(ConfigError::new(
            "quotas",
            format!(
                "{quotas} quotas of a {:?} rule that is not fully enforced",
                rule.algorithm
            ),
            "one quota, or a sliding window, counter, classic or fixed rule, whose quotas share a state",
        ));
    }
    Ok(())
}

fn validate_limit_by<R: ?Sized>(rule: &Rule<R>) -> Result<(), ConfigError> {
    if rule.limit_by.is_some() && rule.quotas.len() > 1 {
        return Err(ConfigError::new(
            "limit_by",
            "given for a rule with several quotas",
            "a rule with one quota",
        ));
    }
    Ok(())
}

fn validate_tiers<R: ?Sized>(rule: &Rule<R>) -> Result<(), ConfigError> {
    let invalid =
        |given: String, expected: &str| Err(ConfigError::new("tiers", given, String::from(expected)));
    if !rule.tiers.is_empty() && rule.quotas.len() > 1 {
        return invalid(
            "given for a rule with several quotas".to_string(),
            "a rule with one quota",
        );
    }
    if rule.tiers.is_empty() != rule.tier_of.is_none() {
        let given = if rule.tiers.is_empty() {
            "a function without tiers"
        } else {
            "tiers without a function"
        };
        return invalid(
            given.to_string(),
            "tiers, and a function that returns the tier of a request",
        );
    }
    if rule.tiers.len() > RequestLimit::MAX_TIERS {
        let given = format!("{} tiers", rule.tiers.len());
        return invalid(given, &format!("at most {} tiers", RequestLimit::MAX_TIERS));
    }
    let mut names = HashSet::new();
    if let Some((name, _)) = rule.tiers.iter().find(|(name, _)| !names.insert(name)) {
        return invalid(format!("{name:?} again"), "a different name for each tier");
    }
    Ok(())
}
