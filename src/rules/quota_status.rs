use alloc::sync::Arc;
use core::time::Duration;

use crate::quota::Quota;

/// The status of one quota of one rule, for one request.
///
/// A [`RulePeek`](super::RulePeek) reads these values on request; a status has read them.
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

    /// The limit in permits, of the key's tier if it is in one.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The permits that the request costs.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// The permits that were left after the decision: of the limit, or of this node's part of it if the node decided.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The time from the decision until the quota has room, if no other request is admitted. `None`: never, or unknown.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The time from the decision after which more permits are left, if no other request is admitted. `None`: nothing is
    /// charged, or never, or unknown.
    ///
    /// It is exact where this node has decided by a limiter of its own. Where a store or a lease has decided it is an upper
    /// bound: after a window, and a cell of a counter, no permit counts any more.
    #[must_use]
    pub const fn reset_after(&self) -> Option<Duration> {
        self.reset_after
    }

    /// Whether the rule is enforced for this key. A rule in shadow mode is not.
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
}
