//! The values by which a request is denied.
//!
//! A state that decides in one step does not return the values that it read, because each admission would pay for them. A caller
//! that reports the values of a denial passes a [`DeniedQuotas`]. It reads the states after a denial. If they have too little
//! capacity, the request is denied with the values of this reading. If they have enough, because permits were freed meanwhile,
//! the request is decided again.

use smallvec::SmallVec;

use super::denied::{Violation, retry_after_of};
use super::extractor::Extracted;
use super::peek::EnforcedQuota;
use super::rule_state::CopiedWords;
use super::rule_states::RuleStates;
use crate::time::Nanos;
use {alloc::vec::Vec, core::time::Duration};

/// Says whether a denial counts as a violation, and keeps the values of the denying quotas, if it is [`DeniedQuotas`].
pub(crate) trait Evidence<'a> {
    /// Whether values are kept.
    const KEPT: bool = false;

    /// Whether a denial counts as a violation of each denying rule that [blocks](crate::Rule::block) keys.
    const COUNTS_VIOLATIONS: bool = true;

    /// Reads the states of a denied request, whose indices and extractions are `applied`. Returns false if they have the capacity
    /// for the request. Then it is to be decided again.
    #[inline(always)]
    fn confirms_denial<R: ?Sized>(
        &mut self,
        _states: &'a RuleStates<R>,
        _applied: impl Iterator<Item = (u16, Extracted)> + Clone,
        _at: Nanos,
    ) -> bool {
        true
    }

    /// Adds the blocks that this denial has begun. Those that it has extended are read again.
    #[inline(always)]
    fn update_blocks<R: ?Sized>(&mut self, _states: &'a RuleStates<R>, _request: &R, _at: Nanos) {}

    /// The quotas that denied the request. `None` if no values are kept.
    #[inline(always)]
    fn violations(&self) -> Option<SmallVec<[Violation; 8]>> {
        None
    }
}

/// Keeps no values.
impl Evidence<'_> for () {}

/// Keeps no values of a request that waits instead of being denied.
pub(crate) struct OfWaiter;

impl Evidence<'_> for OfWaiter {
    const COUNTS_VIOLATIONS: bool = false;
}

/// The values of all enforced quotas that apply to a denied request, in evaluation order, as the decision read them.
pub(crate) struct DeniedQuotas<'a> {
    quotas: Vec<SeenQuota<'a>>,
    retry_after: Option<Duration>,
    rounds: u32,
}

/// A quota with its values at the reading that denied the request.
struct SeenQuota<'a> {
    place: Violation,
    values: EnforcedQuota<'a>,
}

/// The index of a state that applies to the request, and a copy of its words, so that all values are of one moment.
type SeenState = (u16, Extracted, Option<CopiedWords>);

/// The most decisions about one request. Each further one means that permits were freed since the previous one.
const MAX_ROUNDS: u32 = 100;

impl<'a> DeniedQuotas<'a> {
    pub(crate) const fn new() -> Self {
        Self {
            quotas: Vec::new(),
            retry_after: None,
            rounds: 0,
        }
    }

    /// The time from the denial until all rules would admit the request. `None` if they never would.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    pub(crate) fn quotas(&self) -> impl Iterator<Item = &EnforcedQuota<'a>> {
        self.quotas.iter().map(|quota| &quota.values)
    }

    /// Marks the quota with the fewest permits as violated, after the decision and the readings have disagreed too often. Its
    /// values are the most that a decision can have read.
    fn violate_least(&mut self) {
        let least = self.quotas.iter_mut().min_by_key(|quota| quota.values.remaining);
        if let Some(SeenQuota { values, .. }) = least {
            values.violated = true;
            values.remaining = values.remaining.min(values.permits.saturating_sub(1));
            values.reset_after = Some(Duration::ZERO);
            self.retry_after = Some(Duration::ZERO);
        }
    }
}

impl<'a> Evidence<'a> for DeniedQuotas<'a> {
    const KEPT: bool = true;

    #[cold]
    #[inline(never)]
    fn confirms_denial<R: ?Sized>(
        &mut self,
        states: &'a RuleStates<R>,
        applied: impl Iterator<Item = (u16, Extracted)> + Clone,
        at: Nanos,
    ) -> bool {
        let enforced = applied.filter(|(_, extracted)| extracted.enforced);
        let seen = enforced.map(|(state, extracted)| {
            let words = states.states[usize::from(state)].copy_words(&extracted, at);
            (state, extracted, words)
        });
        let seen: SmallVec<[SeenState; 4]> = seen.collect();
        self.quotas.clear();
        for (state, extracted, words) in &seen {
            states.enforced_quotas_of((*state, extracted, words.as_ref()), at, true, |quota, values| {
                let place = Violation { state: *state, quota };
                self.quotas.push(SeenQuota { place, values });
            });
        }
        self.rounds += 1;
        if !self.quotas().any(|values| values.violated) {
            let is_last = self.rounds >= MAX_ROUNDS;
            if is_last {
                self.violate_least();
            }
            return is_last;
        }
        self.retry_after = retry_after_of(seen.iter(), at, |(state, extracted, words), ready| {
            if extracted.is_denied() {
                return None;
            }
            let state = &states.states[usize::from(*state)];
            state.with_peek(extracted, ready, words.as_ref(), |peek| {
                peek.retry_after(extracted.permits)
            })
        });
        true
    }

    fn update_blocks<R: ?Sized>(&mut self, states: &'a RuleStates<R>, request: &R, at: Nanos) {
        for (index, state) in (0..).zip(&states.states) {
            if !state.is_block() {
                continue;
            }
            let Some(extracted) = state.extractor.extract(request, &states.seeds) else {
                continue;
            };
            states.enforced_quotas_of((index, &extracted, None), at, true, |quota, values| {
                let both = self.retry_after.zip(values.retry_after);
                self.retry_after = both.map(|(of_quotas, of_block)| of_quotas.max(of_block));
                match self.quotas.iter_mut().find(|seen| seen.place.state == index) {
                    Some(seen) => seen.values = values,
                    // The block has begun by this denial, so it did not deny the request.
                    None => self.quotas.push(SeenQuota {
                        place: Violation { state: index, quota },
                        values: EnforcedQuota {
                            violated: false,
                            ..values
                        },
                    }),
                }
            });
        }
    }

    fn violations(&self) -> Option<SmallVec<[Violation; 8]>> {
        let violated = self.quotas.iter().filter(|quota| quota.values.violated);
        let violations: SmallVec<_> = violated.map(|quota| quota.place).collect();
        (!violations.is_empty()).then_some(violations)
    }
}
