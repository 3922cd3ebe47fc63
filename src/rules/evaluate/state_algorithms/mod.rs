mod block;
mod buckets;
mod calendar;
mod in_flight;
mod of_rule;
mod sliding_window;
mod word_layout;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::request_limit::{RequestLimit, lowered};
use super::storage::StateStorage;
use crate::algorithm::{Algorithm, AnyAlgorithm, CounterRing, TimestampRing};
use crate::error::ConfigError;
use crate::quota::{Quota, Unit};
use crate::rules::rule::algorithm::RuleAlgorithm;
use crate::rules::rule::kind::{AnyKind, Rate};
use crate::rules::rule::{AnyRule, Rule};
use crate::rules::set::clock_origin::ClockOrigin;
use crate::time::Nanos;
use word_layout::{RingForm, RingKind, StateUnits, WordLayout};

/// The algorithms that decide over the words of one state.
#[derive(Clone, Debug)]
pub(crate) struct StateAlgorithms {
    /// The algorithm of the rule, followed by those of its tiers.
    pub(crate) tiers: Box<[AnyAlgorithm]>,
    /// For each of these, an algorithm over the same words with the highest limit that they can hold. For a log this is its own
    /// limit. It charges debt, and permits that other states have admitted.
    unlimited: Box<[AnyAlgorithm]>,
    /// The index of the tier whose permits take longest to refill.
    slowest: usize,
    /// The algorithm that reads the spent permits. It reads at least as many as any algorithm that has written the words.
    pub(crate) usage: AnyAlgorithm,
    layout: WordLayout,
    /// The unit that all algorithms count. `None` if they count permits.
    units: Option<Box<StateUnits>>,
}

impl StateAlgorithms {
    /// The algorithms of a rule. `quotas` are its quotas, and those of rules that share its state.
    pub(crate) fn new<R: ?Sized>(
        rule: &AnyRule<R>,
        quotas: &[Quota],
        origin: ClockOrigin,
    ) -> Result<Self, ConfigError> {
        match &rule.kind {
            AnyKind::Rate(rate) => Self::of_rate(rule, rate, quotas),
            AnyKind::Calendar(calendar) => Self::calendar(&calendar.quota, &rule.tier_limits(), origin),
            AnyKind::InFlight(_) => Self::in_flight(quotas[0].limit(), &rule.tier_limits()),
        }
    }

    /// The algorithms of a rule with this rate. Fields that its algorithm does not have are ignored: the rule set refuses them.
    ///
    /// A rule with a cost counts units of 2^k permits if a limit is too large to count permits, or if a bucket would round its rate
    /// by more than one percent. A rule with `limit_by` always counts permits.
    fn of_rate<R: ?Sized, K>(rule: &Rule<R, K>, rate: &Rate, quotas: &[Quota]) -> Result<Self, ConfigError> {
        let tiers = rule.tier_limits();
        let permits = Self::of_permits(rule, rate, quotas, &tiers, rate.burst);
        let window = quotas[0].window();
        let tier_quotas: Result<Vec<Quota>, _> =
            tiers.iter().map(|&limit| Quota::new(limit, window)).collect();
        let needs_units = match &permits {
            Ok(algorithms) => algorithms.tiers.iter().any(AnyAlgorithm::rounds_coarsely),
            Err(error) => error.field == "limit",
        };
        let Ok(tier_quotas) = tier_quotas else {
            return permits;
        };
        if !needs_units || rule.limit_by.is_some() {
            return permits;
        }
        let build = |unit| Self::of_units(rule, rate, quotas, &tiers, unit);
        let units = Quota::in_smallest_unit(&[quotas, &tier_quotas].concat(), build);
        match (units, permits) {
            (Ok((units, _)), _) if rule.cost.is_some() => Ok(units),
            (Ok(_), Err(error)) => Err(ConfigError {
                expected: format!("{}, or a rule with a cost", error.expected),
                ..error
            }),
            (Err(error), Err(_)) if error.field == "burst" => Err(error),
            (_, permits) => permits,
        }
    }

    /// The algorithms of a rule, which count units of `unit` permits. Limits and the burst are rounded down.
    fn of_units<R: ?Sized, K>(
        rule: &Rule<R, K>,
        rate: &Rate,
        quotas: &[Quota],
        tiers: &[u64],
        unit: Unit,
    ) -> Result<Self, ConfigError> {
        let quotas_in_units: Result<Vec<Quota>, _> =
            quotas.iter().map(|quota| quota.in_units(unit)).collect();
        let tiers_in_units: Vec<u64> = tiers.iter().map(|&limit| unit.whole_units(limit)).collect();
        let burst = rate.burst.map(|burst| unit.whole_units(burst));
        if let (Some(given), Some(0)) = (rate.burst, burst) {
            let expected = format!("at least {}, one unit of such a limit", unit.get());
            return Err(ConfigError::new("burst", format!("{given}"), expected));
        }
        let mut algorithms = Self::of_permits(rule, rate, &quotas_in_units?, &tiers_in_units, burst)?;
        let in_units = |algorithm: &mut AnyAlgorithm| *algorithm = algorithm.clone().in_units(unit);
        algorithms.tiers.iter_mut().for_each(in_units);
        algorithms.unlimited.iter_mut().for_each(in_units);
        in_units(&mut algorithms.usage);
        algorithms.units = (unit != Unit::ONE).then(|| Box::new(StateUnits::new(rate, quotas, tiers, unit)));
        Ok(algorithms)
    }

    fn units_counted(&self) -> Unit {
        self.units.as_ref().map_or(Unit::ONE, |units| units.unit)
    }

    /// Returns the number of permits in the unit that the algorithms count.
    pub(crate) fn unit(&self) -> u64 {
        self.units_counted().get()
    }

    /// The algorithms of a rule with these limits and this burst, which count single permits.
    fn of_permits<R: ?Sized, K>(
        rule: &Rule<R, K>,
        rate: &Rate,
        quotas: &[Quota],
        tiers: &[u64],
        burst: Option<u64>,
    ) -> Result<Self, ConfigError> {
        let ring = |kind| Self::counter(kind, rate.cells_or_default(), quotas, tiers);
        match rate.algorithm {
            RuleAlgorithm::Gcra => Self::gcra(quotas[0], burst, tiers.to_vec()),
            RuleAlgorithm::Log => Self::log(quotas[0]),
            RuleAlgorithm::Fixed => ring(RingKind::Fixed),
            RuleAlgorithm::SlidingWindow => Self::sliding_window(rule, rate, quotas, tiers),
            RuleAlgorithm::Counter => ring(RingKind::Strict),
            RuleAlgorithm::Classic => ring(RingKind::Classic),
            RuleAlgorithm::Even => ring(RingKind::Even),
        }
    }

    fn log(quota: Quota) -> Result<Self, ConfigError> {
        let log = AnyAlgorithm::from(TimestampRing::new(quota)?);
        let tiers = alloc::vec![log.clone()];
        Ok(Self::over_words(tiers, log, WordLayout::Log(quota)))
    }

    /// Algorithms over words of this layout. `highest` has the highest limit that the words can hold.
    fn over_words(tiers: Vec<AnyAlgorithm>, highest: AnyAlgorithm, layout: WordLayout) -> Self {
        Self {
            unlimited: tiers.iter().map(|_| highest.clone()).collect(),
            tiers: tiers.into_boxed_slice(),
            slowest: 0,
            usage: highest,
            layout,
            units: None,
        }
    }

    fn counter(kind: RingKind, cells: u64, quotas: &[Quota], tiers: &[u64]) -> Result<Self, ConfigError> {
        let own: Vec<u64> = quotas.iter().map(|quota| quota.limit()).collect();
        let highest = own.iter().chain(tiers).copied().max().unwrap_or(1);
        let with_limit = |limit| -> Result<Vec<Quota>, ConfigError> {
            quotas
                .iter()
                .map(|quota| Quota::new(limit, quota.window()))
                .collect()
        };
        // The rings are first built with the given limits, so that an error names these.
        kind.build(quotas, cells)?;
        let narrowest = kind.build(&with_limit(highest)?, cells)?;
        // The highest limit for which a ring needs no more words than for `highest`.
        let widest = (1..=40)
            .rev()
            .map(|bits| Quota::MAX_LIMIT.min((1 << bits) - 1))
            .take_while(|&limit| limit > highest)
            .find_map(|limit| {
                let ring = kind.build(&with_limit(limit).ok()?, cells).ok()?;
                (ring.words() == narrowest.words()).then_some(ring)
            })
            .unwrap_or(narrowest);
        for &limit in tiers {
            Quota::new(limit, quotas[0].window())?;
        }
        // The cell shares of an even ring would limit debt. A classic ring has the same words and no shares.
        let unlimited = match kind {
            RingKind::Even => RingKind::Classic.build(&with_limit(widest.limits()[0])?, cells)?,
            RingKind::Strict | RingKind::Classic | RingKind::Fixed => widest.clone(),
        };
        let layout = WordLayout::Counter {
            form: RingForm::Cells(kind, cells),
            windows: quotas.iter().map(|quota| quota.window()).collect(),
            widest: Box::new(widest.clone()),
        };
        Self::of_rings(layout, &widest, unlimited.into(), &own, tiers)
    }

    /// Rings over the same words: `widest` with these limits, and with the limit of each tier.
    fn of_rings(
        layout: WordLayout,
        widest: &CounterRing,
        unlimited: AnyAlgorithm,
        own: &[u64],
        tiers: &[u64],
    ) -> Result<Self, ConfigError> {
        let mut algorithms = alloc::vec![AnyAlgorithm::from(widest.with_limits(own)?)];
        for &limit in tiers {
            algorithms.push(widest.with_limits(&[limit])?.into());
        }
        Ok(Self::over_words(algorithms, unlimited, layout))
    }

    /// The algorithm and its tiers as text, without the rule's quotas.
    pub(crate) fn description(&self) -> String {
        let mut text = self.layout.description();
        if self.unit() > 1 {
            text += &format!(" in units of {}", self.unit());
        }
        for tier in &self.tiers[1..] {
            text += &format!(", tier of {}", tier.bound());
        }
        text
    }

    /// These algorithms, over words that the algorithms of `before` have written. `None` if they would read less from
    /// the words than was charged.
    pub(crate) fn over_words_of(&self, before: &Self) -> Option<Self> {
        if self.units.is_some() || before.units.is_some() {
            return (self.units == before.units).then(|| before.clone());
        }
        match &self.layout {
            WordLayout::Counter { form, windows, .. } => self.rings_over(before, *form, windows),
            WordLayout::Log(quota) => {
                matches!(&before.layout, WordLayout::Log(old) if old == quota).then(|| self.clone())
            }
            WordLayout::Gcra { quota, burst, tiers } => {
                let WordLayout::Gcra {
                    quota: old_quota,
                    burst: old_burst,
                    tiers: old_tiers,
                } = &before.layout
                else {
                    return None;
                };
                if (quota, burst, tiers) == (old_quota, old_burst, old_tiers) {
                    // `before` may follow algorithms of earlier reloads.
                    return Some(before.clone());
                }
                self.bucket_over(before)
            }
            WordLayout::Calendar { periods, .. } => self.calendar_over(before, periods),
            WordLayout::InFlight => matches!(before.layout, WordLayout::InFlight).then(|| self.clone()),
            WordLayout::Violations => matches!(before.layout, WordLayout::Violations).then(|| self.clone()),
        }
    }

    fn rings_over(&self, before: &Self, form: RingForm, windows: &[Duration]) -> Option<Self> {
        let WordLayout::Counter {
            form: old_form,
            windows: old_windows,
            widest,
        } = &before.layout
        else {
            return None;
        };
        if (form, windows) != (*old_form, old_windows) {
            return None;
        }
        let limits =
            |algorithm: &AnyAlgorithm| algorithm.ring().map_or_else(Vec::new, |(ring, _)| ring.limits());
        let tiers: Vec<u64> = self.tiers[1..].iter().flat_map(limits).collect();
        // Fails if the old words are too narrow for a new limit.
        Self::of_rings(
            before.layout.clone(),
            widest,
            before.usage.clone(),
            &limits(&self.tiers[0]),
            &tiers,
        )
        .ok()
    }

    /// These algorithms without the limits of removed quotas.
    pub(crate) fn without_limits(&self, is_removed: impl Fn(usize) -> bool) -> Self {
        let (Some((ring, _)), WordLayout::Counter { widest, .. }) = (self.tiers[0].ring(), &self.layout)
        else {
            return self.clone();
        };
        let limits = ring.limits().into_iter().zip(widest.limits());
        let limits: Vec<u64> = limits
            .enumerate()
            .map(|(at, (own, widest))| if is_removed(at) { widest } else { own })
            .collect();
        let mut algorithms = self.clone();
        if let Ok(ring) = widest.with_limits(&limits) {
            algorithms.tiers[0] = AnyAlgorithm::from(ring).in_units(self.units_counted());
        }
        algorithms
    }

    /// The algorithm of this limit. All algorithms of a rule use the same words, so lowering a limit changes no count. A lower
    /// limit is stored in `lower`.
    #[inline(always)]
    pub(crate) fn of<'a>(
        &'a self,
        limit: RequestLimit,
        lower: &'a mut Option<AnyAlgorithm>,
    ) -> &'a AnyAlgorithm {
        let algorithm = &self.tiers[limit.tier()];
        match limit.lowered() {
            None => algorithm,
            Some(at_most) => lower.insert(lowered(algorithm, at_most)),
        }
    }

    /// The algorithm of this limit. `None` if it is that of the tier.
    pub(crate) fn lowered(&self, limit: RequestLimit) -> Option<AnyAlgorithm> {
        let algorithm = &self.tiers[limit.tier()];
        limit.lowered().map(|at_most| lowered(algorithm, at_most))
    }

    /// The algorithm that charges debt of keys in an unknown tier: the one with the longest time per permit.
    pub(crate) fn unlimited(&self) -> &AnyAlgorithm {
        &self.unlimited[self.slowest]
    }

    /// Charges the key as many of `permits` as its words in `storage` can hold, independent of the limit, and returns this number.
    /// `tier` and `at_most` are the tier of the request and its lower limit. The tier is `None` if it is unknown.
    pub(crate) fn charge_debt(
        &self,
        storage: &StateStorage,
        key: u64,
        (tier, at_most): (Option<usize>, Option<u64>),
        now: Nanos,
        permits: u64,
    ) -> u64 {
        let algorithm = &self.unlimited[tier.unwrap_or(self.slowest)];
        // A permit of a lower limit of a bucket takes longer to refill.
        match at_most.filter(|_| algorithm.is_bucket()) {
            Some(at_most) => storage.charge_debt(&lowered(algorithm, at_most), key, now, permits),
            None => storage.charge_debt(algorithm, key, now, permits),
        }
    }

    pub(crate) fn words(&self) -> usize {
        self.tiers[0].words()
    }

    /// The most permits of one key that the words can keep for a window. A ring forgets some of a greater number as time passes.
    pub(crate) fn most_kept(&self) -> u64 {
        match &self.layout {
            WordLayout::Counter { widest, .. } => {
                let most = widest.limits().into_iter().max().unwrap_or(0);
                most.saturating_mul(self.unit())
            }
            WordLayout::Log(_)
            | WordLayout::Gcra { .. }
            | WordLayout::Calendar { .. }
            | WordLayout::InFlight
            | WordLayout::Violations => u64::MAX,
        }
    }
}
