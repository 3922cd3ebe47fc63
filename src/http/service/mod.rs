mod body;
mod future;
mod in_flight_slot;
mod on_response;
mod reserved;

use alloc::sync::Arc;
use core::fmt;
use core::marker::PhantomData;
use core::task::{Context, Poll};

use ::http::{Request, Response};
use tower_service::Service;

use self::body::Metering;
pub use self::body::{Metered, MeteredBody, Unmetered};
use self::future::Deciding;
pub use self::future::RateLimitFuture;
pub use self::in_flight_slot::{InFlightSlot, SlotGuard};
use self::on_response::{OnResponse, record_admission};
use super::answer::{Problem, RejectionResponse};
use super::config::Config;
use super::rules::{HttpRules, Outcome};
use crate::rules::LiveRules;

/// A rate-limited service, made by [`RateLimitLayer`](super::RateLimitLayer).
///
/// `call` evaluates the rules. It calls the inner service if the request is admitted, and makes a rejection response otherwise. If
/// the rules cannot decide at once, because the request waits or a store decides it, the returned future does this.
///
/// The inner service must be `Clone`. The future of a request that is not decided yet takes the service that was ready, and a clone
/// replaces it.
///
/// `T` is the inner service, `S` the rules, `R` makes rejection responses, and `M` is `Metered` if bodies are settled.
///
/// # Concurrency
///
/// Clones share the rules, and decide concurrently without locks. If a request is rejected, the readiness of the inner
/// service is kept for the next request.
pub struct RateLimitService<T, S: HttpRules = LiveRules<::http::request::Parts>, R = Problem, M = Unmetered> {
    inner: T,
    config: Arc<Config<S, R>>,
    metering: PhantomData<fn() -> M>,
}

impl<T, S: HttpRules, R, M> RateLimitService<T, S, R, M> {
    pub(super) const fn new(inner: T, config: Arc<Config<S, R>>) -> Self {
        Self {
            inner,
            config,
            metering: PhantomData,
        }
    }

    /// Returns the inner service.
    pub const fn get_ref(&self) -> &T {
        &self.inner
    }
}

impl<T, S, R, M, Q, B> Service<Request<Q>> for RateLimitService<T, S, R, M>
where
    T: Service<Request<Q>, Response = Response<B>> + Clone,
    S: HttpRules,
    R: RejectionResponse<B>,
    M: Metering<B, S>,
{
    type Response = Response<M::Body>;
    type Error = T::Error;
    type Future = RateLimitFuture<T, T::Future, Q, B, S, R, M>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), T::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let Self { inner, config, .. } = self;
        let (mut head, body) = request.into_parts();
        if config.skip.contains(&head) {
            let inner = inner.call(Request::from_parts(head, body));
            return RateLimitFuture::admitted(inner, OnResponse::Nothing);
        }
        let decided = config
            .rules
            .decide(&config.settings, &head, |rejection| config.reject(rejection));
        let on_response = match decided {
            Outcome::Admitted(grant) => record_admission(config, grant, &mut head),
            Outcome::Rejected(response) => return RateLimitFuture::rejected(response),
            Outcome::Undecided(undecided) => {
                // The service that is called must be the one that was ready. The clone is polled for readiness again.
                let clone = inner.clone();
                let inner = core::mem::replace(inner, clone);
                let config = Arc::clone(config);
                return RateLimitFuture::undecided(Deciding::new(inner, config, undecided, head, body));
            }
        };
        let request = Request::from_parts(head, body);
        match on_response {
            // This is a separate branch, in which nothing has to be dropped if `call` panics. So the compiler builds the inner
            // future in place. Inner futures can be large, and should not be moved.
            OnResponse::Nothing => RateLimitFuture::admitted(inner.call(request), OnResponse::Nothing),
            on_response => RateLimitFuture::admitted(inner.call(request), on_response),
        }
    }
}

impl<T: Clone, S: HttpRules, R, M> Clone for RateLimitService<T, S, R, M> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            config: Arc::clone(&self.config),
            metering: PhantomData,
        }
    }
}

impl<T: fmt::Debug, S: HttpRules, R: fmt::Debug, M> fmt::Debug for RateLimitService<T, S, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService")
            .field("inner", &self.inner)
            .field("config", &self.config)
            .finish()
    }
}
