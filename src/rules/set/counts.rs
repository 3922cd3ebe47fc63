/// The counts of one rule since it came into force, under its current name or a name that it was
/// [renamed from](super::super::Rule::renamed_from).
///
/// A change of the rule's key does not reset them. Without concurrent decisions, each number is exact. Under load, they may be of
/// slightly different instants.
///
/// # Examples
///
/// ```
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::{ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::<str>::new()
///     .rule(Rule::new("all", "2/s".parse()?))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// for _ in 0..5 {
///     let _ = rules.check("request");
/// }
/// for (name, counts) in rules.counts() {
///     assert_eq!((name, counts.admitted, counts.denied), ("all", 2, 3));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCounts {
    /// Requests that were admitted and charged to the rule.
    pub admitted: u64,
    /// Permits of admitted requests that were charged to each quota of the rule.
    pub charged: u64,
    /// Requests that were denied by this rule, and perhaps by others too.
    pub denied: u64,
    /// Requests that the rule would have denied if it were enforced.
    pub shadow_denied: u64,
    /// Decisions by [`OnFull`](crate::keyed::OnFull), for keys without an entry in the rule's full table.
    pub overflowed: u64,
    /// Permits of admitted requests that were given back to each quota of the rule: by [refunds](super::super::RuleSet::refund), and
    /// by [settling](super::super::RuleSet::settle) a request that cost less. They stay part of `charged`. A shared rule
    /// counts what a lease, the store or a limiter of this node takes back.
    pub refunded: u64,
    /// Permits that could not be refunded, summed over the rule's states. They are from requests that were denied after a charge, and
    /// from [refunds](super::super::RuleSet::refund). If a store gives a part of the permits of several shared rules back, the others are
    /// attributed to these rules in their order.
    pub forfeited: u64,
    /// [Blocks](super::super::Rule::block) of keys that began.
    pub blocks: u64,
    /// Decisions of a shared rule that this node made by [`OnError`](super::super::OnError), because the store did not answer. They
    /// are also counted as admitted or denied. 0 for a local rule.
    pub by_node: u64,
}
