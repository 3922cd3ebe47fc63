//! A random delay in `Retry-After`.

use core::time::Duration;

use crate::http::layer::RateLimitLayer;
use crate::http::rules::HttpRules;

impl<S: HttpRules, R, M> RateLimitLayer<S, R, M> {
    /// Delays the retry of each rejected client by a random time below `max_jitter`. The default is no delay.
    ///
    /// Without jitter, all clients that a shared limit rejects in one window are told the same second. Most of them are rejected
    /// again when they all return then. Set `max_jitter` to three times the time in which the limit admits all clients. Then at
    /// least 95 % are admitted at their first retry, if each obeys `Retry-After` and sends one request: for 1,000 clients at 100
    /// requests per second, `max_jitter` is 30 seconds. A limit of each client needs no jitter.
    ///
    /// # Guarantee
    ///
    /// `Retry-After`, and `RetryInfo` of gRPC, are never earlier than without jitter, and later by less than `max_jitter` and one
    /// second. [`Rejection::retry_after`](crate::http::Rejection::retry_after) and the quota headers remain exact:
    /// `t` is the time until more permits remain.
    ///
    /// # Cost
    ///
    /// A random number for each rejection. The target `wasm32-unknown-unknown` has none, and so no jitter.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    ///
    /// use ringgate::http::RateLimitLayer;
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let rules = RuleSetBuilder::new()
    ///     .rule(Rule::new("all", "100/s".parse()?))
    ///     .build_with(ManualClock::new(), [1; 4])?;
    /// let layer = RateLimitLayer::from(rules).jitter(Duration::from_secs(30));
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn jitter(self, max_jitter: Duration) -> Self {
        self.with(|config| config.max_jitter = max_jitter)
    }
}
