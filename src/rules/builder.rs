use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::counts::Tallies;
use super::group::{Follows, Group, Seeds};
use super::rule::{Rule, RuleError};
use super::{Named, RuleSet, Rules};
use crate::clock::Clock;
#[cfg(feature = "quanta")]
use crate::clock::QuantaClock;
use crate::error::ConfigError;
#[cfg(feature = "quanta")]
use crate::keyed::random_seeds;

/// Rules, from which a [`RuleSet`] is built, and built again at a reload.
#[must_use = "a builder does nothing until it is built"]
pub struct RuleSetBuilder<R: ?Sized> {
    rules: Vec<Rule<R>>,
}

/// One quota of one rule: the rule's place, the rule, and which of its quotas.
pub(super) type Quotas<'a, R> = (u16, &'a Rule<R>, usize);

/// Rules, and what they replace.
pub(super) struct Succession<R: ?Sized> {
    pub(super) rules: Rules<R>,
    pub(super) retiring: Vec<Retiring<R>>,
}

/// A group that has yet to be charged what others have counted.
pub(super) struct Retiring<R: ?Sized> {
    pub(super) new: Arc<Group<R>>,
    pub(super) old: Vec<Arc<Group<R>>>,
}

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
    /// - `name`: empty, or another rule's; `was`: the name of another rule of the set;
    /// - `rules`: more than [`MAX_RULES`](Self::MAX_RULES);
    /// - `limit`, `window`, `cells`, `burst`, `capacity`: as the algorithm says, and the table of keys;
    /// - `tiers`: for a log rule, for a rule with several quotas, without a function that says which, or two of one
    ///   name;
    /// - `enforce`, `allow`, `deny`: for a rule without a key; a share that is not 0 to 100 %.
    pub fn build_with<C: Clock>(&self, clock: C, seeds: [u64; 4]) -> Result<RuleSet<R, C>, RuleError> {
        let rules = self.follow(None, Seeds::new(seeds))?.rules;
        Ok(RuleSet { rules, clock })
    }

    /// The rules, with what `old` has counted.
    pub(super) fn follow(&self, old: Option<&Rules<R>>, seeds: Seeds) -> Result<Succession<R>, RuleError> {
        self.validate()?;
        let tallies_of = |rule: &Rule<R>| {
            old.and_then(|old| old.tallies_of(rule))
                .unwrap_or_else(|| Arc::new(Tallies::new()))
        };
        let tallies: Vec<Arc<Tallies>> = self.rules.iter().map(tallies_of).collect();
        let mut groups = Vec::new();
        let mut retiring: Vec<Retiring<R>> = Vec::new();
        for group in self.groups(&seeds)? {
            let mut group = group.counting(&tallies);
            let mut before = Vec::new();
            for old in old.into_iter().flat_map(|old| &old.groups) {
                let follows;
                (group, follows) = group.follow(old);
                match follows {
                    Follows::Kept => before.retain(|old: &Arc<Group<R>>| old.is_retiring()),
                    Follows::Charged if old.is_retiring() || !group.is_kept() => before.push(Arc::clone(old)),
                    Follows::Charged | Follows::Not => {}
                }
            }
            let new = Arc::new(group);
            groups.push(Arc::clone(&new));
            if !before.is_empty() {
                let old = before.iter().map(|old| Arc::new(old.retire(&new))).collect();
                retiring.push(Retiring { new, old });
            }
        }
        let names = self.rules.iter().zip(tallies).map(|(rule, tallies)| Named {
            name: Arc::clone(&rule.name),
            tallies,
        });
        let rules = Rules {
            names: names.collect(),
            groups: groups.into_boxed_slice(),
            seeds,
        };
        Ok(Succession { rules, retiring })
    }

    /// The rules' states, each new.
    fn groups(&self, seeds: &Seeds) -> Result<Vec<Group<R>>, RuleError> {
        let mut groups: Vec<(Group<R>, Vec<Quotas<'_, R>>)> = Vec::new();
        for (place, rule) in (0..).zip(&self.rules) {
            for number in 0..rule.quotas.len() {
                let alone = [(place, rule, number)];
                // With the first that it can share a state with, unless the words cannot hold both.
                let shared = groups.iter_mut().find_map(|(group, quotas)| {
                    if quotas.len() >= MOST_WINDOWS || !quotas[0].1.shares_with(rule) {
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

    fn validate(&self) -> Result<(), RuleError> {
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

impl<R: ?Sized> Rules<R> {
    /// The counts of the rule by its name, or by the one that it had.
    fn tallies_of(&self, rule: &Rule<R>) -> Option<Arc<Tallies>> {
        let of = |name: &Arc<str>| self.names.iter().find(|old| old.name == *name);
        of(&rule.name)
            .or_else(|| of(rule.was.as_ref()?))
            .map(|old| Arc::clone(&old.tallies))
    }
}

/// The most quotas that are decided in one step: with each, a step takes longer.
const MOST_WINDOWS: usize = 16;

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
