use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use ::http::request::Parts;
use ::http::{Response, StatusCode, response};
use tower_layer::Layer;

use super::body::SettleLayer;
use super::config::{Config, Shared};
use super::headers::QuotaHeaders;
use super::rejection::{Grpc, Problem, Rejection};
use super::service::RateLimitService;
use super::skip::Skip;
use crate::clock::Clock;
#[cfg(feature = "quanta")]
use crate::clock::QuantaClock;
use crate::rules::{Cost, LiveRules, Refused, RuleSet};

/// Limits the requests to a service by rules.
///
/// When nothing is said, every request is judged; a refused one is answered 429 with a body that says why
/// ([`Problem`]), `Retry-After`, and the headers `RateLimit` and `RateLimit-Policy`, which admitted ones get too.
///
/// The rules are shared by all services that the layer and its clones make, however many connections there are, and
/// can be replaced meanwhile: by `store` of the [`LiveRules`], or by whatever else reloads them.
///
/// # Cost
///
/// For an admitted request, the decision and a move of its head; with the headers, a look at each rule and two
/// short texts; for the [`Decision`](super::Decision), what an extension takes: a box, and the map of extensions if
/// there was none.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use ::http::header::HeaderName;
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
/// // By whoever reads new rules: `live.store(&rules)?`.
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "quanta"))]
/// # fn main() {}
/// ```
#[must_use = "a layer does nothing until a service is in it"]
pub struct RateLimitLayer<
    #[cfg(feature = "quanta")] C = QuantaClock,
    #[cfg(not(feature = "quanta"))] C,
    A = Problem,
> {
    rules: Arc<LiveRules<Parts, C>>,
    config: Config<A>,
}

impl<C> RateLimitLayer<C> {
    /// Judges by these rules, which others may share and replace.
    pub const fn new(rules: Arc<LiveRules<Parts, C>>) -> Self {
        Self {
            rules,
            config: Config {
                answer: Problem,
                status: StatusCode::TOO_MANY_REQUESTS,
                missing_status: StatusCode::BAD_REQUEST,
                headers: QuotaHeaders::Standard,
                decision: true,
                skip: Skip::new(),
                charge_if: None,
                on_refused: None,
            },
        }
    }
}

impl<C: Clock + Clone> From<RuleSet<Parts, C>> for RateLimitLayer<C> {
    fn from(rules: RuleSet<Parts, C>) -> Self {
        Self::new(Arc::new(LiveRules::new(rules)))
    }
}

impl<C, A> RateLimitLayer<C, A> {
    /// The rules.
    pub const fn rules(&self) -> &Arc<LiveRules<Parts, C>> {
        &self.rules
    }

    fn with(mut self, change: impl FnOnce(&mut Config<A>)) -> Self {
        change(&mut self.config);
        self
    }

    /// Says which headers tell clients of their quotas.
    pub fn headers(self, headers: QuotaHeaders) -> Self {
        self.with(|config| config.headers = headers)
    }

    /// Whether the extensions of admitted requests get a [`Decision`](super::Decision), which they do when nothing is
    /// said.
    pub fn decision_extension(self, on: bool) -> Self {
        self.with(|config| config.decision = on)
    }

    /// The status of a refusal, 429 when nothing is said.
    pub fn status(self, status: StatusCode) -> Self {
        self.with(|config| config.status = status)
    }

    /// The status of the answer to a request without a key that it must have
    /// ([`Missing::Refuse`](crate::Missing::Refuse)), 400 when nothing is said.
    pub fn missing_status(self, status: StatusCode) -> Self {
        self.with(|config| config.missing_status = status)
    }

    /// Lets the preflights of browsers pass, judged by no rule: `OPTIONS` with `Origin` and
    /// `Access-Control-Request-Method`.
    ///
    /// Anybody can send them; see that what answers them is cheap.
    pub fn skip_preflight(self) -> Self {
        self.with(|config| config.skip.preflight())
    }

    /// Lets requests for this path pass, judged by no rule: health checks, say. The path must be the same to the letter.
    pub fn skip_path(self, path: impl Into<String>) -> Self {
        self.with(|config| config.skip.path(path.into()))
    }

    /// Lets requests pass, judged by no rule, for which the function says true.
    pub fn skip_if(self, function: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|config| config.skip.function(function))
    }

    /// Charges only requests whose answer the function says true for: failed logins, say.
    ///
    /// A request is charged before it is served, so that no number of them at once passes the limit, and the charge is
    /// given back when the answer is not to be counted. Without an answer (the service inside has failed, or nobody
    /// waited for it) it stays.
    ///
    /// What is given back depends on the algorithm: of a [`Fixed`](crate::RuleAlgorithm::Fixed) rule everything in the
    /// same window, of a counter ring in the same cell (a fifth of the window when nothing is said), of a
    /// [`Gcra`](crate::RuleAlgorithm::Gcra) rule only while nobody else was admitted in between, of a log nothing. The
    /// rest stays spent, and is counted in [`RuleCounts::forfeited`](crate::RuleCounts): with the last two, requests
    /// that overlap use up a limit that none of them is to be counted against.
    ///
    /// # Cost
    ///
    /// A box for each admitted request, and two references counted for each state that is charged.
    ///
    /// # Examples
    ///
    /// ```
    /// use ::http::StatusCode;
    /// use ringgate::http::{HttpKey, RateLimitLayer};
    /// use ringgate::{ManualClock, Rule, RuleAlgorithm, RuleSetBuilder};
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
    pub fn charge_if(self, count: impl Fn(&response::Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|config| config.charge_if = Some(Arc::new(count)))
    }

    /// Calls the function with every refusal: for `DenialEvents::tell`, say.
    ///
    /// It is called before the answer is made, and holds up the thread.
    pub fn on_refused(self, tell: impl Fn(&Refused<'_, Parts>) + Send + Sync + 'static) -> Self {
        self.with(|config| config.on_refused = Some(Arc::new(tell)))
    }

    /// Answers refused requests by the function: for bodies of any type.
    ///
    /// ```
    /// use ::http::Response;
    /// use ringgate::http::{RateLimitLayer, Rejection};
    /// use ringgate::{ManualClock, Rule, RuleSetBuilder};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// # let rules = RuleSetBuilder::new().rule(Rule::new("all", "2/s".parse()?)).build_with(ManualClock::new(), [1; 4])?;
    /// let layer = RateLimitLayer::from(rules).answer(|refused: &Rejection<'_>| {
    ///     let mut response = Response::new(String::from("slow down"));
    ///     *response.status_mut() = refused.status();
    ///     response
    /// });
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    pub fn answer<F, B>(self, answer: F) -> RateLimitLayer<C, F>
    where
        F: Fn(&Rejection<'_>) -> Response<B>,
    {
        self.rejection_response(answer)
    }

    /// Answers all refused requests as a gRPC server does, for bodies that cannot be made of a `String`: tonic's.
    ///
    /// (With [`Problem`], requests that say they are gRPC are answered so, too.)
    pub fn grpc(self) -> RateLimitLayer<C, Grpc> {
        self.rejection_response(Grpc)
    }

    /// Answers refused requests by what implements [`RejectionResponse`](super::RejectionResponse).
    pub fn rejection_response<B>(self, answer: B) -> RateLimitLayer<C, B> {
        let Config {
            answer: _,
            status,
            missing_status,
            headers,
            decision,
            skip,
            charge_if,
            on_refused,
        } = self.config;
        RateLimitLayer {
            rules: self.rules,
            config: Config {
                answer,
                status,
                missing_status,
                headers,
                decision,
                skip,
                charge_if,
                on_refused,
            },
        }
    }

    /// Lets requests wait for room up to so long, instead of refusing them: see [`WaitLayer`](super::WaitLayer). Set
    /// everything else first. The service inside must be `Clone`.
    #[cfg(feature = "tokio")]
    pub fn wait(self, within: core::time::Duration) -> super::WaitLayer<C, A> {
        super::WaitLayer::new(self, within)
    }

    /// Settles the rules with this cost by the bytes of the answer's body: see [`SettleLayer`].
    pub fn settle_body(self, cost: &Cost<Parts>) -> SettleLayer<C, A> {
        SettleLayer::new(self, cost.clone())
    }
}

impl<C, A: Clone> RateLimitLayer<C, A> {
    pub(super) fn judge(&self) -> Arc<Shared<C, A>> {
        Arc::new(Shared {
            rules: Arc::clone(&self.rules),
            config: self.config.clone(),
        })
    }
}

impl<S, C, A: Clone> Layer<S> for RateLimitLayer<C, A> {
    type Service = RateLimitService<S, C, A>;

    fn layer(&self, inner: S) -> RateLimitService<S, C, A> {
        RateLimitService::new(inner, self.judge())
    }
}

impl<C, A: Clone> Clone for RateLimitLayer<C, A> {
    fn clone(&self) -> Self {
        Self {
            rules: Arc::clone(&self.rules),
            config: self.config.clone(),
        }
    }
}

impl<C: fmt::Debug, A: fmt::Debug> fmt::Debug for RateLimitLayer<C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
