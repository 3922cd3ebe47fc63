use crate::algorithm::CounterRing;

/// The algorithm of a rule.
///
/// # Examples
///
/// ```
/// use ringgate::rules::{RuleAlgorithm, RuleSetBuilder};
/// use ringgate::{ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// // One hundred requests per second, evenly spaced.
/// let rule = Rule::new("all", "100/s".parse()?).algorithm(RuleAlgorithm::Gcra).burst(1);
/// let rules = RuleSetBuilder::<str>::new().rule(rule).build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// assert!(rules.check("request").is_ok());
/// assert!(rules.check("request").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleAlgorithm {
    /// The strict sliding window counter: [`CounterRing::new`](crate::CounterRing::new). This is the default.
    #[default]
    Counter,
    /// The sliding window counter over N cells: [`classic`](crate::algorithm::CounterRingBuilder::classic).
    Classic,
    /// The sliding window counter with a share for each cell: [`even`](crate::algorithm::CounterRingBuilder::even).
    Even,
    /// The fixed window: [`CounterRing::fixed_window`](crate::CounterRing::fixed_window).
    Fixed,
    /// The sliding log: [`TimestampRing`](crate::TimestampRing).
    Log,
    /// The token bucket: [`Gcra`](crate::Gcra).
    Gcra,
}

impl RuleAlgorithm {
    /// The cells per window of a rule that does not set them.
    pub(crate) const fn default_cells(self) -> u64 {
        match self {
            Self::Classic | Self::Even => CounterRing::DEFAULT_CLASSIC_CELLS,
            Self::Counter | Self::Fixed | Self::Log | Self::Gcra => CounterRing::DEFAULT_CELLS,
        }
    }
}
