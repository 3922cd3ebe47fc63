//! The kinds of rules: the second type parameter of a [`Rule`](crate::Rule).
//!
//! | kind | constructor | the rule can also have |
//! |---|---|---|
//! | [`Rate`] | [`Rule::new`](crate::Rule::new) | an algorithm, cells, a burst, further quotas, a cost |
//! | [`Calendar`] | [`Rule::calendar`](crate::Rule::calendar) | a cost |
//! | [`InFlight`] | [`Rule::in_flight`](crate::Rule::in_flight) | [`admit_on_full`](crate::Rule::admit_on_full) |
//! | [`AnyKind`] | [`Rule::into_any`](crate::Rule::into_any) | – |
//!
//! A rule of each kind can have a key, a condition, tiers, a limit by request, lists and a [block](crate::Rule::block). A method of
//! another kind does not compile:
//!
//! ```
//! # use ringgate::Rule;
//! # fn main() -> Result<(), ringgate::ConfigError> {
//! let rate = Rule::<str>::new("a", "9/day".parse()?).cells(24);
//! let calendar = Rule::<str>::calendar("a", "9/day".parse()?).shadow();
//! let slots = Rule::<str>::in_flight("a", 9).admit_on_full();
//! # let _ = (rate, calendar, slots);
//! # Ok(())
//! # }
//! ```
//!
//! ```compile_fail,E0599
//! # use ringgate::Rule;
//! # fn main() -> Result<(), ringgate::ConfigError> {
//! let rate = Rule::<str>::new("a", "9/day".parse()?).admit_on_full();
//! # Ok(())
//! # }
//! ```
//!
//! ```compile_fail,E0599
//! # use ringgate::Rule;
//! # fn main() -> Result<(), ringgate::ConfigError> {
//! let calendar = Rule::<str>::calendar("a", "9/day".parse()?).cells(24);
//! # Ok(())
//! # }
//! ```
//!
//! ```compile_fail,E0599
//! # use ringgate::Rule;
//! # use ringgate::rules::Cost;
//! let slots = Rule::<str>::in_flight("a", 9).cost(&Cost::new("size", |it: &str| it.len() as u64));
//! ```

use alloc::vec::Vec;
use core::slice;

use super::algorithm::RuleAlgorithm;
use crate::algorithm::CalendarQuota;
use crate::quota::Quota;

/// A limit in any interval of one window, or several such limits.
#[derive(Clone, Debug)]
pub struct Rate {
    pub(crate) quotas: Vec<Quota>,
    pub(crate) algorithm: RuleAlgorithm,
    pub(crate) cells: Option<u64>,
    pub(crate) burst: Option<u64>,
}

/// A limit in each calendar day, week, month or year.
#[derive(Clone, Debug)]
pub struct Calendar {
    pub(crate) quota: CalendarQuota,
    /// The limit, and the longest window that a period can have.
    pub(crate) longest: Quota,
}

/// A limit of the requests at a time.
#[derive(Clone, Debug)]
pub struct InFlight {
    /// The limit, with a window of zero.
    pub(crate) limit: Quota,
}

/// One of the other kinds, for lists of rules of different kinds: [`AnyRule`](crate::rules::AnyRule).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyKind {
    /// The kind of [`Rule::new`](crate::Rule::new).
    Rate(Rate),
    /// The kind of [`Rule::calendar`](crate::Rule::calendar).
    Calendar(Calendar),
    /// The kind of [`Rule::in_flight`](crate::Rule::in_flight).
    InFlight(InFlight),
}

/// A kind of rule that charges permits: [`Rate`] and [`Calendar`].
pub trait PermitKind: Into<AnyKind> {}

impl PermitKind for Rate {}

impl PermitKind for Calendar {}

impl Rate {
    pub(crate) fn new(quota: Quota) -> Self {
        Self {
            quotas: alloc::vec![quota],
            algorithm: RuleAlgorithm::default(),
            cells: None,
            burst: None,
        }
    }

    pub(crate) fn cells_or_default(&self) -> u64 {
        self.cells.unwrap_or_else(|| self.algorithm.default_cells())
    }

    /// Whether all quotas share one state.
    pub(crate) fn is_one_state(&self) -> bool {
        self.algorithm.facts().has_windows
    }
}

impl AnyKind {
    /// The limits, at least one. A calendar has the longest window that its periods can have, and a limit of requests in flight has a
    /// window of zero.
    pub(crate) fn quotas(&self) -> &[Quota] {
        match self {
            Self::Rate(rate) => &rate.quotas,
            Self::Calendar(calendar) => slice::from_ref(&calendar.longest),
            Self::InFlight(slots) => slice::from_ref(&slots.limit),
        }
    }

    pub(crate) const fn rate(&self) -> Option<&Rate> {
        match self {
            Self::Rate(rate) => Some(rate),
            Self::Calendar(_) | Self::InFlight(_) => None,
        }
    }

    pub(crate) const fn calendar(&self) -> Option<&CalendarQuota> {
        match self {
            Self::Calendar(calendar) => Some(&calendar.quota),
            Self::Rate(_) | Self::InFlight(_) => None,
        }
    }

    pub(crate) const fn is_in_flight(&self) -> bool {
        match self {
            Self::InFlight(_) => true,
            Self::Rate(_) | Self::Calendar(_) => false,
        }
    }
}

impl From<Rate> for AnyKind {
    fn from(rate: Rate) -> Self {
        Self::Rate(rate)
    }
}

impl From<Calendar> for AnyKind {
    fn from(calendar: Calendar) -> Self {
        Self::Calendar(calendar)
    }
}

impl From<InFlight> for AnyKind {
    fn from(slots: InFlight) -> Self {
        Self::InFlight(slots)
    }
}
