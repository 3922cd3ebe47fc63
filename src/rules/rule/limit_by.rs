use alloc::sync::Arc;

use super::Rule;
use crate::rules::condition::LimitBy;

impl<R: ?Sized, K> Rule<R, K> {
    /// Lowers the limit of each request to the result of a function: a limit from a database, or from the claims of a token.
    ///
    /// `None`, and a result above the limit of the rule or of the key's [tier](Self::tier), lower nothing. Zero denies the
    /// request, if the rule applies to it and is enforced, and its key is not on the list of [`allow`](Self::allow). All requests of a
    /// key share the counts. So a lower limit takes effect at once: except in a gcra rule, it admits nothing while the key's window
    /// holds more permits than the limit. Denials, [peeks](crate::rules::RulePeek) and headers show the limit of their request.
    ///
    /// A gcra rule gets the lower rate, and its burst in proportion. The time until a bucket is full does not change. So an
    /// empty bucket stays empty, and is refilled at the lower rate. A reload that changes the window of such a rule, or
    /// another part that requires new words, charges the bucket in permits of the rule's own limit.
    ///
    /// The function is called for each decision of the rule, so it must not block: read the limit from the request or from a map in
    /// memory. A denial calls it again. If its result has changed since, the denial describes the new limit.
    ///
    /// A rule with several quotas cannot have such a function. Neither can a rule whose counts are in a store
    /// ([`Mode`](crate::rules::Mode), except `Local`). A rules file cannot contain a function, so a reload from a file removes it: add tiers to the
    /// file instead, or build the rules in code.
    ///
    /// # Cost
    ///
    /// The function. A rule compares a lower limit in place, if its state is the only one of the rule set. In other cases, a lower
    /// limit copies the algorithm without its words. Nothing is allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::hash::Hash;
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{Key, ManualClock, Rule};
    ///
    /// struct Request {
    ///     customer: u64,
    ///     /// The requests per minute that the customer has paid for, by the claims of the token.
    ///     paid: Option<u64>,
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let customer = Key::new("customer", |request: &Request, key| request.customer.hash(key));
    /// // No customer gets more than 1,000 per minute.
    /// let rule = Rule::new("customer", "1000/min".parse()?)
    ///     .by(&customer)
    ///     .limit_by(|request: &Request| request.paid);
    /// let rules = RuleSetBuilder::new().rule(rule).build_with(ManualClock::new(), [1, 2, 3, 4])?;
    ///
    /// let request = Request { customer: 1, paid: Some(2) };
    /// assert!(rules.check(&request).is_ok());
    /// assert!(rules.check(&request).is_ok());
    /// let denied = rules.check(&request).expect_err("two are paid for");
    /// assert_eq!(denied.violations().next().map(|quota| quota.limit), Some(2));
    /// // The new plan holds from the next request on.
    /// assert!(rules.check(&Request { customer: 1, paid: Some(3) }).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit_by(mut self, limit: impl Fn(&R) -> Option<u64> + Send + Sync + 'static) -> Self {
        self.limit_by = Some(LimitBy(Arc::new(limit)));
        self
    }
}
