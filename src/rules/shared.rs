//! A rule set whose counts are kept elsewhere, for many machines: what a request asks of which quota, and the
//! limiters of this node that stand in when nobody answers.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use smallvec::SmallVec;

use super::builder::RuleSetBuilder;
use super::counts::{Me, Outcome};
use super::group::{Group, Subject};
use super::mode::Mode;
use super::on_error::OnError;
use super::rule::{Rule, RuleAlgorithm, RuleError};
use super::{RuleCounts, Rules};
use crate::algorithm::CounterRing;
use crate::clock::{Clock, QuantaClock};
use crate::decision::Receipt;
use crate::error::ConfigError;
use crate::keyed::random_seeds;
use crate::quota::Quota;

mod parts;

pub use parts::KeyParts;

/// What is the same of a key on all machines.
pub(super) type PartsOf<R> = dyn Fn(&R, &mut KeyParts) + Send + Sync;

/// Rules over counts that are kept elsewhere.
pub(crate) struct SharedPlan<R: ?Sized> {
    rules: Box<[Shared<R>]>,
    /// With what stands in for the store.
    here: Rules<R>,
    clock: QuantaClock,
    secret: [u64; 2],
}

/// A rule as the store is to keep it.
struct Shared<R: ?Sized> {
    rule: Rule<R>,
    /// Cells per window; `None`: a log.
    cells: Option<u64>,
}

/// What a request is to be asked about.
#[derive(Debug)]
pub(crate) struct Plan {
    cases: SmallVec<[Case; 4]>,
}

/// One state of this node that stands for some quotas, and the name of the key in the store.
#[derive(Clone, Copy, Debug)]
struct Case {
    group: u16,
    subject: Subject,
    tag: u128,
}

/// One quota, as a request is judged by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned<'a> {
    /// The rule's name, and its place in the rule set.
    pub(crate) name: &'a Arc<str>,
    pub(crate) rule: u16,
    /// Which of the rule's quotas.
    pub(crate) number: usize,
    pub(crate) quota: Quota,
    /// That of the key's tier, if it is in one.
    pub(crate) limit: u64,
    /// Cells per window; `None`: a log.
    pub(crate) cells: Option<u64>,
    /// Stands for the key on all machines.
    pub(crate) tag: u128,
    pub(crate) permits: u64,
    pub(crate) enforced: bool,
    /// Whether the key is on the rule's list of those that are always refused.
    pub(crate) refused: bool,
    pub(crate) on_error: OnError,
}

/// A quota of this node's own that has no room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full {
    /// Its place among the [parts](SharedPlan::parts).
    pub(crate) part: usize,
    pub(crate) remaining: u64,
    pub(crate) retry_after: Option<Duration>,
}

/// The most permits of a quota that is kept as a log.
const MOST_LOGGED: u64 = 100_000;
/// The most cells of a window.
const MOST_CELLS: u64 = 1000;
/// The shortest window: the store forgets in milliseconds.
const SHORTEST: Duration = Duration::from_millis(1);

impl<R: ?Sized> SharedPlan<R> {
    /// Rules for so many nodes, which all have the secret.
    pub(crate) fn new(builder: &RuleSetBuilder<R>, nodes: u64, secret: [u64; 2]) -> Result<Self, RuleError> {
        let mut here = RuleSetBuilder::new();
        let mut rules = Vec::new();
        // What is wrong with the rules themselves is said of them, not of what stands in.
        builder.validate()?;
        for rule in builder.rules() {
            let wrong = |error| RuleError {
                rule: alloc::string::String::from(rule.name()),
                error,
            };
            let cells = cells(rule).map_err(wrong)?;
            here = here.rule(stand_in(rule, nodes).map_err(wrong)?);
            rules.push(Shared {
                rule: rule.clone(),
                cells,
            });
        }
        let here = here.build_with(QuantaClock::new(), random_seeds())?;
        Ok(Self {
            rules: rules.into_boxed_slice(),
            here: here.rules,
            clock: here.clock,
            secret,
        })
    }

    /// What is to be asked about the request: nothing, if it is no rule's business.
    pub(crate) fn plan(&self, request: &R) -> Plan {
        let mut cases = SmallVec::new();
        for (place, group) in (0..).zip(&self.here.groups) {
            if let Some(subject) = group.subject(request, &self.here.seeds) {
                let first = usize::from(group.members[0].rule);
                cases.push(Case {
                    group: place,
                    subject,
                    tag: self.tag(&self.rules[first].rule, request),
                });
            }
        }
        Plan { cases }
    }

    fn tag(&self, rule: &Rule<R>, request: &R) -> u128 {
        let mut parts = KeyParts::new(self.secret);
        if let Some(key) = &rule.key {
            parts.part(key.name());
            if let Some(parts_of) = key.parts() {
                parts_of(request, &mut parts);
            }
        }
        parts.finish()
    }

    fn group(&self, case: &Case) -> &Group<R> {
        &self.here.groups[usize::from(case.group)]
    }

    /// All quotas that the request is judged by.
    pub(crate) fn parts<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = Planned<'a>> {
        plan.cases.iter().flat_map(move |case| {
            self.group(case).members.iter().map(move |member| {
                let Shared { rule, cells } = &self.rules[usize::from(member.rule)];
                let quota = rule.quotas[member.number];
                let tier = case.subject.tier.checked_sub(1);
                Planned {
                    name: &rule.name,
                    rule: member.rule,
                    number: member.number,
                    quota,
                    limit: tier.map_or(quota.limit(), |tier| rule.tiers[tier].1),
                    cells: *cells,
                    tag: case.tag,
                    permits: case.subject.permits,
                    enforced: case.subject.enforced,
                    refused: case.subject.refused,
                    on_error: rule.on_error,
                }
            })
        })
    }

    /// Takes what the request costs of this node's own limiters, all or nothing, and counts it; of rules that need
    /// none, nothing.
    pub(crate) fn take_here(&self, plan: &Plan) -> Result<(), Vec<Full>> {
        let now = self.clock.now();
        let counted = |case: &&Case| self.on_error(case) != OnError::Admit;
        // At all, before anything is taken.
        let mut full = Vec::new();
        for case in plan.cases.iter().filter(counted) {
            let (group, subject) = (self.group(case), &case.subject);
            let room = group.room(subject, group.find(subject), now);
            if subject.enforced && (subject.refused || room < subject.permits) {
                self.say_full(plan, case, &mut full);
            }
        }
        if !full.is_empty() {
            return Err(full);
        }
        let me = Me::new();
        let mut paid: SmallVec<[(&Case, Receipt); 4]> = SmallVec::new();
        for case in plan.cases.iter().filter(counted) {
            let (group, subject) = (self.group(case), &case.subject);
            let taken = match subject.refused {
                true => Err(false),
                false => group.take(subject, group.find(subject), now),
            };
            match taken {
                Ok(taken) => paid.push((case, taken.receipt)),
                Err(_) if !subject.enforced => group.count(me, Outcome::ShadowDenied),
                Err(_) => {
                    for (case, receipt) in paid {
                        self.group(case)
                            .give_back(&case.subject, &receipt, case.subject.permits);
                    }
                    self.say_full(plan, case, &mut full);
                    return Err(full);
                }
            }
        }
        let free = plan.cases.iter().filter(|case| !counted(case));
        for case in paid.iter().map(|(case, _)| *case).chain(free) {
            self.group(case)
                .count(me, Outcome::Admitted(case.subject.permits));
        }
        Ok(())
    }

    /// Counts what the store has admitted, and charges this node's own limiters with it, whether they have room or
    /// not. `taken`: which of the parts.
    pub(crate) fn charge_here(&self, plan: &Plan, taken: impl Fn(usize) -> bool) {
        let (now, me) = (self.clock.now(), Me::new());
        let mut part = 0;
        for case in &plan.cases {
            let (group, subject) = (self.group(case), &case.subject);
            if taken(part) || subject.permits == 0 {
                group.count(me, Outcome::Admitted(subject.permits));
                if self.on_error(case) != OnError::Admit {
                    group.charge(subject.key, Some(subject.tier), now, subject.permits);
                }
            } else {
                // It was admitted all the same.
                group.count(me, Outcome::ShadowDenied);
            }
            part += group.members.len();
        }
    }

    /// The rules of one state agree in it.
    fn on_error(&self, case: &Case) -> OnError {
        let first = usize::from(self.group(case).members[0].rule);
        self.rules[first].rule.on_error
    }

    /// Names the quotas of a case that have no room, one at least.
    fn say_full(&self, plan: &Plan, case: &Case, full: &mut Vec<Full>) {
        let (group, subject) = (self.group(case), &case.subject);
        let before = plan
            .cases
            .iter()
            .take_while(|other| other.group != case.group)
            .map(|other| self.group(other).members.len());
        let first: usize = before.sum();
        let peek = group.peek(subject, self.clock.now());
        let retry_after = if subject.refused {
            None
        } else {
            peek.retry_after(subject.permits)
        };
        let quotas = (0..group.members.len()).map(|member| Full {
            part: first + member,
            remaining: if subject.refused { 0 } else { peek.room_of(member) },
            retry_after,
        });
        let some = quotas
            .clone()
            .any(|quota| subject.refused || quota.remaining < subject.permits);
        full.extend(quotas.filter(|quota| !some || subject.refused || quota.remaining < subject.permits));
    }

    /// Counts a request that these rules have refused.
    pub(crate) fn count_denied(&self, rules: &[u16]) {
        let me = Me::new();
        for (at, &rule) in rules.iter().enumerate() {
            if !rules[..at].contains(&rule) {
                self.here.names[usize::from(rule)]
                    .tallies
                    .add(me, Outcome::Denied);
            }
        }
    }

    /// Counts a request that these rules would have refused, had they not been in the shadow.
    pub(crate) fn count_shadow_denied(&self, plan: &Plan, full: impl Fn(usize) -> bool) {
        let me = Me::new();
        let mut part = 0;
        for case in &plan.cases {
            let group = self.group(case);
            if !case.subject.enforced && (part..part + group.members.len()).any(&full) {
                group.count(me, Outcome::ShadowDenied);
            }
            part += group.members.len();
        }
    }

    /// How many permits more than its limit each rule may admit in a window, on so many nodes together.
    pub(crate) fn max_overshoot(&self, nodes: u64) -> impl Iterator<Item = (&str, Option<u64>)> {
        self.rules
            .iter()
            .map(move |Shared { rule, .. }| (&*rule.name, overshoot(rule, nodes)))
    }

    /// What each rule has done on this node.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, RuleCounts)> {
        self.here
            .names
            .iter()
            .map(|rule| (&*rule.name, rule.tallies.sum()))
    }
}

/// The most that a rule may admit beyond its limit in a window, of any of its quotas and tiers, on so many nodes.
fn overshoot<R: ?Sized>(rule: &Rule<R>, nodes: u64) -> Option<u64> {
    let limits = rule.quotas.iter().map(|quota| quota.limit());
    let mut limits = limits.chain(rule.tiers.iter().map(|&(_, limit)| limit));
    let others = nodes.saturating_sub(1);
    limits.try_fold(0, |most: u64, limit| {
        let beyond = match rule.mode {
            Mode::Strict | Mode::Lease { .. } => 0,
            Mode::Sync { pending, .. } => others.checked_mul(pending.min(limit))?,
            Mode::Local => bound(rule, limit)?.checked_mul(nodes.max(1))? - limit,
        };
        Some(most.max(beyond))
    })
}

/// The most that one node admits in a window, by the algorithm of the rule.
fn bound<R: ?Sized>(rule: &Rule<R>, limit: u64) -> Option<u64> {
    match rule.algorithm {
        RuleAlgorithm::Counter | RuleAlgorithm::Log => Some(limit),
        RuleAlgorithm::Classic | RuleAlgorithm::Fixed => limit.checked_mul(2),
        RuleAlgorithm::Even => limit.checked_add(limit.div_ceil(rule.cells_or_default())),
        // A tier's burst is in proportion, rounded up here.
        RuleAlgorithm::Gcra => {
            let first = rule.quotas[0].limit();
            let burst = u128::from(rule.burst.unwrap_or(first)) * u128::from(limit);
            let burst = u64::try_from(burst.div_ceil(u128::from(first)).max(1)).ok()?;
            limit.checked_add(burst)
        }
    }
}

/// How a rule is kept in the store: in so many cells, or as a log.
fn cells<R: ?Sized>(rule: &Rule<R>) -> Result<Option<u64>, ConfigError> {
    if let Some(key) = &rule.key
        && key.parts().is_none()
    {
        return Err(ConfigError::new(
            "key",
            format!("{:?}, whose parts nobody has said", key.name()),
            "a key with `shared_as`, which is the same on all machines",
        ));
    }
    for quota in &rule.quotas {
        if quota.window() < SHORTEST {
            let given = format!("{:?}", quota.window());
            return Err(ConfigError::new(
                "window",
                given,
                "1ms to 366 days where a store keeps it",
            ));
        }
    }
    match rule.algorithm {
        RuleAlgorithm::Log => {
            let limits = rule.quotas.iter().map(|quota| quota.limit());
            let most = limits
                .chain(rule.tiers.iter().map(|&(_, limit)| limit))
                .max()
                .unwrap_or(1);
            if most > MOST_LOGGED {
                return Err(ConfigError::new(
                    "limit",
                    format!("{most} permits"),
                    format!("1 to {MOST_LOGGED} permits in a log that a store keeps"),
                ));
            }
            match rule.cells {
                None => Ok(None),
                Some(cells) => Err(ConfigError::new(
                    "cells",
                    format!("{cells}"),
                    "nothing for a log rule",
                )),
            }
        }
        RuleAlgorithm::Counter => match rule.cells.unwrap_or(CounterRing::DEFAULT_CELLS) {
            cells @ 1..=MOST_CELLS => Ok(Some(cells)),
            cells => Err(ConfigError::new(
                "cells",
                format!("{cells}"),
                format!("1 to {MOST_CELLS} cells that a store keeps"),
            )),
        },
        other => Err(ConfigError::new(
            "algorithm",
            format!("{other:?}"),
            "Counter or Log where a store keeps it",
        )),
    }
}

/// The rule by which this node decides when the store does not answer.
fn stand_in<R: ?Sized>(rule: &Rule<R>, nodes: u64) -> Result<Rule<R>, ConfigError> {
    let mut rule = rule.clone();
    if rule.algorithm == RuleAlgorithm::Log {
        // In a word or two for a key, and no less strict: a table of logs could be larger than the memory.
        rule.algorithm = RuleAlgorithm::Counter;
    }
    if rule.on_error == OnError::Share {
        let share = |limit: u64| (limit / nodes).max(1);
        for quota in &mut rule.quotas {
            *quota = Quota::new(share(quota.limit()), quota.window())?;
        }
        for (_, limit) in &mut rule.tiers {
            *limit = share(*limit);
        }
    }
    Ok(rule)
}

impl<R: ?Sized> fmt::Debug for SharedPlan<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the secret.
        let rules: Vec<_> = self.rules.iter().map(|shared| &shared.rule).collect();
        f.debug_struct("SharedPlan")
            .field("rules", &rules)
            .finish_non_exhaustive()
    }
}
