//! The algorithms of a sliding window rule, which chooses how it counts.

use alloc::boxed::Box;
use core::iter;

use super::StateAlgorithms;
use super::word_layout::{RingForm, RingKind, WordLayout};
use crate::algorithm::{CounterRing, Reclaim, SlidingWindow, UnitRing};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::rules::rule::Rule;
use crate::rules::rule::kind::Rate;

impl StateAlgorithms {
    /// The rings that a [`SlidingWindow`] chooses for the table of the rule: one word, or cells. No other code of rules chooses.
    ///
    /// A rule without a key has cells, for any limit. The log that a limiter of one resource has up to a limit of 64 is not sound in a
    /// rule set. It refunds no permits, so a request that another rule denies after this rule was charged would stay charged, as would
    /// a refunded reservation. It also holds no more permits than its limit, so it could not take on the debt of a settled request, or
    /// the permits that count under a higher limit before a reload.
    pub(super) fn sliding_window<R: ?Sized, K>(
        rule: &Rule<R, K>,
        rate: &Rate,
        quotas: &[Quota],
        tiers: &[u64],
    ) -> Result<Self, ConfigError> {
        let in_cells = || Self::counter(RingKind::Strict, rate.cells_or_default(), quotas, tiers);
        // Several windows share their cells, which one word cannot hold.
        let (Some(_), None, &[quota]) = (&rule.key, rate.cells, quotas) else {
            return in_cells();
        };
        let limits = || iter::once(quota.limit()).chain(tiers.iter().copied());
        let (highest, lowest) = (limits().max().unwrap_or(1), limits().min().unwrap_or(1));
        // A cost may be settled later. The limits of a function are unknown, so a unit may be coarse for them.
        let is_settled = rule.cost.is_some() || rule.limit_by.is_some();
        let window = Quota::new(highest, quota.window()).and_then(|quota| match is_settled {
            true => SlidingWindow::settled(quota),
            false => SlidingWindow::new(quota),
        });
        // The error of an invalid limit is that of the cells.
        match window.and_then(|window| window.for_table(lowest)) {
            Ok(window) => match window.unit_ring() {
                Some(ring) => Self::word(ring, quota, tiers),
                None => in_cells(),
            },
            Err(_) => in_cells(),
        }
    }

    fn word(ring: &UnitRing, quota: Quota, tiers: &[u64]) -> Result<Self, ConfigError> {
        let widest = CounterRing::of_units(ring);
        let layout = WordLayout::Counter {
            form: RingForm::Word {
                cells: ring.cells(),
                unit: ring.unit(),
            },
            windows: alloc::vec![quota.window()],
            widest: Box::new(widest.clone()),
        };
        Self::of_rings(layout, &widest, widest.clone().into(), &[quota.limit()], tiers)
    }
}
