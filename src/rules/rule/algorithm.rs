use crate::algorithm::CounterRing;

/// Declares the algorithms of rules, and the list of their names, which no algorithm can be missing from.
macro_rules! rule_algorithms {
    ($(#[$enum:meta])* pub enum $name:ident { $($(#[$meta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$enum])*
        pub enum $name {
            $($(#[$meta])* $variant,)+
        }

        impl $name {
            /// Every algorithm, with its name in a file of rules.
            pub const NAMES: &[(&str, Self)] = &[$(($word, Self::$variant)),+];
        }
    };
}

rule_algorithms! {
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
        /// The exact sliding window, which chooses how it counts: at most the limit in any interval of one window. This is the default.
        ///
        /// | rule | counts in | bytes a key |
        /// |---|---|--:|
        /// | with a key | one word: a [`UnitRing`](crate::UnitRing) | 33 |
        /// | with a key, and with a cost, `limit_by`, several quotas or low tiers | 60 cells: a [`CounterRing`] | 640 |
        /// | without a key | 60 cells | – |
        /// | with [`cells`](crate::Rule::cells) | those cells | that of [`Counter`](Self::Counter) |
        ///
        /// Permits of a rule with a cost may be [settled](crate::RuleSet::settle) later, and cells refund them exactly. Tiers are low if one
        /// word would guarantee their clients less than 70 % of their limit. Several quotas, of one rule or of rules that are equal in all
        /// else, share one state of several windows. [`RuleSet::algorithms`](crate::RuleSet::algorithms) and
        /// [`RulePeek::algorithm`](crate::rules::RulePeek::algorithm) tell what was chosen.
        #[default]
        SlidingWindow = "sliding-window",
        /// The strict sliding window counter, of 60 cells unless the rule sets another number: [`CounterRing::new`](crate::CounterRing::new).
        Counter = "counter",
        /// The sliding window counter over N cells: [`classic`](crate::algorithm::CounterRingBuilder::classic).
        Classic = "classic",
        /// The sliding window counter with a share for each cell: [`even`](crate::algorithm::CounterRingBuilder::even).
        Even = "even",
        /// The fixed window: [`CounterRing::fixed_window`](crate::CounterRing::fixed_window).
        Fixed = "fixed",
        /// The sliding log: [`TimestampRing`](crate::TimestampRing).
        Log = "log",
        /// The token bucket: [`Gcra`](crate::Gcra).
        Gcra = "gcra",
    }
}

impl RuleAlgorithm {
    /// The cells per window of a rule that does not set them.
    pub(crate) const fn default_cells(self) -> u64 {
        match self {
            Self::Classic | Self::Even => CounterRing::DEFAULT_CLASSIC_CELLS,
            Self::SlidingWindow | Self::Counter | Self::Fixed | Self::Log | Self::Gcra => {
                CounterRing::DEFAULT_CELLS
            }
        }
    }

    /// Whether several windows are counted by one state.
    pub(crate) const fn has_windows(self) -> bool {
        match self {
            Self::SlidingWindow | Self::Counter | Self::Classic | Self::Fixed => true,
            // Each cell of an even ring has a share of one limit, and the words of the others have one window.
            Self::Even | Self::Log | Self::Gcra => false,
        }
    }
}
