use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use super::extractor::{Extracted, Handling};
use super::key_hashes::KeyHashes;
use super::request_limit::StatePeek;
use super::rule_state::{CopiedWords, RuleState};
use super::rule_states::{KeyDecision, RuleStates};
use crate::algorithm::AnyAlgorithm;
use crate::quota::Quota;
use crate::rules::quota_status::QuotaStatus;
use crate::time::Nanos;

/// A read-only view of one quota of one rule, for one request.
///
/// # Concurrency
///
/// Each method reads the state when it is called, as with [`Peek`](crate::Peek).
///
/// # Examples
///
/// ```
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::{ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::<str>::new()
///     .rule(Rule::new("all", "2/s".parse()?))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// assert!(rules.check("request").is_ok());
/// for peek in rules.peek("request") {
///     assert_eq!((peek.rule(), peek.limit(), peek.remaining()), ("all", 2, 1));
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a peek reads nothing until one of its methods is called"]
pub struct RulePeek<'a> {
    rule: &'a Arc<str>,
    quota: Quota,
    limit: u64,
    /// The index of the quota in its state.
    index: usize,
    extracted: Extracted,
    peek: StatePeek<'a>,
}

/// The current values of one quota of one enforced rule, for one request. The fields are those of [`RulePeek`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnforcedQuota<'a> {
    pub(crate) rule: &'a str,
    pub(crate) quota: Quota,
    pub(crate) limit: u64,
    pub(crate) permits: u64,
    pub(crate) remaining: u64,
    /// `None` also if it was not asked for.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) reset_after: Option<Duration>,
    /// Whether a list denies the key, or the request lacks it.
    pub(crate) always_denied: bool,
    pub(crate) lacks_key: bool,
    pub(crate) lacks_required_key: bool,
    pub(crate) is_block: bool,
    /// Whether the request gets fewer permits than it costs.
    pub(crate) violated: bool,
}

impl<R: ?Sized> RuleStates<R> {
    pub(crate) fn peek<'a>(&'a self, request: &'a R, now: Nanos) -> impl Iterator<Item = RulePeek<'a>> {
        let mut hashes = KeyHashes::new();
        let views = self.states.iter().flat_map(move |state| {
            let extracted = state.extract_with(request, &self.seeds, &mut hashes);
            extracted.into_iter().flat_map(move |extracted| {
                let indices = 0..state.quotas.len();
                indices.map(move |index| self.view(state, index, extracted, now))
            })
        });
        // A block is listed only while the key is blocked.
        views.filter(|view| !view.is_block() || view.remaining() == 0)
    }

    /// Removes the counts of the request's keys. Blocks stay. Returns the number of states in which a key had an entry.
    pub(crate) fn reset(&self, request: &R, now: Nanos) -> usize {
        let mut hashes = KeyHashes::new();
        let reset = self
            .states
            .iter()
            .filter(|state| !state.is_block())
            .filter(|state| {
                let extracted = state.extract_with(request, &self.seeds, &mut hashes);
                extracted.is_some_and(|extracted| state.reset(&extracted, now))
            });
        reset.count()
    }

    /// Calls `add` with the current values of each enforced quota of [`peek`](Self::peek). Keys whose hashes are known are not
    /// extracted again, and the words of a state are looked up once for all its quotas. `with_retry` adds the retry times.
    pub(crate) fn enforced_quotas<'a>(
        &'a self,
        request: &R,
        now: Nanos,
        with_retry: bool,
        hashes: &mut KeyHashes,
        mut add: impl FnMut(EnforcedQuota<'a>),
    ) {
        for (index, state) in (0..).zip(&self.states) {
            if let Some(extracted) = state.extract_with(request, &self.seeds, hashes) {
                self.enforced_quotas_of((index, &extracted, None), now, with_retry, |_, values| {
                    add(values)
                });
            }
        }
    }

    /// Calls `add` with the values of each quota of the only state, for a request that this state has admitted by its key.
    #[inline]
    pub(crate) fn quotas_by_key<'a>(
        &'a self,
        decided: &KeyDecision,
        now: Nanos,
        mut add: impl FnMut(EnforcedQuota<'a>),
    ) {
        let extracted = Extracted::of_key(decided.key);
        self.enforced_quotas_of((0, &extracted, None), now, false, |_, values| add(values));
    }

    /// Calls `add` with the index and the values of each quota of a state that is enforced, and not of a block of another key.
    /// The values are read from the `copy` of the state's words, or else from the state.
    pub(super) fn enforced_quotas_of<'a>(
        &'a self,
        (state, extracted, copy): (u16, &Extracted, Option<&CopiedWords>),
        now: Nanos,
        with_retry: bool,
        mut add: impl FnMut(u16, EnforcedQuota<'a>),
    ) {
        if !extracted.enforced {
            return;
        }
        let state = &self.states[usize::from(state)];
        let always_denied = extracted.is_denied();
        let is_block = extracted.handling == Handling::Block;
        state.with_peek(extracted, now, copy, |peek| {
            if is_block && peek.remaining_in(0) > 0 {
                return;
            }
            let period = peek.algorithm().period_length(now);
            for (at, quota) in (0..).zip(&state.quotas) {
                let index = usize::from(at);
                let (remaining, reset_after) = match always_denied {
                    true => (0, None),
                    false => peek.remaining_and_reset_in(index),
                };
                let retry_after = match with_retry && !always_denied {
                    true => peek.retry_after_in(index, extracted.permits),
                    false => None,
                };
                let values = EnforcedQuota {
                    rule: &self.rules[usize::from(quota.rule)].name,
                    quota: in_period(quota.quota, period),
                    limit: state.limit(index, extracted),
                    permits: extracted.permits,
                    remaining,
                    retry_after,
                    reset_after,
                    always_denied,
                    lacks_key: extracted.is_denied_without_key(),
                    lacks_required_key: extracted.is_denied_without_required_key(),
                    is_block,
                    violated: always_denied || remaining < extracted.permits,
                };
                add(at, values);
            }
        });
    }

    /// Returns why the request lacks a key of an enforced rule, if the key knows it.
    pub(crate) fn missing_cause(&self, request: &R) -> Option<crate::rules::key_missing::MissingCause> {
        let mut denying = self.states.iter().filter(|state| {
            let extracted = state.extract(request, &self.seeds);
            extracted.is_some_and(|extracted| extracted.enforced && extracted.is_denied_without_key())
        });
        denying.find_map(|state| state.extractor.missing_cause(request, &self.seeds))
    }

    pub(crate) fn view<'a>(
        &'a self,
        state: &'a RuleState<R>,
        index: usize,
        extracted: Extracted,
        now: Nanos,
    ) -> RulePeek<'a> {
        let quota = &state.quotas[index];
        let period = state.algorithms.tiers[0].period_length(now);
        RulePeek {
            rule: &self.rules[usize::from(quota.rule)].name,
            quota: in_period(quota.quota, period),
            limit: state.limit(index, &extracted),
            index,
            extracted,
            peek: state.peek(&extracted, now),
        }
    }
}

/// The quota, with the length of the calendar period that it is for, if it has such periods.
#[inline]
fn in_period(quota: Quota, period: Option<Duration>) -> Quota {
    period.map_or(quota, |period| Quota::of_period(quota.limit(), period))
}

impl<'a> RulePeek<'a> {
    /// Returns the name of the rule.
    #[must_use]
    pub fn rule(&self) -> &'a str {
        self.rule
    }

    /// Returns the quota of this view. The quota of a calendar has the length of the current period as its window.
    #[must_use]
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// Returns the algorithm that decides, with the limit of the request. Its `Display` names its form: `60 cells`, or
    /// `one word of 16 cells in units of 4`.
    #[must_use]
    pub fn algorithm(&self) -> &AnyAlgorithm {
        self.peek.algorithm()
    }

    /// Returns the limit in permits: that of the key's tier if the key has one, and that of the quota otherwise. A lower limit of
    /// the request ([`Rule::limit_by`](crate::Rule::limit_by)) replaces it.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns whether this is the [block](crate::Rule::block) of the rule, and not one of its quotas. The quota is then that of
    /// violations, and no permits remain until the block ends.
    #[must_use]
    pub const fn is_block(&self) -> bool {
        matches!(self.extracted.handling, Handling::Block)
    }

    /// Returns whether the rule is enforced for this key, and not in the shadow.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        self.extracted.enforced
    }

    /// Returns whether the rule denies the request because it has no key ([`OnMissingKey::Deny`], [`OnMissingKey::Fail`]).
    ///
    /// [`OnMissingKey::Deny`]: super::super::OnMissingKey::Deny
    /// [`OnMissingKey::Fail`]: super::super::OnMissingKey::Fail
    #[must_use]
    pub const fn lacks_key(&self) -> bool {
        self.extracted.is_denied_without_key()
    }

    /// Returns whether the request lacks a key that the server should have provided ([`OnMissingKey::Fail`]).
    ///
    /// [`OnMissingKey::Fail`]: super::super::OnMissingKey::Fail
    #[must_use]
    pub const fn lacks_required_key(&self) -> bool {
        self.extracted.is_denied_without_required_key()
    }

    /// Reads the current values of the quota.
    #[must_use]
    pub fn status(&self) -> QuotaStatus {
        let (remaining, reset_after) = match self.extracted.is_denied() {
            true => (0, None),
            false => self.peek.get().remaining_and_reset_in(self.index),
        };
        QuotaStatus {
            rule: Arc::clone(self.rule),
            quota: self.quota,
            limit: self.limit,
            permits: self.permits(),
            remaining,
            retry_after: self.quota_retry_after(self.permits()),
            reset_after,
            enforced: self.is_enforced(),
            lacks_key: self.lacks_key(),
            lacks_required_key: self.lacks_required_key(),
            is_block: self.is_block(),
        }
    }

    /// Returns the cost of the request in permits.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.extracted.permits
    }

    /// Returns the most permits that one request would be granted now.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        if self.extracted.is_denied() {
            return 0;
        }
        self.peek.get().remaining_in(self.index)
    }

    /// Returns the permits that still count, for this quota and all quotas that share its state.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.peek.get().spent()
    }

    /// Returns the time until this quota and all quotas that share its state would admit `permits`, if no other request came
    /// before. `None` if they never would.
    #[must_use]
    pub fn retry_after(&self, permits: u64) -> Option<Duration> {
        if self.extracted.is_denied() {
            return None;
        }
        self.peek.get().retry_after(permits)
    }

    /// Returns the time until this quota alone would admit `permits`, if no other request came before. `None` if it never would.
    #[must_use]
    pub fn quota_retry_after(&self, permits: u64) -> Option<Duration> {
        if self.extracted.is_denied() {
            return None;
        }
        self.peek.get().retry_after_in(self.index, permits)
    }
}

impl fmt::Debug for RulePeek<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RulePeek")
            .field("rule", &self.rule)
            .field("quota", &self.quota)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
