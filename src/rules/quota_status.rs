use alloc::sync::Arc;
use core::time::Duration;

use crate::quota::Quota;

/// The status of one quota of one rule, for one request. It keeps the values that were read for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaStatus {
    /// The rule's name.
    pub rule: Arc<str>,
    /// The quota. That of a calendar has the length of the current period as its window.
    pub quota: Quota,
    /// The limit in permits: that of the key's tier if the key has one, and that of the quota otherwise. A lower limit of the
    /// request ([`Rule::limit_by`](crate::Rule::limit_by)) replaces it.
    pub limit: u64,
    /// The permits that the request costs.
    pub permits: u64,
    /// The permits that were left after the decision. If this node has decided, they are those of the node's share of the limit.
    pub remaining: u64,
    /// The time from the decision until the quota would admit the request, if no other request is admitted before. `None` if it never
    /// would, or if the time is unknown.
    pub retry_after: Option<Duration>,
    /// The time from the decision until more permits are left, if no other request is admitted before. `None` if nothing is charged,
    /// if there are never more, or if the time is unknown.
    ///
    /// It is exact if a limiter of this node has decided. If a store or a lease has decided, it is an upper bound: one window, and
    /// one cell of a counter, after which no permit counts.
    pub reset_after: Option<Duration>,
    /// Whether the rule is enforced for this key, and not in the shadow.
    pub is_enforced: bool,
    /// Whether the rule denies the request because it has no key: see [`OnMissingKey`](super::OnMissingKey).
    pub lacks_key: bool,
    /// Whether the request lacks a key that the server should have provided: see
    /// [`OnMissingKey::Fail`](super::OnMissingKey::Fail).
    pub lacks_required_key: bool,
    /// Whether this is the [block](crate::Rule::block) of the rule, and not one of its quotas. The quota is then that of violations,
    /// and no permits remain until the block ends.
    pub is_block: bool,
}
