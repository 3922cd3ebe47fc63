//! Constructors of rule sets with the default clock and random seeds.

use core::time::Duration;
use std::io::Read;

use super::RuleSet;
use super::builder::RuleSetBuilder;
use super::clock_origin::ClockOrigin;
use crate::clock::QuantaClock;
use crate::keyed::random_seeds;
use crate::rules::rule::error::RuleError;
use crate::saved::RestoreError;

impl<R: ?Sized> RuleSet<R> {
    /// Returns a builder without rules.
    pub fn builder() -> RuleSetBuilder<R> {
        RuleSetBuilder::new()
    }
}

impl<R: ?Sized> RuleSetBuilder<R> {
    /// Builds the rule set with a new [`QuantaClock`] and [random seeds](crate::keyed::random_seeds).
    ///
    /// # Errors
    ///
    /// When a rule is invalid: see [`build_with`](Self::build_with). Also `clock`: a rule has a
    /// [calendar](crate::Rule::calendar), and the default clock stops while the machine is suspended and does not follow the time of
    /// the operating system. Build such rules with the clock that they need:
    ///
    /// ```
    /// use ringgate::RuleSet;
    /// use ringgate::clock::SystemClock;
    /// use ringgate::keyed::random_seeds;
    /// use ringgate::rules::RuleSetBuilder;
    ///
    /// # fn rules(builder: RuleSetBuilder<str>) -> Result<RuleSet<str, SystemClock>, ringgate::rules::RuleError> {
    /// builder.build_with(SystemClock::new(), random_seeds())
    /// # }
    /// ```
    ///
    /// A reload that adds a calendar to such a rule set has the same error.
    pub fn build(&self) -> Result<RuleSet<R>, RuleError> {
        self.build_from(
            QuantaClock::new(),
            random_seeds(),
            self.origin.with_default_clock(),
        )
    }

    /// Builds the rule set with a clock of its own and the seeds of the file, and charges each key the permits that
    /// [`RuleSet::save`] has written.
    ///
    /// `elapsed` is the time since the save, as far as the caller is certain of it. [`Duration::ZERO`] is always safe. The
    /// documentation of [`saved`](crate::saved) says what is promised.
    ///
    /// The rules must have the names, quotas, algorithms, cells, bursts, tiers and names of keys that they had, in the same
    /// order. Conditions, costs, limits by request, lists, percentages, capacities and [`OnFull`](crate::keyed::OnFull) may
    /// change, unless one of two things changes with them. The first is which rules share a state: those that are equal in all
    /// but their names and quotas. The second is the form in which a [sliding window](crate::rules::RuleAlgorithm::SlidingWindow)
    /// counts, such as by a cost that is added to a rule with a key. Another version of this crate may choose another form, too.
    ///
    /// [Blocks](crate::Rule::block) and rules of [requests in flight](crate::Rule::in_flight) may be changed, added and removed,
    /// because they are not saved: no key is blocked after a restore.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the file cannot be read, is torn, has another version, or is of other rules. Also the errors of
    /// [`build`](Self::build): a rule is invalid, or has a calendar. To begin with a fresh rule set instead, build it.
    pub fn restore(&self, from: impl Read, elapsed: Duration) -> Result<RuleSet<R>, RestoreError> {
        self.restore_from(
            QuantaClock::new(),
            from,
            elapsed,
            self.origin.with_default_clock(),
        )
    }
}

impl ClockOrigin {
    /// This origin, of the default clock.
    pub(super) const fn with_default_clock(self) -> Self {
        Self {
            is_of_default_clock: true,
            ..self
        }
    }
}
