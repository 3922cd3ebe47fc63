use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::algorithm::{Calendar, CalendarQuota, CounterRing, CounterRingBuilder};
use crate::error::ConfigError;
use crate::quota::{Quota, Unit};
use crate::rules::rule::algorithm::RuleAlgorithm;
use crate::rules::rule::kind::Rate;

/// The unit of a state, and the configuration that it was chosen for. States of one configuration have the same words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateUnits {
    pub(super) unit: Unit,
    algorithm: RuleAlgorithm,
    cells: u64,
    burst: Option<u64>,
    quotas: Vec<Quota>,
    tiers: Vec<u64>,
}

impl StateUnits {
    pub(super) fn new(rate: &Rate, quotas: &[Quota], tiers: &[u64], unit: Unit) -> Self {
        Self {
            unit,
            algorithm: rate.algorithm,
            cells: rate.cells_or_default(),
            burst: rate.burst,
            quotas: quotas.to_vec(),
            tiers: tiers.to_vec(),
        }
    }
}

/// The layout of the words. Algorithms of one layout can decide over the same words.
#[derive(Clone, Debug)]
pub(super) enum WordLayout {
    Counter {
        form: RingForm,
        windows: Vec<Duration>,
        /// The ring with the highest limit that the words can hold. All others are this ring with a lower limit.
        widest: Box<CounterRing>,
    },
    Log(Quota),
    Gcra {
        quota: Quota,
        burst: u64,
        tiers: Vec<u64>,
    },
    /// The word does not depend on the limit.
    Calendar {
        quota: CalendarQuota,
        periods: Box<Calendar>,
    },
    /// The word does not depend on the limit.
    InFlight,
    /// The word does not depend on the block.
    Violations,
}

impl WordLayout {
    /// The algorithm as text, which is compared with that of saved states.
    pub(super) fn description(&self) -> String {
        match self {
            Self::Counter { form, .. } => match form {
                RingForm::Cells(kind, cells) => format!("{kind:?} of {cells} cells"),
                RingForm::Word { cells, unit } => format!("one word of {cells} cells in units of {unit}"),
            },
            Self::Log(_) => String::from("Log"),
            Self::Gcra { burst, .. } => format!("Gcra with burst {burst}"),
            Self::Calendar { quota, .. } => format!("Calendar of {quota}"),
            Self::InFlight => String::from("InFlight"),
            Self::Violations => String::from("Violations"),
        }
    }
}

/// How a ring counts. Rings of one form and of the same windows read each other's words, up to the limit of the wider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingForm {
    /// A number of cells.
    Cells(RingKind, u64),
    /// One word of cells, in units of `unit` permits.
    Word { cells: u64, unit: u64 },
}

/// The rule algorithms that are counter rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingKind {
    Strict,
    Classic,
    Even,
    Fixed,
}

impl RingKind {
    pub(super) fn build(self, quotas: &[Quota], cells: u64) -> Result<CounterRing, ConfigError> {
        let ring = CounterRing::builder(quotas[0]).cells(cells);
        let ring = quotas[1..].iter().copied().fold(ring, CounterRingBuilder::also);
        match self {
            Self::Strict => ring.build(),
            Self::Classic => ring.classic().build(),
            Self::Even => ring.even().build(),
            Self::Fixed => ring.classic().cells(1).build(),
        }
    }
}
