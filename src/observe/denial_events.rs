use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;
use core::hash::BuildHasher;
use core::time::Duration;
use std::hash::RandomState;

use tracing::Level;

use super::event_parts::EventParts;
use super::suppressed::Suppressed;
use crate::algorithm::CounterRing;
use crate::clock::ManualClock;
use crate::error::ConfigError;
use crate::limiter::RateLimiter;
use crate::quota::Quota;
use crate::rules::{Denial, QuotaStatus};

/// Emits denials as [`tracing`] events, at most a quota of them, and counts the suppressed ones.
///
/// An event has the target `ringgate`, the level WARN, the message `rate limit reached`, and these fields:
///
/// | field | value |
/// |---|---|
/// | `rules` | the names of the rules that denied, separated by `, ` |
/// | `limit` | the limit in permits of the violated quota with the longest retry time |
/// | `remaining` | the permits that are left of that quota |
/// | `retry_after_ms` | milliseconds until all rules would admit the request, rounded up; absent if they never would |
/// | `suppressed` | the number of denials without an event since the last event |
/// | `key`, `client`, `path` | absent, unless [`emit_with`](Self::emit_with) was given them; redacted, unless [`revealed`](Self::revealed) |
///
/// By default, an event does not contain the key or any part of the request. The names of the rules are not escaped.
///
/// A redacted value is 16 hexadecimal digits, a hash with a random seed of this instance. So events of the same client can be
/// told from others, and the client cannot be computed from them. After a restart, the digits are others.
///
/// # Guarantees
///
/// - No window of the quota holds more events than its limit, by the readings that the decisions used: events are limited
///   by a strict [`CounterRing`].
/// - Each denial that is passed to [`emit`](Self::emit) while a subscriber is interested either is an event, or is counted in
///   `suppressed` of the next event.
///
/// # Trade-offs
///
/// - Events are limited by the time of the decision, so no clock is read. Use one instance for each clock. If rule sets with
///   different clocks share an instance, those behind the newest clock get fewer events than the quota.
///
/// # Cost
///
/// Without a subscriber for this level, a call costs a load and a comparison. A suppressed event costs the subscriber's filter, a
/// denial by a limiter (which does not write to shared memory), and one count in one of 16 shards. An event allocates, and reads
/// the states of the rules.
///
/// # Examples
///
/// ```
/// use ringgate::observe::DenialEvents;
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::{ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::<str>::new()
///     .rule(Rule::new("all", "2/s".parse()?))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// // The whole process logs at most ten lines per second.
/// let events = DenialEvents::new("10/s".parse()?)?;
///
/// for _ in 0..5 {
///     let answer = rules.check("request").inspect_err(|denied| events.emit(denied));
///     if answer.is_err() {
///         // Answer 429.
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// This emits three events. `tracing_subscriber::fmt` writes the first of them as:
///
/// ```text
/// WARN ringgate: rate limit reached rules="all" limit=2 remaining=0 retry_after_ms=1200 suppressed=0
/// ```
pub struct DenialEvents {
    /// Its clock is never read, because each denial has a reading.
    limiter: RateLimiter<CounterRing, ManualClock>,
    suppressed: Suppressed,
    /// Hashes redacted values.
    seed: RandomState,
    is_revealed: bool,
}

/// The longest part of a request in an event, in characters.
const MAX_PART: usize = 256;

/// The target of all events, for filters.
const TARGET: &str = "ringgate";

impl DenialEvents {
    /// Creates a sampler that emits at most `quota` events.
    ///
    /// # Errors
    ///
    /// The error of [`CounterRing::new`] for the quota.
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Ok(Self {
            limiter: RateLimiter::with_clock(CounterRing::new(quota)?, ManualClock::new()),
            suppressed: Suppressed::new(),
            seed: RandomState::new(),
            is_revealed: false,
        })
    }

    /// Writes the parts of requests that [`emit_with`](Self::emit_with) is given as they are, at most 256 characters each.
    ///
    /// Addresses and user names in logs are personal data in many countries, and a key may be a credential.
    #[must_use]
    pub fn revealed(mut self) -> Self {
        self.is_revealed = true;
        self
    }

    /// Emits an event for the denial, or counts it as suppressed if the quota is used up. Does neither if no subscriber is
    /// interested.
    ///
    /// # Concurrency
    ///
    /// For local rules, `limit`, `remaining` and `retry_after_ms` are read by this call, and include the charges of other
    /// requests since the decision, as for [`Denied::violations`](crate::rules::Denied::violations). For shared rules, they are
    /// the values at the decision.
    #[inline]
    pub fn emit(&self, denied: &impl Denial) {
        self.emit_with(denied, |_| {});
    }

    /// Emits an event as [`emit`](Self::emit) does, with parts of the request. `parts` is called only for an event that is emitted.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::observe::DenialEvents;
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let rules = RuleSetBuilder::<(&str, &str)>::new()
    ///     .rule(Rule::new("all", "1/s".parse()?))
    ///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// let events = DenialEvents::new("10/s".parse()?)?;
    ///
    /// let request = ("alice", "/login");
    /// let answers = [rules.check(&request), rules.check(&request)];
    /// for denied in answers.iter().filter_map(|answer| answer.as_ref().err()) {
    ///     // WARN ringgate: rate limit reached rules="all" ... key="6d3f0c9a51b2e874" path="a07e9d1f4c38b526"
    ///     events.emit_with(denied, |parts| {
    ///         parts.key = Some(request.0.into());
    ///         parts.path = Some(request.1.into());
    ///     });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn emit_with(&self, denied: &impl Denial, parts: impl FnOnce(&mut EventParts)) {
        if tracing::enabled!(target: TARGET, Level::WARN) {
            self.emit_sampled(denied, parts);
        }
    }

    fn emit_sampled(&self, denied: &impl Denial, parts: impl FnOnce(&mut EventParts)) {
        if self.limiter.check_at(denied.denied_at(), 1).is_err() {
            self.suppressed.add_one();
            return;
        }
        let mut given = EventParts::default();
        parts(&mut given);
        let [key, client, path] =
            [given.key, given.client, given.path].map(|part| part.map(|part| self.written(&part)));
        let violations = denied.violated_quotas();
        let longest = violations.iter().min_by_key(|quota| Reverse(retry_after(quota)));
        tracing::event!(
            target: TARGET,
            Level::WARN,
            rules = names(&violations),
            limit = longest.map(|quota| quota.limit),
            remaining = longest.map(|quota| quota.remaining),
            retry_after_ms = denied.retry_after().map(millis),
            suppressed = self.suppressed.report(),
            key = key.as_deref(),
            client = client.as_deref(),
            path = path.as_deref(),
            "rate limit reached"
        );
    }

    /// A part of a request as an event has it.
    fn written(&self, part: &str) -> String {
        match self.is_revealed {
            true => part.chars().take(MAX_PART).collect(),
            false => format!("{:016x}", self.seed.hash_one(part)),
        }
    }
}

/// The time until the quota would admit the request, or the maximum if it never would.
fn retry_after(quota: &QuotaStatus) -> Duration {
    quota.retry_after.unwrap_or(Duration::MAX)
}

/// The names of the rules. Each name occurs once, even if several quotas of the rule are violated.
fn names(violations: &[QuotaStatus]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for quota in violations {
        if !names.contains(&&*quota.rule) {
            names.push(&*quota.rule);
        }
    }
    names.join(", ")
}

/// Milliseconds, rounded up.
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
