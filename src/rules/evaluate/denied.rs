use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use smallvec::SmallVec;

use super::extractor::Extracted;
use super::rule_states::RuleStates;
use crate::rules::decided_by::{DecidedBy, Reason};
use crate::rules::denial::Denial;
use crate::rules::quota_status::QuotaStatus;
use crate::rules::store_error::StoreError;
use crate::time::Nanos;

/// The denial of a request by at least one rule, of one process or shared by many machines.
///
/// A denial by a [`RuleSet`](crate::RuleSet) borrows the rules and the request, allocates nothing, and reads the states when one of
/// its methods is called. A denial by shared rules holds the values that the decision read, and borrows nothing: it is a
/// `Denied<'static>`.
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
/// for quota in denied.violations() {
///     assert_eq!((&*quota.rule, quota.limit, quota.remaining), ("all", 2, 0));
/// }
/// // A strict ring counts the window of a minute and one cell more.
/// assert_eq!(denied.retry_after(), Some(Duration::from_secs(61)));
/// # Ok(())
/// # }
/// ```
#[must_use = "an ignored denial lets the request through"]
pub struct Denied<'a, R: ?Sized = ()> {
    at: Nanos,
    cause: Cause<'a, R>,
}

/// The decision that has denied a request.
enum Cause<'a, R: ?Sized> {
    /// States, which are read when a value is requested.
    States(&'a RuleStates<R>, &'a R, SmallVec<[Violation; 8]>),
    /// Shared rules. The values were read by the decision.
    Values(Box<DeniedValues>),
}

/// The values of a denial by shared rules.
#[derive(Clone)]
pub(crate) struct DeniedValues {
    pub(crate) decided_by: DecidedBy,
    pub(crate) reason: Reason,
    /// First those of the violations, and then those of other quotas that the store has decided about.
    pub(crate) statuses: Vec<QuotaStatus>,
    pub(crate) violations: usize,
    pub(crate) store_time: Option<u64>,
    pub(crate) error: Option<StoreError>,
}

/// A quota with too little capacity left: the index of its state, and its index in the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Violation {
    pub(crate) state: u16,
    pub(crate) quota: u16,
}

impl<R: ?Sized> Clone for Denied<'_, R> {
    fn clone(&self) -> Self {
        let cause = match &self.cause {
            Cause::States(states, request, violations) => Cause::States(states, request, violations.clone()),
            Cause::Values(values) => Cause::Values(values.clone()),
        };
        Self { at: self.at, cause }
    }
}

impl<'a, R: ?Sized> Denied<'a, R> {
    pub(crate) const fn new(
        states: &'a RuleStates<R>,
        request: &'a R,
        at: Nanos,
        violations: SmallVec<[Violation; 8]>,
    ) -> Self {
        let cause = Cause::States(states, request, violations);
        Self { at, cause }
    }
}

impl Denied<'static> {
    /// A denial with values that were read at the time `at` of this process's clock.
    pub(crate) fn of(values: DeniedValues, at: Nanos) -> Self {
        let cause = Cause::Values(Box::new(values));
        Self { at, cause }
    }
}

impl<R: ?Sized> Denied<'_, R> {
    /// Returns the reading of the clock of this process that the decision used.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.at
    }

    /// The values of a decision by shared rules.
    const fn values(&self) -> Option<&DeniedValues> {
        match &self.cause {
            Cause::States(..) => None,
            Cause::Values(values) => Some(values),
        }
    }

    /// Returns where the decision was made.
    #[must_use]
    pub fn decided_by(&self) -> DecidedBy {
        match (self.values(), self.reason()) {
            (Some(values), _) => values.decided_by,
            (None, Reason::Listed) => DecidedBy::Rules,
            (None, _) => DecidedBy::Local,
        }
    }

    /// Returns why the request was denied.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match &self.cause {
            Cause::States(states, request, violations) => {
                let mut violations = states.extract_violations(request, violations);
                let is_listed = violations.any(|(_, extracted)| extracted.is_denied());
                if is_listed { Reason::Listed } else { Reason::Spent }
            }
            Cause::Values(values) => values.reason,
        }
    }

    /// Returns the status of every quota of an enforced rule that denied the request. There is at least one.
    ///
    /// # Concurrency
    ///
    /// The decision determines which quotas these are. For a [`RuleSet`](crate::RuleSet), this call reads their states. If permits were
    /// freed since the decision, [`remaining`](QuotaStatus#structfield.remaining) is one less than the cost of the request.
    pub fn violations(&self) -> impl Iterator<Item = QuotaStatus> {
        let (seen, known) = match &self.cause {
            Cause::States(states, request, violations) => {
                let (seen, at) = (states.extract_violations(request, violations), self.at);
                let status = move |(violation, extracted)| states.violated_status(violation, extracted, at);
                (Some(seen.map(status)), &[][..])
            }
            Cause::Values(values) => (None, &values.statuses[..values.violations]),
        };
        seen.into_iter().flatten().chain(known.iter().cloned())
    }

    /// The statuses that came with the decision, of violated quotas and of others.
    pub(crate) fn known_statuses(&self) -> &[QuotaStatus] {
        self.values().map_or(&[], |values| &values.statuses)
    }

    /// Returns the time from [`at`](Self::at) until all rules would admit the request, if no other request came before.
    ///
    /// `None` if they never would: the request costs more than a limit, or its key is denied by a list. `None` also if it needs a
    /// slot [in flight](crate::Rule::in_flight), because a release frees it and not a time, or if the store of shared rules does not
    /// answer. With several even rules the time may be too early: the capacity of an even rule changes with the share of each cell,
    /// and the search for a common time ends after a thousand rounds.
    ///
    /// # Concurrency
    ///
    /// For a [`RuleSet`](crate::RuleSet), this call reads the states, which include the charges and refunds of other requests since the
    /// decision. The result is zero if the request would now be admitted.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.cause {
            Cause::States(states, request, _) => states.retry_after(request, self.at),
            Cause::Values(values) => {
                let violations = values.statuses[..values.violations].iter();
                let waits = violations.map(|status| status.retry_after);
                waits.reduce(|one, other| Some(one?.max(other?))).flatten()
            }
        }
    }

    /// Returns the reading of the store's clock that decided, in microseconds of the store's time. `None` if no store has decided.
    #[must_use]
    pub fn store_time(&self) -> Option<u64> {
        self.values()?.store_time
    }

    /// Returns the error of the store, if it was asked and did not decide.
    #[must_use]
    pub fn error(&self) -> Option<&StoreError> {
        self.values()?.error.as_ref()
    }
}

impl<R: ?Sized> fmt::Debug for Denied<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Denied")
            .field("at", &self.at)
            .field("decided_by", &self.decided_by())
            .field("reason", &self.reason())
            .field("violations", &self.violations().collect::<Vec<_>>())
            .field("error", &self.error())
            .finish_non_exhaustive()
    }
}

impl<R: ?Sized> fmt::Display for Denied<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        let violations: Vec<_> = match &self.cause {
            // A quota that is only used up is not the reason.
            Cause::States(states, request, violations) if reason == Reason::Listed => {
                let seen = states.extract_violations(request, violations);
                let listed = seen.filter(|(_, extracted)| extracted.is_denied());
                let status = |(violation, extracted)| states.violated_status(violation, extracted, self.at);
                listed.map(status).collect()
            }
            _ => self.violated_quotas(),
        };
        let text = match reason {
            Reason::Spent => "rate limit reached: ",
            Reason::Listed if violations.iter().any(|status| status.lacks_key) => "request lacks a key: ",
            Reason::Listed if violations.iter().all(|violation| violation.limit == 0) => "limit is 0: ",
            Reason::Listed => "key is always denied: ",
            Reason::Unavailable => "store of the limits does not answer: ",
        };
        let is_spent = reason == Reason::Spent;
        for (index, violation) in violations.iter().enumerate() {
            let before = if index == 0 { text } else { ", " };
            write!(f, "{before}{}", violation.rule)?;
            if violation.is_block {
                f.write_str(" (blocked)")?;
            } else if is_spent {
                let (remaining, limit) = (violation.remaining, violation.limit);
                let quota = violation.quota.per_window();
                write!(f, " ({remaining} of {limit} {quota} left)")?;
            }
        }
        let awaits_slot = |violation: &QuotaStatus| violation.quota.is_in_flight() && violation.limit > 0;
        match self.retry_after() {
            _ if reason == Reason::Unavailable => Ok(()),
            Some(after) => write!(f, "; try again in {after:?}"),
            None if is_spent && violations.iter().any(awaits_slot) => {
                f.write_str("; try again when a request has ended")
            }
            None => f.write_str("; never admitted"),
        }
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
        self.violations().collect()
    }

    fn is_unavailable(&self) -> bool {
        self.values()
            .is_some_and(|values| values.reason == Reason::Unavailable)
    }
}

impl<R: ?Sized> core::error::Error for Denied<'_, R> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(self.error()?)
    }
}

/// The maximum number of rounds of the search for a retry time. Fewer suffice, unless the least common multiple of the cells of
/// several even rings is longer than this many cells.
const MAX_ROUNDS: usize = 1000;

impl<R: ?Sized> RuleStates<R> {
    /// These quotas, with the part of the request that their states need.
    fn extract_violations<'v>(
        &'v self,
        request: &'v R,
        violations: &'v [Violation],
    ) -> impl Iterator<Item = (Violation, Extracted)> + 'v {
        violations.iter().filter_map(move |&violation| {
            let state = &self.states[usize::from(violation.state)];
            Some((violation, state.extractor.extract(request, &self.seeds)?))
        })
    }

    /// The status of a quota that denied a request. It never shows as many permits as the request costs, also if permits were freed
    /// since the denial.
    pub(crate) fn violated_status(
        &self,
        violation: Violation,
        extracted: Extracted,
        at: Nanos,
    ) -> QuotaStatus {
        let state = &self.states[usize::from(violation.state)];
        let mut status = self
            .view(state, usize::from(violation.quota), extracted, at)
            .status();
        let most = extracted.permits.saturating_sub(1);
        if status.remaining > most {
            status.remaining = most;
            status.reset_after = Some(Duration::ZERO);
        }
        status
    }

    /// The time from `at` until every rule would admit the request.
    pub(crate) fn retry_after(&self, request: &R, at: Nanos) -> Option<Duration> {
        let states = self.states.iter();
        let applied =
            states.filter_map(|state| Some((state, state.extractor.extract(request, &self.seeds)?)));
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

/// The time from `at` until all of these states would admit the request. `retry_after(state, ready)` is the time from `ready`
/// until this state would.
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
