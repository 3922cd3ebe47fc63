use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::Hasher;
use std::collections::HashSet;

use ahash::RandomState;

use super::builder::Quotas;
use super::counts::{Me, Outcome, Tallies};
use super::key::{Condition, Cost, Key, KeyHasher, Missing, TierOf};
use super::policy::Policy;
use super::rule::{Enforced, Listed};
use super::share::Share;
use super::state::{Ruling, State, Taken};
use crate::algorithm::AnyAlgorithm;
use crate::answer::Peek;
use crate::decision::Receipt;
use crate::error::ConfigError;
use crate::keyed::{OnFull, Store};
use crate::limiter::OwnWords;
use crate::quota::Quota;
use crate::table::Entry;
use crate::time::Nanos;

mod heritage;

pub(super) use heritage::Heir;

/// The rules that are decided by one state, in one step.
#[derive(Debug)]
pub(super) struct Group<R: ?Sized> {
    /// One for each window of the policy, in its order.
    pub(super) members: Box<[Member]>,
    /// The counts of the rules that have their first quota here, and then those of the others.
    tallies: Box<[Arc<Tallies>]>,
    /// How many rules have their first quota here.
    first: usize,
    key: Option<Key<R>>,
    cost: Option<Cost<R>>,
    when: Option<Condition<R>>,
    tier_of: Option<TierOf<R>>,
    tiers: Box<[(Arc<str>, u64)]>,
    keys: u64,
    on_full: OnFull,
    enforced: Share,
    allow: HashSet<u64, RandomState>,
    deny: HashSet<u64, RandomState>,
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

/// What a group says about one request, before anybody has looked at a state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    pub(super) key: u64,
    pub(super) permits: u64,
    /// Of the policy.
    pub(super) tier: usize,
    /// Whether a refusal counts.
    pub(super) enforced: bool,
    /// Whether the key is refused whatever it has spent.
    pub(super) refused: bool,
    /// Whether the request has no key, though the rules have one.
    pub(super) lacks_key: bool,
}

/// Stands for a key where there is none.
const EVERYBODY: u64 = 0;

/// What is needed to hash a rule set's keys.
#[derive(Clone, Debug)]
pub(super) struct Seeds {
    tables: RandomState,
    /// The same in every process, for what must be told the same way everywhere.
    shares: RandomState,
}

impl Seeds {
    pub(super) fn new([first, second, third, fourth]: [u64; 4]) -> Self {
        Self {
            tables: RandomState::with_seeds(first, second, third, fourth),
            shares: RandomState::with_seeds(1, 2, 3, 4),
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
            first: 0,
            members,
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
        let first = |member: &&Member| member.number == 0;
        let mut rules: Vec<u16> = self
            .members
            .iter()
            .filter(first)
            .map(|member| member.rule)
            .collect();
        let count = rules.len();
        for member in &self.members {
            if !rules.contains(&member.rule) {
                rules.push(member.rule);
            }
        }
        let tallies = rules
            .iter()
            .map(|&rule| Arc::clone(&tallies[usize::from(rule)]))
            .collect();
        Self {
            tallies,
            first: count,
            ..self
        }
    }

    /// Counts something that has happened to a request once, for each rule, whatever its states are.
    #[inline]
    pub(super) fn count(&self, me: Me, outcome: Outcome) {
        for tallies in &self.tallies[..self.first] {
            tallies.add(me, outcome);
        }
    }

    /// Counts something that has happened to this state.
    pub(super) fn count_here(&self, me: Me, outcome: Outcome) {
        for tallies in &self.tallies {
            tallies.add(me, outcome);
        }
    }

    /// What is to be decided about a request; `None`: nothing, it is none of these rules' business.
    #[inline(always)]
    pub(super) fn subject(&self, request: &R, seeds: &Seeds) -> Option<Subject> {
        if let Some(when) = &self.when
            && !(when.0.function())(request)
        {
            return None;
        }
        let mut subject = Subject {
            key: EVERYBODY,
            permits: match &self.cost {
                Some(cost) => (cost.0.function())(request),
                None => 1,
            },
            tier: 0,
            enforced: self.enforced != Share::NONE,
            refused: false,
            lacks_key: false,
        };
        if let Some(key) = &self.key {
            let hash = match key.hash(request, &seeds.tables) {
                Some(hash) => hash,
                None if key.missing() == Missing::Skip => return None,
                None => {
                    subject.lacks_key = true;
                    Key::<R>::hash_of_none(&seeds.tables)
                }
            };
            subject.key = Store::fingerprint(hash);
            if !self.allow.is_empty() && self.allow.contains(&hash) {
                return None;
            }
            subject.refused = !self.deny.is_empty() && self.deny.contains(&hash)
                || subject.lacks_key && key.missing() == Missing::Refuse;
            if self.enforced != Share::ALL && subject.enforced {
                let hash = key.hash(request, &seeds.shares);
                let hash = hash.unwrap_or_else(|| Key::<R>::hash_of_none(&seeds.shares));
                subject.enforced = self.enforced.has(hash);
            }
        }
        if let Some(tier_of) = &self.tier_of {
            subject.tier = self.tier(tier_of, request);
        }
        Some(subject)
    }

    fn tier(&self, tier_of: &TierOf<R>, request: &R) -> usize {
        let name = (tier_of.0.function())(request);
        name.and_then(|name| self.tiers.iter().position(|(tier, _)| **tier == *name))
            .map_or(0, |place| place + 1)
    }

    /// The algorithm that decides about the subject.
    #[inline]
    fn algorithm(&self, subject: &Subject) -> &AnyAlgorithm {
        &self.policy.tiers[subject.tier]
    }

    /// The entry that the subject seems to have.
    #[inline]
    pub(super) fn find(&self, subject: &Subject) -> Option<Entry<'_>> {
        self.state.find(subject.key)
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
    #[inline]
    pub(super) fn room<'a>(&'a self, subject: &Subject, found: Option<Entry<'a>>, now: Nanos) -> u64 {
        self.ruling(subject).room(&self.state, found, now)
    }

    /// Takes what the subject costs, or nothing; an error says whether it was not the key's own state that
    /// refused, for want of an entry.
    #[inline(always)]
    pub(super) fn take<'a>(
        &'a self,
        subject: &Subject,
        found: Option<Entry<'a>>,
        now: Nanos,
    ) -> Result<Taken, bool> {
        self.ruling(subject)
            .take(&self.state, found, now, subject.permits)
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

fn hashes(list: &[Listed], seeds: &Seeds) -> HashSet<u64, RandomState> {
    let hash = |key: &Listed| {
        let mut hasher = KeyHasher::new(&seeds.tables);
        key(&mut hasher);
        hasher.finish()
    };
    let mut hashes = HashSet::with_hasher(seeds.tables.clone());
    hashes.extend(list.iter().map(hash));
    hashes
}
