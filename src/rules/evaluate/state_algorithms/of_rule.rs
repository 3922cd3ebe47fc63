//! The algorithm of a rule, for code that asks for it.

use super::StateAlgorithms;
use crate::algorithm::AnyAlgorithm;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::rules::rule::Rule;
use crate::rules::set::validate;

impl<R: ?Sized> Rule<R> {
    /// Returns the algorithm that decides this rule with `quota` in place of its quotas, for a request in no tier.
    ///
    /// It is that of a rule set in which the quota shares no state: [`RuleSet::algorithms`](crate::RuleSet::algorithms) has the
    /// algorithms of a rule set.
    ///
    /// # Errors
    ///
    /// The error of a rule set about a rule with this quota, for example `limit` or `cells`.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::hash::Hash;
    /// use ringgate::{Key, Rule};
    ///
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// let user = Key::new("user", |user: &str, key| user.hash(key));
    /// let rule = Rule::new("users", "60/min".parse()?);
    /// assert_eq!(rule.algorithm_for("60/min".parse()?)?.to_string(), "60 cells");
    /// let rule = rule.by(&user);
    /// let chosen = rule.algorithm_for("60/min".parse()?)?.to_string();
    /// assert_eq!(chosen, "one word of 16 cells in units of 4");
    /// # Ok(())
    /// # }
    /// ```
    pub fn algorithm_for(&self, quota: Quota) -> Result<AnyAlgorithm, ConfigError> {
        if let Some(error) = validate::error_of_algorithm(&self.kind, &self.tiers) {
            return Err(error);
        }
        let algorithms = StateAlgorithms::of_rate(self, &self.kind, &[quota])?;
        Ok(algorithms.tiers[0].clone())
    }
}
