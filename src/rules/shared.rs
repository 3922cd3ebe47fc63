//! A rule set whose counts are kept elsewhere, for many machines: what a request asks of which quota, and the
//! limiters of this node that stand in when nobody answers.

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

mod books;
mod counted;
mod here;
mod parts;
mod validate;

pub(crate) use books::LocalBooks;
pub(crate) use here::{Full, PaidHere, Taken};
pub use parts::KeyParts;
use validate::{cells, overshoot, stand_in};

/// What is the same of a key on all machines.
pub(super) type PartsOf<R> = dyn Fn(&R, &mut KeyParts) + Send + Sync;

/// Rules over counts that are kept elsewhere.
pub(crate) struct SharedPlan<R: ?Sized> {
    rules: Box<[Shared<R>]>,
    /// With what stands in for the store.
    here: RuleStates<R>,
    /// For each state of this node.
    modes: Box<[Mode]>,
    clock: QuantaClock,
    secret: [u64; 2],
}

/// A rule as the store is to keep it.
struct Shared<R: ?Sized> {
    rule: Rule<R>,
    /// Cells per window; `None`: a log.
    cells: Option<u64>,
}

/// What is to be asked about a request, as far as it takes to decide at once.
#[derive(Debug)]
pub(crate) enum Outline {
    /// One account, since there is one state for one quota: no list is made.
    One(Case, Step),
    /// Whatever there is.
    Any(Plan),
}

/// What a request is to be asked about.
#[derive(Debug)]
pub(crate) struct Plan {
    cases: SmallVec<[Case; 4]>,
    /// The names of their keys in the store, when these were asked for.
    tags: Vec<u128>,
}

/// One state of this node that stands for some quotas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    group: u16,
    subject: Extracted,
}

/// Who is to decide about a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Nobody: it costs nothing, or its rule is in the shadow, and its key on a list.
    Nobody,
    /// A list, which refuses it.
    List,
    /// The state of this node.
    Here,
    /// Accounts, one for each quota.
    Accounts,
    /// The store.
    Store,
}

/// A case, as it is decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) case: usize,
    pub(crate) way: Way,
    pub(crate) permits: u64,
    /// The first of its parts, among all [parts](SharedPlan::parts), and how many it has.
    pub(crate) first: usize,
    pub(crate) parts: usize,
    /// Stands for the key and its tier, with the state: not for the quota.
    key: u64,
    group: u16,
}

impl Step {
    /// What stands for one of its quotas, and the key, on this node. (Two of them would have to agree in 64 bits, with
    /// seeds that nobody knows, to share an account.)
    #[inline]
    pub(crate) const fn account(&self, part: usize) -> u64 {
        // Not zero, which is nobody: no harm, since it is one of 2^64.
        let quota = (self.group as u64) << 8 | part as u64;
        match self
            .key
            .wrapping_add((quota + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        {
            0 => 1,
            account => account,
        }
    }
}

/// One quota, as a request is judged by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned<'a> {
    /// The state of this node that it is judged by, and its key and tier there.
    pub(crate) group: u16,
    pub(crate) key: u64,
    pub(crate) tier: usize,
    /// Its place in that state.
    pub(crate) place: usize,
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
    pub(crate) mode: Mode,
}

impl<R: ?Sized> SharedPlan<R> {
    /// Rules for so many nodes, which all have the secret.
    pub(crate) fn new(builder: &RuleSetBuilder<R>, nodes: u64, secret: [u64; 2]) -> Result<Self, RuleError> {
        let mut here = RuleSetBuilder::new();
        let mut rules = Vec::new();
        // What is wrong with the rules themselves is said of them, not of what stands in.
        super::set::compile::validate(builder.rules())?;
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
        let mode = |group: &Arc<RuleState<R>>| builder.rules()[usize::from(group.quotas[0].rule)].mode;
        Ok(Self {
            rules: rules.into_boxed_slice(),
            modes: here.states.states.iter().map(mode).collect(),
            here: here.states,
            clock: here.clock,
            secret,
        })
    }

    /// What is to be asked about the request, if it is made so many times at once.
    #[inline(always)]
    pub(crate) fn outline(&self, request: &R, times: u64) -> Outline {
        if let [_] = &*self.here.states {
            let case = self.case(0, request, times);
            if let Some(case) = case {
                let step = self.step(0, &case, 0);
                if step.way == Way::Accounts && step.parts == 1 {
                    return Outline::One(case, step);
                }
            }
            return Outline::Any(case.into_iter().collect());
        }
        Outline::Any(self.plan(request, times))
    }

    /// The same as a list: nothing, if it is no rule's business. Its keys have no names yet.
    #[inline(never)]
    pub(crate) fn plan(&self, request: &R, times: u64) -> Plan {
        let mut cases = SmallVec::new();
        for (group, _) in (0..).zip(&self.here.states) {
            if let Some(case) = self.case(group, request, times) {
                cases.push(case);
            }
        }
        Plan {
            cases,
            tags: Vec::new(),
        }
    }

    /// What the request is to one state; `None`: nothing, it is none of its rules' business.
    #[inline(always)]
    fn case(&self, group: u16, request: &R, times: u64) -> Option<Case> {
        let rules = &self.here.states[usize::from(group)];
        let mut subject = rules.extract(request, &self.here.seeds)?;
        subject.permits = subject.permits.saturating_mul(times);
        Some(Case { group, subject })
    }

    /// Names the keys, if they have no names yet.
    pub(crate) fn name(&self, plan: &mut Plan, request: &R) {
        if plan.tags.is_empty() {
            let rule = |case: &Case| &self.rules[usize::from(self.group(case).quotas[0].rule)].rule;
            let tags = plan.cases.iter().map(|case| self.tag(rule(case), request));
            plan.tags = tags.collect();
        }
    }

    /// Who is to decide about what.
    #[inline]
    pub(crate) fn steps<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = Step> + 'a {
        let mut first = 0;
        plan.cases.iter().enumerate().map(move |(at, case)| {
            let step = self.step(at, case, first);
            first += step.parts;
            step
        })
    }

    /// Who is to decide about a case, whose first part this is.
    #[inline]
    fn step(&self, at: usize, case: &Case, first: usize) -> Step {
        let Case { group, subject } = case;
        let way = match self.modes[usize::from(*group)] {
            _ if subject.denied && subject.enforced => Way::List,
            _ if subject.denied || subject.permits == 0 => Way::Nobody,
            Mode::Local => Way::Here,
            Mode::Lease { .. } | Mode::Sync { .. } if subject.enforced => Way::Accounts,
            _ => Way::Store,
        };
        Step {
            case: at,
            way,
            permits: subject.permits,
            first,
            parts: self.group(case).quotas.len(),
            // The tier in bits of its own: another tier is another limit.
            key: subject.key.wrapping_add((subject.tier as u64) << 32),
            group: *group,
        }
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

    fn group(&self, case: &Case) -> &RuleState<R> {
        &self.here.states[usize::from(case.group)]
    }

    /// All quotas that the request is judged by.
    pub(crate) fn parts<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = Planned<'a>> {
        plan.cases.iter().enumerate().flat_map(move |(at, case)| {
            let members = self.group(case).quotas.iter().enumerate();
            members.map(move |(place, member)| {
                let Shared { rule, cells } = &self.rules[usize::from(member.rule)];
                let quota = rule.quotas[member.index];
                let tier = case.subject.tier.checked_sub(1);
                Planned {
                    group: case.group,
                    key: case.subject.key,
                    tier: case.subject.tier,
                    place,
                    name: &rule.name,
                    rule: member.rule,
                    number: member.index,
                    quota,
                    limit: tier.map_or(quota.limit(), |tier| rule.tiers[tier].1),
                    cells: *cells,
                    tag: plan.tags.get(at).copied().unwrap_or(0),
                    permits: case.subject.permits,
                    enforced: case.subject.enforced,
                    refused: case.subject.denied,
                    on_error: rule.on_error,
                    mode: rule.mode,
                }
            })
        })
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
            .rules
            .iter()
            .map(|rule| (&*rule.name, rule.counts.sum()))
    }
}

impl FromIterator<Case> for Plan {
    fn from_iter<I: IntoIterator<Item = Case>>(cases: I) -> Self {
        Self {
            cases: cases.into_iter().collect(),
            tags: Vec::new(),
        }
    }
}

impl From<Outline> for Plan {
    fn from(outline: Outline) -> Self {
        match outline {
            Outline::One(case, _) => [case].into_iter().collect(),
            Outline::Any(plan) => plan,
        }
    }
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
