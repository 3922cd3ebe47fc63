use crate::algorithm::CounterRing;

/// The facts that other modules need about an algorithm of rules. Its constructor is in `evaluate/state_algorithms`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlgorithmFacts {
    /// The cells per window of a rule that does not set them, or the error text of a rule that sets them.
    cells: Result<u64, &'static str>,
    pub(crate) has_burst: bool,
    pub(crate) has_tiers: bool,
    /// Whether several windows are counted by one state.
    pub(crate) has_windows: bool,
    pub(crate) bound: Bound,
    pub(crate) in_store: InStore,
}

/// The most permits that one state admits in any interval of one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Limit,
    /// Twice the limit.
    Twice,
    /// The limit and the share of one cell.
    WithShare,
    /// The limit and the burst, minus one permit.
    WithBurst,
}

/// How a store of several machines keeps a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InStore {
    Log,
    Cells,
    Bucket,
    /// A counter for each window.
    Periods,
    /// No store keeps it.
    Refused,
}

/// Declares the algorithms of rules, each with its name in a file of rules and its facts. No algorithm can be missing from these.
macro_rules! rule_algorithms {
    ($(#[$enum:meta])* pub enum $name:ident { $($(#[$meta:meta])* $variant:ident = $word:literal $facts:tt,)+ }) => {
        $(#[$enum])*
        pub enum $name {
            $($(#[$meta])* $variant,)+
        }

        impl $name {
            /// Every algorithm, with its name in a file of rules.
            pub const NAMES: &[(&str, Self)] = &[$(($word, Self::$variant)),+];

            pub(crate) const fn facts(self) -> AlgorithmFacts {
                match self {
                    $(Self::$variant => AlgorithmFacts $facts,)+
                }
            }
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
        /// else, share one state of several windows. [`RuleSet::algorithms`](crate::RuleSet::algorithms) tells what was
        /// chosen.
        #[default]
        SlidingWindow = "sliding-window" {
            cells: Ok(CounterRing::DEFAULT_CELLS),
            has_burst: false,
            has_tiers: true,
            has_windows: true,
            bound: Bound::Limit,
            // The memory of a store is counted in keys and not in words, so it has cells there.
            in_store: InStore::Cells,
        },
        /// The strict sliding window counter, of 60 cells unless the rule sets another number: [`CounterRing::new`](crate::CounterRing::new).
        Counter = "counter" {
            cells: Ok(CounterRing::DEFAULT_CELLS),
            has_burst: false,
            has_tiers: true,
            has_windows: true,
            bound: Bound::Limit,
            in_store: InStore::Cells,
        },
        /// The sliding window counter over N cells: [`classic`](crate::algorithm::CounterRingBuilder::classic).
        Classic = "classic" {
            cells: Ok(CounterRing::DEFAULT_CLASSIC_CELLS),
            has_burst: false,
            has_tiers: true,
            has_windows: true,
            bound: Bound::Twice,
            in_store: InStore::Refused,
        },
        /// The sliding window counter with a share for each cell: [`even`](crate::algorithm::CounterRingBuilder::even).
        Even = "even" {
            cells: Ok(CounterRing::DEFAULT_CLASSIC_CELLS),
            has_burst: false,
            has_tiers: true,
            // Each cell has a share of one limit.
            has_windows: false,
            bound: Bound::WithShare,
            in_store: InStore::Refused,
        },
        /// The fixed window: [`CounterRing::fixed_window`](crate::CounterRing::fixed_window).
        Fixed = "fixed" {
            cells: Err("no cells for a fixed window, which is one cell"),
            has_burst: false,
            has_tiers: true,
            has_windows: true,
            bound: Bound::Twice,
            in_store: InStore::Periods,
        },
        /// The sliding log: [`TimestampRing`](crate::TimestampRing).
        Log = "log" {
            cells: Err("no cells for a log rule"),
            has_burst: false,
            // It has one slot per permit.
            has_tiers: false,
            has_windows: false,
            bound: Bound::Limit,
            in_store: InStore::Log,
        },
        /// The token bucket: [`Gcra`](crate::Gcra).
        Gcra = "gcra" {
            cells: Err("no cells for a gcra rule"),
            has_burst: true,
            has_tiers: true,
            has_windows: false,
            bound: Bound::WithBurst,
            in_store: InStore::Bucket,
        },
    }
}

impl RuleAlgorithm {
    /// The cells per window of a rule that does not set them.
    pub(crate) fn default_cells(self) -> u64 {
        self.facts().cells.unwrap_or(CounterRing::DEFAULT_CELLS)
    }

    /// The error text of a rule with cells. `None` if the algorithm has cells.
    pub(crate) fn in_place_of_cells(self) -> Option<&'static str> {
        self.facts().cells.err()
    }
}
