//! The search for the lowest limit that denies few enough.

use alloc::collections::BTreeMap;

use ringgate::Quota;
use serde::Serialize;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::replay::by_key::ByKey;
use crate::replay::simulate::{Simulation, simulate};
use crate::replay::span::Span;
use crate::rules::PlanEntry;

/// The denials of a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Denials {
    pub(crate) limit: u64,
    pub(crate) requests: u64,
    pub(crate) keys: u64,
}

/// The limits that were simulated so far.
#[derive(Debug)]
pub(crate) struct Search<'e> {
    entry: &'e PlanEntry,
    by_key: &'e mut ByKey,
    span: Span,
    /// In ascending order of limits.
    pub(crate) known: BTreeMap<u64, Denials>,
}

/// A limit and its denials.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Found {
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
            known: BTreeMap::new(),
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
        let simulations = simulations(self.entry, limits, self.span);
        let simulations = simulate(simulations, self.by_key, progress, "trying limits")?;
        self.known.extend(simulations.iter().map(|simulation| {
            let denials = Denials {
                limit: simulation.limit,
                requests: simulation.denied,
                keys: simulation.keys_denied,
            };
            (simulation.limit, denials)
        }));
        Ok(())
    }

    /// The lowest limit that is good and above all limits that are not. The gap below it is searched in ever smaller steps.
    ///
    /// # Errors
    ///
    /// When a temporary file fails.
    pub(crate) fn lowest(
        &mut self,
        good: impl Fn(&Denials) -> bool,
        progress: &mut Progress,
    ) -> Result<Option<Found>, Failure> {
        loop {
            let bad = self.known.values().rev().find(|denials| !good(denials));
            let below = bad.map_or(0, |denials| denials.limit);
            let Some((&lowest, denials)) = self.known.range(below + 1..).next() else {
                return Ok(None);
            };
            let gap = lowest - below;
            if gap <= 1 {
                return Ok(Some(Found {
                    limit: lowest,
                    denied: denials.requests,
                    keys_denied: denials.keys,
                }));
            }
            let step = gap.div_ceil(AT_ONCE + 1);
            let before = self.known.len();
            let between = (1..).map(|number| below + number * step);
            self.try_limits(between.take_while(|limit| *limit < lowest), progress)?;
            if self.known.len() == before {
                // The algorithm supports no limit in between.
                return Ok(None);
            }
        }
    }
}

/// Simulations of an entry's algorithm with all limits that it supports.
fn simulations(entry: &PlanEntry, limits: impl IntoIterator<Item = u64>, span: Span) -> Vec<Simulation> {
    let quotas = limits
        .into_iter()
        .filter_map(|limit| Quota::new(limit, entry.quota.window()).ok());
    quotas
        .filter_map(|quota| Simulation::new(entry.counting, quota, span, None).ok())
        .collect()
}
