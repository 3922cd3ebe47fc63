use core::time::Duration;

use super::rule_states::RuleStates;
use crate::time::Nanos;

/// The rounds after which the search for a retry time ends. It ends earlier unless even rings have cells whose common
/// multiple is longer than this many cells.
const MAX_ROUNDS: usize = 1000;

impl<R: ?Sized> RuleStates<R> {
    /// The time after `at` at which every rule would admit the request.
    pub(crate) fn retry_after(&self, request: &R, at: Nanos) -> Option<Duration> {
        // When one rule is ready, an even ring may have used the share of its cell up, so the search goes round until no
        // rule moves the time. All other algorithms only gain capacity, and need two rounds.
        let mut ready = at;
        for _ in 0..MAX_ROUNDS {
            let before = ready;
            for state in &self.states {
                if let Some(extracted) = state.extract(request, &self.seeds)
                    && extracted.enforced
                {
                    if extracted.denied {
                        return None;
                    }
                    let peek = state.peek(&extracted, ready);
                    ready = ready.saturating_add(peek.retry_after(extracted.permits)?);
                }
            }
            if ready == before {
                break;
            }
        }
        Some(ready.saturating_since(at))
    }
}
