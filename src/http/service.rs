use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use ::http::request::Parts;
use ::http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

#[cfg(feature = "tokio")]
use super::config::Queue;
use super::config::{AdmittedHeaders, ChargeIf, Config, RejectedResponse};
use super::headers::HeaderValues;
use super::problem::Problem;
use super::rejection::RejectionResponse;
use crate::clock::Clock;
use crate::clock::DefaultClock;
use crate::rules::{LiveRules, Reservation};

/// Rate-limited service, made by [`RateLimitLayer`](super::RateLimitLayer).
///
/// `call` evaluates the rules. It calls the inner service if the request is admitted, and makes a response otherwise.
///
/// # Concurrency
///
/// Clones share the rules, and decide concurrently without locks. If a request is rejected, the readiness of the inner
/// service is kept for the next request.
pub struct RateLimitService<S, C = DefaultClock, R = Problem> {
    inner: S,
    config: Arc<Config<C, R>>,
}

impl<S, C, R> RateLimitService<S, C, R> {
    pub(super) const fn new(inner: S, config: Arc<Config<C, R>>) -> Self {
        Self { inner, config }
    }

    /// Returns the inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S, C, R, Q, B> Service<Request<Q>> for RateLimitService<S, C, R>
where
    S: Service<Request<Q>, Response = Response<B>>,
    C: Clock + Clone,
    R: RejectionResponse<B>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = RateLimitFuture<S::Future, B, C>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let Self { inner, config } = self;
        let (mut head, body) = request.into_parts();
        let on_response = if config.skip.contains(&head) {
            OnResponse::Nothing
        } else if config.charge_if.is_some() {
            match reserve(config, &mut head) {
                Ok(on_response) => on_response,
                Err(response) => return RateLimitFuture::rejected(response),
            }
        } else {
            match config.check(&mut head, |rules, head, hashes| rules.check_with(head, hashes)) {
                Ok((_, headers)) => OnResponse::add_headers(headers),
                Err(response) => return RateLimitFuture::rejected(response),
            }
        };
        let request = Request::from_parts(head, body);
        match on_response {
            // A branch of its own: with nothing to drop if `call` panics, the compiler builds the inner future in
            // place. Inner futures can be large, and are not moved.
            OnResponse::Nothing => RateLimitFuture::admitted(inner.call(request), OnResponse::Nothing),
            on_response => RateLimitFuture::admitted(inner.call(request), on_response),
        }
    }
}

/// Decides about a request whose charge depends on the response.
#[inline(never)]
fn reserve<C, R, B>(config: &Config<C, R>, head: &mut Parts) -> Result<OnResponse<C>, RejectedResponse<B>>
where
    C: Clock + Clone,
    R: RejectionResponse<B>,
{
    let (charge, headers) = config.check(head, |rules, head, _| rules.reserve(head))?;
    Ok(match &config.charge_if {
        None => OnResponse::add_headers(headers),
        Some(charge_if) => OnResponse::Charge(Box::new(ConditionalCharge {
            rules: Arc::clone(&config.rules),
            charge,
            charge_if: Arc::clone(charge_if),
            headers,
            #[cfg(feature = "tokio")]
            queue: None,
        })),
    })
}

/// Work that is left for the response to an admitted request.
pub(super) enum OnResponse<C> {
    Nothing,
    AddHeaders(Box<HeaderValues>),
    Charge(Box<ConditionalCharge<C>>),
}

impl<C> OnResponse<C> {
    #[inline]
    pub(super) fn add_headers(headers: AdmittedHeaders) -> Self {
        headers.map_or(Self::Nothing, Self::AddHeaders)
    }
}

impl<C: Clock + Clone> OnResponse<C> {
    #[inline(never)]
    pub(super) fn apply<B>(&mut self, mut response: Response<B>) -> Response<B> {
        match mem::replace(self, Self::Nothing) {
            Self::Nothing => {}
            Self::AddHeaders(headers) => headers.add_to(response.headers_mut()),
            Self::Charge(charge) => response = charge.apply(response),
        }
        response
    }
}

/// Charge that is refunded unless `charge_if` accepts the response.
pub(super) struct ConditionalCharge<C> {
    pub(super) rules: Arc<LiveRules<Parts, C>>,
    pub(super) charge: Reservation<Parts>,
    pub(super) charge_if: Arc<ChargeIf>,
    pub(super) headers: AdmittedHeaders,
    /// Requests that may use the refunded permits.
    #[cfg(feature = "tokio")]
    pub(super) queue: Option<Queue<C>>,
}

impl<C: Clock + Clone> ConditionalCharge<C> {
    fn apply<B>(self, response: Response<B>) -> Response<B> {
        let (mut head, body) = response.into_parts();
        if !(self.charge_if)(&head) {
            self.rules.load().refund(self.charge);
            #[cfg(feature = "tokio")]
            if let Some(queue) = self.queue {
                queue.recheck();
            }
        }
        if let Some(headers) = self.headers {
            headers.add_to(&mut head.headers);
        }
        Response::from_parts(head, body)
    }
}

pin_project! {
    /// Future of a [`RateLimitService`]: the response of the inner service, or the rejection.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the inner future. The request stays charged.
    ///
    /// # Panics
    ///
    /// Panics if it is polled after it returned the rejection.
    #[must_use = "futures do nothing unless polled"]
    pub struct RateLimitFuture<F, B, C> {
        #[pin]
        state: State<F, B, C>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, B, C> {
        Admitted {
            #[pin]
            inner: F,
            on_response: OnResponse<C>,
        },
        Rejected {
            response: Option<RejectedResponse<B>>,
        },
    }
}

impl<F, B, C> RateLimitFuture<F, B, C> {
    #[inline]
    const fn admitted(inner: F, on_response: OnResponse<C>) -> Self {
        Self {
            state: State::Admitted { inner, on_response },
        }
    }

    const fn rejected(response: RejectedResponse<B>) -> Self {
        Self {
            state: State::Rejected {
                response: Some(response),
            },
        }
    }
}

impl<F, B, C, E> Future for RateLimitFuture<F, B, C>
where
    F: Future<Output = Result<Response<B>, E>>,
    C: Clock + Clone,
{
    type Output = Result<Response<B>, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            // A branch of its own: the response is not moved.
            StateProjection::Admitted {
                inner,
                on_response: OnResponse::Nothing,
            } => inner.poll(cx),
            StateProjection::Admitted { inner, on_response } => {
                inner.poll(cx).map_ok(|response| on_response.apply(response))
            }
            StateProjection::Rejected { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(*response)),
                None => panic!("`RateLimitFuture` polled after completion"),
            },
        }
    }
}

impl<S: Clone, C, R> Clone for RateLimitService<S, C, R> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            config: Arc::clone(&self.config),
        }
    }
}

impl<S: fmt::Debug, C, R: fmt::Debug> fmt::Debug for RateLimitService<S, C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService")
            .field("inner", &self.inner)
            .field("config", &self.config)
            .finish()
    }
}

impl<F, B, C> fmt::Debug for RateLimitFuture<F, B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitFuture")
            .field("rejected", &matches!(self.state, State::Rejected { .. }))
            .finish_non_exhaustive()
    }
}
