//! The targets that a request is checked against, and the route by which each is decided.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use smallvec::SmallVec;

use super::period::CurrentPeriod;
use super::validate::StoredAs;
use crate::quota::Quota;
use crate::rules::QuotaStatus;
use crate::rules::evaluate::extractor::Extracted;
use crate::rules::rule::block::Block;
use crate::rules::rule::mode::Mode;
use crate::rules::rule::on_error::OnError;

/// The quotas that a request is checked against, in the form that a decision on this node needs.
#[derive(Debug)]
pub(crate) enum QuickPlan {
    /// One lease, since there is one state with one quota. It needs no list.
    One(Target),
    /// Any number of states.
    Many(CheckPlan),
}

/// The quotas that a request is checked against.
#[derive(Debug)]
pub(crate) struct CheckPlan {
    pub(crate) targets: SmallVec<[Target; 4]>,
    /// The hashes of their keys in the store, once they are computed.
    pub(super) key_hashes: Vec<u128>,
    /// Whether a denial is a violation of rules with a block.
    pub(crate) violates: bool,
}

/// A state of this node that applies to a request. It has one or several quotas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// The position of the state.
    pub(crate) state: u16,
    pub(super) extracted: Extracted,
    pub(crate) route: Route,
    /// The range of its quotas, `first..end`, among all [quotas](super::compile::Planner::quotas) of the request.
    pub(super) first: u16,
    pub(super) end: u16,
}

/// The way in which a target is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Not at all: it costs nothing, or its rule is in the shadow and would deny it without a decision.
    Undecided,
    /// Denied without a decision: by a list, for lack of a key, or because its limit is 0.
    Denied,
    /// By the state of this node.
    Local,
    /// By leases, one for each quota.
    Lease,
    /// By the store.
    Store,
}

impl Target {
    pub(crate) const fn permits(&self) -> u64 {
        self.extracted.permits
    }

    /// Its quotas, by their positions among those of the request.
    #[inline]
    pub(crate) fn quotas(&self) -> Range<usize> {
        usize::from(self.first)..usize::from(self.end)
    }

    /// The position of a quota of the request in the state.
    #[inline]
    pub(crate) const fn member(&self, quota: usize) -> usize {
        quota - self.first as usize
    }

    /// The key by which this node finds the lease for a quota of the request.
    ///
    /// Two keys share a lease only if their 64-bit hashes with secret seeds are equal.
    #[inline]
    pub(crate) const fn lease_key(&self, quota: usize) -> u64 {
        let Extracted { key, limit, .. } = self.extracted;
        // The tier has separate bits, since another tier has another limit.
        let key = key.wrapping_add((limit.tier() as u64) << 32);
        let quota = (self.state as u64) << 8 | self.member(quota) as u64;
        match key.wrapping_add((quota + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            // 0 stands for no key. With a probability of 2^-64 a key would have it, and shares the number of another key instead.
            0 => 1,
            key => key,
        }
    }
}

impl CheckPlan {
    /// The targets that are decided by this route.
    pub(crate) fn by(&self, route: Route) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(move |target| target.route == route)
    }

    /// The target that a quota belongs to.
    pub(crate) fn target_of(&self, quota: usize) -> &Target {
        let target = self
            .targets
            .iter()
            .find(|target| target.quotas().contains(&quota));
        // Every quota belongs to a target.
        target.unwrap_or(&self.targets[0])
    }
}

/// One quota that a request is checked against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedQuota<'a> {
    /// The state of this node for the quota, and the position of the quota there.
    pub(crate) state: u16,
    pub(crate) state_quota: usize,
    /// The part of the request that the state needs.
    pub(crate) extracted: Extracted,
    /// The rule's name, and its position in the rule set.
    pub(crate) name: &'a Arc<str>,
    pub(crate) rule: u16,
    /// The position among the rule's quotas.
    pub(crate) index: usize,
    pub(crate) quota: Quota,
    /// The limit that applies to the request, such as that of a tier.
    pub(crate) limit: u64,
    pub(crate) stored_as: StoredAs,
    /// The period whose counter the store is asked about. `None`: the store keeps one counter for all time.
    pub(crate) period: Option<CurrentPeriod>,
    /// A hash of the key, equal on all machines.
    pub(crate) key_hash: u128,
    pub(crate) on_error: OnError,
    pub(crate) mode: Mode,
    /// The block of the rule.
    pub(crate) block: Option<&'a Arc<Block>>,
}

impl PlannedQuota<'_> {
    /// The most permits at once.
    pub(crate) const fn capacity(&self) -> u64 {
        match self.stored_as {
            StoredAs::Gcra(burst) => burst,
            StoredAs::Log | StoredAs::Cells(_) | StoredAs::Slots(_) | StoredAs::Periods => self.limit,
        }
    }

    /// The quota, with the length of the current period as its window if it has periods.
    pub(crate) fn quota_now(&self) -> Quota {
        let of_period = |period: CurrentPeriod| Quota::of_period(self.quota.limit(), period.length);
        self.period.map_or(self.quota, of_period)
    }

    /// The status of the quota before any decision.
    pub(crate) fn unknown_status(&self) -> QuotaStatus {
        QuotaStatus {
            rule: Arc::clone(self.name),
            quota: self.quota_now(),
            limit: self.limit,
            permits: self.extracted.permits,
            remaining: 0,
            retry_after: None,
            reset_after: None,
            is_enforced: self.extracted.enforced,
            lacks_key: self.extracted.is_denied_without_key(),
            lacks_required_key: self.extracted.is_denied_without_required_key(),
            is_block: false,
        }
    }
}

impl FromIterator<Target> for CheckPlan {
    fn from_iter<I: IntoIterator<Item = Target>>(targets: I) -> Self {
        Self {
            targets: targets.into_iter().collect(),
            key_hashes: Vec::new(),
            violates: true,
        }
    }
}

impl From<QuickPlan> for CheckPlan {
    fn from(plan: QuickPlan) -> Self {
        match plan {
            QuickPlan::One(target) => [target].into_iter().collect(),
            QuickPlan::Many(plan) => plan,
        }
    }
}
