use alloc::boxed::Box;
use alloc::sync::Arc;
use core::error::Error;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::time::SystemTime;

use ::http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::server_limit::ServerLimit;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;
use crate::wait::{Acquire, Fair, PermitRequest, Runtime};

/// The limiter of the layer of a client, with its wait queue.
type Limiter<A, C, N> = Arc<Fair<RateLimiter<A, C>, N>>;

pin_project! {
    /// The future of a [`ClientRateLimitService`](super::ClientRateLimitService), which waits for a permit and returns the response
    /// of the inner service.
    ///
    /// # Cancel safety
    ///
    /// The permit is charged in the poll that calls the inner service.
    ///
    /// - Dropping the future before that charges nothing, and the next waiter has its turn.
    /// - Dropping it afterwards drops the inner future. Exactly one permit stays charged, because the server may have counted the
    ///   request. Its response is not read, so it pauses nothing.
    ///
    /// # Panics
    ///
    /// Panics if it is polled after it returned a `WaitError`, or if it waits outside of a tokio runtime with a timer.
    #[must_use = "futures do nothing unless polled"]
    pub struct ClientRateLimitFuture<T, F, Q, A, C, N>
    where
        A: Algorithm,
        C: Clock,
        N: Runtime,
    {
        #[pin]
        state: State<T, F, Q, A, C, N>,
        limiter: Limiter<A, C, N>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<T, F, Q, A, C, N>
    where
        A: Algorithm,
        C: Clock,
        N: Runtime,
    {
        Waiting {
            acquire: Acquire<PermitRequest<Limiter<A, C, N>>>,
            // `None` after an error.
            call: Option<(T, Request<Q>)>,
        },
        Calling {
            #[pin]
            inner: F,
        },
    }
}

impl<T, F, Q, A: Algorithm, C: Clock, N: Runtime> ClientRateLimitFuture<T, F, Q, A, C, N> {
    pub(super) fn new(
        inner: T,
        request: Request<Q>,
        limiter: Limiter<A, C, N>,
        max_wait: Option<Duration>,
    ) -> Self {
        let acquire = Arc::clone(&limiter).acquire_owned(1);
        let state = State::Waiting {
            acquire: match max_wait {
                Some(max_wait) => acquire.within(max_wait),
                None => acquire,
            },
            call: Some((inner, request)),
        };
        Self { state, limiter }
    }
}

impl<T, Q, B, A, C, N> Future for ClientRateLimitFuture<T, T::Future, Q, A, C, N>
where
    T: Service<Request<Q>, Response = Response<B>, Error: Into<Box<dyn Error + Send + Sync>>>,
    A: Algorithm,
    C: Clock,
    N: Runtime,
{
    type Output = Result<Response<B>, Box<dyn Error + Send + Sync>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let inner = match this.state.as_mut().project() {
                StateProjection::Calling { inner } => {
                    let response = ready!(inner.poll(cx)).map_err(Into::into)?;
                    obey(&response, this.limiter.limiter());
                    return Poll::Ready(Ok(response));
                }
                StateProjection::Waiting { acquire, call } => {
                    let Some((mut inner, request)) = call.take() else {
                        panic!("`ClientRateLimitFuture` polled after completion");
                    };
                    match Pin::new(acquire).poll(cx) {
                        Poll::Pending => {
                            *call = Some((inner, request));
                            return Poll::Pending;
                        }
                        Poll::Ready(acquired) => {
                            let _charged = acquired?;
                            inner.call(request)
                        }
                    }
                }
            };
            this.state.set(State::Calling { inner });
        }
    }
}

/// Pauses the limiter until the time that the server states.
fn obey<B, A: Algorithm, C: Clock>(response: &Response<B>, limiter: &RateLimiter<A, C>) {
    let stated = ServerLimit::from_headers(response.headers(), SystemTime::now());
    // A pause of zero time would make each later decision compare its reading with it.
    if let Some(wait) = stated.wait(response.status()).filter(|wait| !wait.is_zero()) {
        limiter.pause_until(limiter.clock().now().saturating_add(wait));
    }
}

impl<T, F, Q, A: Algorithm, C: Clock, N: Runtime> fmt::Debug for ClientRateLimitFuture<T, F, Q, A, C, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRateLimitFuture")
            .field("waiting", &matches!(self.state, State::Waiting { .. }))
            .finish_non_exhaustive()
    }
}
