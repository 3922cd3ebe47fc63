use core::marker::PhantomData;
use core::time::Duration;

use super::RateLimitLayer;
use crate::http::rules::HttpRules;
use crate::http::service::Metered;

impl<S: HttpRules, R, M> RateLimitLayer<S, R, M> {
    /// Counts a request as [in flight](crate::Rule::in_flight) until its response body has ended, or is dropped.
    ///
    /// By default a request is in flight until the inner service returns the response, because the layer does not see the end
    /// of the body. This changes the type of response bodies to [`MeteredBody`](crate::http::MeteredBody), as
    /// [`settle_body`](Self::settle_body) does, which includes it.
    ///
    /// # Caveats
    ///
    /// - The body has ended when the server has taken its last frame. The server may still send it then: hyper buffers what it has
    ///   taken, all of a body of one frame. So a slot bounds the work of the inner service, and not the sockets that are
    ///   written to.
    /// - The response 101 of an upgrade has no body, so the slot of a WebSocket is released at once, unless its handler
    ///   [holds](crate::http::InFlightSlot) it.
    ///
    /// # Guarantee
    ///
    /// Each slot is released once: when the body ends, fails or is dropped, when the future of the request is dropped, and when the
    /// inner service fails or panics. A [`SlotGuard`](crate::http::SlotGuard) makes it later.
    ///
    /// # Examples
    ///
    /// Twenty requests of each client at a time:
    ///
    /// ```
    /// use ringgate::Rule;
    /// use ringgate::http::{HttpKey, RateLimitLayer};
    /// # use ringgate::ManualClock;
    /// use ringgate::rules::RuleSetBuilder;
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let rules = RuleSetBuilder::new().rule(Rule::in_flight("client", 20).by(&HttpKey::peer().key()));
    /// # let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// # #[cfg(any())]
    /// let rules = rules.build()?;
    /// let layer = RateLimitLayer::from(rules).until_body_end();
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    pub fn until_body_end(self) -> RateLimitLayer<S, R, Metered> {
        RateLimitLayer {
            config: self.config,
            metering: PhantomData,
        }
    }

    /// Tells a client that was rejected for lack of a slot [in flight](crate::Rule::in_flight) to retry after this time.
    ///
    /// By default, its response has no `Retry-After`: a slot is free when another request ends, and no time is known. Most
    /// clients then back off by their own defaults. Set this to the usual duration of a request, for clients that retry at once or
    /// never without the header. [`jitter`](Self::jitter) is added. If a quota is violated too, `Retry-After` is at least its time,
    /// also without this option.
    pub fn slot_retry_after(self, after: Duration) -> Self {
        self.with(|config| config.slot_retry_after = Some(after))
    }
}
