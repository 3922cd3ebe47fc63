use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use smallvec::SmallVec;

use super::decision::Spent;
use super::store::{Part, Verdict};
use super::store_error::StoreError;
use crate::quota::Quota;
use crate::rules::PaidHere;

/// Who has decided about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecidedBy {
    /// The store, for all machines.
    Store,
    /// This node, as the rules have it ([`Mode`](crate::Mode)): by what the store has let it have, or by limiters of its
    /// own.
    Account,
    /// This node alone, since the store did not answer: by [`OnError`](crate::OnError).
    Node,
    /// Nobody had to: no rule is about the request, or a list of keys has decided.
    Nobody,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Rules have no room.
    Spent,
    /// The key is on a rule's list of those that are always refused, or the request lacks a key that it must have
    /// ([`OnMissingKey::Deny`](crate::rules::OnMissingKey)).
    Listed,
    /// The store does not answer, and rules have it that nobody is admitted then.
    Unavailable,
}

/// A look at one quota of one rule, for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    pub(super) rule: Arc<str>,
    pub(super) quota: Quota,
    pub(super) limit: u64,
    pub(super) permits: u64,
    pub(super) remaining: u64,
    pub(super) retry_after: Option<Duration>,
    pub(super) enforced: bool,
}

impl Look {
    /// The rule's name.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Which of the rule's quotas it is.
    #[must_use]
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// The limit, in permits: that of the key's tier, if it is in one.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The permits that the request costs.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// The permits that were left then, after what the request was charged: of the limit, or of this node's part of
    /// it, whoever has decided.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// How long after the decision this quota has room for the request, if nobody else asks; `None`: never, or nobody
    /// knows.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether a refusal by the rule counts: it is not in the shadow for this key.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        self.enforced
    }
}

/// A request was admitted by every rule that is about it.
///
/// It is what [`refund`](super::SharedRules::refund) needs; dropping it leaves the permits spent.
#[derive(Debug)]
pub struct SharedPassed {
    pub(super) decided_by: DecidedBy,
    pub(super) spent: SmallVec<[Spent; 2]>,
    /// Nothing, if accounts have decided.
    pub(super) more: Option<Box<More>>,
}

/// What there is to be said of a request that not only accounts have admitted.
#[derive(Debug, Default)]
pub(super) struct More {
    pub(super) looks: Vec<Look>,
    pub(super) error: Option<StoreError>,
    pub(super) parts: Vec<Part>,
    pub(super) verdict: Option<Verdict>,
    pub(super) paid: Vec<PaidHere>,
}

impl SharedPassed {
    /// Who has decided.
    #[must_use]
    pub const fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// What the store has found of each quota; nothing when it has not decided.
    pub fn looks(&self) -> impl Iterator<Item = &Look> {
        self.more.iter().flat_map(|more| &more.looks)
    }

    /// The reading of the store's clock that the request was judged at, in microseconds of the store's time: of Redis
    /// since 1970. `None`: it was not the store that has decided.
    #[must_use]
    pub fn at(&self) -> Option<u64> {
        self.more.as_ref()?.verdict.as_ref().map(Verdict::at)
    }

    /// Why the store has not decided, if it was asked.
    #[must_use]
    pub fn error(&self) -> Option<&StoreError> {
        self.more.as_ref()?.error.as_ref()
    }
}

/// A request was refused, and by which rules.
#[derive(Clone, Debug)]
#[must_use = "a refusal that nobody reads admits the request"]
pub struct SharedRefused {
    pub(super) decided_by: DecidedBy,
    pub(super) reason: Reason,
    pub(super) violations: Vec<Look>,
    pub(super) at: Option<u64>,
    pub(super) error: Option<StoreError>,
}

impl SharedRefused {
    /// Who has decided.
    #[must_use]
    pub const fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// Why the rules have refused.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// Every quota of an enforced rule that has refused, at least one.
    pub fn violations(&self) -> impl Iterator<Item = &Look> {
        self.violations.iter()
    }

    /// How long after the decision the same request would be admitted by all rules, if nobody else asked; `None`:
    /// never (it costs more than a limit, or its key is on a list), or nobody knows (the store does not answer).
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let waits = self.violations.iter().map(Look::retry_after);
        waits.reduce(|one, other| Some(one?.max(other?))).unwrap_or(None)
    }

    /// As [`SharedPassed::at`].
    #[must_use]
    pub const fn at(&self) -> Option<u64> {
        self.at
    }

    /// Why the store has not decided, if it was asked.
    #[must_use]
    pub const fn error(&self) -> Option<&StoreError> {
        self.error.as_ref()
    }
}

impl fmt::Display for SharedRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            Reason::Spent => "rate limit reached: ",
            Reason::Listed => "refused by a list: ",
            Reason::Unavailable => "the limits cannot be looked up: ",
        })?;
        for (index, violation) in self.violations.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            f.write_str(&violation.rule)?;
            if self.reason == Reason::Spent {
                let (remaining, limit) = (violation.remaining, violation.limit);
                write!(
                    f,
                    " ({remaining} of {limit} per {:?} left)",
                    violation.quota.window()
                )?;
            }
        }
        match (self.reason, self.retry_after()) {
            (Reason::Unavailable, _) => Ok(()),
            (_, Some(after)) => write!(f, "; try again in {after:?}"),
            (_, None) => f.write_str("; never admitted"),
        }
    }
}

impl core::error::Error for SharedRefused {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(self.error.as_ref()?)
    }
}
