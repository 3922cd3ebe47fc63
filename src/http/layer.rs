use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use ::http::request::Parts;
use ::http::{Response, StatusCode, response};
use tower_layer::Layer;

use super::config::{Config, Skip};
use super::grpc::Grpc;
use super::headers::QuotaHeaders;
use super::problem::Problem;
use super::rejection::Rejection;
use super::service::RateLimitService;
use crate::clock::Clock;
use crate::clock::DefaultClock;
use crate::rules::{Denied, LiveRules, RuleSet};

/// Limits the requests to a service by rules.
///
/// By default every request is evaluated. A rejection is a response 429 with `Retry-After`, `RateLimit`,
/// `RateLimit-Policy` and a body that names the violated rules ([`Problem`]). Responses to admitted requests have
/// `RateLimit` and `RateLimit-Policy` too.
///
/// All services that the layer and its clones make share the rules. [`LiveRules::store`] replaces the rules while
/// requests are served.
///
/// # Cost
///
/// An admitted request costs the decision and a move of the request head. The quota headers read the state of each
/// rule again, and allocate. The [`Decision`](super::Decision) costs an insertion into the extensions: one box, and the
/// map if the request had no extensions.
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
/// # #[cfg(feature = "quanta")]
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
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
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "quanta"))]
/// # fn main() {}
/// ```
#[must_use = "a layer does nothing until it wraps a service"]
pub struct RateLimitLayer<C = DefaultClock, R = Problem> {
    config: Config<C, R>,
}

impl<C> RateLimitLayer<C> {
    /// Creates a layer over rules that may be shared and replaced.
    pub const fn new(rules: Arc<LiveRules<Parts, C>>) -> Self {
        Self {
            config: Config {
                rules,
                rejection_response: Problem,
                status: StatusCode::TOO_MANY_REQUESTS,
                missing_key_status: StatusCode::BAD_REQUEST,
                headers: QuotaHeaders::Standard,
                decision_extension: true,
                skip: Skip::new(),
                charge_if: None,
                on_rejected: None,
            },
        }
    }
}

impl<C: Clock + Clone> From<RuleSet<Parts, C>> for RateLimitLayer<C> {
    fn from(rules: RuleSet<Parts, C>) -> Self {
        Self::new(Arc::new(LiveRules::new(rules)))
    }
}

impl<C, R> RateLimitLayer<C, R> {
    /// Returns the rules.
    pub const fn rules(&self) -> &Arc<LiveRules<Parts, C>> {
        &self.config.rules
    }

    fn with(mut self, change: impl FnOnce(&mut Config<C, R>)) -> Self {
        change(&mut self.config);
        self
    }

    /// Chooses the quota headers. The default is [`QuotaHeaders::Standard`].
    pub fn headers(self, headers: QuotaHeaders) -> Self {
        self.with(|config| config.headers = headers)
    }

    /// Sets whether admitted requests get a [`Decision`](super::Decision) in their extensions. The default is `true`.
    pub fn decision_extension(self, enabled: bool) -> Self {
        self.with(|config| config.decision_extension = enabled)
    }

    /// Sets the status of rejections. The default is 429.
    pub fn status(self, status: StatusCode) -> Self {
        self.with(|config| config.status = status)
    }

    /// Sets the status of rejections for want of a key. The default is 400.
    ///
    /// Rules reject such requests only with [`OnMissingKey::Deny`](crate::rules::OnMissingKey::Deny).
    pub fn missing_key_status(self, status: StatusCode) -> Self {
        self.with(|config| config.missing_key_status = status)
    }

    /// Exempts CORS preflights: `OPTIONS` with `Origin` and `Access-Control-Request-Method`.
    ///
    /// Any client can send them, so the response to a preflight should be cheap.
    pub fn skip_preflight(self) -> Self {
        self.with(|config| config.skip.add_preflight())
    }

    /// Exempts requests for exactly this path, such as a health check.
    pub fn skip_path(self, path: impl Into<String>) -> Self {
        self.with(|config| config.skip.add_path(path.into()))
    }

    /// Exempts requests that satisfy a predicate.
    pub fn skip_if(self, predicate: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|config| config.skip.add_predicate(predicate))
    }

    /// Charges only requests whose response satisfies a predicate, such as failed logins.
    ///
    /// A request is charged before it is served, and refunded if the predicate returns `false`. Concurrent requests
    /// therefore cannot exceed the limit. The charge stays if there is no response: the inner service failed, or the
    /// future was dropped.
    ///
    /// The algorithm determines how much can be refunded. [`RuleCounts::forfeited`](crate::rules::RuleCounts) counts the rest,
    /// which stays charged:
    ///
    /// | algorithm | refunded |
    /// |---|---|
    /// | [`Fixed`](crate::rules::RuleAlgorithm::Fixed) | everything in the same window |
    /// | counter ring | everything in the same cell, a fifth of the window by default |
    /// | [`Gcra`](crate::rules::RuleAlgorithm::Gcra) | only if no other request was charged in between |
    /// | log | nothing |
    ///
    /// With the last two, concurrent requests use up the limit even if none of them is to be charged.
    ///
    /// # Cost
    ///
    /// Each admitted request allocates one box, and counts two references for each state that it charges.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::StatusCode;
    /// use ringgate::http::{HttpKey, RateLimitLayer};
    /// use ringgate::rules::{RuleAlgorithm, RuleSetBuilder};
    /// use ringgate::{ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let failures = Rule::new("failures", "5/min".parse()?)
    ///     .algorithm(RuleAlgorithm::Fixed)
    ///     .by(&HttpKey::peer().key());
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
        self.with(|config| config.charge_if = Some(Arc::new(predicate)))
    }

    /// Calls a function with each denial by the rules, before the response is made.
    ///
    /// The function runs on the thread that serves the request. [`DenialEvents`](crate::observe::DenialEvents) (feature
    /// `observe`) samples denials as events of `tracing`.
    pub fn on_rejected(self, function: impl Fn(&Denied<'_, Parts>) + Send + Sync + 'static) -> Self {
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
    pub fn respond_with<F, B>(self, response: F) -> RateLimitLayer<C, F>
    where
        F: Fn(&Rejection<'_>) -> Response<B>,
    {
        self.rejection_response(response)
    }

    /// Rejects all requests with gRPC statuses, for body types that cannot be made from a `String`, such as tonic's.
    ///
    /// The default, [`Problem`], does so for requests with a gRPC content type.
    pub fn grpc(self) -> RateLimitLayer<C, Grpc> {
        self.rejection_response(Grpc)
    }

    /// Makes the responses to rejected requests by a [`RejectionResponse`](super::RejectionResponse).
    pub fn rejection_response<T>(self, rejection_response: T) -> RateLimitLayer<C, T> {
        let Config {
            rules,
            rejection_response: _,
            status,
            missing_key_status,
            headers,
            decision_extension,
            skip,
            charge_if,
            on_rejected,
        } = self.config;
        RateLimitLayer {
            config: Config {
                rules,
                rejection_response,
                status,
                missing_key_status,
                headers,
                decision_extension,
                skip,
                charge_if,
                on_rejected,
            },
        }
    }
}

impl<C, R: Clone> RateLimitLayer<C, R> {
    /// Returns the configuration for a service, which shares it with its clones.
    pub(super) fn config(&self) -> Arc<Config<C, R>> {
        Arc::new(self.config.clone())
    }
}

impl<S, C, R: Clone> Layer<S> for RateLimitLayer<C, R> {
    type Service = RateLimitService<S, C, R>;

    fn layer(&self, inner: S) -> RateLimitService<S, C, R> {
        RateLimitService::new(inner, self.config())
    }
}

impl<C, R: Clone> Clone for RateLimitLayer<C, R> {
    fn clone(&self) -> Self {
        Self {
            config: self.config.clone(),
        }
    }
}

impl<C, R: fmt::Debug> fmt::Debug for RateLimitLayer<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RateLimitLayer").field(&self.config).finish()
    }
}
