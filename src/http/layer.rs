use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use ::http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use ::http::request::Parts;
use ::http::{Method, Response, StatusCode, response};
use tower_layer::Layer;

use super::answer::{Problem, QuotaHeaders, Rejection, RejectionReason, Statuses};
use super::config::{Config, Settings};
use super::request::outer_path;
use super::rules::{HttpRules, Options, RuleQueue};
use super::service::{Metered, RateLimitService, Unmetered};
use crate::clock::Clock;
use crate::rules::{Cost, LiveRules, RuleSet};
#[cfg(feature = "shared")]
use crate::shared::SharedRules;

/// Limits the requests to a service by rules.
///
/// By default every request is evaluated. A rejection is a response 429 with `Retry-After`, `RateLimit`,
/// `RateLimit-Policy` and a body that names the violated rules ([`Problem`]). Responses to admitted requests have
/// `RateLimit` and `RateLimit-Policy` too.
///
/// The rules are shared by all services of the layer and its clones. [`LiveRules::store`] replaces the rules while requests are
/// served.
///
/// # Cost
///
/// An admitted request costs the decision and a move of the request head. The quota headers read the state of each rule again,
/// and allocate. The [`Decision`](super::Decision) is inserted into the extensions, which allocates a box, and a map if the
/// request had no extensions.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use http::header::HeaderName;
/// use ringgate::http::{ClientIp, HttpKey, RateLimitLayer};
/// use ringgate::{LiveRules, Rule, RuleSet};
///
/// let client = HttpKey::client(ClientIp::peer().x_forwarded_for(["10.0.0.0/8"])?);
/// let user = HttpKey::header(HeaderName::from_static("x-api-key"));
/// let rules = RuleSet::builder()
///     .rule(Rule::new("client", "100/min".parse()?).by(&client))
///     .rule(Rule::new("user", "10/s".parse()?).also("1000/h".parse()?).by(&user));
/// let live = Arc::new(LiveRules::new(rules.build()?));
///
/// let layer = RateLimitLayer::new(Arc::clone(&live))
///     .skip_preflight()
///     .skip_path("/health");
/// # let _ = layer;
/// // `live.store(&rules)?` replaces the rules.
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[must_use = "a layer does nothing until it wraps a service"]
pub struct RateLimitLayer<S: HttpRules = LiveRules<Parts>, R = Problem, M = Unmetered> {
    rules: Arc<S>,
    config: Config<S::Queue, R, M>,
}

impl<S: HttpRules> RateLimitLayer<S> {
    /// Creates a layer over rules that other code uses, too: [`LiveRules`], which can be replaced while requests are served,
    /// `SharedRules`, whose counts many machines share, or `LiveSharedRules`, which are both.
    ///
    /// After a reload, new requests and those that wait are decided by the new rules. A charge is refunded or settled by the
    /// rules that made it.
    pub fn new(rules: Arc<S>) -> Self {
        let settings = Settings {
            // No request waits.
            rules: Arc::clone(&rules).with_queue(0),
            options: Options {
                headers: QuotaHeaders::Standard,
                max_wait: None,
                decision_extension: true,
                charge_if: None,
                body_cost: None,
            },
            statuses: Statuses::default(),
            slot_retry_after: None,
            max_jitter: Duration::ZERO,
            skip: Vec::new(),
            on_rejected: None,
            #[cfg(feature = "observe")]
            reported: Arc::default(),
        };
        Self::of(rules, settings, Problem)
    }
}

impl<C: Clock + Clone + Send + Sync + 'static> From<RuleSet<Parts, C>>
    for RateLimitLayer<LiveRules<Parts, C>>
{
    fn from(rules: RuleSet<Parts, C>) -> Self {
        Self::new(Arc::new(LiveRules::new(rules)))
    }
}

#[cfg(feature = "shared")]
impl From<SharedRules<Parts>> for RateLimitLayer<SharedRules<Parts>> {
    fn from(rules: SharedRules<Parts>) -> Self {
        Self::new(Arc::new(rules))
    }
}

impl<S: HttpRules, R, M> RateLimitLayer<S, R, M> {
    fn of(rules: Arc<S>, settings: Settings<S::Queue>, rejection_response: R) -> Self {
        Self {
            rules,
            config: Config {
                settings,
                rejection_response,
                metering: PhantomData,
            },
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Settings<S::Queue>)) -> Self {
        change(&mut self.config.settings);
        self
    }

    /// Chooses the quota headers. The default is [`QuotaHeaders::Standard`].
    pub fn headers(self, headers: QuotaHeaders) -> Self {
        self.with(|settings| settings.options.headers = headers)
    }

    /// Sets whether admitted requests get a [`Decision`](super::Decision) in their extensions. The default is `true`.
    pub fn decision_extension(self, enabled: bool) -> Self {
        self.with(|settings| settings.options.decision_extension = enabled)
    }

    /// Sets the status of rejections for this reason. [`RejectionReason`] has the defaults. A rejection for a slot in flight has a reason
    /// of its own, [`NoSlot`](RejectionReason::NoSlot).
    pub fn status(self, reason: RejectionReason, status: StatusCode) -> Self {
        self.with(|settings| settings.statuses.set(reason, status))
    }

    /// Exempts CORS preflights: `OPTIONS` with `Origin` and `Access-Control-Request-Method`.
    ///
    /// Any client can send them, so the response to a preflight should be cheap.
    pub fn skip_preflight(self) -> Self {
        self.skip_if(is_preflight)
    }

    /// Exempts requests for exactly this path, such as a health check. With feature `axum`, pass the whole path in nested
    /// routers, too.
    pub fn skip_path(self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.skip_if(move |request| *path == *outer_path(request))
    }

    /// Exempts requests that satisfy a predicate.
    pub fn skip_if(self, predicate: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.skip.push(Arc::new(predicate)))
    }

    /// Charges only requests whose response satisfies a predicate, such as failed logins.
    ///
    /// A request is charged before it is served, and refunded if the predicate returns `false`. So concurrent requests cannot
    /// exceed the limit. If there is no response, because the inner service failed or the future was dropped, the charge stays.
    /// Rules with the cost of [`settle_body`](Self::settle_body) are an exception: their charge is refunded as far as the
    /// algorithm can, because no bytes were sent.
    ///
    /// The algorithm determines how much can be refunded. The rest stays charged, and is counted by
    /// [`RuleCounts::forfeited`](crate::rules::RuleCounts):
    ///
    /// | algorithm | refunded |
    /// |---|---|
    /// | [`Fixed`](crate::rules::RuleAlgorithm::Fixed) | everything in the same window |
    /// | [`SlidingWindow`](crate::rules::RuleAlgorithm::SlidingWindow) in one word (see below) | everything while the charge counts |
    /// | a window of N cells | everything while the charge counts, for at least N − 1 cells |
    /// | [`Gcra`](crate::rules::RuleAlgorithm::Gcra) | only if no other request was charged in between |
    /// | log | nothing |
    ///
    /// A rule with a key counts in one word by default, and at a high limit in units of several permits. Units have a price: each
    /// refund can make fewer than a unit of older permits count for longer. So set [`cells`](crate::Rule::cells) if the predicate
    /// refunds most requests. With `Gcra` and the log, concurrent requests use up the limit even if the predicate returns `false`
    /// for each of them.
    ///
    /// # Cost
    ///
    /// Each admitted request allocates two boxes, and changes a reference count twice for each state that it charges.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::StatusCode;
    /// use ringgate::http::{HttpKey, RateLimitLayer};
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// // At most five failures in any minute.
    /// let failures = Rule::new("failures", "5/min".parse()?).by(&HttpKey::peer());
    /// let rules = RuleSetBuilder::new().rule(failures);
    /// # let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// # // Shown, but not compiled: `build` needs the feature `quanta`.
    /// # #[cfg(any())]
    /// let rules = rules.build()?;
    /// let layer = RateLimitLayer::from(rules)
    ///     .charge_if(|response| response.status == StatusCode::UNAUTHORIZED);
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    pub fn charge_if(self, predicate: impl Fn(&response::Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.options.charge_if = Some(Arc::new(predicate)))
    }

    /// Calls a function with each rejection, before the response is made.
    ///
    /// The function runs on the thread that serves the request. [`DenialEvents`](crate::observe::DenialEvents) (feature
    /// `observe`) samples rejections as events of `tracing`.
    pub fn on_rejected(self, function: impl Fn(&Rejection<'_>) + Send + Sync + 'static) -> Self {
        self.with(|settings| settings.on_rejected = Some(Arc::new(function)))
    }

    /// Makes the responses to rejected requests by a function, for any body type.
    ///
    /// ```
    /// use http::Response;
    /// use ringgate::http::{RateLimitLayer, Rejection};
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// # let rules = RuleSetBuilder::new()
    /// #     .rule(Rule::new("total", "2/s".parse()?))
    /// #     .build_with(ManualClock::new(), [1; 4])?;
    /// let layer = RateLimitLayer::from(rules).respond_with(|rejection: &Rejection<'_>| {
    ///     let mut response = Response::new(String::from("slow down"));
    ///     *response.status_mut() = rejection.status();
    ///     response
    /// });
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    pub fn respond_with<F, B>(self, response: F) -> RateLimitLayer<S, F, M>
    where
        F: Fn(&Rejection<'_>) -> Response<B>,
    {
        self.rejection_response(response)
    }

    /// Makes the responses to rejected requests by [`Grpc`](super::Grpc), or by another
    /// [`RejectionResponse`](super::RejectionResponse). The default is [`Problem`].
    pub fn rejection_response<T>(self, response: T) -> RateLimitLayer<S, T, M> {
        RateLimitLayer::of(self.rules, self.config.settings, response)
    }

    /// Charges the bytes of response bodies: an estimate before the response, and the difference to the real number after it.
    ///
    /// A request is charged the estimate of this [`Cost`] by the rules that have it. When the body has ended or is dropped, the
    /// charge is settled: the bytes that were sent replace the estimate. An excess is refunded, as far as [`RuleSet::refund`]
    /// can. A shortfall is charged as debt, which delays later requests. Other rules keep their charge. If the predicate of
    /// [`charge_if`](Self::charge_if) returns `false`, everything is refunded.
    ///
    /// The type of response bodies becomes [`MeteredBody`](super::MeteredBody).
    ///
    /// # Guarantee
    ///
    /// Each charge is settled once: when the body ends, fails or is dropped. If there is no response, 0 bytes replace the
    /// estimate. The bytes of the inner service's data frames are counted.
    ///
    /// # Caveats
    ///
    /// - Each request is admitted by its estimate. If the estimates are too low, concurrent requests can cause a large debt.
    /// - A task of tokio settles charges of shared rules, after the body has ended. If the store does not answer, or the runtime
    ///   has ended, the estimate stays charged.
    ///
    /// # Examples
    ///
    /// A gigabyte an hour for each client:
    ///
    /// ```
    /// use ringgate::http::{HttpKey, RateLimitLayer};
    /// use ringgate::rules::{Cost, RuleSetBuilder};
    /// use ringgate::{ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let bytes = Cost::new("bytes", |_: &http::request::Parts| 10_000);
    /// let volume = Rule::new("volume", "1_000_000_000/h".parse()?)
    ///     .cost(&bytes)
    ///     .by(&HttpKey::peer());
    /// let rules = RuleSetBuilder::new().rule(volume);
    /// # let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// # #[cfg(any())]
    /// let rules = rules.build()?;
    /// let layer = RateLimitLayer::from(rules).settle_body(&bytes);
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    pub fn settle_body(self, cost: &Cost<Parts>) -> RateLimitLayer<S, R, Metered> {
        let layer = self.with(|settings| settings.options.body_cost = Some(cost.clone()));
        layer.until_body_end()
    }

    /// Counts a request as [in flight](crate::Rule::in_flight) until its response body has ended, or is dropped.
    ///
    /// By default a request is in flight until the inner service returns the response, because the layer does not see the end of
    /// the body. The type of response bodies becomes [`MeteredBody`](super::MeteredBody). [`settle_body`](Self::settle_body)
    /// includes this method.
    ///
    /// # Caveats
    ///
    /// - The body has ended when hyper has taken its last frame, which hyper may send later: a body of one frame is buffered as a
    ///   whole. So a slot bounds the work of the inner service, and not the sockets that are written to.
    /// - The response 101 of an upgrade has no body, so the slot of a WebSocket is released at once, unless its handler
    ///   [holds](crate::http::InFlightSlot) it.
    ///
    /// # Guarantee
    ///
    /// Each slot is released once: when the body ends, fails or is dropped, when the future of the request is dropped, or when
    /// the inner service fails or panics. A [`SlotGuard`](crate::http::SlotGuard) delays the release.
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
    /// let rules = RuleSetBuilder::new().rule(Rule::in_flight("client", 20).by(&HttpKey::peer()));
    /// # let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// # #[cfg(any())]
    /// let rules = rules.build()?;
    /// let layer = RateLimitLayer::from(rules).until_body_end();
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    pub fn until_body_end(self) -> RateLimitLayer<S, R, Metered> {
        RateLimitLayer::of(self.rules, self.config.settings, self.config.rejection_response)
    }

    /// Tells a client that was rejected for lack of a slot [in flight](crate::Rule::in_flight) to retry after this time.
    ///
    /// By default, its response has no `Retry-After`: a slot is free when another request ends, at an unknown time. Most
    /// clients then back off by their own defaults. Set this to the usual duration of a request, for clients that retry at once
    /// or never if the header is missing. [`jitter`](Self::jitter) is added. If a quota is violated too, `Retry-After` is at
    /// least the retry time of that quota, also without this option.
    pub fn slot_retry_after(self, after: Duration) -> Self {
        self.with(|settings| settings.slot_retry_after = Some(after))
    }

    /// Delays the retry of each rejected client by a random time below `max_jitter`. The default is no delay.
    ///
    /// Without jitter, all clients that one limit rejects in a window are told to retry in the same second, and most of them are
    /// rejected again. Set `max_jitter` to three times the time in which the limit admits every client once: 30 seconds
    /// for 1,000 clients at 100 requests per second. Then at least 95 % are admitted at their first retry, if each obeys
    /// `Retry-After` and sends one request. A rule whose key is the client needs no jitter.
    ///
    /// # Guarantee
    ///
    /// `Retry-After`, and `RetryInfo` of gRPC, are never earlier than without jitter, and later by less than `max_jitter` plus
    /// one second. [`Rejection::retry_after`](crate::http::Rejection::retry_after) and the quota headers remain exact:
    /// their parameter `t` is the time until more permits remain.
    ///
    /// # Cost
    ///
    /// A random number for each rejection. `wasm32-unknown-unknown` has none, and lacks this method.
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
        self.with(|settings| settings.max_jitter = max_jitter)
    }

    /// Delays requests for at most `max_wait` until they are admitted, instead of rejecting them. The time begins with the first
    /// poll of the future. At most `max_waiting` requests wait at once, over all connections.
    ///
    /// Requests are served in order of arrival. A request is served at once if its permits are free and no
    /// earlier request waits for them. It is rejected at once if it cannot be admitted in time, or if the queue is full.
    ///
    /// With shared rules, the order is that of this node, since other nodes have queues of their own. The store does not know the
    /// waiting requests, and computes retry times without them. So a request behind others may wait before it is rejected.
    ///
    /// # Guarantee
    ///
    /// With local rules, the guarantees of [`Fair`](crate::wait::Fair) hold. If a client disconnects while its request waits, the
    /// request is charged nothing, and delays no other request.
    ///
    /// With shared rules, the guarantees of `wait::SharedFair` hold. If a client disconnects while the store decides its request,
    /// the request may be charged.
    ///
    /// # Cost
    ///
    /// A request that does not wait also costs a check of the queue. A request that waits allocates a few boxes. Over
    /// shared rules, a waiting request may need several decisions of the store.
    ///
    /// # Caveats
    ///
    /// - A waiting request occupies its connection, and the resources that the inner service has reserved for it. So choose
    ///   `max_waiting` as the number of waiting requests that the server can hold.
    /// - If local rules reject a request, `Retry-After` is a lower bound: the requests that already wait may delay the retry for
    ///   longer.
    /// - After a reload, call [`recheck`](Self::recheck), for example in the callback of a `RulesWatcher`.
    ///   Otherwise waiting requests are decided again only when their timers fire, which were set by the old rules.
    /// - Rules count each denied attempt as a denial, also of a request that waits and is admitted later. A rejection by the
    ///   queue counts none.
    /// - A slot [in flight](crate::Rule::in_flight) that another node releases wakes no request: a request that waits for a slot of
    ///   shared rules asks the store once a second.
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
    /// let client = Rule::new("client", "10/s".parse()?).by(&HttpKey::peer());
    /// let rules = RuleSetBuilder::new().rule(client);
    /// # let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// # #[cfg(any())]
    /// let rules = rules.build()?;
    /// // At most 1000 requests wait, each for at most two seconds.
    /// let layer = RateLimitLayer::from(rules).wait(Duration::from_secs(2), 1000);
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// This creates a queue, so call it before the layer is cloned or used.
    pub fn wait(self, max_wait: Duration, max_waiting: usize) -> Self {
        let queue = Arc::clone(&self.rules).with_queue(max_waiting);
        self.with(|settings| {
            settings.rules = queue;
            settings.options.max_wait = Some(max_wait);
        })
    }

    /// Returns the number of requests that [wait](Self::wait).
    pub fn waiting(&self) -> usize {
        self.config.settings.rules.waiting()
    }

    /// Lets the first waiting request of each queue check for capacity again. Call this after the rules were replaced.
    pub fn recheck(&self) {
        self.config.settings.rules.recheck();
    }
}

impl<T, S: HttpRules, R: Clone, M> Layer<T> for RateLimitLayer<S, R, M> {
    type Service = RateLimitService<T, S, R, M>;

    fn layer(&self, inner: T) -> RateLimitService<T, S, R, M> {
        RateLimitService::new(inner, Arc::new(self.config.clone()))
    }
}

impl<S: HttpRules, R: Clone, M> Clone for RateLimitLayer<S, R, M> {
    fn clone(&self) -> Self {
        Self {
            rules: Arc::clone(&self.rules),
            config: self.config.clone(),
        }
    }
}

impl<S: HttpRules, R: fmt::Debug, M> fmt::Debug for RateLimitLayer<S, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateLimitLayer").field(&self.config).finish()
    }
}

/// Returns whether a request is a CORS preflight (Fetch Standard, section 3.3.2).
fn is_preflight(request: &Parts) -> bool {
    request.method == Method::OPTIONS
        && request.headers.contains_key(ORIGIN)
        && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}
