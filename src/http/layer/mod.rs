mod body_end;
mod jitter;
mod wait;

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use ::http::request::Parts;
use ::http::{Response, StatusCode, response};
use tower_layer::Layer;

use super::answer::{Grpc, Problem, QuotaHeaders, Rejection, Statuses};
use super::config::{Config, Skip};
use super::rules::{HttpRules, Settings};
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
/// # #[cfg(feature = "quanta")] {
/// let client = HttpKey::client(ClientIp::peer().x_forwarded_for(["10.0.0.0/8"])?).key();
/// let user = HttpKey::header(HeaderName::from_static("x-api-key")).key();
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
/// # }
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[must_use = "a layer does nothing until it wraps a service"]
pub struct RateLimitLayer<S: HttpRules = LiveRules<Parts>, R = Problem, M = Unmetered> {
    config: Config<S, R>,
    metering: PhantomData<fn() -> M>,
}

impl<S: HttpRules> RateLimitLayer<S> {
    /// Creates a layer over rules that other code uses, too: [`LiveRules`], which can be replaced while requests are served,
    /// `SharedRules`, whose counts many machines share, or `LiveSharedRules`, which are both.
    ///
    /// After a reload, new requests and those that wait are decided by the new rules. A charge is refunded or settled by the rules
    /// that made it.
    pub fn new(rules: Arc<S>) -> Self {
        Self {
            config: Config {
                settings: Settings {
                    headers: QuotaHeaders::Standard,
                    reserves: false,
                    max_wait: None,
                    queue: rules.queue(None),
                },
                rules,
                rejection_response: Problem,
                statuses: Statuses::DEFAULT,
                slot_retry_after: None,
                max_jitter: Duration::ZERO,
                decision_extension: true,
                skip: Skip::new(),
                charge_if: None,
                body_cost: None,
                on_rejected: None,
                #[cfg(feature = "observe")]
                reported: Arc::default(),
            },
            metering: PhantomData,
        }
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
    /// Returns the rules.
    pub const fn rules(&self) -> &Arc<S> {
        &self.config.rules
    }

    fn with(mut self, change: impl FnOnce(&mut Config<S, R>)) -> Self {
        change(&mut self.config);
        self
    }

    /// Chooses the quota headers. The default is [`QuotaHeaders::Standard`].
    pub fn headers(self, headers: QuotaHeaders) -> Self {
        self.with(|config| config.settings.headers = headers)
    }

    /// Sets whether admitted requests get a [`Decision`](super::Decision) in their extensions. The default is `true`.
    pub fn decision_extension(self, enabled: bool) -> Self {
        self.with(|config| config.decision_extension = enabled)
    }

    /// Sets the status of rejections. The default is 429.
    pub fn status(self, status: StatusCode) -> Self {
        self.with(|config| config.statuses.denied = status)
    }

    /// Sets the status of rejections of requests without a key. The default is 400.
    ///
    /// Rules reject such requests only with [`OnMissingKey::Deny`](crate::rules::OnMissingKey::Deny).
    pub fn missing_key_status(self, status: StatusCode) -> Self {
        self.with(|config| config.statuses.missing_key = status)
    }

    /// Sets the status of rejections that are due to a store that does not answer. The default is 503.
    ///
    /// Rules reject such requests only with [`OnError::Deny`](crate::rules::OnError::Deny).
    pub fn unavailable_status(self, status: StatusCode) -> Self {
        self.with(|config| config.statuses.unavailable = status)
    }

    /// Exempts CORS preflights: `OPTIONS` with `Origin` and `Access-Control-Request-Method`.
    ///
    /// Any client can send them, so the response to a preflight should be cheap.
    pub fn skip_preflight(self) -> Self {
        self.with(|config| config.skip.add_preflight())
    }

    /// Exempts requests for exactly this path, such as a health check. Under nested routers of axum it is the whole path
    /// (feature `axum`).
    pub fn skip_path(self, path: impl Into<String>) -> Self {
        self.with(|config| config.skip.add_path(path.into()))
    }

    /// Exempts requests that satisfy a predicate.
    pub fn skip_if(self, predicate: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|config| config.skip.add_predicate(predicate))
    }

    /// Charges only requests whose response satisfies a predicate, such as failed logins.
    ///
    /// A request is charged before it is served, and refunded if the predicate returns `false`. So concurrent requests cannot
    /// exceed the limit. If there is no response, because the inner service failed or the future was dropped, the charge stays.
    /// Only the rules with the cost of [`settle_body`](Self::settle_body) are settled then, by 0 bytes.
    ///
    /// The algorithm determines how much can be refunded. The rest stays charged, and is counted by
    /// [`RuleCounts::forfeited`](crate::rules::RuleCounts):
    ///
    /// | algorithm | refunded |
    /// |---|---|
    /// | [`Fixed`](crate::rules::RuleAlgorithm::Fixed) | everything in the same window |
    /// | [`SlidingWindow`](crate::rules::RuleAlgorithm::SlidingWindow) in one word | everything while the charge counts, but see below |
    /// | a window of N cells | everything while the charge counts, which is N − 1 cells or longer |
    /// | [`Gcra`](crate::rules::RuleAlgorithm::Gcra) | only if no other request was charged in between |
    /// | log | nothing |
    ///
    /// A rule with a key counts in one word by default. At a high limit it counts in units of several permits. Then each refund
    /// can keep older permits, fewer than a unit, in the count for longer. So set [`cells`](crate::Rule::cells) if the predicate
    /// refunds most requests. With `Gcra` and the log, concurrent requests use up the limit even if the predicate returns `false`
    /// for each of them.
    ///
    /// # Cost
    ///
    /// Each admitted request allocates two boxes, and counts two references for each state that it charges.
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
    /// let failures = Rule::new("failures", "5/min".parse()?).by(&HttpKey::peer().key());
    /// let rules = RuleSetBuilder::new().rule(failures);
    /// # let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// # #[cfg(any())]
    /// let rules = rules.build()?;
    /// let layer = RateLimitLayer::from(rules)
    ///     .charge_if(|response| response.status == StatusCode::UNAUTHORIZED);
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    pub fn charge_if(self, predicate: impl Fn(&response::Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|config| {
            config.charge_if = Some(Arc::new(predicate));
            config.settings.reserves = true;
        })
    }

    /// Calls a function with each rejection, before the response is made.
    ///
    /// The function runs on the thread that serves the request. [`DenialEvents`](crate::observe::DenialEvents) (feature
    /// `observe`) samples rejections as events of `tracing`.
    pub fn on_rejected(self, function: impl Fn(&Rejection<'_>) + Send + Sync + 'static) -> Self {
        self.with(|config| config.on_rejected = Some(Arc::new(function)))
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

    /// Rejects all requests with gRPC statuses, for body types that cannot be made from a `String`, such as tonic's.
    ///
    /// The default, [`Problem`], does so for requests with a content type of gRPC or gRPC-Web.
    pub fn grpc(self) -> RateLimitLayer<S, Grpc, M> {
        self.rejection_response(Grpc)
    }

    /// Makes the responses to rejected requests by a [`RejectionResponse`](super::RejectionResponse).
    pub fn rejection_response<T>(self, rejection_response: T) -> RateLimitLayer<S, T, M> {
        let Config {
            rules,
            settings,
            rejection_response: _,
            statuses,
            slot_retry_after,
            max_jitter,
            decision_extension,
            skip,
            charge_if,
            body_cost,
            on_rejected,
            #[cfg(feature = "observe")]
            reported,
        } = self.config;
        RateLimitLayer {
            config: Config {
                rules,
                settings,
                rejection_response,
                statuses,
                slot_retry_after,
                max_jitter,
                decision_extension,
                skip,
                charge_if,
                body_cost,
                on_rejected,
                #[cfg(feature = "observe")]
                reported,
            },
            metering: self.metering,
        }
    }

    /// Charges the bytes of response bodies: an estimate before the response, and the difference to the real number after it.
    ///
    /// The rules with this [`Cost`] are charged its estimate. When the body has ended or is dropped, they are settled by the
    /// bytes that were sent. An excess is refunded, as far as [`RuleSet::refund`] can. A shortfall is charged as debt, which
    /// delays later requests. Other rules keep their charge. If the predicate of [`charge_if`](Self::charge_if) returns `false`,
    /// everything is refunded.
    ///
    /// It changes the type of response bodies to [`MeteredBody`](super::MeteredBody).
    ///
    /// # Guarantee
    ///
    /// Each charge is settled once: when the body ends, fails or is dropped. If there is no response, it is settled by 0 bytes.
    /// The bytes of the inner service's data frames are counted.
    ///
    /// # Caveats
    ///
    /// - Each request is admitted by its estimate. If the estimates are too low, concurrent requests can cause a large debt.
    /// - Shared rules are settled by a task of tokio, after the body has ended. If the store does not answer, or the runtime
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
    ///     .by(&HttpKey::peer().key());
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
        let Self { mut config, .. } = self;
        config.body_cost = Some(cost.clone());
        config.settings.reserves = true;
        RateLimitLayer {
            config,
            metering: PhantomData,
        }
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
            config: self.config.clone(),
            metering: PhantomData,
        }
    }
}

impl<S: HttpRules, R: fmt::Debug, M> fmt::Debug for RateLimitLayer<S, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateLimitLayer").field(&self.config).finish()
    }
}
