use core::time::Duration;

use smallvec::SmallVec;

use super::admitted::Admitted;
use super::evidence::OfWaiter;
use super::reservation::Reservation;
use super::rule_state::RuleState;
use crate::algorithm::{Algorithm, AnyAlgorithm};
use crate::clock::Clock;
use crate::decision::Peek;
use crate::rules::set::RuleSet;

/// The time after which a waiter checks for a slot although none was released through its queues.
pub(crate) const RELEASE_CHECK: Duration = Duration::from_secs(1);

/// A state of which a request needs permits, for a wait queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeededState {
    /// Identifies the key's state. It stays the same over a reload that reuses the state.
    pub(crate) state: u64,
    pub(crate) permits: u64,
}

impl<R: ?Sized, C: Clock> RuleSet<R, C> {
    /// The enforced states of which the request needs permits.
    pub(crate) fn needed_states(&self, request: &R) -> impl Iterator<Item = NeededState> {
        let seeds = &self.states.seeds;
        self.states.states.iter().filter_map(move |state| {
            let extracted = state.extractor.extract(request, seeds)?;
            let needed = extracted.enforced && (extracted.permits > 0 || extracted.is_denied());
            needed.then(|| NeededState {
                state: state.id(&extracted, seeds),
                permits: extracted.permits,
            })
        })
    }

    /// Charges a request. A denial counts as no violation, because the request then waits.
    pub(crate) fn check_waiting(&self, request: &R) -> Option<Admitted> {
        self.states
            .check(request, || self.clock.now(), &mut OfWaiter)
            .ok()
    }

    /// Charges a request as [`check_waiting`](Self::check_waiting) does, and returns a reservation.
    pub(crate) fn reserve_waiting(&self, request: &R) -> Option<Reservation<R>> {
        self.states
            .reserve(request, || self.clock.now(), &mut OfWaiter)
            .ok()
    }

    /// The states that a reservation was charged to. `None` if one of the charges was made to a catch-all.
    pub(crate) fn state_ids(&self, reservation: &Reservation<R>) -> Option<SmallVec<[u64; 4]>> {
        reservation.state_ids(&self.states.seeds)
    }

    /// Whether every request that the state decides has the limit of this one.
    pub(crate) fn has_one_limit(&self, request: &R, state: u64) -> bool {
        let seeds = &self.states.seeds;
        let mut with_several_limits = self
            .states
            .states
            .iter()
            .filter(|other| other.extractor.has_several_limits());
        !with_several_limits.any(|other| {
            let extracted = other.extractor.extract(request, seeds);
            extracted.is_some_and(|extracted| other.id(&extracted, seeds) == state)
        })
    }

    /// The time until the state would admit a request for `permits`, if no other request came before. `None` if it never would.
    /// Zero for a state that no longer exists. For a slot in flight, which only a release frees, it is the time until the next check.
    pub(crate) fn ready_in(&self, request: &R, state: u64, permits: u64) -> Option<Duration> {
        self.latest(request, state, |peek, of_state| {
            let awaits_release = || permits <= peek.algorithm().max_request() && of_state.is_in_flight();
            peek.retry_after(permits)
                .or_else(|| awaits_release().then_some(RELEASE_CHECK))
        })
    }

    /// A lower bound of the time until the state has admitted `before` permits of other requests and then `permits`.
    pub(crate) fn earliest_in(&self, request: &R, state: u64, before: u64, permits: u64) -> Option<Duration> {
        self.latest(request, state, |peek, of_state| {
            // The other requests may have a higher limit.
            let before = if of_state.extractor.has_several_limits() {
                0
            } else {
                before
            };
            peek.earliest_after(before.saturating_add(permits))
        })
    }

    /// The latest of these times over all states with the identifier. While a reload is pending, there are two.
    fn latest(
        &self,
        request: &R,
        state: u64,
        time: impl Fn(Peek<'_, AnyAlgorithm>, &RuleState<R>) -> Option<Duration>,
    ) -> Option<Duration> {
        let now = self.clock.now();
        let seeds = &self.states.seeds;
        let mut latest = Duration::ZERO;
        for candidate in &self.states.states {
            if let Some(extracted) = candidate.extractor.extract(request, seeds)
                && extracted.enforced
                && candidate.id(&extracted, seeds) == state
            {
                if extracted.is_denied() {
                    return None;
                }
                let peek = candidate.peek(&extracted, now);
                latest = latest.max(time(peek.get(), candidate)?);
            }
        }
        Some(latest)
    }
}
