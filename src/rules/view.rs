use alloc::vec::Vec;

use super::mode::Mode;
use super::on_error::OnError;
use super::rule::{Enforced, Rule, RuleAlgorithm};
use crate::keyed::OnFull;
use crate::quota::Quota;

/// What a [`Rule`] says, for whoever shows rules or works with them in other ways: read from a file, say.
///
/// # Examples
///
/// ```
/// use ringgate::{Rule, RuleAlgorithm};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let rule = Rule::<str>::new("logins", "5/min".parse()?).algorithm(RuleAlgorithm::Log);
/// let view = rule.view();
/// assert_eq!((view.name, view.algorithm, view.key), ("logins", RuleAlgorithm::Log, None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RuleView<'a> {
    /// The rule's name.
    pub name: &'a str,
    /// What it allows: one quota or more.
    pub quotas: &'a [Quota],
    /// How it counts.
    pub algorithm: RuleAlgorithm,
    /// Cells per window, if that was said.
    pub cells: Option<u64>,
    /// The burst in permits, if that was said.
    pub burst: Option<u64>,
    /// The name of its key; `None`: it counts all requests together.
    pub key: Option<&'a str>,
    /// The name of its cost; `None`: one permit.
    pub cost: Option<&'a str>,
    /// The name of its condition; `None`: it is about every request.
    pub when: Option<&'a str>,
    /// The name of what says the tier.
    pub tier_of: Option<&'a str>,
    /// The tiers by their names, with their limits in permits.
    pub tiers: Vec<(&'a str, u64)>,
    /// How many keys there is room for, if that was said.
    pub capacity: Option<u64>,
    /// What becomes of a key that finds no room.
    pub on_full: OnFull,
    /// What decides when the store of shared rules does not answer.
    pub on_error: OnError,
    /// How far the nodes of shared rules decide by themselves.
    pub mode: Mode,
    /// For how many in a hundred of the keys it refuses: 100 for a rule that says nothing of it, 0 in the shadow.
    pub enforced: f64,
    /// How many keys are never limited.
    pub allowed: usize,
    /// How many keys are always refused.
    pub denied: usize,
}

impl<R: ?Sized> Rule<R> {
    /// Says what the rule says. Allocates for the tiers.
    #[must_use]
    pub fn view(&self) -> RuleView<'_> {
        RuleView {
            name: &self.name,
            quotas: &self.quotas,
            algorithm: self.algorithm,
            cells: self.cells,
            burst: self.burst,
            key: self.key.as_ref().map(|key| key.name()),
            cost: self.cost.as_ref().map(|cost| cost.name()),
            when: self.when.as_ref().map(|when| when.name()),
            tier_of: self.tier_of.as_ref().map(|tier_of| tier_of.name()),
            tiers: self.tiers.iter().map(|(name, limit)| (&**name, *limit)).collect(),
            capacity: self.capacity,
            on_full: self.on_full,
            on_error: self.on_error,
            mode: self.mode,
            enforced: match self.enforced {
                Enforced::All => 100.0,
                Enforced::None => 0.0,
                Enforced::Percent(percent) => percent,
            },
            allowed: self.allow.len(),
            denied: self.deny.len(),
        }
    }
}
