//! The algorithms of a rule with a calendar.

use alloc::boxed::Box;

use super::StateAlgorithms;
use super::word_layout::WordLayout;
use crate::algorithm::{AnyAlgorithm, Calendar, CalendarQuota, Reclaim};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::rules::set::clock_origin::ClockOrigin;

impl StateAlgorithms {
    /// The algorithms with this quota, and with the limits of these tiers. All of them share the starts of the periods.
    pub(super) fn calendar(
        quota: &CalendarQuota,
        tiers: &[u64],
        origin: ClockOrigin,
    ) -> Result<Self, ConfigError> {
        let time = origin.time.ok_or_else(|| {
            ConfigError::new(
                "origin",
                "unknown",
                "the time at the origin of the clock of a rule set",
            )
        })?;
        let highest = Calendar::with_origin(&quota.clone().with_limit(Quota::MAX_LIMIT)?, time)?;
        let mut algorithms = alloc::vec![AnyAlgorithm::from(highest.with_limit(quota.limit())?)];
        for &limit in tiers {
            // The error names the range of limits.
            quota.clone().with_limit(limit)?;
            algorithms.push(highest.with_limit(limit)?.into());
        }
        let layout = WordLayout::Calendar {
            quota: quota.clone(),
            periods: Box::new(highest.clone()),
        };
        Ok(Self::over_words(algorithms, highest.into(), layout))
    }

    /// These algorithms, over words that the algorithms of `before` have written. `None` if the periods differ: then the number of
    /// a period does not mean the same time.
    pub(super) fn calendar_over(&self, before: &Self, periods: &Calendar) -> Option<Self> {
        let WordLayout::Calendar { periods: old, .. } = &before.layout else {
            return None;
        };
        periods.has_periods_of(old).then(|| self.clone())
    }
}
