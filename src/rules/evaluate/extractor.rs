use alloc::boxed::Box;
use alloc::sync::Arc;

use super::block::filter::BlockFilter;
use super::key_hashes::{KeyHashes, Seeds};
use super::request_limit::RequestLimit;
use crate::error::ConfigError;
use crate::keyed::KeyStates;
use crate::rules::condition::{Condition, Cost, LimitBy, TierOf};
use crate::rules::key::Key;
use crate::rules::key_list::{KeyList, ListKind};
use crate::rules::key_missing::{MissingCause, OnMissingKey};
use crate::rules::rule::AnyRule;
use crate::rules::rule::enforcement::KeyFraction;
use crate::time::Nanos;

/// The part of a request that one state needs before its words are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extracted {
    /// The fingerprint of the key, or [`NO_KEY`].
    pub(crate) key: u64,
    pub(crate) permits: u64,
    pub(crate) limit: RequestLimit,
    /// Whether the rule is enforced for this request, and not in the shadow.
    pub(crate) enforced: bool,
    pub(crate) handling: Handling,
    /// Whether the rule has a key and the request does not.
    pub(crate) lacks_key: bool,
    /// Whether the server should have provided the key that the request lacks.
    pub(crate) requires_key: bool,
}

/// How a state handles a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// It is charged.
    Charge,
    /// It holds a slot, if its caller can release the slot.
    Hold,
    /// It is denied without a decision of the state.
    Deny,
    /// It is denied if its key is blocked. It is not charged.
    Block,
}

/// The key of a state that counts all requests together. Such a state has no table, so the fingerprint of a vacant entry in a
/// table can be equal to it.
pub(crate) const NO_KEY: u64 = 0;

impl Extracted {
    /// The extraction of one permit of this key, for a rule that has only a quota and a key.
    pub(crate) const fn of_key(key: u64) -> Self {
        Self {
            key,
            permits: 1,
            limit: RequestLimit::OF_RULE,
            enforced: true,
            handling: Handling::Charge,
            lacks_key: false,
            requires_key: false,
        }
    }

    /// Whether the request is denied without a decision of the state.
    #[inline(always)]
    pub(crate) const fn is_denied(&self) -> bool {
        matches!(self.handling, Handling::Deny)
    }

    /// Whether the request is denied because it lacks the key.
    pub(crate) const fn is_denied_without_key(&self) -> bool {
        self.is_denied() && self.lacks_key
    }

    /// Whether the request is denied because it lacks a key that the server should have provided.
    pub(crate) const fn is_denied_without_required_key(&self) -> bool {
        self.is_denied_without_key() && self.requires_key
    }
}

/// The functions and lists of a rule that a request is read by.
#[derive(Debug)]
pub(crate) struct Extractor<R: ?Sized> {
    /// Whether only the key and a lower limit are read from a request.
    reads_only_key: bool,
    key: Option<Key<R>>,
    cost: Option<Cost<R>>,
    when: Option<Condition<R>>,
    tier_of: Option<TierOf<R>>,
    tiers: TierIndex,
    limit_by: Option<LimitBy<R>>,
    /// The kind of the state: `Charge` for permits, `Hold` for slots in flight, `Block` for violations. It is never `Deny`, which a
    /// list, a missing key or a limit of 0 sets for one request.
    pub(super) handling: Handling,
    /// The limit of the rule's first quota.
    limit: u64,
    enforced: KeyFraction,
    // A retired state shares the lists of its rule.
    allow: Option<Arc<KeyList<R>>>,
    deny: Option<Arc<KeyList<R>>>,
    /// For a block, its filter. A request of a key that this filter shows as not blocked is not read.
    pub(crate) blocked: Option<Arc<BlockFilter>>,
}

impl<R: ?Sized> Extractor<R> {
    pub(crate) fn new(rule: &AnyRule<R>, seeds: &Seeds) -> Result<Self, ConfigError> {
        let enforced = KeyFraction::new(rule.enforced);
        let list = |kind, entries| match &rule.key {
            Some(key) => Ok(key.list(kind, entries, &seeds.tables)?.map(Arc::new)),
            None => Ok(None),
        };
        Ok(Self {
            reads_only_key: rule.when.is_none()
                && rule.cost.is_none()
                && rule.tiers.is_empty()
                && rule.allow.is_empty()
                && rule.deny.is_empty()
                && !rule.kind.is_in_flight()
                && enforced == KeyFraction::ALL,
            key: rule.key.clone(),
            cost: rule.cost.clone(),
            when: rule.when.clone(),
            tier_of: rule.tier_of.clone(),
            tiers: TierIndex::new(&rule.tiers),
            limit_by: rule.limit_by.clone(),
            handling: match rule.kind.is_in_flight() {
                true => Handling::Hold,
                false => Handling::Charge,
            },
            limit: rule.kind.quotas()[0].limit(),
            enforced,
            allow: list(ListKind::Allow, &rule.allow)?,
            deny: list(ListKind::Deny, &rule.deny)?,
            blocked: None,
        })
    }

    /// Creates the extractor of the block of a rule with a key. It has no `deny` list, because the states of the rule's quotas
    /// deny the keys of that list.
    pub(crate) fn of_block(rule: &AnyRule<R>, seeds: &Seeds) -> Result<Self, ConfigError> {
        Ok(Self {
            reads_only_key: false,
            tier_of: None,
            limit_by: None,
            handling: Handling::Block,
            deny: None,
            blocked: Some(Arc::new(BlockFilter::new(rule.keys())?)),
            ..Self::new(rule, seeds)?
        })
    }

    /// Reads the request. `None` if the rule does not apply to it.
    #[inline(always)]
    pub(crate) fn extract(&self, request: &R, seeds: &Seeds) -> Option<Extracted> {
        self.extract_by(request, seeds, |key| key.hash(request, &seeds.tables))
    }

    /// Reads the request. `None` if the rule does not apply to it. A key whose hash is known is not read again.
    #[inline(always)]
    pub(crate) fn extract_with(
        &self,
        request: &R,
        seeds: &Seeds,
        hashes: &mut KeyHashes,
    ) -> Option<Extracted> {
        self.extract_by(request, seeds, |key| hashes.hash(key, request, &seeds.tables))
    }

    /// Returns the fingerprint of the request's key, or [`NO_KEY`] for a rule without a key. `None` if the rule reads more than the key,
    /// or if the request lacks the key.
    #[inline(always)]
    pub(super) fn only_key(&self, request: &R, seeds: &Seeds) -> Option<u64> {
        if !self.reads_only_key || self.limit_by.is_some() {
            return None;
        }
        match &self.key {
            Some(key) => key.hash(request, &seeds.tables).map(KeyStates::fingerprint),
            None => Some(NO_KEY),
        }
    }

    #[inline(always)]
    fn extract_by(
        &self,
        request: &R,
        seeds: &Seeds,
        mut hash: impl FnMut(&Key<R>) -> Option<u64>,
    ) -> Option<Extracted> {
        if self.reads_only_key {
            let key = match &self.key {
                Some(key) => hash(key).map(KeyStates::fingerprint),
                None => Some(NO_KEY),
            };
            if let Some(key) = key {
                let mut extracted = Extracted::of_key(key);
                self.lower(&mut extracted, request);
                return Some(extracted);
            }
        }
        self.extract_all(request, seeds, hash)
    }

    /// Reads the request for the block of a rule, also if its key is not blocked.
    pub(crate) fn extract_for_block(&self, request: &R, seeds: &Seeds) -> Option<Extracted> {
        self.read(request, seeds, |key| key.hash(request, &seeds.tables))
    }

    /// Reads a request that lacks the key, or is of a rule that reads more than the key. Returns `None` also for a key that the filter of a
    /// block shows as not blocked.
    #[inline(never)]
    fn extract_all(
        &self,
        request: &R,
        seeds: &Seeds,
        hash: impl FnOnce(&Key<R>) -> Option<u64>,
    ) -> Option<Extracted> {
        let extracted = self.read(request, seeds, hash)?;
        let may_apply = |filter: &Arc<BlockFilter>| filter.end(extracted.key) > Nanos::ZERO;
        self.blocked.as_ref().is_none_or(may_apply).then_some(extracted)
    }

    #[inline(always)]
    fn read(
        &self,
        request: &R,
        seeds: &Seeds,
        hash: impl FnOnce(&Key<R>) -> Option<u64>,
    ) -> Option<Extracted> {
        if let Some(when) = &self.when
            && !(when.0.function())(request)
        {
            return None;
        }
        let mut extracted = Extracted::of_key(NO_KEY);
        extracted.handling = self.handling;
        if let Some(cost) = &self.cost {
            extracted.permits = (cost.0.function())(request);
        }
        extracted.enforced = self.enforced != KeyFraction::NONE;
        if let Some(key) = &self.key {
            let hash = match hash(key) {
                Some(hash) => {
                    let has = |list: &Arc<KeyList<R>>| list.contains(request, hash);
                    if self.allow.as_ref().is_some_and(has) {
                        return None;
                    }
                    if self.deny.as_ref().is_some_and(has) {
                        extracted.handling = Handling::Deny;
                    }
                    hash
                }
                None => {
                    let on_missing = key.missing(request).on_missing;
                    if on_missing == OnMissingKey::Skip {
                        return None;
                    }
                    extracted.lacks_key = true;
                    extracted.requires_key = on_missing == OnMissingKey::Fail;
                    if on_missing.denies() && self.blocked.is_none() {
                        extracted.handling = Handling::Deny;
                    }
                    key.hash_without(request, &seeds.tables)
                }
            };
            extracted.key = KeyStates::fingerprint(hash);
            if self.enforced != KeyFraction::ALL && extracted.enforced {
                let hash = key.hash_or_shared(request, &seeds.percent);
                extracted.enforced = self.enforced.contains(hash);
            }
        }
        if let Some(tier_of) = &self.tier_of {
            let name = (tier_of.0.function())(request);
            let tier = name.and_then(|name| self.tiers.number(name)).unwrap_or(0);
            extracted.limit = RequestLimit::of_tier(tier);
        }
        self.lower(&mut extracted, request);
        Some(extracted)
    }

    /// Lowers the limit of the request, if the rule has a function that does.
    #[inline(always)]
    fn lower(&self, extracted: &mut Extracted, request: &R) {
        let Some(limit_by) = &self.limit_by else {
            return;
        };
        let Some(limit) = (limit_by.0)(request) else {
            return;
        };
        let of_tier = self.tier_limit(extracted.limit.tier()).unwrap_or(self.limit);
        if limit < of_tier {
            extracted.limit = extracted.limit.lowered_to(limit);
        }
        if limit == 0 && !extracted.is_denied() {
            extracted.handling = Handling::Deny;
            // The limit of 0 denies the request, and not the missing key.
            extracted.lacks_key = false;
        }
    }

    /// Returns why the request lacks the key. `None` if it has the key, or if the key does not know the cause.
    #[cold]
    pub(crate) fn missing_cause(&self, request: &R, seeds: &Seeds) -> Option<MissingCause> {
        let key = self.key.as_ref()?;
        match key.hash(request, &seeds.tables) {
            Some(_) => None,
            None => key.missing(request).cause,
        }
    }

    /// The limit of the tier. `None` for 0, which is the rule without a tier.
    pub(crate) fn tier_limit(&self, tier: usize) -> Option<u64> {
        self.tiers.limit(tier)
    }

    /// Whether two requests of one key may have different limits.
    pub(crate) fn has_several_limits(&self) -> bool {
        !self.tiers.is_empty() || self.limit_by.is_some()
    }

    pub(crate) fn has_cost(&self, cost: &Cost<R>) -> bool {
        self.cost.as_ref().is_some_and(|own| own.0.is(&cost.0))
    }

    pub(crate) fn key_name(&self) -> Option<&str> {
        self.key.as_ref().map(Key::name)
    }

    /// Whether both count by a key with the same name, or both have no key.
    pub(crate) fn has_key_of(&self, other: &Self) -> bool {
        self.key_name() == other.key_name()
    }

    /// Whether both apply to the same requests at the same cost, by the names of the functions.
    pub(crate) fn has_scope_of(&self, other: &Self) -> bool {
        self.cost.as_ref().map(Cost::name) == other.cost.as_ref().map(Cost::name)
            && self.when.as_ref().map(Condition::name) == other.when.as_ref().map(Condition::name)
    }

    /// Returns an extractor that applies to the requests of the other one, at its cost.
    pub(crate) fn with_scope_of(&self, other: &Self) -> Self {
        Self {
            reads_only_key: self.reads_only_key && other.when.is_none() && other.cost.is_none(),
            cost: other.cost.clone(),
            when: other.when.clone(),
            ..self.clone()
        }
    }
}

impl<R: ?Sized> Clone for Extractor<R> {
    fn clone(&self) -> Self {
        Self {
            reads_only_key: self.reads_only_key,
            key: self.key.clone(),
            cost: self.cost.clone(),
            when: self.when.clone(),
            tier_of: self.tier_of.clone(),
            tiers: self.tiers.clone(),
            limit_by: self.limit_by.clone(),
            handling: self.handling,
            limit: self.limit,
            enforced: self.enforced,
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            blocked: self.blocked.clone(),
        }
    }
}

/// The tiers of a rule, sorted by name. A lookup compares at most log₂ n + 1 of n names.
#[derive(Clone, Debug)]
struct TierIndex {
    /// The limits, in the order of the rule.
    limits: Box<[u64]>,
    /// The names in ascending order, each with the number of its tier, from 1.
    numbers: Box<[(Arc<str>, usize)]>,
}

impl TierIndex {
    /// Indexes tiers whose names differ.
    fn new(tiers: &[(Arc<str>, u64)]) -> Self {
        let names = tiers.iter().map(|(name, _)| Arc::clone(name));
        let mut numbers: Box<[_]> = names.zip(1..).collect();
        numbers.sort_unstable();
        Self {
            limits: tiers.iter().map(|&(_, limit)| limit).collect(),
            numbers,
        }
    }

    const fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// The number of the tier with this name, from 1.
    fn number(&self, name: &str) -> Option<usize> {
        let found = self.numbers.binary_search_by(|(tier, _)| (**tier).cmp(name));
        found.ok().map(|index| self.numbers[index].1)
    }

    /// The limit of the tier with this number. `None` for 0, which is no tier.
    fn limit(&self, number: usize) -> Option<u64> {
        Some(self.limits[number.checked_sub(1)?])
    }
}
