use alloc::sync::Arc;

use super::Rule;
use super::kind::Calendar;
use crate::algorithm::CalendarQuota;
use crate::keyed::OnFull;

impl<R: ?Sized> Rule<R> {
    /// Creates a rule that admits the limit of `quota` in each calendar day, week, month or year.
    ///
    /// A denial's retry time is the start of the next period. [`Calendar`](crate::algorithm::Calendar) describes what is promised.
    /// A client can spend the limits of two periods at midnight, so a server also needs a rule with a short window.
    ///
    /// The rule can have a [key](Self::by), a [cost](Self::cost), a condition, tiers, a limit by request and lists, and it can be in
    /// the shadow. It has no algorithm, cells, burst or further quota. Shared rules accept it in the mode
    /// `Strict`: a store keeps a counter for each period, which the wall clock of the node names.
    ///
    /// In [`RuleView::quotas`](crate::rules::RuleView::quotas), the window is the longest of such periods: 1, 7, 31 or 366 days. In
    /// a [`RulePeek`](crate::rules::RulePeek) and in HTTP headers, it is the length of the current period.
    ///
    /// # Clocks
    ///
    /// The starts of periods are readings of the clock of the rule set. They are computed when the rule set is built, which reads
    /// the time of the operating system once, or by [`RuleSetBuilder::origin`](crate::rules::RuleSetBuilder::origin). Use a
    /// [`SystemClock`](crate::clock::SystemClock), which follows the time of the operating system, and
    /// [`random_seeds`](crate::keyed::random_seeds). [`RuleSetBuilder::build`](crate::rules::RuleSetBuilder::build) refuses the rule,
    /// because the default clock does not follow that time: after 100 days its periods could begin minutes early or late, and later
    /// by the time for which the machine was suspended.
    ///
    /// # Reloads and restarts
    ///
    /// A reload keeps the counts, also if the limit changes. If the periods change, the permits of the current period are charged to
    /// the current one of the new periods. So a change from days to months counts the permits of this day, and not of earlier
    /// ones. A rule that had a window before is charged the permits that still count.
    ///
    /// [`RuleSet::save`](crate::RuleSet::save) writes the permits of the current period, and the time until its end. After a
    /// restart they count until the end of the period that the restored rule set is in.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::hash::Hash;
    /// use ringgate::clock::SystemClock;
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{Key, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let customer = Key::new("customer", |customer: &u64, key| customer.hash(key));
    /// let contract: ringgate::algorithm::CalendarQuota = "2/month from the 5th".parse()?;
    /// let rules = RuleSetBuilder::new()
    ///     .rule(Rule::calendar("contract", contract).by(&customer))
    ///     .rule(Rule::new("server", "1000/s".parse()?))
    ///     .build_with(SystemClock::new(), [1, 2, 3, 4])?;
    /// assert!(rules.check(&17).is_ok() && rules.check(&17).is_ok());
    /// let denied = rules.check(&17).expect_err("two are admitted");
    /// // It is the fifth of next month.
    /// assert!(denied.retry_after().is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn calendar(name: impl Into<Arc<str>>, quota: CalendarQuota) -> Rule<R, Calendar> {
        let longest = quota.longest();
        Rule::of_kind(name, Calendar { quota, longest }, OnFull::default())
    }
}
