use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use std::time::SystemTime;

use super::RuleSet;
use super::clock_origin::ClockOrigin;
use crate::clock::Clock;
use crate::rules::evaluate::key_hashes::Seeds;
use crate::rules::evaluate::rule_state::RuleState;
use crate::rules::migration::{self, Migration};
use crate::rules::rule::error::RuleError;
use crate::rules::rule::kind::AnyKind;
use crate::rules::rule::{AnyRule, Rule};

/// A list of rules, from which a [`RuleSet`] is built, or by which live rules are replaced.
///
/// # Examples
///
/// ```
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::{ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let builder = RuleSetBuilder::<str>::new()
///     .rule(Rule::new("all", "100/s".parse()?))
///     .rule(Rule::new("all", "10/s".parse()?));
/// // The error names the rule and the field.
/// let error = builder.build_with(ManualClock::new(), [1, 2, 3, 4]).unwrap_err();
/// assert_eq!((error.rule.as_str(), error.error.field), ("all", "name"));
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct RuleSetBuilder<R: ?Sized> {
    rules: Vec<AnyRule<R>>,
    pub(super) origin: ClockOrigin,
}

impl<R: ?Sized> RuleSetBuilder<R> {
    /// Creates a builder without rules.
    pub const fn new() -> Self {
        Self {
            rules: Vec::new(),
            origin: ClockOrigin::UNKNOWN,
        }
    }

    /// Adds a rule of any kind.
    pub fn rule<K: Into<AnyKind>>(mut self, rule: Rule<R, K>) -> Self {
        self.rules.push(rule.into_any());
        self
    }

    /// Sets the time at the origin of the rule set's clock, for rules with a [calendar](crate::Rule::calendar) in tests and
    /// simulations.
    ///
    /// By default it is computed from the time of the operating system and a reading of the clock, when the first rule with a
    /// calendar is built. A reload keeps the origin of the rule set that it replaces.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use std::time::SystemTime;
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// // One hour before the end of the year 2026.
    /// let origin = SystemTime::UNIX_EPOCH + Duration::from_secs(1_798_758_000);
    /// let rules = RuleSetBuilder::<str>::new()
    ///     .rule(Rule::calendar("all", "1/year".parse()?))
    ///     .origin(origin)
    ///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// assert!(rules.check("request").is_ok());
    /// let denied = rules.check("request").expect_err("one is admitted");
    /// assert_eq!(denied.retry_after(), Some(Duration::from_secs(3600)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn origin(mut self, origin: SystemTime) -> Self {
        self.origin.time = Some(origin);
        self
    }

    /// Returns the rules that were added.
    pub fn rules(&self) -> &[AnyRule<R>] {
        &self.rules
    }

    /// Builds the rule set with the given clock, and these seeds for the hashes of keys.
    ///
    /// Equal seeds and equal calls give equal decisions. Keep the seeds of a server secret: a client that knows them can
    /// choose keys that collide.
    ///
    /// # Errors
    ///
    /// One error names every mistake in all rules: the first one, and the [`others`](RuleError::others) after it, in the order of the
    /// rules. Each has the name of the invalid rule, and one of these fields:
    ///
    /// - `name`: empty, or the name of another rule;
    /// - `renamed_from`: a name that another rule has or was renamed from;
    /// - `rules`: more than 1000;
    /// - `quotas`: more than 16, or several of a log, even or gcra rule that is not enforced for all keys;
    /// - `cells`, `burst`: given for a rule whose algorithm has none;
    /// - `limit`, `window`, `in_flight`, `cells`, `burst`, `capacity`: out of the range of the algorithm, or of the table of keys;
    /// - `tiers`: given for a log rule, for a rule with several quotas, without the function that returns the tier, or
    ///   twice with one name;
    /// - `limit_by`: given for a rule with several quotas;
    /// - `origin`: the time at the clock's origin is before 1970 or after the year 9900, and a rule has a calendar;
    /// - `enforce`, `allow`, `deny`, `capacity`, `block`: given for a rule without a key, or a percentage that is not 0 to 100;
    /// - `permits`, `period`, `pending`: out of the range of [`Mode`](super::super::Mode);
    /// - `after`, `for`, `factor`, `ceiling`, `forgive_after`: out of the range of [`Block`](super::super::Block).
    pub fn build_with<C: Clock>(&self, clock: C, seeds: [u64; 4]) -> Result<RuleSet<R, C>, RuleError> {
        self.build_from(clock, seeds, self.origin)
    }

    /// Builds the rule set with the given clock and seeds, and an origin of the clock that may be unknown.
    pub(super) fn build_from<C: Clock>(
        &self,
        clock: C,
        seeds: [u64; 4],
        origin: ClockOrigin,
    ) -> Result<RuleSet<R, C>, RuleError> {
        let origin = origin.known_for(&self.rules, &clock);
        let Migration { states, .. } = migration::migrate(&self.rules, None, &[], Seeds::new(seeds), origin)?;
        Ok(RuleSet { states, clock })
    }

    /// Builds the rule set that continues `old`: its counts, and the states whose words suit the new rules. The others begin empty.
    #[cfg(feature = "shared")]
    pub(crate) fn build_after<C: Clock + Clone>(
        &self,
        old: &RuleSet<R, C>,
    ) -> Result<RuleSet<R, C>, RuleError> {
        let Migration { states, .. } = self.migrate(old, &[])?;
        let clock = old.clock.clone();
        Ok(RuleSet { states, clock })
    }

    /// Builds the states of these rules, which continue the states of `old` and the `retained` states.
    pub(crate) fn migrate<C: Clock>(
        &self,
        old: &RuleSet<R, C>,
        retained: &[Arc<RuleState<R>>],
    ) -> Result<Migration<R>, RuleError> {
        let (old, clock) = (&old.states, &old.clock);
        let origin = old.origin.or(self.origin).known_for(&self.rules, clock);
        migration::migrate(&self.rules, Some(old), retained, old.seeds.clone(), origin)
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
            origin: self.origin,
        }
    }
}

impl<R: ?Sized> fmt::Debug for RuleSetBuilder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RuleSetBuilder").field(&self.rules).finish()
    }
}
