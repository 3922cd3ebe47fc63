use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;
use core::time::Duration;

use tracing::Level;

use super::left_out::LeftOut;
use crate::algorithm::CounterRing;
use crate::clock::ManualClock;
use crate::error::ConfigError;
use crate::limiter::RateLimiter;
use crate::quota::Quota;
use crate::rules::{Refused, RulePeek};

/// Tells [`tracing`] of denials, never more often than a quota allows, and how many it has left out.
///
/// An event has the target `ringgate`, the level WARN, the message `rate limit reached` and these fields:
///
/// | field | is |
/// |---|---|
/// | `rules` | the names of the rules that had no room, in their order, with `, ` between them |
/// | `limit` | the limit of the quota among theirs that keeps the request waiting longest, in permits |
/// | `remaining` | the permits that one request would still have got of it |
/// | `retry_after_ms` | milliseconds until all rules would admit the request, rounded up; absent when they never would |
/// | `left_out` | how many denials were told of by no event, and not in this field of an earlier one |
///
/// Nothing of the key or the request is in it. The names are from your configuration, and are not looked at.
///
/// # Guarantees
///
/// - In no window of the quota are there more events than its limit, by the readings that the requests were judged
///   at: it is a strict [`CounterRing`].
/// - All denials that were handed in while a subscriber wanted them are accounted for: one by one, or in `left_out` of
///   the next event.
///
/// # Trade-offs
///
/// - The time is that of the decision, so that no clock is read. Denials of rule sets whose clocks differ should go
///   to different instances: by the newest clock, the others' may be left out too often. Never told too often.
///
/// # Cost
///
/// When there is no subscriber, or none for this level, a load and a comparison. For an event that is left out, what
/// the subscriber takes to say whether it wants it, a denial by a limiter (which writes nothing shared), and one count,
/// on one of 16 lines. An event allocates, and looks at the rules again.
///
/// # Examples
///
/// ```
/// use ringgate::{DenialEvents, ManualClock, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::<str>::new()
///     .rule(Rule::new("all", "2/s".parse()?))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// // For the whole process: ten lines a second in the log, at the most.
/// let events = DenialEvents::new("10/s".parse()?)?;
///
/// for _ in 0..5 {
///     // What is refused is refused as before.
///     let answer = rules.check("request").inspect_err(|refused| events.tell(refused));
///     if answer.is_err() {
///         // Answer 429.
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// The last three requests are told of. By `tracing_subscriber::fmt` the first of them reads:
///
/// ```text
/// WARN ringgate: rate limit reached rules="all" limit=2 remaining=0 retry_after_ms=1200 left_out=0
/// ```
pub struct DenialEvents {
    /// Its clock is never read: the readings come with the refusals.
    limiter: RateLimiter<CounterRing, ManualClock>,
    left_out: LeftOut,
}

/// The target of all events, for filters.
const TARGET: &str = "ringgate";

impl DenialEvents {
    /// Allows as many events as the quota says.
    ///
    /// # Errors
    ///
    /// When a [`CounterRing`] cannot be made of the quota.
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Ok(Self {
            limiter: RateLimiter::with_clock(CounterRing::new(quota)?, ManualClock::new()),
            left_out: LeftOut::new(),
        })
    }

    /// Makes an event of the denial if the quota has room, and else counts it as left out. Does neither when no
    /// subscriber wants it.
    ///
    /// # Concurrency
    ///
    /// What `limit`, `remaining` and `retry_after_ms` say is looked up now, so what others have taken since the
    /// decision shows, as in [`Refused::violations`].
    #[inline]
    pub fn tell<R: ?Sized>(&self, refused: &Refused<'_, R>) {
        if tracing::enabled!(target: TARGET, Level::WARN) {
            self.tell_some(refused);
        }
    }

    fn tell_some<R: ?Sized>(&self, refused: &Refused<'_, R>) {
        if self.limiter.check_at(refused.at(), 1).is_err() {
            self.left_out.add_one();
            return;
        }
        let violated: Vec<_> = refused.violations().collect();
        let longest = violated.iter().min_by_key(|quota| Reverse(wait(quota)));
        tracing::event!(
            target: TARGET,
            Level::WARN,
            rules = names(&violated),
            limit = longest.map(RulePeek::limit),
            remaining = longest.map(RulePeek::remaining),
            retry_after_ms = refused.retry_after().map(millis),
            left_out = self.left_out.tell(),
            "rate limit reached"
        );
    }
}

/// How long the quota would keep the request waiting.
fn wait(quota: &RulePeek<'_>) -> Duration {
    quota.retry_after(quota.permits()).unwrap_or(Duration::MAX)
}

/// The rules' names, each once, though several of its quotas may be violated.
fn names(violated: &[RulePeek<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for quota in violated {
        if !names.contains(&quota.rule()) {
            names.push(quota.rule());
        }
    }
    names.join(", ")
}

/// Milliseconds, so many that to wait for them is enough.
fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

impl fmt::Debug for DenialEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenialEvents")
            .field("algorithm", self.limiter.algorithm())
            .finish_non_exhaustive()
    }
}
