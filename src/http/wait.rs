mod service;

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use ::http::request::Parts;
use tower_layer::Layer;

pub use self::service::{WaitFuture, WaitService};
use super::config::Queue;
use super::layer::RateLimitLayer;
use super::problem::Problem;
#[cfg(feature = "quanta")]
use crate::clock::DefaultClock;
use crate::rules::LiveRules;
use crate::wait::Fair;

/// Delays requests until they are admitted, in order of arrival, instead of rejecting them.
///
/// [`RateLimitLayer::wait`] makes it. A request is served at once if its permits are free and no earlier request waits for
/// them. Otherwise it waits. It is rejected at once if it cannot be admitted in time, or if the queue is full. The options
/// of the [`RateLimitLayer`] stay in force.
///
/// # Guarantee
///
/// The guarantees of [`Fair`] hold. If a client disconnects while its request waits, the request is charged nothing and
/// delays no other request.
///
/// # Cost
///
/// A request that does not wait costs a check of the queue more than in a [`RateLimitLayer`]. A request that waits
/// allocates a few boxes. With [`charge_if`](RateLimitLayer::charge_if), each request allocates them.
///
/// # Caveats
///
/// - A waiting request occupies its connection, and what the inner service has reserved for it. Choose
///   [`max_waiting`](Self::max_waiting) by what the server can hold.
/// - `Retry-After` of a rejection is the least wait behind the requests that wait already.
/// - After a reload, call `recheck` of the [queue](Self::queue), for example in the callback of a `RulesWatcher`.
///   Otherwise waiting requests are evaluated again only when their timers fire, which were set by the old rules.
/// - [`on_rejected`](RateLimitLayer::on_rejected) is never called.
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
#[must_use = "a layer does nothing until it wraps a service"]
pub struct WaitLayer<C = DefaultClock, R = Problem> {
    layer: RateLimitLayer<C, R>,
    queue: Queue<C>,
    max_wait: Duration,
}

impl<C, R> RateLimitLayer<C, R> {
    /// Delays requests for at most `max_wait` instead of rejecting them: see [`WaitLayer`].
    ///
    /// Set all other options before. The inner service must be `Clone`.
    pub fn wait(self, max_wait: Duration) -> WaitLayer<C, R> {
        WaitLayer {
            queue: Arc::new(Fair::new(Arc::clone(self.rules()))),
            layer: self,
            max_wait,
        }
    }
}

impl<C, R> WaitLayer<C, R> {
    /// Sets how many requests may wait at once, over all connections. The default is a million.
    ///
    /// It makes a new queue, so call it before the layer is used.
    pub fn max_waiting(self, max: usize) -> Self {
        let queue = Fair::new(Arc::clone(self.layer.rules())).max_waiting(max);
        Self {
            queue: Arc::new(queue),
            ..self
        }
    }

    /// Returns the queue, in which other callers can wait too.
    pub const fn queue(&self) -> &Arc<Fair<Arc<LiveRules<Parts, C>>>> {
        &self.queue
    }
}

impl<S, C, R: Clone> Layer<S> for WaitLayer<C, R> {
    type Service = WaitService<S, C, R>;

    fn layer(&self, inner: S) -> WaitService<S, C, R> {
        WaitService::new(inner, self.layer.config(), Arc::clone(&self.queue), self.max_wait)
    }
}

impl<C, R: Clone> Clone for WaitLayer<C, R> {
    fn clone(&self) -> Self {
        Self {
            layer: self.layer.clone(),
            queue: Arc::clone(&self.queue),
            max_wait: self.max_wait,
        }
    }
}

impl<C: fmt::Debug, R: fmt::Debug> fmt::Debug for WaitLayer<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitLayer")
            .field("layer", &self.layer)
            .field("max_wait", &self.max_wait)
            .finish_non_exhaustive()
    }
}
