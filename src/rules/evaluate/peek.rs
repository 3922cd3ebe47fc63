use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use super::extractor::{Extracted, Handling};
use super::key_hashes::KeyHashes;
use super::request_limit::StatePeek;
use super::rule_state::{CopiedWords, RuleState};
use super::rule_states::{KeyDecision, RuleStates};
use crate::quota::Quota;
use crate::rules::quota_status::QuotaStatus;
use crate::time::Nanos;

/// A read-only view of one quota of one rule, for one request.
///
/// # Concurrency
///
/// Each method reads the state when it is called, as with [`Peek`](crate::Peek). A [`status`](Self::status) keeps the
/// values that it has read.
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
///     assert_eq!((peek.rule(), peek.remaining(), peek.status().limit), ("all", 1, 2));
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
            let extracted = state.extractor.extract_with(request, &self.seeds, &mut hashes);
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
                let extracted = state.extractor.extract_with(request, &self.seeds, &mut hashes);
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
            if let Some(extracted) = state.extractor.extract_with(request, &self.seeds, hashes) {
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
            let extracted = state.extractor.extract(request, &self.seeds);
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
    const fn is_block(&self) -> bool {
        matches!(self.extracted.handling, Handling::Block)
    }

    /// Returns the name of the rule.
    #[must_use]
    pub fn rule(&self) -> &'a str {
        self.rule
    }

    /// Reads the current values of the quota.
    #[must_use]
    pub fn status(&self) -> QuotaStatus {
        let (extracted, peek) = (&self.extracted, self.peek.get());
        let ((remaining, reset_after), retry_after) = match extracted.is_denied() {
            true => ((0, None), None),
            false => (
                peek.remaining_and_reset_in(self.index),
                peek.retry_after_in(self.index, extracted.permits),
            ),
        };
        QuotaStatus {
            rule: Arc::clone(self.rule),
            quota: self.quota,
            limit: self.limit,
            permits: extracted.permits,
            remaining,
            retry_after,
            reset_after,
            is_enforced: extracted.enforced,
            lacks_key: extracted.is_denied_without_key(),
            lacks_required_key: extracted.is_denied_without_required_key(),
            is_block: self.is_block(),
        }
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
