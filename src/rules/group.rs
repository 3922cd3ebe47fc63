use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hasher};
use std::collections::HashSet;

use super::builder::Quotas;
use super::counts::{Me, Outcome, Tallies};
use super::key::{Condition, Cost, Key, TierOf};
use super::policy::Policy;
use super::rule::{Enforced, Listed};
use super::share::Share;
use super::state::{Decided, Place, Ruling, State, Taken};
use crate::algorithm::AnyAlgorithm;
use crate::decision::Peek;
use crate::error::ConfigError;
use crate::keyed::{OnFull, SeededState, Store};
use crate::limiter::OwnWords;
use crate::quota::Quota;
use crate::receipt::Receipt;
use crate::time::Nanos;

mod heritage;
mod subject;

pub(super) use heritage::Heir;
pub(super) use subject::Subject;

/// The rules that are decided by one state, in one step.
#[derive(Debug)]
pub(super) struct Group<R: ?Sized> {
    /// One for each window of the policy, in its order.
    pub(super) members: Box<[Member]>,
    /// The counts of the rules that have their first quota here.
    tallies: Box<[Arc<Tallies>]>,
    /// Those of the other rules that have a quota here.
    other_tallies: Box<[Arc<Tallies>]>,
    /// Whether nothing but its key, if there is one, tells one request from another.
    is_plain: bool,
    key: Option<Key<R>>,
    cost: Option<Cost<R>>,
    when: Option<Condition<R>>,
    tier_of: Option<TierOf<R>>,
    tiers: Box<[(Arc<str>, u64)]>,
    keys: u64,
    on_full: OnFull,
    enforced: Share,
    allow: HashSet<u64, SeededState>,
    deny: HashSet<u64, SeededState>,
    policy: Arc<Policy>,
    state: Arc<State>,
    /// Whether it holds only until others have been charged what it has counted.
    retiring: bool,
}

/// One quota of one rule.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The rule's place in its rule set.
    pub(super) rule: u16,
    name: Arc<str>,
    /// Which of the rule's quotas.
    pub(super) number: usize,
    pub(super) quota: Quota,
}

/// What is needed to hash a rule set's keys.
#[derive(Clone, Debug)]
pub(super) struct Seeds {
    tables: SeededState,
    /// The same in every process, for what must be told the same way everywhere.
    shares: SeededState,
}

impl Seeds {
    pub(super) fn new(seeds: [u64; 4]) -> Self {
        Self {
            tables: SeededState::with_seeds(seeds),
            shares: SeededState::with_seeds([1, 2, 3, 4]),
        }
    }
}

impl<R: ?Sized> Group<R> {
    /// A group with a state of its own, of some quotas of some rules: of the first, and of others that share with it.
    pub(super) fn new(quotas: &[Quotas<'_, R>], seeds: &Seeds) -> Result<Self, ConfigError> {
        let (_, rule, _) = quotas[0];
        let members: Box<[Member]> = quotas
            .iter()
            .map(|&(place, rule, number)| Member {
                rule: place,
                name: Arc::clone(&rule.name),
                number,
                quota: rule.quotas[number],
            })
            .collect();
        let quotas: Vec<Quota> = members.iter().map(|member| member.quota).collect();
        let policy = Policy::new(rule, &quotas)?;
        let state = match rule.key {
            None => State::Everybody(OwnWords::new(policy.words())),
            Some(_) => State::Each(Store::new(rule.keys(), policy.words())?),
        };
        let enforced = Share::of(rule.enforced)?;
        let for_keys = |field, given: &str| match rule.key {
            Some(_) => Ok(()),
            None => Err(ConfigError::new(field, given, "nothing for a rule without a key")),
        };
        if !matches!(rule.enforced, Enforced::All | Enforced::None) {
            for_keys("enforce", "a part of the keys")?;
        }
        if rule.capacity.is_some() {
            for_keys("capacity", "a number of keys")?;
        }
        if !rule.allow.is_empty() {
            for_keys("allow", "a list of keys")?;
        }
        if !rule.deny.is_empty() {
            for_keys("deny", "a list of keys")?;
        }
        Ok(Self {
            tallies: Box::new([]),
            other_tallies: Box::new([]),
            members,
            is_plain: rule.when.is_none()
                && rule.cost.is_none()
                && rule.tiers.is_empty()
                && rule.allow.is_empty()
                && rule.deny.is_empty()
                && enforced == Share::ALL,
            key: rule.key.clone(),
            cost: rule.cost.clone(),
            when: rule.when.clone(),
            tier_of: rule.tier_of.clone(),
            tiers: rule.tiers.clone().into_boxed_slice(),
            keys: rule.keys(),
            on_full: rule.on_full,
            enforced,
            allow: hashes(&rule.allow, seeds),
            deny: hashes(&rule.deny, seeds),
            policy: Arc::new(policy),
            state: Arc::new(state),
            retiring: false,
        })
    }

    /// Keeps the counts of its rules, of all that there are.
    pub(super) fn counting(self, tallies: &[Arc<Tallies>]) -> Self {
        let (mut first, mut others): (Vec<u16>, Vec<u16>) = Default::default();
        for member in &self.members {
            if member.number == 0 {
                first.push(member.rule);
            }
        }
        for member in &self.members {
            if !first.contains(&member.rule) && !others.contains(&member.rule) {
                others.push(member.rule);
            }
        }
        let of = |rules: Vec<u16>| {
            let rules = rules.into_iter();
            rules
                .map(|rule| Arc::clone(&tallies[usize::from(rule)]))
                .collect()
        };
        Self {
            tallies: of(first),
            other_tallies: of(others),
            ..self
        }
    }

    /// Counts something that has happened to a request once, for each rule, whatever its states are.
    #[inline]
    pub(super) fn count(&self, me: Me, outcome: Outcome) {
        for tallies in &self.tallies {
            tallies.add(me, outcome);
        }
    }

    /// Counts something that has happened to this state.
    pub(super) fn count_here(&self, me: Me, outcome: Outcome) {
        for tallies in self.all_tallies() {
            tallies.add(me, outcome);
        }
    }

    fn all_tallies(&self) -> impl Iterator<Item = &Arc<Tallies>> {
        self.tallies.iter().chain(&self.other_tallies)
    }

    /// The algorithm that decides about the subject.
    #[inline]
    fn algorithm(&self, subject: &Subject) -> &AnyAlgorithm {
        &self.policy.tiers[subject.tier]
    }

    /// Where the subject's words seem to be, as far as that is in memory that is far away.
    #[inline(always)]
    pub(super) fn find_far(&self, subject: &Subject) -> Place<'_> {
        self.state.find_far(subject.key)
    }

    /// Where the subject's words seem to be.
    #[cfg(feature = "redis")]
    pub(super) fn find(&self, subject: &Subject) -> Place<'_> {
        self.find_far(subject).or_near(subject.key)
    }

    #[inline(always)]
    fn ruling(&self, subject: &Subject) -> Ruling<'_> {
        Ruling {
            algorithm: self.algorithm(subject),
            on_full: self.on_full,
            key: subject.key,
        }
    }

    /// The most permits that the subject would get: a look, which somebody may be faster than.
    #[inline(always)]
    pub(super) fn room<'a>(&'a self, subject: &Subject, found: Place<'a>, now: Nanos) -> u64 {
        self.ruling(subject).room(found, now)
    }

    /// Decides about the subject, at a time that is read when memory is best waited for; nothing is given back of it.
    #[inline(always)]
    pub(super) fn decide(&self, subject: &Subject, now: impl FnOnce() -> Nanos) -> Decided {
        let algorithm = self.algorithm(subject);
        self.state
            .decide(algorithm, self.on_full, subject.key, now, subject.permits)
    }

    /// Takes what the subject costs, or nothing; an error says whether it was not the key's own state that
    /// refused, for want of an entry.
    #[inline(always)]
    pub(super) fn take<'a>(&'a self, subject: &Subject, found: Place<'a>, now: Nanos) -> Result<Taken, bool> {
        self.ruling(subject).take(found, now, subject.permits)
    }

    /// Gives back what was taken; false if that can no longer be done.
    pub(super) fn give_back(&self, subject: &Subject, receipt: &Receipt, permits: u64) -> bool {
        self.ruling(subject).give_back(&self.state, receipt, permits)
    }

    pub(super) fn peek(&self, subject: &Subject, now: Nanos) -> Peek<'_, AnyAlgorithm> {
        self.ruling(subject).peek(&self.state, now)
    }

    /// Whether some keys have other limits.
    #[cfg(feature = "tokio")]
    pub(super) fn has_tiers(&self) -> bool {
        !self.tiers.is_empty()
    }

    /// A number that the key's state has here, and after every reload that leaves its rules decided as they are.
    #[cfg(feature = "tokio")]
    pub(super) fn number(&self, subject: &Subject, seeds: &Seeds) -> u64 {
        let first = self.members.first().map(|member| (&member.name, member.number));
        seeds.tables.hash_one((first, subject.key))
    }

    /// What says how much a key has spent, debt included.
    fn gauging(&self, key: u64) -> Ruling<'_> {
        Ruling {
            algorithm: &self.policy.gauge,
            on_full: OnFull::Share,
            key,
        }
    }

    /// Charges the key what of `permits` can be booked, and says how much that is. `tier`: if that is known.
    pub(super) fn charge(&self, key: u64, tier: Option<usize>, now: Nanos, permits: u64) -> u64 {
        book(&self.policy, &self.state, key, tier, now, permits)
    }

    /// What charges its state, without the rules.
    #[cfg(feature = "redis")]
    pub(super) fn booking(&self) -> Booking {
        Booking {
            policy: Arc::clone(&self.policy),
            state: Arc::clone(&self.state),
        }
    }

    /// The limit of a member for the subject.
    pub(super) fn limit(&self, member: usize, subject: &Subject) -> u64 {
        match subject.tier.checked_sub(1) {
            Some(tier) => self.tiers[tier].1,
            None => self.members[member].quota.limit(),
        }
    }
}

/// What charges the state of a group, without its rules.
#[cfg(feature = "redis")]
pub(super) struct Booking {
    policy: Arc<Policy>,
    state: Arc<State>,
}

#[cfg(feature = "redis")]
impl Booking {
    /// As [`Group::charge`].
    pub(super) fn charge(&self, key: u64, tier: Option<usize>, now: Nanos, permits: u64) -> u64 {
        book(&self.policy, &self.state, key, tier, now, permits)
    }
}

fn book(policy: &Policy, state: &State, key: u64, tier: Option<usize>, now: Nanos, permits: u64) -> u64 {
    let booking = Ruling {
        algorithm: policy.booker(tier),
        // So that a key without an entry is kept from beginning anew.
        on_full: OnFull::Share,
        key,
    };
    booking.charge(state, now, permits)
}

fn hashes(list: &[Listed], seeds: &Seeds) -> HashSet<u64, SeededState> {
    let hash = |key: &Listed| {
        let mut hasher = seeds.tables.build_hasher();
        key(&mut hasher);
        hasher.finish()
    };
    let mut hashes = HashSet::with_hasher(seeds.tables.clone());
    hashes.extend(list.iter().map(hash));
    hashes
}
