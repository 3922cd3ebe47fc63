use core::fmt;
use core::time::Duration;

use smallvec::SmallVec;

use super::Rules;
use super::peek::RulePeek;
use crate::time::Nanos;

/// A request was admitted by every rule that is about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    at: Nanos,
    limited: bool,
}

impl Passed {
    #[inline]
    pub(super) const fn charged(at: Nanos) -> Self {
        Self { at, limited: true }
    }

    #[inline]
    pub(super) const fn free(at: Nanos) -> Self {
        Self { at, limited: false }
    }

    /// The reading that the request was judged at.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.at
    }

    /// Whether any rule was charged for it, a shadow rule included.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.limited
    }
}

/// A request was refused, and by which rules.
///
/// It borrows the rule set and the request, to work out the retry time when asked.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::{ManualClock, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::<str>::new()
///     .rule(Rule::new("all", "2/s".parse()?))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// assert!(rules.check("request").is_ok());
/// assert!(rules.check("request").is_ok());
/// let refused = rules.check("request").expect_err("two a second");
/// for look in refused.violations() {
///     assert_eq!((look.rule(), look.limit(), look.remaining()), ("all", 2, 0));
/// }
/// // A second, and the cell that is counted besides.
/// assert_eq!(refused.retry_after(), Some(Duration::from_millis(1_200)));
/// # Ok(())
/// # }
/// ```
#[must_use = "a refusal that nobody reads admits the request"]
pub struct Refused<'a, R: ?Sized> {
    rules: &'a Rules<R>,
    request: &'a R,
    at: Nanos,
    violated: SmallVec<[Violated; 8]>,
}

/// A quota without room: the member of a group, by their places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Violated {
    pub(super) group: u16,
    pub(super) member: u16,
}

impl<'a, R: ?Sized> Refused<'a, R> {
    pub(super) const fn new(
        rules: &'a Rules<R>,
        request: &'a R,
        at: Nanos,
        violated: SmallVec<[Violated; 8]>,
    ) -> Self {
        Self {
            rules,
            request,
            at,
            violated,
        }
    }

    /// The reading that the request was judged at.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.at
    }

    /// Every quota of an enforced rule that had no room, at least one; what they say of their state is worked out when asked for.
    pub fn violations(&self) -> impl Iterator<Item = RulePeek<'a>> + '_ {
        let seen = self.violated.iter();
        seen.filter_map(|seen| self.rules.look(self.request, seen.group, seen.member, self.at))
    }

    /// How long after [`at`](Self::at) the same request would be admitted by all rules if nobody else asked;
    /// `None`: never, it costs more than a limit, or its key is on a list of those that are always refused.
    /// Worked out when asked for. (Of several even rules, whose shares come and go, it may be too early: they are
    /// followed for a thousand rounds.)
    ///
    /// # Concurrency
    ///
    /// What others have taken or given back since shows; zero when it would be admitted by now.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.rules.retry_after(self.request, self.at)
    }
}

impl<R: ?Sized> Rules<R> {
    /// How long after `at` every rule would admit the request.
    fn retry_after(&self, request: &R, at: Nanos) -> Option<Duration> {
        // What one rule waits for, another may have no room at: the shares of even rings come and go. All others only
        // get more room, so this ends after the second round; and with shares, when they next meet.
        let mut ready = at;
        for _ in 0..MOST_ROUNDS {
            let before = ready;
            for group in &self.groups {
                if let Some(subject) = group.subject(request, &self.seeds)
                    && subject.enforced
                {
                    if subject.refused {
                        return None;
                    }
                    let peek = group.peek(&subject, ready);
                    ready = ready.saturating_add(peek.retry_after(subject.permits)?);
                }
            }
            if ready == before {
                break;
            }
        }
        Some(ready.saturating_since(at))
    }
}

/// How often the rules are gone through for a retry time. (Shares of even rings whose cells have no common multiple
/// within so many cells are not pursued further.)
const MOST_ROUNDS: usize = 1000;

impl<R: ?Sized> fmt::Debug for Refused<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("at", &self.at)
            .field("violations", &self.violations().collect::<alloc::vec::Vec<_>>())
            .finish()
    }
}

impl<R: ?Sized> fmt::Display for Refused<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rate limit reached: ")?;
        for (index, violation) in self.violations().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(
                f,
                "{} ({} of {} per {:?} left)",
                violation.rule(),
                violation.remaining(),
                violation.limit(),
                violation.quota().window()
            )?;
        }
        match self.retry_after() {
            Some(after) => write!(f, "; try again in {after:?}"),
            None => f.write_str("; never admitted"),
        }
    }
}

impl<R: ?Sized> core::error::Error for Refused<'_, R> {}
