use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use super::RuleSet;
use super::group::{Group, Seeds};
use super::rule::{Enforced, Rule, RuleError};
use super::succession::{self, Succession};
use crate::clock::Clock;
#[cfg(feature = "quanta")]
use crate::clock::QuantaClock;
use crate::error::ConfigError;
#[cfg(feature = "quanta")]
use crate::keyed::random_seeds;

/// Rules, from which a [`RuleSet`] is built, and built again at a reload.
///
/// # Examples
///
/// ```
/// use ringgate::{ManualClock, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let builder = RuleSetBuilder::<str>::new()
///     .rule(Rule::new("all", "100/s".parse()?))
///     .rule(Rule::new("all", "10/s".parse()?));
/// // A rule set cannot be built wrong, and says what is.
/// let error = builder.build_with(ManualClock::new(), [1, 2, 3, 4]).unwrap_err();
/// assert_eq!((error.rule.as_str(), error.error.field), ("all", "name"));
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct RuleSetBuilder<R: ?Sized> {
    rules: Vec<Rule<R>>,
}

/// A group, and the quotas that it is made of.
type Planned<'a, R> = (Group<R>, Vec<Quotas<'a, R>>);

/// One quota of one rule: the rule's place, the rule, and which of its quotas.
pub(super) type Quotas<'a, R> = (u16, &'a Rule<R>, usize);

impl<R: ?Sized> RuleSetBuilder<R> {
    /// The most rules of a set.
    pub const MAX_RULES: usize = 1000;

    /// No rules yet.
    pub const fn new() -> Self {
        Self { rules: Vec::new() }
    }

    /// Adds a rule.
    pub fn rule(mut self, rule: Rule<R>) -> Self {
        self.rules.push(rule);
        self
    }

    /// The rules so far.
    pub fn rules(&self) -> &[Rule<R>] {
        &self.rules
    }

    /// Builds the rule set, with a clock and random seeds of its own.
    ///
    /// # Errors
    ///
    /// As [`build_with`](Self::build_with).
    #[cfg(feature = "quanta")]
    pub fn build(&self) -> Result<RuleSet<R>, RuleError> {
        self.build_with(QuantaClock::new(), random_seeds())
    }

    /// Builds the rule set with the given clock, and with these seeds for the hashes of keys: with the
    /// same seeds and the same calls, every decision is the same. Nobody else may know them.
    ///
    /// # Errors
    ///
    /// With the name of the rule at fault, and in it the field:
    ///
    /// - `name`: empty, or another rule's; `was`: the name of another rule of the set, or what another one was called;
    /// - `rules`: more than [`MAX_RULES`](Self::MAX_RULES);
    /// - `quotas`: more than 16; several of a log, even or gcra rule that is in the shadow, or enforced for a part of
    ///   its keys;
    /// - `limit`, `window`, `cells`, `burst`, `capacity`: as the algorithm says, and the table of keys;
    /// - `tiers`: for a log rule, for a rule with several quotas, without a function that says which, or two of one
    ///   name;
    /// - `enforce`, `allow`, `deny`, `capacity`: for a rule without a key; a share that is not 0 to 100 %;
    /// - `permits`, `period`, `pending`: as [`Mode`](crate::Mode) says.
    pub fn build_with<C: Clock>(&self, clock: C, seeds: [u64; 4]) -> Result<RuleSet<R, C>, RuleError> {
        let Succession { rules, .. } = succession::follow(self, None, &[], Seeds::new(seeds))?;
        Ok(RuleSet { rules, clock })
    }

    /// The rules' states, each new.
    pub(super) fn groups(&self, seeds: &Seeds) -> Result<Vec<Group<R>>, RuleError> {
        let mut groups: Vec<Planned<'_, R>> = Vec::new();
        for (place, rule) in (0..).zip(&self.rules) {
            for number in 0..rule.quotas.len() {
                let alone = [(place, rule, number)];
                // With the first that it can share a state with, unless the words cannot hold both.
                let shared = groups.iter_mut().find_map(|(group, quotas)| {
                    if quotas.len() >= MOST_QUOTAS || !quotas[0].1.shares_with(rule) {
                        return None;
                    }
                    let both: Vec<_> = quotas.iter().copied().chain(alone).collect();
                    let with = Group::new(&both, seeds).ok()?;
                    (*group, *quotas) = (with, both);
                    Some(())
                });
                if shared.is_none() {
                    let group = Group::new(&alone, seeds).map_err(|error| wrong(rule, error))?;
                    groups.push((group, alone.to_vec()));
                }
            }
        }
        Ok(groups.into_iter().map(|(group, _)| group).collect())
    }

    pub(super) fn validate(&self) -> Result<(), RuleError> {
        for (place, rule) in self.rules.iter().enumerate() {
            let fail =
                |field, given: &str, allowed: &str| Err(wrong(rule, ConfigError::new(field, given, allowed)));
            if place >= Self::MAX_RULES {
                return fail(
                    "rules",
                    &format!("{} rules", self.rules.len()),
                    &format!("{} rules at the most", Self::MAX_RULES),
                );
            }
            if rule.name.is_empty() {
                return fail("name", "empty", "a name");
            }
            if self.rules[..place].iter().any(|other| other.name == rule.name) {
                return fail(
                    "name",
                    &format!("{:?} again", rule.name),
                    "a name of its own for each rule",
                );
            }
            rule.mode.validate().map_err(|error| wrong(rule, error))?;
            if let Some(was) = &rule.was {
                let claims = |other: &Rule<R>| other.name == *was || other.was.as_ref() == Some(was);
                if self
                    .rules
                    .iter()
                    .enumerate()
                    .any(|(at, other)| at != place && claims(other))
                {
                    return fail("was", &format!("{was:?}"), "a name that no other rule has or had");
                }
            }
            if rule.quotas.len() > MOST_QUOTAS {
                return fail(
                    "quotas",
                    &format!("{} quotas", rule.quotas.len()),
                    &format!("{MOST_QUOTAS} quotas at the most"),
                );
            }
            if rule.quotas.len() > 1 && rule.enforced != Enforced::All && !rule.is_mergeable() {
                return fail(
                    "quotas",
                    &format!(
                        "{} quotas of a {:?} rule in the shadow",
                        rule.quotas.len(),
                        rule.algorithm
                    ),
                    "one quota, or several of a counter, classic or fixed rule, which are judged in one step",
                );
            }
            if !rule.tiers.is_empty() && rule.quotas.len() > 1 {
                return fail(
                    "tiers",
                    "tiers of several quotas",
                    "tiers for a rule with one quota",
                );
            }
            if rule.tiers.is_empty() != rule.tier_of.is_none() {
                return fail(
                    "tiers",
                    if rule.tiers.is_empty() {
                        "no tiers"
                    } else {
                        "tiers only"
                    },
                    "tiers, and a function that says which a request is in",
                );
            }
            for (place, (name, _)) in rule.tiers.iter().enumerate() {
                if rule.tiers[..place].iter().any(|(other, _)| other == name) {
                    return fail(
                        "tiers",
                        &format!("{name:?} again"),
                        "a name of its own for each tier",
                    );
                }
            }
        }
        Ok(())
    }
}

/// The most quotas of a rule, and of all rules that are decided in one step: with each, a step takes longer.
const MOST_QUOTAS: usize = 16;

fn wrong<R: ?Sized>(rule: &Rule<R>, error: ConfigError) -> RuleError {
    RuleError {
        rule: rule.name.to_string(),
        error,
    }
}

impl<R: ?Sized> Default for RuleSetBuilder<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: ?Sized> Clone for RuleSetBuilder<R> {
    fn clone(&self) -> Self {
        Self {
            rules: self.rules.clone(),
        }
    }
}

impl<R: ?Sized> fmt::Debug for RuleSetBuilder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RuleSetBuilder").field(&self.rules).finish()
    }
}
