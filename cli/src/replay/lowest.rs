//! The search for the lowest limit that denies few enough.

use alloc::collections::BTreeMap;

use serde::Serialize;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::replay::by_key::ByKey;
use crate::replay::simulate::{Simulation, simulate};
use crate::replay::span::Span;
use crate::rules::PlanEntry;

/// The limits that were tried so far.
#[derive(Debug)]
pub(crate) struct Search<'e> {
    entry: &'e PlanEntry,
    by_key: &'e mut ByKey,
    span: Span,
    /// In ascending order of limits. `None`: the algorithm does not support the limit.
    tried: BTreeMap<u64, Option<LimitDenials>>,
}

/// A limit and its denials.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LimitDenials {
    pub(crate) limit: u64,
    pub(crate) denied: u64,
    pub(crate) keys_denied: u64,
}

/// The limits of one simulation.
const AT_ONCE: u64 = 48;

impl<'e> Search<'e> {
    pub(crate) fn new(entry: &'e PlanEntry, by_key: &'e mut ByKey, span: Span) -> Self {
        Self {
            entry,
            by_key,
            span,
            tried: BTreeMap::new(),
        }
    }

    /// Replays the requests with each of these limits that the algorithm supports.
    ///
    /// # Errors
    ///
    /// When a temporary file fails.
    pub(crate) fn try_limits(
        &mut self,
        limits: impl IntoIterator<Item = u64>,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let mut simulations = Vec::new();
        for limit in limits {
            self.tried.insert(limit, None);
            let (counting, span) = (self.entry.counting, self.span);
            let policy = self.entry.with_limit(limit, span);
            let simulation = policy.map(|policy| Simulation::new(counting, policy, limit, span, None));
            simulations.extend(simulation.ok());
        }
        let simulations = simulate(simulations, self.by_key, progress, "trying limits")?;
        self.tried.extend(simulations.iter().map(|simulation| {
            let found = LimitDenials {
                limit: simulation.limit,
                denied: simulation.denied,
                keys_denied: simulation.keys_denied,
            };
            (simulation.limit, Some(found))
        }));
        Ok(())
    }

    /// The limits that were tried and are supported, in ascending order.
    pub(crate) fn supported(&self) -> impl DoubleEndedIterator<Item = &LimitDenials> {
        self.tried.values().flatten()
    }

    /// Returns the lowest supported limit that is good and above all limits that were tried and are not. The gap below it is
    /// searched in ever smaller steps. Limits above it that were not tried may be bad.
    ///
    /// # Errors
    ///
    /// When a temporary file fails.
    pub(crate) fn lowest(
        &mut self,
        good: impl Fn(&LimitDenials) -> bool,
        progress: &mut Progress,
    ) -> Result<Option<LimitDenials>, Failure> {
        loop {
            let bad = self.supported().rev().find(|found| !good(found));
            let above = bad.map_or(0, |bad| bad.limit) + 1;
            let Some(lowest) = self.supported().find(|found| found.limit >= above).copied() else {
                return Ok(None);
            };
            // The next lower limit that was tried is bad or not supported.
            let below = self.tried.range(..lowest.limit).next_back();
            let below = below.map_or(0, |(limit, _)| *limit);
            let gap = lowest.limit - below;
            if gap <= 1 {
                return Ok(Some(lowest));
            }
            let step = gap.div_ceil(AT_ONCE + 1);
            let between = (1..).map(|number| below + number * step);
            self.try_limits(between.take_while(|limit| *limit < lowest.limit), progress)?;
        }
    }
}
