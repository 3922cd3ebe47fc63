//! One quota of a plan, with its algorithms.

use core::time::Duration;
use std::time::SystemTime;

use ringgate::algorithm::{Calendar, CalendarQuota, Reclaim};
use ringgate::{Algorithm, AnyAlgorithm, ConfigError, CounterRing, Quota};

use crate::args::AlgorithmName;
use crate::replay::findings::Step;
use crate::replay::span::Span;
use crate::rules::algorithm::AlgorithmSpec;
use crate::rules::record_layout::{Place, holds_in};

/// One quota of a rule.
#[derive(Clone, Debug)]
pub(crate) struct PlanEntry {
    /// The rule's name, followed by the window if the rule has several quotas.
    pub(crate) name: String,
    pub(crate) rule: String,
    /// For a calendar, the window is the shortest period.
    pub(crate) quota: Quota,
    pub(crate) calendar: Option<CalendarQuota>,
    pub(crate) counting: AlgorithmSpec,
    /// The name of the key, and its word in a record; `None` if all requests share one limit.
    pub(crate) key: Option<(String, usize)>,
    /// The word of a record with the cost.
    pub(crate) cost: Option<usize>,
    /// The bit of a record that tells whether the rule's condition holds.
    pub(super) when: Option<Place>,
    /// The condition and the field of the cost, as they are written.
    pub(crate) condition: Option<String>,
    pub(crate) cost_name: Option<String>,
    /// Whether the rule is enforced for no key, or for a part of the keys.
    pub(crate) shadow: bool,
    /// Whether the rule has a list of keys that it always admits.
    pub(crate) lists: bool,
    /// The limits of the tiers.
    pub(super) tiers: Vec<u64>,
    /// The parts of the rule that other limits, other algorithms and the rule to copy leave out, by their names in a file.
    pub(crate) left_out: Vec<&'static str>,
}

impl PlanEntry {
    /// The window in nanoseconds.
    pub(crate) fn window(&self) -> i64 {
        // At most 366 days: 55 bits.
        i64::try_from(self.quota.window().as_nanos()).unwrap_or(i64::MAX)
    }

    /// Whether times of this step are too coarse for the window. Periods of a calendar begin at whole seconds.
    pub(crate) fn is_coarse(&self, step: Step) -> bool {
        self.calendar.is_none() && step.is_coarse(self.window())
    }

    /// The periods of a calendar in words: `month from 5, Europe/Berlin`.
    pub(crate) fn period(&self) -> Option<String> {
        let text = self.calendar.as_ref()?.to_string();
        text.split_once('/').map(|(_, period)| period.to_owned())
    }

    /// The window in words: `60s`, or the periods of a calendar.
    pub(crate) fn window_text(&self) -> String {
        let period = self.period();
        period.unwrap_or_else(|| format!("{:?}", self.quota.window()))
    }

    /// The quota in words: `100/1min`, or `50000/month from 5, Europe/Berlin`.
    pub(crate) fn quota_text(&self) -> String {
        let calendar = self.calendar.as_ref().map(ToString::to_string);
        calendar.unwrap_or_else(|| self.quota.to_string())
    }

    /// The name of the algorithm.
    pub(crate) fn algorithm_text(&self) -> String {
        match self.calendar {
            Some(_) => "calendar".to_owned(),
            None => self.counting.algorithm.to_string(),
        }
    }

    /// The cells per window, if they do not depend on the limit. `None` if the algorithm has none.
    pub(crate) fn cells(&self) -> Option<u64> {
        let shared = self.counting.shares_state || self.counting.tiers.is_some();
        let chosen = || self.form()?.strip_suffix(" cells")?.parse().ok();
        let cells = self.counting.cells().or_else(|| shared.then(chosen).flatten());
        cells.filter(|_| self.calendar.is_none())
    }

    /// The form that a sliding window chose, in words: `one word of 16 cells in units of 4`. `None` for another algorithm.
    pub(crate) fn form(&self) -> Option<String> {
        let chooses = self.calendar.is_none() && self.counting.algorithm == AlgorithmName::SlidingWindow;
        let chosen = chooses.then(|| self.counting.build(self.quota).ok()).flatten()?;
        Some(chosen.to_string())
    }

    /// The cells of the chosen form in words: `60 cells`, or `16 cells`.
    pub(crate) fn cells_text(&self) -> String {
        let chosen = self
            .counting
            .build(self.quota)
            .ok()
            .and_then(|chosen| chosen.cells_and_unit());
        let cells = chosen.map(|(cells, _)| cells).or(self.counting.cells());
        format!("{} cells", cells.unwrap_or(CounterRing::DEFAULT_CELLS))
    }

    /// The name of the algorithm, with cells that do not depend on the limit.
    pub(crate) fn label(&self) -> String {
        match (&self.calendar, self.counting.cells()) {
            (None, Some(cells)) => format!("{}, {cells} cells", self.counting.algorithm),
            (Some(_), _) | (None, None) => self.algorithm_text(),
        }
    }

    /// Whether a quota of a rule, as a decision states it, is this entry. That of a calendar is for the current period.
    pub(crate) fn is(&self, rule: &str, quota: Quota) -> bool {
        self.rule == rule && (self.calendar.is_some() || self.quota == quota)
    }

    /// The algorithm with another limit, for the readings of a span.
    ///
    /// # Errors
    ///
    /// When the algorithm does not support the limit.
    pub(crate) fn with_limit(&self, limit: u64, span: Span) -> Result<AnyAlgorithm, ConfigError> {
        match &self.calendar {
            Some(calendar) => {
                let calendar = calendar.clone().with_limit(limit)?;
                Ok(Calendar::with_origin(&calendar, span.origin())?.into())
            }
            None => self.counting.build(Quota::new(limit, self.quota.window())?),
        }
    }

    /// Whether the rule applies to a request, by its condition.
    #[inline]
    pub(crate) fn applies(&self, record: &[u64]) -> bool {
        self.when.is_none_or(|place| holds_in(record, place))
    }

    /// The key of a request; 0 if all requests share one limit.
    #[inline]
    pub(crate) fn key_of(&self, record: &[u64]) -> u64 {
        self.key.as_ref().map_or(0, |&(_, word)| record[word])
    }

    /// The cost of a request.
    #[inline]
    pub(crate) fn cost_of(&self, record: &[u64]) -> u64 {
        self.cost.map_or(1, |word| record[word])
    }

    /// The words of state of one key; 0 if the algorithm cannot be built.
    pub(crate) fn words(&self) -> u64 {
        self.algorithms().map_or(0, |all| {
            all.iter().map(|one| one.words() as u64).max().unwrap_or(0)
        })
    }

    /// The bound of the algorithm, for the tier with the largest.
    ///
    /// # Errors
    ///
    /// When the algorithm cannot be built.
    pub(crate) fn bound(&self) -> Result<u64, ConfigError> {
        Ok(self.algorithms()?.iter().map(Algorithm::bound).max().unwrap_or(0))
    }

    /// The largest cost of a request that the algorithm can admit.
    pub(crate) fn max_request(&self) -> u64 {
        self.algorithms().map_or(u64::MAX, |all| {
            all.iter().map(Algorithm::max_request).max().unwrap_or(u64::MAX)
        })
    }

    /// Warnings about a rule: `requests` is the number of requests that it applies to, and `above` the number of these that
    /// cost more than it can admit.
    pub(crate) fn warnings(&self, requests: u64, above: u64, largest: u64) -> Vec<String> {
        let rule = &self.name;
        let mut warnings = Vec::new();
        if requests == 0 {
            warnings.push(match &self.condition {
                Some(condition) => format!("rule {rule:?} applies to no request: {condition:?} never holds"),
                None => format!("rule {rule:?} applies to no request"),
            });
        }
        if above > 0 {
            warnings.push(format!(
                "rule {rule:?} always denies {above} requests: they cost up to {largest}, and it admits at most {} at once",
                self.max_request()
            ));
        }
        warnings
    }

    /// A note about a condition with `!=` that holds for all requests, since its value may be mistyped. `requests` is the number of
    /// requests that the rule applies to.
    pub(crate) fn always_holds(&self, requests: u64, all: u64) -> Option<String> {
        let condition = self.condition.as_ref().filter(|text| text.contains("!="))?;
        let rule = &self.name;
        (requests == all)
            .then(|| format!("rule {rule:?} applies to every request: {condition:?} always holds"))
    }

    /// The algorithms for each tier and for no tier.
    fn algorithms(&self) -> Result<Vec<AnyAlgorithm>, ConfigError> {
        let own = self.quota.limit();
        if let Some(calendar) = &self.calendar {
            let most = self.tiers.iter().fold(own, |most, limit| most.max(*limit));
            let calendar = calendar.clone().with_limit(most)?;
            return Ok(vec![
                Calendar::with_origin(&calendar, SystemTime::UNIX_EPOCH)?.into(),
            ]);
        }
        let limits = [own].into_iter().chain(self.tiers.iter().copied());
        let algorithm = |limit| {
            // As in the rule set, the burst of a tier is in proportion to its limit.
            let burst = self.counting.burst.map(|burst| {
                let burst = u128::from(burst) * u128::from(limit) / u128::from(own);
                u64::try_from(burst).unwrap_or(u64::MAX).max(1)
            });
            let quota = Quota::new(limit, self.quota.window())?;
            AlgorithmSpec {
                burst,
                ..self.counting
            }
            .build(quota)
        };
        limits.map(algorithm).collect()
    }
}

/// The length of the shortest period of a calendar, of the years 2016 to 2036.
pub(super) fn shortest(calendar: &CalendarQuota) -> Result<Duration, ConfigError> {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_451_606_400);
    Ok(Calendar::with_origin(calendar, start)?.window())
}
