mod body;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use ::http::request::Parts;
use ::http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use self::body::Metering;
pub use self::body::{Metered, MeteredBody, Unmetered};
use super::admission::OnResponse;
use super::answer::{Problem, Rejection, RejectionResponse};
use super::config::{Config, RejectedResponse};
use super::rules::{DecisionFuture, HttpRules, Outcome, RuleQueue};
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
pub struct RateLimitService<T, S: HttpRules = LiveRules<Parts>, R = Problem, M = Unmetered> {
    inner: T,
    config: Arc<Config<S::Queue, R, M>>,
}

impl<T, S: HttpRules, R, M> RateLimitService<T, S, R, M> {
    pub(super) const fn new(inner: T, config: Arc<Config<S::Queue, R, M>>) -> Self {
        Self { inner, config }
    }
}

impl<T, S, R, M, Q, B> Service<Request<Q>> for RateLimitService<T, S, R, M>
where
    T: Service<Request<Q>, Response = Response<B>> + Clone,
    S: HttpRules,
    R: RejectionResponse<B>,
    M: Metering<B>,
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
        let Self { inner, config } = self;
        let settings = &config.settings;
        let (mut head, body) = request.into_parts();
        let outcome = if settings.skips(&head) {
            Outcome::Admitted(None)
        } else {
            let reject = |rejection: Rejection<'_>| config.reject(rejection);
            settings.rules.decide(&settings.options, &mut head, reject)
        };
        // The common case returns from its own branch, in which nothing has to be dropped if `call` panics. So the compiler builds the
        // inner future in place. Inner futures can be large, and should not be moved.
        if let Outcome::Admitted(None) = outcome {
            return RateLimitFuture {
                state: FutureState::Admitted {
                    inner: inner.call(Request::from_parts(head, body)),
                    on_response: None,
                },
            };
        }
        let state = match outcome {
            Outcome::Admitted(on_response) => FutureState::Admitted {
                inner: inner.call(Request::from_parts(head, body)),
                on_response,
            },
            Outcome::Rejected(response) => FutureState::Rejected {
                response: Some(response),
            },
            Outcome::Undecided(undecided) => {
                // The service that is called must be the one that was ready. The clone is polled for readiness again.
                let clone = inner.clone();
                let deciding = Some(Box::new(Deciding {
                    inner: core::mem::replace(inner, clone),
                    config: Arc::clone(config),
                    decision: settings.rules.delay(undecided, settings.options.clone(), head),
                    body,
                }));
                FutureState::Deciding { deciding }
            }
        };
        RateLimitFuture { state }
    }
}

impl<T: Clone, S: HttpRules, R, M> Clone for RateLimitService<T, S, R, M> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            config: Arc::clone(&self.config),
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

/// A request that is not decided yet. Its head is in the decision.
struct Deciding<T, Q, S: HttpRules, R, M> {
    inner: T,
    config: Arc<Config<S::Queue, R, M>>,
    decision: DecisionFuture<<S::Queue as RuleQueue>::Refusal>,
    body: Q,
}

pin_project! {
    /// The future of a [`RateLimitService`], which returns the response of the inner service or the
    /// rejection.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the inner future.
    ///
    /// - A request that waits for permits is charged nothing, and the next waiter has its turn.
    /// - A request that a store is deciding may be charged.
    /// - An admitted request stays charged. But with [`settle_body`](crate::http::RateLimitLayer::settle_body), its charge is settled by
    ///   0 bytes. Its slots of rules that limit [requests in flight](crate::Rule::in_flight) are released.
    ///
    /// # Panics
    ///
    /// Panics if it is polled after it returned a rejection or after a poll that panicked, or if it waits outside of a tokio runtime
    /// with a timer.
    #[must_use = "futures do nothing unless polled"]
    pub struct RateLimitFuture<T, F, Q, B, S, R, M>
    where
        S: HttpRules,
    {
        #[pin]
        state: FutureState<T, F, Q, B, S, R, M>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum FutureState<T, F, Q, B, S, R, M>
    where
        S: HttpRules,
    {
        Deciding {
            // `None` only after a panic.
            deciding: Option<Box<Deciding<T, Q, S, R, M>>>,
        },
        Admitted {
            #[pin]
            inner: F,
            on_response: Option<Box<OnResponse>>,
        },
        Rejected {
            response: Option<RejectedResponse<B>>,
        },
    }
}

impl<T, Q, B, S, R, M> Future for RateLimitFuture<T, T::Future, Q, B, S, R, M>
where
    T: Service<Request<Q>, Response = Response<B>>,
    S: HttpRules,
    R: RejectionResponse<B>,
    M: Metering<B>,
{
    type Output = Result<Response<M::Body>, T::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.as_mut().project().state.project() {
            StateProjection::Admitted {
                inner,
                on_response: None,
            } => M::meter(inner.poll(cx), None),
            StateProjection::Admitted { .. }
            | StateProjection::Rejected { .. }
            | StateProjection::Deciding { .. } => self.poll_by_state(cx),
        }
    }
}

impl<T, Q, B, S, R, M> RateLimitFuture<T, T::Future, Q, B, S, R, M>
where
    T: Service<Request<Q>, Response = Response<B>>,
    S: HttpRules,
    R: RejectionResponse<B>,
    M: Metering<B>,
{
    #[inline(never)]
    fn poll_by_state(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<M::Body>, T::Error>> {
        loop {
            let mut state = self.as_mut().project().state;
            let next = match state.as_mut().project() {
                StateProjection::Admitted { inner, on_response } => {
                    let mut response = ready!(inner.poll(cx));
                    // Also after an error the request has ended, although its future may be kept.
                    let mut on_response = on_response.take();
                    if let Some(on_response) = &mut on_response {
                        response = response.map(|response| on_response.apply(response));
                    }
                    return M::meter(Poll::Ready(response), on_response);
                }
                StateProjection::Rejected { response } => match response.take() {
                    Some(response) => return M::meter(Poll::Ready(Ok(*response)), None),
                    None => panic!("`RateLimitFuture` polled after completion"),
                },
                StateProjection::Deciding { deciding } => {
                    let Some(mut request) = deciding.take() else {
                        panic!("`RateLimitFuture` polled after a panic");
                    };
                    let Poll::Ready((head, decided)) = request.decision.as_mut().poll(cx) else {
                        *deciding = Some(request);
                        return Poll::Pending;
                    };
                    let Deciding {
                        mut inner,
                        config,
                        body,
                        ..
                    } = *request;
                    match decided {
                        Ok(on_response) => FutureState::Admitted {
                            inner: inner.call(Request::from_parts(head, body)),
                            on_response,
                        },
                        Err(refusal) => {
                            let reject = |rejection: Rejection<'_>| config.reject(rejection);
                            let response = config.settings.rules.reject(refusal, &head, reject);
                            FutureState::Rejected {
                                response: Some(response),
                            }
                        }
                    }
                }
            };
            state.set(next);
        }
    }
}

impl<T, F, Q, B, S: HttpRules, R, M> fmt::Debug for RateLimitFuture<T, F, Q, B, S, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitFuture")
            .field("decided", &!matches!(self.state, FutureState::Deciding { .. }))
            .field("rejected", &matches!(self.state, FutureState::Rejected { .. }))
            .finish_non_exhaustive()
    }
}
