use alloc::sync::Arc;
use core::time::Duration;

use crate::quota::Quota;

/// The status of one quota of one rule, for one request.
///
/// A status has values that were read once. A [`RulePeek`](super::RulePeek) reads them on request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaStatus {
    pub(crate) rule: Arc<str>,
    pub(crate) quota: Quota,
    pub(crate) limit: u64,
    pub(crate) permits: u64,
    pub(crate) remaining: u64,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) reset_after: Option<Duration>,
    pub(crate) enforced: bool,
    pub(crate) lacks_key: bool,
    pub(crate) lacks_required_key: bool,
    pub(crate) is_block: bool,
}

impl QuotaStatus {
    /// The rule's name.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The quota.
    #[must_use]
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// The limit in permits. If the key has a tier, it is the tier's limit.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The permits that the request costs.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// The permits that were left after the decision. If this node has decided, they are those of the node's share of the limit.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The time from the decision until the quota would admit the request, if no other request is admitted before. `None` if it never
    /// would, or if the time is unknown.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The time from the decision until more permits are left, if no other request is admitted before. `None` if nothing is charged,
    /// if there are never more, or if the time is unknown.
    ///
    /// It is exact if a limiter of this node has decided. If a store or a lease has decided, it is an upper bound: one window, and
    /// one cell of a counter, after which no permit counts.
    #[must_use]
    pub const fn reset_after(&self) -> Option<Duration> {
        self.reset_after
    }

    /// Whether the rule is enforced for this key, and not in the shadow.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        self.enforced
    }

    /// Whether the rule denies the request because it has no key: see [`OnMissingKey`](super::OnMissingKey).
    #[must_use]
    pub const fn lacks_key(&self) -> bool {
        self.lacks_key
    }

    /// Whether the request lacks a key that the server should have provided: see
    /// [`OnMissingKey::Fail`](super::OnMissingKey::Fail).
    #[must_use]
    pub const fn lacks_required_key(&self) -> bool {
        self.lacks_required_key
    }

    /// Whether this is the [block](crate::Rule::block) of the rule, and not one of its quotas. The quota is then that of violations,
    /// and no permits remain until the block ends.
    #[must_use]
    pub const fn is_block(&self) -> bool {
        self.is_block
    }
}
