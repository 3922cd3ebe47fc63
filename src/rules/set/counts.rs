/// The counts of one rule since it came into force, under its own name or under one that it was
/// [renamed from](super::super::Rule::renamed_from).
///
/// Another key does not reset them. Each number is exact while no thread decides; under load, they may be of slightly
/// different instants.
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
    /// Permits that admitted requests were charged, for each of the rule's quotas.
    pub charged: u64,
    /// Requests that were denied by this rule, alone or among others.
    pub denied: u64,
    /// Requests that the rule would have denied if it were enforced.
    pub shadow_denied: u64,
    /// Decisions by [`OnFull`](crate::keyed::OnFull), for keys that found no entry in the rule's table.
    pub overflowed: u64,
    /// Permits that could not be refunded, summed over the rule's states: of denied requests that lost a race, and of
    /// [refunds](super::super::RuleSet::refund).
    pub forfeited: u64,
    /// Decisions of a shared rule that this node made alone, by [`OnError`](super::super::OnError), because the store did
    /// not answer. They are also counted as admitted or denied. 0 for a rule of one process.
    pub by_node: u64,
}
