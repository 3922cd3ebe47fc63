//! What a group says about one request.

use super::{Group, Seeds};
use crate::keyed::Store;
use crate::rules::key::{Key, Missing, TierOf};
use crate::rules::share::Share;

/// What a group says about one request, before anybody has looked at a state.
#[derive(Clone, Copy, Debug)]
pub(in crate::rules) struct Subject {
    pub(in crate::rules) key: u64,
    pub(in crate::rules) permits: u64,
    /// Of the policy.
    pub(in crate::rules) tier: usize,
    /// Whether a refusal counts.
    pub(in crate::rules) enforced: bool,
    /// Whether the key is refused whatever it has spent.
    pub(in crate::rules) refused: bool,
    /// Whether the request has no key, though the rules have one.
    pub(in crate::rules) lacks_key: bool,
}

impl Subject {
    /// Of a rule that says nothing but a quota and a key, about a request with this key.
    const fn plain(key: u64) -> Self {
        Self {
            key,
            permits: 1,
            tier: 0,
            enforced: true,
            refused: false,
            lacks_key: false,
        }
    }
}

/// Stands for a key where there is none.
pub(super) const EVERYBODY: u64 = 0;

impl<R: ?Sized> Group<R> {
    /// What is to be decided about a request; `None`: nothing, it is none of these rules' business.
    #[inline(always)]
    pub(in crate::rules) fn subject(&self, request: &R, seeds: &Seeds) -> Option<Subject> {
        if self.is_plain {
            let key = match &self.key {
                Some(key) => key.hash(request, &seeds.tables).map(Store::fingerprint),
                None => Some(EVERYBODY),
            };
            if let Some(key) = key {
                return Some(Subject::plain(key));
            }
        }
        self.subject_in_full(request, seeds)
    }

    /// The same for rules that ask more of a request than its key.
    #[inline(never)]
    fn subject_in_full(&self, request: &R, seeds: &Seeds) -> Option<Subject> {
        if let Some(when) = &self.when
            && !(when.0.function())(request)
        {
            return None;
        }
        let mut subject = Subject::plain(EVERYBODY);
        if let Some(cost) = &self.cost {
            subject.permits = (cost.0.function())(request);
        }
        subject.enforced = self.enforced != Share::NONE;
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
}
