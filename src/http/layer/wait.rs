//! Requests that wait instead of being rejected.

use core::time::Duration;

use ::http::request::Parts;

use crate::clock::Clock;
use crate::http::layer::RateLimitLayer;
use crate::http::rules::local::LocalQueue;
use crate::http::rules::{HttpRules, Wait};
use crate::rules::LiveRules;

impl<S: HttpRules, R, M> RateLimitLayer<S, R, M> {
    /// Delays requests for at most `max_wait` until they are admitted, instead of rejecting them.
    ///
    /// Requests to local rules are served in order of arrival: a request is served at once if its permits are free and no
    /// earlier request waits for them. It is rejected at once if it cannot be admitted in time, or if the queue is full.
    ///
    /// Requests to shared rules have no order, since other machines ask the store too. A denied request asks again after its
    /// retry time, until it is admitted or its next time is too late.
    ///
    /// # Guarantee
    ///
    /// For local rules, the guarantees of [`Fair`](crate::wait::Fair). If a client disconnects while its request waits, the request is charged
    /// nothing and delays no other request.
    ///
    /// # Cost
    ///
    /// A request that does not wait costs a check of the queue more. A request that waits allocates a few boxes. With
    /// [`charge_if`](Self::charge_if) or [`settle_body`](Self::settle_body) over local rules, each request allocates them.
    /// Over shared rules, a request that waits calls the store once for each time that it asks.
    ///
    /// # Caveats
    ///
    /// - A waiting request occupies its connection, and what the inner service has reserved for it. Choose
    ///   [`max_waiting`](Self::max_waiting) by what the server can hold.
    /// - `Retry-After` of a rejection by local rules is the least wait behind the requests that wait already.
    /// - After a reload, call `recheck` of the [queue](Self::queue), for example in the callback of a `RulesWatcher`.
    ///   Otherwise waiting requests are evaluated again only when their timers fire, which were set by the old rules.
    /// - The denials that rules count are failed attempts. An admitted request that waited counts as denied too. A request
    ///   that is rejected because of the queue does not.
    /// - It needs the timer of tokio.
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
        self.with(|config| {
            let queue = config.rules.queue(None);
            config.terms.wait = Some(Wait {
                queue,
                most: max_wait,
            });
        })
    }

    /// Sets how many requests may [wait](Self::wait) at once, over all connections. The default is a million.
    ///
    /// It makes a new queue, so call it before the layer is used. Without `wait` it has no effect.
    pub fn max_waiting(self, max: usize) -> Self {
        self.with(|config| {
            let queue = config.rules.queue(Some(max));
            if let Some(wait) = &mut config.terms.wait {
                wait.queue = queue;
            }
        })
    }
}

impl<C, R, M> RateLimitLayer<LiveRules<Parts, C>, R, M>
where
    C: Clock + Clone + Send + Sync + 'static,
{
    /// Returns the queue of requests that [wait](Self::wait), in which other callers can wait too. `None` if none wait.
    pub fn queue(&self) -> Option<&LocalQueue<C>> {
        self.config.terms.wait.as_ref().map(|wait| &wait.queue)
    }
}
