use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use ::http::request::Parts;
use ::http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::body::Metering;
use super::on_response::{OnResponse, record_admission};
use crate::http::answer::RejectionResponse;
use crate::http::config::{Config, RejectedResponse};
use crate::http::rules::{DecisionFuture, HttpRules};

/// A request that is not decided yet.
pub(super) struct Deciding<T, Q, S: HttpRules, R> {
    inner: T,
    config: Arc<Config<S, R>>,
    decision: DecisionFuture<S>,
    /// Shared with `decision`, until that is dropped.
    head: Arc<Parts>,
    body: Q,
}

impl<T, Q, S: HttpRules, R> Deciding<T, Q, S, R> {
    pub(super) fn new(
        inner: T,
        config: Arc<Config<S, R>>,
        undecided: S::Undecided,
        head: Parts,
        body: Q,
    ) -> Self {
        let head = Arc::new(head);
        Self {
            decision: config
                .rules
                .resume(undecided, &config.settings, Arc::clone(&head)),
            inner,
            config,
            head,
            body,
        }
    }

    /// Calls the inner service if the request is admitted.
    fn finish<B>(self, decided: S::Decided) -> Result<(T::Future, OnResponse<S>), RejectedResponse<B>>
    where
        T: Service<Request<Q>, Response = Response<B>>,
        R: RejectionResponse<B>,
    {
        let Self {
            mut inner,
            config,
            decision,
            head,
            body,
        } = self;
        drop(decision);
        let grant = config
            .rules
            .finish(decided, &config.settings, &head, |rejection| {
                config.reject(rejection)
            })?;
        // The last reference: nothing is cloned.
        let mut head = Arc::unwrap_or_clone(head);
        let on_response = record_admission(&config, grant, &mut head);
        Ok((inner.call(Request::from_parts(head, body)), on_response))
    }
}

pin_project! {
    /// The future of a [`RateLimitService`](super::RateLimitService), which returns the response of the inner service or the
    /// rejection.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the inner future.
    ///
    /// - A request that waits for permits is charged nothing, and the next waiter has its turn.
    /// - A request that a store is deciding may be charged.
    /// - An admitted request stays charged. But with [`settle_body`](super::RateLimitLayer::settle_body), its charge is settled by
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
        state: FutureState<T, F, Q, B, S, R>,
        metering: PhantomData<fn() -> M>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum FutureState<T, F, Q, B, S, R>
    where
        S: HttpRules,
    {
        Deciding {
            // `None` only after a panic.
            deciding: Option<Box<Deciding<T, Q, S, R>>>,
        },
        Admitted {
            #[pin]
            inner: F,
            on_response: OnResponse<S>,
        },
        Rejected {
            response: Option<RejectedResponse<B>>,
        },
    }
}

impl<T, F, Q, B, S: HttpRules, R, M> RateLimitFuture<T, F, Q, B, S, R, M> {
    const fn new(state: FutureState<T, F, Q, B, S, R>) -> Self {
        Self {
            state,
            metering: PhantomData,
        }
    }

    #[inline]
    pub(super) const fn admitted(inner: F, on_response: OnResponse<S>) -> Self {
        Self::new(FutureState::Admitted { inner, on_response })
    }

    pub(super) const fn rejected(response: RejectedResponse<B>) -> Self {
        Self::new(FutureState::Rejected {
            response: Some(response),
        })
    }

    pub(super) fn undecided(deciding: Deciding<T, Q, S, R>) -> Self {
        Self::new(FutureState::Deciding {
            deciding: Some(Box::new(deciding)),
        })
    }
}

impl<T, Q, B, S, R, M> Future for RateLimitFuture<T, T::Future, Q, B, S, R, M>
where
    T: Service<Request<Q>, Response = Response<B>>,
    S: HttpRules,
    R: RejectionResponse<B>,
    M: Metering<B, S>,
{
    type Output = Result<Response<M::Body>, T::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let mut state = self.as_mut().project().state;
            let next = match state.as_mut().project() {
                // This is a separate branch, so that the response is not moved.
                StateProjection::Admitted {
                    inner,
                    on_response: OnResponse::Nothing,
                } => return inner.poll(cx).map_ok(|response| M::meter(response, None)),
                StateProjection::Admitted { inner, on_response } => {
                    let response = inner.poll(cx);
                    if let Poll::Ready(Err(_)) = &response {
                        // The request has ended, although its future may be kept.
                        drop(mem::replace(on_response, OnResponse::Nothing));
                    }
                    return response.map_ok(|response| on_response.apply::<B, M>(response));
                }
                StateProjection::Rejected { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(M::meter(*response, None))),
                    None => panic!("`RateLimitFuture` polled after completion"),
                },
                StateProjection::Deciding { deciding } => {
                    let Some(mut request) = deciding.take() else {
                        panic!("`RateLimitFuture` polled after a panic");
                    };
                    match request.decision.as_mut().poll(cx) {
                        Poll::Pending => {
                            *deciding = Some(request);
                            return Poll::Pending;
                        }
                        Poll::Ready(decided) => match request.finish(decided) {
                            Ok((inner, on_response)) => FutureState::Admitted { inner, on_response },
                            Err(response) => FutureState::Rejected {
                                response: Some(response),
                            },
                        },
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
