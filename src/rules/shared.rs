//! Rules whose counts are kept by a store: what a request is checked against, and the limiters of this node that decide
//! when the store does not answer.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use smallvec::SmallVec;

use super::evaluate::extractor::Extracted;
use super::evaluate::rule_state::RuleState;
use super::evaluate::rule_states::RuleStates;
use super::rule::Rule;
use super::rule::error::RuleError;
use super::rule::mode::Mode;
use super::rule::on_error::OnError;
use super::set::builder::RuleSetBuilder;
use super::set::counts::RuleCounts;
use crate::clock::QuantaClock;
use crate::keyed::random_seeds;
use crate::quota::Quota;

mod counts;
mod fallbacks;
mod key_parts;
mod local;
mod validate;

pub(crate) use fallbacks::FallbackLimiters;
pub use key_parts::KeyParts;
pub(crate) use local::{ChargedBy, FullQuota, LocalCharge};
use validate::{cells, fallback, overshoot};

/// The parts of a key that are equal on all machines.
pub(super) type PartsOf<R> = dyn Fn(&R, &mut KeyParts) + Send + Sync;

/// Rules over counts that a store keeps.
pub(crate) struct SharedPlanner<R: ?Sized> {
    rules: Box<[SharedRule<R>]>,
    /// The limiters of this node.
    local: RuleStates<R>,
    /// The mode of each state of this node.
    modes: Box<[Mode]>,
    clock: QuantaClock,
    secret: [u64; 2],
}

/// A rule as the store keeps it.
struct SharedRule<R: ?Sized> {
    rule: Rule<R>,
    /// Cells per window. `None`: a log.
    cells: Option<u64>,
}

/// The quotas that a request is checked against, as far as a decision on this node needs it.
#[derive(Debug)]
pub(crate) enum QuickPlan {
    /// One lease, since there is one state with one quota. No list is made.
    One(Target, Step),
    /// Any number of states.
    Many(CheckPlan),
}

/// The quotas that a request is checked against.
#[derive(Debug)]
pub(crate) struct CheckPlan {
    targets: SmallVec<[Target; 4]>,
    /// The hashes of their keys in the store, once they are computed.
    key_hashes: Vec<u128>,
}

/// A state of this node, for one request. It stands for one or several quotas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    group: u16,
    subject: Extracted,
}

/// How a target is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Not at all: it costs nothing, or its rule is in shadow mode and its key on a list.
    Free,
    /// By a list, which denies it.
    Listed,
    /// By the limiter of this node.
    Local,
    /// By leases, one for each quota.
    Lease,
    /// By the store.
    Store,
}

/// A target, and how it is decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) target: usize,
    pub(crate) route: Route,
    pub(crate) permits: u64,
    /// Its first quota among all [quotas](SharedPlanner::quotas) of the request, and how many it has.
    pub(crate) first: usize,
    pub(crate) quotas: usize,
    /// A hash of the key and its tier, but not of the quota.
    key: u64,
    group: u16,
}

impl Step {
    /// The number of the lease of one quota and the key on this node.
    ///
    /// Two keys share a lease only if 64 bits of hashes with secret seeds agree.
    #[inline]
    pub(crate) const fn lease_key(&self, quota: usize) -> u64 {
        let quota = (self.group as u64) << 8 | quota as u64;
        match self
            .key
            .wrapping_add((quota + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        {
            // 0 is no key. The key whose number it would be shares another's, as one in 2^64 does.
            0 => 1,
            key => key,
        }
    }
}

/// One quota that a request is checked against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedQuota<'a> {
    /// The state of this node for the quota, and the key and tier there.
    pub(crate) group: u16,
    pub(crate) key: u64,
    pub(crate) tier: usize,
    /// The position in that state.
    pub(crate) member: usize,
    /// The rule's name, and its position in the rule set.
    pub(crate) name: &'a Arc<str>,
    pub(crate) rule: u16,
    /// The position among the rule's quotas.
    pub(crate) index: usize,
    pub(crate) quota: Quota,
    /// The limit, of the key's tier if it is in one.
    pub(crate) limit: u64,
    /// Cells per window. `None`: a log.
    pub(crate) cells: Option<u64>,
    /// A hash of the key, equal on all machines.
    pub(crate) key_hash: u128,
    pub(crate) permits: u64,
    pub(crate) enforced: bool,
    /// Whether the key is on the rule's list of keys that are always denied.
    pub(crate) always_denied: bool,
    pub(crate) on_error: OnError,
    pub(crate) mode: Mode,
}

impl<R: ?Sized> SharedPlanner<R> {
    /// Rules for this number of nodes, which all have the secret.
    pub(crate) fn new(builder: &RuleSetBuilder<R>, nodes: u64, secret: [u64; 2]) -> Result<Self, RuleError> {
        let mut local = RuleSetBuilder::new();
        let mut rules = Vec::new();
        // First, so that an error names the rule itself and not its fallback.
        super::set::compile::validate(builder.rules())?;
        for rule in builder.rules() {
            let wrong = |error| RuleError {
                rule: alloc::string::String::from(rule.name()),
                error,
            };
            let cells = cells(rule).map_err(wrong)?;
            local = local.rule(fallback(rule, nodes).map_err(wrong)?);
            rules.push(SharedRule {
                rule: rule.clone(),
                cells,
            });
        }
        let local = local.build_with(QuantaClock::new(), random_seeds())?;
        let mode = |group: &Arc<RuleState<R>>| builder.rules()[usize::from(group.quotas[0].rule)].mode;
        Ok(Self {
            rules: rules.into_boxed_slice(),
            modes: local.states.states.iter().map(mode).collect(),
            local: local.states,
            clock: local.clock,
            secret,
        })
    }

    /// The quotas that the request is checked against, if it is made this many times at once.
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

    /// The quotas that the request is checked against, as a list. It is empty if no rule applies. Key hashes are not computed yet.
    #[inline(never)]
    pub(crate) fn plan(&self, request: &R, times: u64) -> CheckPlan {
        let mut targets = SmallVec::new();
        for (group, _) in (0..).zip(&self.local.states) {
            if let Some(target) = self.target(group, request, times) {
                targets.push(target);
            }
        }
        CheckPlan {
            targets,
            key_hashes: Vec::new(),
        }
    }

    /// The request for one state. `None`: none of its rules applies.
    #[inline(always)]
    fn target(&self, group: u16, request: &R, times: u64) -> Option<Target> {
        let rules = &self.local.states[usize::from(group)];
        let mut subject = rules.extract(request, &self.local.seeds)?;
        subject.permits = subject.permits.saturating_mul(times);
        Some(Target { group, subject })
    }

    /// Computes the hashes of the keys, unless they are.
    pub(crate) fn hash_keys(&self, plan: &mut CheckPlan, request: &R) {
        if plan.key_hashes.is_empty() {
            let rule = |target: &Target| &self.rules[usize::from(self.group(target).quotas[0].rule)].rule;
            let hashes = plan
                .targets
                .iter()
                .map(|target| self.key_hash(rule(target), request));
            plan.key_hashes = hashes.collect();
        }
    }

    /// How each target is decided.
    #[inline]
    pub(crate) fn steps<'a>(&'a self, plan: &'a CheckPlan) -> impl Iterator<Item = Step> + 'a {
        let mut first = 0;
        plan.targets.iter().enumerate().map(move |(at, target)| {
            let step = self.step(at, target, first);
            first += step.quotas;
            step
        })
    }

    /// How a target is decided, whose first quota is `first`.
    #[inline]
    fn step(&self, at: usize, target: &Target, first: usize) -> Step {
        let Target { group, subject } = target;
        let route = match self.modes[usize::from(*group)] {
            _ if subject.denied && subject.enforced => Route::Listed,
            _ if subject.denied || subject.permits == 0 => Route::Free,
            Mode::Local => Route::Local,
            Mode::Lease { .. } | Mode::Sync { .. } if subject.enforced => Route::Lease,
            Mode::Lease { .. } | Mode::Sync { .. } | Mode::Strict => Route::Store,
        };
        Step {
            target: at,
            route,
            permits: subject.permits,
            first,
            quotas: self.group(target).quotas.len(),
            // The tier in bits of its own, since another tier has another limit.
            key: subject.key.wrapping_add((subject.tier as u64) << 32),
            group: *group,
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

    fn group(&self, target: &Target) -> &RuleState<R> {
        &self.local.states[usize::from(target.group)]
    }

    /// Every quota that the request is checked against.
    pub(crate) fn quotas<'a>(&'a self, plan: &'a CheckPlan) -> impl Iterator<Item = PlannedQuota<'a>> {
        plan.targets.iter().enumerate().flat_map(move |(at, target)| {
            let members = self.group(target).quotas.iter().enumerate();
            members.map(move |(position, member)| {
                let SharedRule { rule, cells } = &self.rules[usize::from(member.rule)];
                let quota = rule.quotas[member.index];
                let tier = target.subject.tier.checked_sub(1);
                PlannedQuota {
                    group: target.group,
                    key: target.subject.key,
                    tier: target.subject.tier,
                    member: position,
                    name: &rule.name,
                    rule: member.rule,
                    index: member.index,
                    quota,
                    limit: tier.map_or(quota.limit(), |tier| rule.tiers[tier].1),
                    cells: *cells,
                    key_hash: plan.key_hashes.get(at).copied().unwrap_or(0),
                    permits: target.subject.permits,
                    enforced: target.subject.enforced,
                    always_denied: target.subject.denied,
                    on_error: rule.on_error,
                    mode: rule.mode,
                }
            })
        })
    }

    /// How many permits more than its limit each rule may admit in a window, on this number of nodes together.
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

impl FromIterator<Target> for CheckPlan {
    fn from_iter<I: IntoIterator<Item = Target>>(targets: I) -> Self {
        Self {
            targets: targets.into_iter().collect(),
            key_hashes: Vec::new(),
        }
    }
}

impl From<QuickPlan> for CheckPlan {
    fn from(plan: QuickPlan) -> Self {
        match plan {
            QuickPlan::One(target, _) => [target].into_iter().collect(),
            QuickPlan::Many(plan) => plan,
        }
    }
}

impl<R: ?Sized> fmt::Debug for SharedPlanner<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the secret.
        let rules: Vec<_> = self.rules.iter().map(|shared| &shared.rule).collect();
        f.debug_struct("SharedPlanner")
            .field("rules", &rules)
            .finish_non_exhaustive()
    }
}
