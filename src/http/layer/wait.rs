//! Requests that wait instead of being rejected.

use core::time::Duration;

use ::http::request::Parts;

use crate::clock::Clock;
use crate::http::layer::RateLimitLayer;
use crate::http::rules::HttpRules;
use crate::http::rules::local::LocalQueue;
use crate::rules::LiveRules;

impl<S: HttpRules, R, M> RateLimitLayer<S, R, M> {
    /// Delays requests for at most `max_wait` until they are admitted, instead of rejecting them.
    ///
    /// With local rules, requests are served in order of arrival. A request is served at once if its permits are free and no
    /// earlier request waits for them. It is rejected at once if it cannot be admitted in time, or if the queue is full.
    ///
    /// With shared rules, requests have no order, since the store also decides requests of other machines. A denied request is
    /// decided again after its retry time, until it is admitted or the next retry time is too late.
    ///
    /// # Guarantee
    ///
    /// With local rules, the guarantees of [`Fair`](crate::wait::Fair) hold. If a client disconnects while its request waits, the
    /// request is charged nothing, and delays no other request.
    ///
    /// # Cost
    ///
    /// A request that does not wait also costs a check of the queue. A request that waits allocates a few boxes. Over
    /// shared rules, each decision about a waiting request is a call of the store.
    ///
    /// # Caveats
    ///
    /// - A waiting request occupies its connection, and the resources that the inner service has reserved for it. Set
    ///   [`max_waiting`](Self::max_waiting) to the number of waiting requests that the server can hold.
    /// - `Retry-After` of a rejection by local rules is a lower bound of the wait behind the requests that already wait.
    /// - After a reload, call `recheck` of the [queue](Self::queue), for example in the callback of a `RulesWatcher`.
    ///   Otherwise waiting requests are decided again only when their timers fire, which were set by the old rules.
    /// - Rules count each denied attempt as a denial. So a request that waits and is admitted is also counted as denied. A request
    ///   that is rejected because of the queue is not.
    /// - Waiting needs the timer of tokio.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use ringgate::http::{HttpKey, RateLimitLayer};
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let client = Rule::new("client", "10/s".parse()?).by(&HttpKey::peer().key());
    /// let rules = RuleSetBuilder::new().rule(client);
    /// # let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// # #[cfg(any())]
    /// let rules = rules.build()?;
    /// // At most 1000 requests wait, each for at most two seconds.
    /// let layer = RateLimitLayer::from(rules).wait(Duration::from_secs(2)).max_waiting(1000);
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(self, max_wait: Duration) -> Self {
        self.with(|config| config.settings.max_wait = Some(max_wait))
    }

    /// Sets how many requests may [wait](Self::wait) at once, over all connections. The default is a million.
    ///
    /// This creates a new queue, so call it before the layer is used.
    pub fn max_waiting(self, max: usize) -> Self {
        self.with(|config| config.settings.queue = config.rules.queue(Some(max)))
    }
}

impl<C, R, M> RateLimitLayer<LiveRules<Parts, C>, R, M>
where
    C: Clock + Clone + Send + Sync + 'static,
{
    /// Returns the queue of requests that [wait](Self::wait), in which other callers can wait, too. `None` if
    /// [`wait`](Self::wait) was not called.
    pub fn queue(&self) -> Option<&LocalQueue<C>> {
        self.config.settings.max_wait.map(|_| &self.config.settings.queue)
    }
}
