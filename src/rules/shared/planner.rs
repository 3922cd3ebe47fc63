//! The rules whose counts are kept by a store, and the plan of a request.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::time::SystemTime;

use smallvec::SmallVec;

use super::period::CurrentPeriod;
use super::plan::{CheckPlan, PlannedQuota, QuickPlan, Route, Step, Target};
use super::validate::{StoreFeatures, StoredAs, burst, fallback, overshoot, stored_as};
use crate::clock::QuantaClock;
use crate::keyed::random_seeds;
use crate::quota::Quota;
use crate::rules::evaluate::request_limit::RequestLimit;
use crate::rules::evaluate::rule_state::RuleState;
use crate::rules::evaluate::rule_states::RuleStates;
use crate::rules::key_parts::KeyParts;
use crate::rules::rule::Rule;
use crate::rules::rule::block::Block;
use crate::rules::rule::error::RuleError;
use crate::rules::rule::mode::Mode;
use crate::rules::set::builder::RuleSetBuilder;
use crate::rules::set::compile;
use crate::rules::set::counts::RuleCounts;

/// Rules over counts that a store keeps.
pub(crate) struct SharedPlanner<R: ?Sized> {
    pub(super) rules: Box<[SharedRule<R>]>,
    /// The limiters of this node.
    pub(super) local: RuleStates<R>,
    /// The mode of each state of this node.
    pub(super) modes: Box<[Mode]>,
    pub(super) clock: QuantaClock,
    /// The time of day, by which periods begin.
    wall_clock: WallClock,
    pub(super) secret: [u64; 2],
}

/// A source of the time of day.
pub(crate) type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// A rule, in the form in which the store counts it.
pub(super) struct SharedRule<R: ?Sized> {
    pub(super) rule: Rule<R>,
    pub(super) stored_as: StoredAs,
    pub(super) block: Option<Arc<Block>>,
}

impl<R: ?Sized> SharedPlanner<R> {
    /// Creates the rules for this number of nodes, which share the secret. The store counts slots in flight for the term `term`.
    /// The error names everything that the store does not serve.
    pub(crate) fn new(
        builder: &RuleSetBuilder<R>,
        nodes: u64,
        secret: [u64; 2],
        term: Duration,
        store: StoreFeatures,
        wall_clock: WallClock,
    ) -> Result<Self, RuleError> {
        let mut local = RuleSetBuilder::new();
        let (mut rules, mut unserved) = (Vec::new(), Vec::new());
        // The rules are checked first, so that an error names the rule and not its fallback.
        compile::validate(builder.rules())?;
        for rule in builder.rules() {
            let wrong = |error| RuleError::new(rule, error);
            let stored_as = match stored_as(rule, term, store) {
                Ok(stored_as) => stored_as,
                Err(errors) => {
                    unserved.extend(errors.into_iter().map(wrong));
                    continue;
                }
            };
            local = local.rule(fallback(rule, nodes).map_err(wrong)?);
            rules.push(SharedRule {
                rule: rule.clone(),
                stored_as,
                block: rule.block.clone().map(Arc::new),
            });
        }
        if let Some(unserved) = RuleError::all(unserved) {
            return Err(unserved);
        }
        let local = local.build_with(QuantaClock::new(), random_seeds())?;
        let mode = |state: &Arc<RuleState<R>>| builder.rules()[usize::from(state.quotas[0].rule)].mode;
        Ok(Self {
            rules: rules.into_boxed_slice(),
            modes: local.states.states.iter().map(mode).collect(),
            local: local.states,
            clock: local.clock,
            wall_clock,
            secret,
        })
    }

    /// The quotas that `times` equal requests are checked against.
    #[inline(always)]
    pub(crate) fn plan_quickly(&self, request: &R, times: u64) -> QuickPlan {
        if let [_] = &*self.local.states {
            let target = self.target(0, request, times);
            if let Some(target) = target {
                let step = self.step(0, &target, 0);
                if step.route == Route::Lease && step.quotas == 1 {
                    return QuickPlan::One(target, step);
                }
            }
            return QuickPlan::Many(target.into_iter().collect());
        }
        QuickPlan::Many(self.plan(request, times))
    }

    /// The quotas that `times` equal requests are checked against, as a list. It is empty if no rule applies. The key hashes are not
    /// computed yet.
    #[inline(never)]
    pub(crate) fn plan(&self, request: &R, times: u64) -> CheckPlan {
        let mut targets = SmallVec::new();
        for (state, _) in (0..).zip(&self.local.states) {
            if let Some(target) = self.target(state, request, times) {
                targets.push(target);
            }
        }
        CheckPlan {
            targets,
            key_hashes: Vec::new(),
            violates: true,
        }
    }

    /// The target of one state. `None` if none of its rules applies.
    #[inline(always)]
    fn target(&self, state: u16, request: &R, times: u64) -> Option<Target> {
        let rules = &self.local.states[usize::from(state)];
        let mut extracted = rules.extract(request, &self.local.seeds)?;
        extracted.permits = extracted.permits.saturating_mul(times);
        Some(Target { state, extracted })
    }

    /// Computes the hashes of the keys, unless they are computed already.
    pub(crate) fn hash_keys(&self, plan: &mut CheckPlan, request: &R) {
        if plan.key_hashes.is_empty() {
            let rule = |target: &Target| &self.rules[usize::from(self.state(target).quotas[0].rule)].rule;
            let hashes = plan
                .targets
                .iter()
                .map(|target| self.key_hash(rule(target), request));
            plan.key_hashes = hashes.collect();
        }
    }

    /// The route of each target.
    #[inline]
    pub(crate) fn steps<'a>(&'a self, plan: &'a CheckPlan) -> impl Iterator<Item = Step> + 'a {
        let mut first = 0;
        plan.targets.iter().enumerate().map(move |(at, target)| {
            let step = self.step(at, target, first);
            first += step.quotas;
            step
        })
    }

    /// The route of a target whose first quota is `first`.
    #[inline]
    fn step(&self, at: usize, target: &Target, first: usize) -> Step {
        let Target { state, extracted } = target;
        let route = match self.modes[usize::from(*state)] {
            _ if extracted.is_denied() && extracted.enforced => Route::Listed,
            _ if extracted.is_denied() || extracted.permits == 0 => Route::Free,
            Mode::Local => Route::Local,
            Mode::Lease { .. } | Mode::Sync { .. } if extracted.enforced => Route::Lease,
            Mode::Lease { .. } | Mode::Sync { .. } | Mode::Strict => Route::Store,
        };
        Step {
            target: at,
            route,
            permits: extracted.permits,
            first,
            quotas: self.state(target).quotas.len(),
            // The tier has separate bits, since another tier has another limit.
            key: extracted.key.wrapping_add((extracted.limit.tier() as u64) << 32),
            state: *state,
        }
    }

    fn key_hash(&self, rule: &Rule<R>, request: &R) -> u128 {
        let mut parts = KeyParts::new(self.secret);
        if let Some(key) = &rule.key {
            parts.part(key.name());
            if let Some(parts_of) = key.parts() {
                parts_of(request, &mut parts);
            }
        }
        parts.finish()
    }

    pub(super) fn state(&self, target: &Target) -> &RuleState<R> {
        &self.local.states[usize::from(target.state)]
    }

    /// Every quota that the request is checked against.
    pub(crate) fn quotas<'a>(&'a self, plan: &'a CheckPlan) -> impl Iterator<Item = PlannedQuota<'a>> {
        plan.targets.iter().enumerate().flat_map(move |(at, target)| {
            let state_quotas = self.state(target).quotas.iter().enumerate();
            state_quotas.map(move |(position, state_quota)| {
                let SharedRule {
                    rule,
                    stored_as,
                    block,
                } = &self.rules[usize::from(state_quota.rule)];
                let quota = rule.quotas[state_quota.index];
                let local_limit = target.extracted.limit;
                let tier = local_limit.tier().checked_sub(1);
                let limit = local_limit.permits(tier.map_or(quota.limit(), |tier| rule.tiers[tier].1));
                PlannedQuota {
                    state: target.state,
                    key: target.extracted.key,
                    local_limit,
                    state_quota: position,
                    name: &rule.name,
                    rule: state_quota.rule,
                    index: state_quota.index,
                    quota,
                    limit,
                    stored_as: match *stored_as {
                        StoredAs::Gcra(_) => StoredAs::Gcra(burst(rule, limit)),
                        other => other,
                    },
                    period: self.period(rule, quota, *stored_as),
                    key_hash: plan.key_hashes.get(at).copied().unwrap_or(0),
                    permits: target.extracted.permits,
                    enforced: target.extracted.enforced,
                    always_denied: target.extracted.is_denied(),
                    lacks_key: target.extracted.is_denied() && target.extracted.lacks_key,
                    lacks_required_key: target.extracted.is_denied()
                        && target.extracted.lacks_key
                        && target.extracted.requires_key,
                    on_error: rule.on_error,
                    mode: rule.mode,
                    block: block.as_ref(),
                }
            })
        })
    }

    /// Returns why the request lacks a key of an enforced rule that denies it, if the key knows it.
    pub(crate) fn missing_cause(&self, request: &R) -> Option<crate::rules::key_missing::MissingCause> {
        self.local.missing_cause(request)
    }

    /// The current period of a quota that the store keeps by periods.
    fn period(&self, rule: &Rule<R>, quota: Quota, stored_as: StoredAs) -> Option<CurrentPeriod> {
        (stored_as == StoredAs::Periods).then(|| CurrentPeriod::of(rule, quota, (self.wall_clock)()))
    }

    /// Every quota that the store keeps, as of a request of one permit to which every rule applies, and of keys that no request
    /// has.
    pub(crate) fn probes(&self) -> Vec<PlannedQuota<'_>> {
        let stored = (0..)
            .zip(&self.rules)
            .filter(|(_, shared)| shared.rule.mode != Mode::Local);
        let quotas = stored.flat_map(|(number, shared)| {
            let rule = &shared.rule;
            let mut parts = KeyParts::new(self.secret);
            // No key has this name.
            parts.part("\0ready");
            parts.part(rule.key.as_ref().map_or("", |key| key.name()));
            let key_hash = parts.finish();
            rule.quotas
                .iter()
                .enumerate()
                .map(move |(index, &quota)| PlannedQuota {
                    state: 0,
                    key: 0,
                    local_limit: RequestLimit::OF_RULE,
                    state_quota: 0,
                    name: &rule.name,
                    rule: number,
                    index,
                    quota,
                    limit: quota.limit(),
                    stored_as: shared.stored_as,
                    period: self.period(rule, quota, shared.stored_as),
                    key_hash,
                    permits: 1,
                    enforced: true,
                    always_denied: false,
                    lacks_key: false,
                    lacks_required_key: false,
                    on_error: rule.on_error,
                    mode: rule.mode,
                    block: shared.block.as_ref(),
                })
        });
        quotas.collect()
    }

    /// The permits that each rule may admit beyond its limit in a window, on this number of nodes together.
    pub(crate) fn max_overshoot(&self, nodes: u64) -> impl Iterator<Item = (&str, Option<u64>)> {
        self.rules
            .iter()
            .map(move |SharedRule { rule, .. }| (&*rule.name, overshoot(rule, nodes)))
    }

    /// The counts of each rule on this node.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, RuleCounts)> {
        self.local
            .rules
            .iter()
            .map(|rule| (&*rule.name, rule.counts.sum()))
    }
}

impl<R: ?Sized> fmt::Debug for SharedPlanner<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret is omitted.
        let rules: Vec<_> = self.rules.iter().map(|shared| &shared.rule).collect();
        f.debug_struct("SharedPlanner")
            .field("rules", &rules)
            .finish_non_exhaustive()
    }
}
