use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use smallvec::SmallVec;

use super::peek::RulePeek;
use super::rule_states::RuleStates;
use crate::rules::denial::{Denial, write_retry, write_violations};
use crate::rules::quota_status::QuotaStatus;
use crate::time::Nanos;

/// The admission of a request by all rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    at: Nanos,
    limited: bool,
}

impl Admitted {
    #[inline]
    pub(crate) const fn charged(at: Nanos) -> Self {
        Self { at, limited: true }
    }

    #[inline]
    pub(crate) const fn unlimited(at: Nanos) -> Self {
        Self { at, limited: false }
    }

    /// Returns the reading of the clock that the decision used.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.at
    }

    /// Returns whether any rule was charged, including rules in the shadow.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.limited
    }
}

/// The denial of a request by at least one rule.
///
/// It borrows the rule set and the request, and computes the retry time on request.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::{ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::<str>::new()
///     .rule(Rule::new("all", "2/min".parse()?))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// assert!(rules.check("request").is_ok());
/// assert!(rules.check("request").is_ok());
/// let denied = rules.check("request").expect_err("two a minute");
/// for peek in denied.violations() {
///     assert_eq!((peek.rule(), peek.limit(), peek.remaining()), ("all", 2, 0));
/// }
/// // A strict ring counts the window of a minute and one cell more.
/// assert_eq!(denied.retry_after(), Some(Duration::from_secs(61)));
/// # Ok(())
/// # }
/// ```
#[must_use = "an ignored denial lets the request through"]
pub struct Denied<'a, R: ?Sized> {
    states: &'a RuleStates<R>,
    request: &'a R,
    at: Nanos,
    violations: SmallVec<[Violation; 8]>,
}

/// A quota with too little capacity left: the index of its state, and its index in the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Violation {
    pub(crate) state: u16,
    pub(crate) quota: u16,
}

impl<'a, R: ?Sized> Denied<'a, R> {
    pub(crate) const fn new(
        states: &'a RuleStates<R>,
        request: &'a R,
        at: Nanos,
        violations: SmallVec<[Violation; 8]>,
    ) -> Self {
        Self {
            states,
            request,
            at,
            violations,
        }
    }

    /// The request, the violated quotas, and the time of the decision.
    pub(super) fn parts(&self) -> (&'a R, &[Violation], Nanos) {
        (self.request, &self.violations, self.at)
    }

    /// Returns the reading of the clock that the decision used.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.at
    }

    /// Returns a view of every quota of an enforced rule that had too little capacity left. There is at least one.
    ///
    /// # Concurrency
    ///
    /// The decision determines which quotas these are. Each view reads its state when one of its methods is called. If permits were
    /// freed since the decision, [`remaining`](RulePeek::remaining) is one less than the cost of the request.
    pub fn violations(&self) -> impl Iterator<Item = RulePeek<'a>> + '_ {
        self.violations.iter().filter_map(|violation| {
            let Violation { state, quota } = *violation;
            let view = self.states.peek_quota(self.request, state, quota, self.at)?;
            Some(view.of_violation())
        })
    }

    /// Returns the time from [`at`](Self::at) until all rules would admit the request, if no other request came before.
    ///
    /// `None` if they never would: the request costs more than a limit, or its key is denied by a list. `None` also if it needs a
    /// slot [in flight](crate::Rule::in_flight), because a release frees it and not a time. With several even rules
    /// the time may be too early: the capacity of an even rule changes with the share of each cell, and the search for a common
    /// time ends after a thousand rounds.
    ///
    /// # Concurrency
    ///
    /// This call reads the states, which include the charges and refunds of other requests since the decision. The result is zero
    /// if the request would now be admitted.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.states.retry_after(self.request, self.at)
    }
}

impl<R: ?Sized> fmt::Debug for Denied<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Denied")
            .field("at", &self.at)
            .field("violations", &self.violations().collect::<Vec<_>>())
            .finish()
    }
}

impl<R: ?Sized> fmt::Display for Denied<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_violations(f, "rate limit reached: ", &self.violated_quotas(), true)?;
        let awaits_slot = |violation: RulePeek<'_>| {
            violation.quota().is_in_flight() && violation.limit() > 0 && !violation.is_always_denied()
        };
        write_retry(f, self.retry_after(), self.violations().any(awaits_slot))
    }
}

impl<R: ?Sized> Denial for Denied<'_, R> {
    fn denied_at(&self) -> Nanos {
        self.at()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after()
    }

    fn violated_quotas(&self) -> Vec<QuotaStatus> {
        self.violations().map(|quota| quota.status()).collect()
    }
}

impl<R: ?Sized> core::error::Error for Denied<'_, R> {}

/// The maximum number of rounds of the search for a retry time. Fewer suffice, unless the least common multiple of the cells of
/// several even rings is longer than this many cells.
const MAX_ROUNDS: usize = 1000;

impl<R: ?Sized> RuleStates<R> {
    /// The time from `at` until every rule would admit the request.
    pub(crate) fn retry_after(&self, request: &R, at: Nanos) -> Option<Duration> {
        let states = self.states.iter();
        let applied = states.filter_map(|state| Some((state, state.extract(request, &self.seeds)?)));
        let enforced = applied.filter(|(_, extracted)| extracted.enforced);
        retry_after_of(enforced, at, |(state, extracted), ready| {
            if extracted.is_denied() {
                return None;
            }
            let peek = state.peek(&extracted, ready);
            peek.get().retry_after(extracted.permits)
        })
    }
}

/// The time from `at` until every one of these states would admit the request. `retry_after` is the time from a later time on
/// until one of them would.
pub(super) fn retry_after_of<T>(
    states: impl Iterator<Item = T> + Clone,
    at: Nanos,
    retry_after: impl Fn(T, Nanos) -> Option<Duration>,
) -> Option<Duration> {
    // At the time at which one rule has capacity, the cell share of an even ring may be used up again. So the search repeats
    // until no rule changes the time. The capacity of all other algorithms only grows, so they need two rounds.
    let mut ready = at;
    for _ in 0..MAX_ROUNDS {
        let before = ready;
        for state in states.clone() {
            ready = ready.saturating_add(retry_after(state, ready)?);
        }
        if ready == before {
            break;
        }
    }
    Some(ready.saturating_since(at))
}
