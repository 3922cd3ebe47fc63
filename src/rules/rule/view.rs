use alloc::vec::Vec;

use super::AnyRule;
use super::algorithm::RuleAlgorithm;
use super::block::Block;
use super::enforcement::Enforcement;
use super::mode::Mode;
use super::on_error::OnError;
use crate::algorithm::CalendarQuota;
use crate::keyed::OnFull;
use crate::quota::Quota;

/// The fields of a [`Rule`](crate::Rule), for code that displays rules, or uses rules that were read from a file in another way.
///
/// # Examples
///
/// ```
/// use ringgate::Rule;
/// use ringgate::rules::RuleAlgorithm;
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let rule = Rule::<str>::new("logins", "5/min".parse()?).algorithm(RuleAlgorithm::Log).into_any();
/// let view = rule.view();
/// assert_eq!((view.name, view.algorithm, view.key), ("logins", Some(RuleAlgorithm::Log), None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RuleView<'a> {
    /// The name of the rule.
    pub name: &'a str,
    /// The quotas. That of a calendar has the longest window that its periods can have. Empty for a rule that limits requests in
    /// flight.
    pub quotas: &'a [Quota],
    /// The limit and the calendar periods. `None` for a rule without a calendar.
    pub calendar: Option<&'a CalendarQuota>,
    /// The limit of requests in flight. `None` for a rule that limits requests per window.
    pub in_flight: Option<u64>,
    /// The algorithm. `None` for a rule that does not limit requests per window.
    pub algorithm: Option<RuleAlgorithm>,
    /// The cells per window. `None` if not set.
    pub cells: Option<u64>,
    /// The burst in permits. `None` if not set.
    pub burst: Option<u64>,
    /// The name of the key. `None` if all requests count together.
    pub key: Option<&'a str>,
    /// The name of the cost. `None` if a request costs one permit.
    pub cost: Option<&'a str>,
    /// The name of the condition. `None` if the rule applies to every request.
    pub when: Option<&'a str>,
    /// The name of the function that returns the tier.
    pub tier_of: Option<&'a str>,
    /// The names of the tiers, with their limits in permits.
    pub tiers: Vec<(&'a str, u64)>,
    /// Whether a function of the request lowers the limit ([`Rule::limit_by`](crate::Rule::limit_by)).
    pub limit_by: bool,
    /// The number of keys that the table can hold. `None` if not set.
    pub capacity: Option<u64>,
    /// The decision about a key that finds the table full.
    pub on_full: OnFull,
    /// The decision of a shared rule when its store does not answer.
    pub on_error: OnError,
    /// Which decisions about a shared rule a node makes without the store.
    pub mode: Mode,
    /// The percentage of keys for which the rule is enforced: 0 in the shadow, 100 by default.
    pub enforced: f64,
    /// The block of keys that violate the rule. `None` if not set.
    pub block: Option<&'a Block>,
    /// The number of keys that are never limited.
    pub allowed: usize,
    /// The number of keys that are always denied.
    pub denied: usize,
}

impl<R: ?Sized> AnyRule<R> {
    /// Returns the fields of the rule. This allocates a list of the tiers.
    #[must_use]
    pub fn view(&self) -> RuleView<'_> {
        let rate = self.kind.rate();
        let quotas = self.kind.quotas();
        let in_flight = self.kind.is_in_flight().then(|| quotas[0].limit());
        RuleView {
            name: &self.name,
            quotas: if in_flight.is_some() { &[] } else { quotas },
            calendar: self.kind.calendar(),
            in_flight,
            algorithm: rate.map(|rate| rate.algorithm),
            cells: rate.and_then(|rate| rate.cells),
            burst: rate.and_then(|rate| rate.burst),
            key: self.key.as_ref().map(|key| key.name()),
            cost: self.cost.as_ref().map(|cost| cost.name()),
            when: self.when.as_ref().map(|when| when.name()),
            tier_of: self.tier_of.as_ref().map(|tier_of| tier_of.name()),
            tiers: self.tiers.iter().map(|(name, limit)| (&**name, *limit)).collect(),
            limit_by: self.limit_by.is_some(),
            capacity: self.capacity,
            on_full: self.on_full,
            on_error: self.on_error,
            mode: self.mode,
            enforced: match self.enforced {
                Enforcement::All => 100.0,
                Enforcement::None => 0.0,
                Enforcement::Percent(percent) => percent,
            },
            block: self.block.as_ref(),
            allowed: self.allow.len(),
            denied: self.deny.len(),
        }
    }
}
