use core::time::Duration;

use super::{RuleSet, Rules};
use crate::algorithm::AnyAlgorithm;
use crate::clock::Clock;
use crate::decision::Peek;

/// A state that a request needs permits of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waited {
    /// A number of its own, which it keeps over a reload.
    pub(crate) state: u64,
    pub(crate) permits: u64,
}

impl<R: ?Sized, C: Clock> RuleSet<R, C> {
    /// The enforced states that the request needs permits of.
    pub(crate) fn waited(&self, request: &R) -> impl Iterator<Item = Waited> {
        let Rules { groups, seeds, .. } = &self.rules;
        groups.iter().filter_map(move |group| {
            let subject = group.subject(request, seeds)?;
            let needed = subject.enforced && (subject.permits > 0 || subject.refused);
            needed.then(|| Waited {
                state: group.number(&subject, seeds),
                permits: subject.permits,
            })
        })
    }

    /// How long until the state would admit one request for so many permits if nobody else asked; `None`: never. A state
    /// that there is no longer makes nobody wait.
    pub(crate) fn ready_in(&self, request: &R, state: u64, permits: u64) -> Option<Duration> {
        self.look(request, state, |peek, _| peek.retry_after(permits))
    }

    /// How long it takes at the least until the state has admitted so many permits, and those of others before.
    pub(crate) fn earliest_in(&self, request: &R, state: u64, before: u64, permits: u64) -> Option<Duration> {
        self.look(request, state, |peek, tiers| {
            // Those before may be in a tier that is served sooner.
            let before = if tiers { 0 } else { before };
            peek.earliest_after(before.saturating_add(permits))
        })
    }

    fn look(
        &self,
        request: &R,
        state: u64,
        look: impl Fn(Peek<'_, AnyAlgorithm>, bool) -> Option<Duration>,
    ) -> Option<Duration> {
        let Rules { groups, seeds, .. } = &self.rules;
        let now = self.clock.now();
        let mut latest = Duration::ZERO;
        // While a reload is pending, a state may be there twice.
        for group in groups {
            if let Some(subject) = group.subject(request, seeds)
                && subject.enforced
                && group.number(&subject, seeds) == state
            {
                if subject.refused {
                    return None;
                }
                latest = latest.max(look(group.peek(&subject, now), group.has_tiers())?);
            }
        }
        Some(latest)
    }
}
