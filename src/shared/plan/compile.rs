//! The rules in the forms in which the store counts them, and the plan of a request.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::time::SystemTime;

use smallvec::SmallVec;

use super::period::CurrentPeriod;
use super::target::{CheckPlan, PlannedQuota, QuickPlan, Route, Target};
use super::validate::{StoreFeatures, StoredAs, burst, fallback, overshoot, stored_as};
use crate::clock::QuantaClock;
use crate::keyed::random_seeds;
use crate::quota::Quota;
use crate::rules::KeyParts;
use crate::rules::evaluate::extractor::{Extracted, NO_KEY};
use crate::rules::evaluate::rule_state::RuleState;
use crate::rules::rule::AnyRule;
use crate::rules::rule::block::Block;
use crate::rules::rule::error::RuleError;
use crate::rules::rule::mode::Mode;
use crate::rules::set::RuleSet;
use crate::rules::set::builder::RuleSetBuilder;
use crate::rules::set::clock_origin::ClockOrigin;
use crate::rules::set::validate::{self, Part, Reason};

/// The rules in the forms in which the store counts them, and as rules of this node.
pub(in crate::shared) struct Planner<R: ?Sized> {
    pub(super) rules: Box<[SharedRule<R>]>,
    /// The states that decide local rules, and the others if the store does not answer.
    pub(in crate::shared) on_node: RuleSet<R, QuantaClock>,
    /// The mode of each state of this node.
    pub(super) modes: Box<[Mode]>,
    /// The time of day, by which periods begin.
    wall_clock: WallClock,
    secret: [u64; 2],
}

/// A source of the time of day.
pub(in crate::shared) type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// A rule, in the form in which the store counts it.
pub(super) struct SharedRule<R: ?Sized> {
    pub(super) rule: AnyRule<R>,
    pub(super) stored_as: StoredAs,
    pub(super) block: Option<Arc<Block>>,
}

impl<R: ?Sized> Planner<R> {
    /// Creates the rules for this number of nodes, which share the secret. The store counts slots in flight for the term `term`.
    /// The states of this node continue those of `old`. The error names everything that the store does not serve.
    pub(in crate::shared) fn new(
        builder: &RuleSetBuilder<R>,
        nodes: u64,
        secret: [u64; 2],
        term: Duration,
        store: StoreFeatures,
        wall_clock: WallClock,
        old: Option<&Self>,
    ) -> Result<Self, RuleError> {
        let mut on_node = RuleSetBuilder::new();
        let mut rules = Vec::new();
        for rule in builder.rules() {
            on_node = on_node.rule(fallback(rule, nodes));
        }
        let mut reasons = validate::reasons(builder.rules(), on_node.rules(), ClockOrigin::ANY);
        for (at, rule) in builder.rules().iter().enumerate() {
            match stored_as(rule, term, store) {
                Ok(stored_as) => rules.push(SharedRule {
                    rule: rule.clone(),
                    stored_as,
                    block: rule.block.clone().map(Arc::new),
                }),
                Err(errors) => {
                    let is_known = |known: &Reason, field| known.rule == at && known.error.field == field;
                    for error in errors {
                        if !reasons.iter().any(|known| is_known(known, error.field)) {
                            reasons.push(Reason {
                                rule: at,
                                part: Part::Field,
                                error,
                            });
                        }
                    }
                }
            }
        }
        reasons.sort_by_key(|reason| reason.rule);
        Reason::all(reasons, builder.rules())?;
        let on_node = match old {
            Some(old) => on_node.build_after(&old.on_node)?,
            None => on_node.build_with(QuantaClock::new(), random_seeds())?,
        };
        let mode = |state: &Arc<RuleState<R>>| builder.rules()[usize::from(state.quotas[0].rule)].mode;
        Ok(Self {
            rules: rules.into_boxed_slice(),
            modes: on_node.states.states.iter().map(mode).collect(),
            on_node,
            wall_clock,
            secret,
        })
    }

    /// The quotas that `times` equal requests are checked against.
    #[inline(always)]
    pub(crate) fn plan_quickly(&self, request: &R, times: u64) -> QuickPlan {
        if let [_] = &*self.on_node.states.states {
            let target = self.target(0, request, times, 0);
            return match target {
                Some(target) if target.route == Route::Lease && target.end == 1 => QuickPlan::One(target),
                target => QuickPlan::Many(target.into_iter().collect()),
            };
        }
        QuickPlan::Many(self.plan(request, times))
    }

    /// The quotas that `times` equal requests are checked against, as a list. It is empty if no rule applies. The key hashes are not
    /// computed yet.
    #[inline(never)]
    pub(crate) fn plan(&self, request: &R, times: u64) -> CheckPlan {
        let (mut targets, mut first) = (SmallVec::new(), 0);
        for (state, _) in (0..).zip(&self.on_node.states.states) {
            if let Some(target) = self.target(state, request, times, first) {
                first = target.end;
                targets.push(target);
            }
        }
        CheckPlan {
            targets,
            key_hashes: Vec::new(),
            violates: true,
        }
    }

    /// The target of one state, whose first quota is `first`. `None` if none of its rules applies.
    #[inline(always)]
    fn target(&self, at: u16, request: &R, times: u64, first: u16) -> Option<Target> {
        let state = &self.on_node.states.states[usize::from(at)];
        let mut extracted = state.extractor.extract(request, &self.on_node.states.seeds)?;
        extracted.permits = extracted.permits.saturating_mul(times);
        let route = match self.modes[usize::from(at)] {
            _ if extracted.is_denied() && extracted.enforced => Route::Denied,
            _ if extracted.is_denied() || extracted.permits == 0 => Route::Undecided,
            Mode::Local => Route::Local,
            Mode::Lease { .. } | Mode::Sync { .. } if extracted.enforced => Route::Lease,
            Mode::Lease { .. } | Mode::Sync { .. } | Mode::Strict => Route::Store,
        };
        Some(Target {
            state: at,
            extracted,
            route,
            first,
            // A set has at most a thousand rules of sixteen quotas.
            end: first + state.quotas.len() as u16,
        })
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

    fn key_hash(&self, rule: &AnyRule<R>, request: &R) -> u128 {
        let mut parts = KeyParts::new(self.secret);
        if let Some(key) = &rule.key {
            parts.part(key.name());
            if let Some(parts_of) = &key.parts {
                parts_of(request, &mut parts);
            }
        }
        parts.finish()
    }

    pub(super) fn state(&self, target: &Target) -> &RuleState<R> {
        &self.on_node.states.states[usize::from(target.state)]
    }

    /// Every quota that the request is checked against.
    pub(crate) fn quotas<'a>(&'a self, plan: &'a CheckPlan) -> impl Iterator<Item = PlannedQuota<'a>> {
        plan.targets.iter().enumerate().flat_map(move |(at, target)| {
            let key_hash = plan.key_hashes.get(at).copied().unwrap_or(0);
            let state_quotas = self.state(target).quotas.iter().enumerate();
            state_quotas.filter_map(move |(position, quota)| {
                let (of_rule, state) = ((quota.rule, quota.index?), (target.state, position));
                Some(self.planned(of_rule, state, target.extracted, key_hash))
            })
        })
    }

    /// One quota of a request: by the number of its rule and its index there, and by its state on this node and its position there.
    fn planned(
        &self,
        (number, index): (u16, usize),
        (state, state_quota): (u16, usize),
        extracted: Extracted,
        key_hash: u128,
    ) -> PlannedQuota<'_> {
        let SharedRule {
            rule,
            stored_as,
            block,
        } = &self.rules[usize::from(number)];
        let quota = rule.kind.quotas()[index];
        let tier = extracted.limit.tier().checked_sub(1);
        let limit = tier.map_or(quota.limit(), |tier| rule.tiers[tier].1);
        let limit = extracted.limit.permits(limit);
        PlannedQuota {
            state,
            state_quota,
            extracted,
            name: &rule.name,
            rule: number,
            index,
            quota,
            limit,
            stored_as: match (*stored_as, rule.kind.rate()) {
                (StoredAs::Gcra(_), Some(rate)) => StoredAs::Gcra(burst(rate, limit)),
                (other, _) => other,
            },
            period: self.period(rule, quota, *stored_as),
            key_hash,
            on_error: rule.on_error,
            mode: rule.mode,
            block: block.as_ref(),
        }
    }

    /// The current period of a quota that the store keeps by periods.
    fn period(&self, rule: &AnyRule<R>, quota: Quota, stored_as: StoredAs) -> Option<CurrentPeriod> {
        (stored_as == StoredAs::Periods)
            .then(|| CurrentPeriod::of(rule.kind.calendar(), quota, (self.wall_clock)()))
    }

    /// Every quota that the store keeps, for a request of one permit to which every rule applies. Its keys are those of no other
    /// request.
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
            let quotas = 0..rule.kind.quotas().len();
            quotas.map(move |index| {
                let extracted = Extracted::of_key(NO_KEY);
                self.planned((number, index), (0, 0), extracted, key_hash)
            })
        });
        quotas.collect()
    }

    /// The permits that each rule may admit beyond its limit in a window, on this number of nodes together.
    pub(in crate::shared) fn max_overshoot(&self, nodes: u64) -> impl Iterator<Item = (&str, Option<u64>)> {
        let rules = self.rules.iter();
        rules.map(move |SharedRule { rule, .. }| (&*rule.name, overshoot(rule, nodes)))
    }
}

impl<R: ?Sized> fmt::Debug for Planner<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret is omitted.
        let rules: Vec<_> = self.rules.iter().map(|shared| &shared.rule).collect();
        f.debug_struct("Planner")
            .field("rules", &rules)
            .finish_non_exhaustive()
    }
}
