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
use tower_layer::Layer;
use tower_service::Service;

use super::server_limit::ServerLimit;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;
use crate::wait::{Acquire, Fair, FairRef, WaitRequest};

/// Delays the requests of an HTTP client by a limiter, and until the times that the server states.
///
/// Each request waits for one permit of the limiter, in order of arrival. If the server answers that a limit is exhausted, the
/// limiter is paused by [`pause_until`](RateLimiter::pause_until), so that all callers that share it wait:
///
/// | response | pause |
/// |---|---|
/// | 429 or 503 with `Retry-After` | for that time |
/// | 429 or 503 with `"…";t=…` in `RateLimit` | for the time `t` |
/// | 429 or 503 with a time in another form | 60 s |
/// | any other with `"…";r=0;t=…` in `RateLimit` | for the time `t` |
///
/// [`ServerLimit`] documents which headers are read, and how malformed headers are treated. The response is
/// returned as it is. The layer repeats no request, because the body of a request can be read only once. A retry policy outside
/// of this layer does so, such as that of `tower::retry`: the [guide](crate::guide::waiting#clients-of-http-apis) shows one.
///
/// The clones of a layer and all their services share the limiter. Use one layer for each limit of the server: for each host, or
/// for each credential.
///
/// # Guarantee
///
/// - The requests that the inner service gets stay within the [bound](RateLimiter::bound) of the limiter, and the guarantees
///   of [`Fair`] hold.
/// - When a response has been returned, no request of the shared limiter is admitted before the time of that response has
///   passed since it arrived. This holds by the clock of the limiter, until [`Fair::resume`](crate::Fair::resume) is called.
/// - The latest time wins. An older response that states an earlier time arrives without effect, and so does a later success.
/// - A pause lasts at most 24 hours.
///
/// # Errors
///
/// The error of the inner service, or a [`WaitError`](crate::wait::WaitError) if the request cannot wait. With a `WaitError`
/// the inner service was not called, and nothing was charged.
///
/// # Cost
///
/// A request costs a clone of the inner service, a counted reference and an [admission](crate::Fair). A response costs a reading of
/// the wall clock, and the reading of its headers. A request that does not wait allocates nothing, if the response has up to four
/// policies.
///
/// # Caveats
///
/// - Requests that are on their way when the server rejects one are not stopped.
/// - When a pause ends, the limiter admits at its own rate, at most a burst at once. Choose a limiter that spaces requests evenly,
///   such as [`Gcra::token_bucket`](crate::Gcra::token_bucket) with a burst of 1.
/// - A server without [jitter](crate::http::RateLimitLayer::jitter) tells all its clients the same time. If many processes share
///   one limit of the server, set [`Fair::jitter`](crate::Fair::jitter) to about twice the time in which the server admits all of them.
/// - A rejected request stays charged.
/// - A waiting request occupies the resources that the inner service has reserved for it, such as a place in a concurrency
///   limit. The permit is charged last, so that the request is sent when it is charged.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use std::sync::Arc;
///
/// use ringgate::http::ClientRateLimitLayer;
/// use ringgate::{Fair, Gcra, Quota, RateLimiter};
///
/// let pace = Gcra::token_bucket(Quota::per_second(100)?, 1)?;
/// let limiter = Arc::new(Fair::new(RateLimiter::new(pace)).max_waiting(10_000));
/// // A request that would wait for longer than a minute fails at once.
/// let layer = ClientRateLimitLayer::new(limiter).max_wait(Duration::from_secs(60));
/// # let _ = layer;
/// # Ok::<(), ringgate::ConfigError>(())
/// ```
///
/// `F` is a [`Fair`] of a [`RateLimiter`], by reference or in an `Arc`.
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct ClientRateLimitLayer<F = Arc<Fair<RateLimiter>>> {
    limiter: F,
    max_wait: Option<Duration>,
}

impl<A: Algorithm, C: Clock, F: FairRef<Limiter = RateLimiter<A, C>>> ClientRateLimitLayer<F> {
    /// Creates a layer over a [`Fair`] of a [`RateLimiter`] in an `Arc`, which other code may use, too.
    pub const fn new(limiter: F) -> Self {
        Self {
            limiter,
            max_wait: None,
        }
    }

    /// Sets the longest wait of a request for its permit. By default a request waits for any time.
    ///
    /// A request that cannot be admitted in time fails at once with
    /// [`WaitError::TooLate`](crate::wait::WaitError::TooLate). A pause that begins while it waits makes it fail at the end of this
    /// time.
    pub const fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = Some(max_wait);
        self
    }
}

impl<T, F: Clone> Layer<T> for ClientRateLimitLayer<F> {
    type Service = ClientRateLimitService<T, F>;

    fn layer(&self, inner: T) -> Self::Service {
        let layer = self.clone();
        ClientRateLimitService { inner, layer }
    }
}

/// A client that waits for its permits, made by [`ClientRateLimitLayer`].
///
/// `T` is the inner service. It must be `Clone`: the future of a request takes the service that was ready, and a clone replaces
/// it.
#[derive(Clone, Debug)]
pub struct ClientRateLimitService<T, F = Arc<Fair<RateLimiter>>> {
    inner: T,
    layer: ClientRateLimitLayer<F>,
}

impl<T, F, A, C, Q, B> Service<Request<Q>> for ClientRateLimitService<T, F>
where
    T: Service<Request<Q>, Response = Response<B>, Error: Into<Box<dyn Error + Send + Sync>>> + Clone,
    F: FairRef<Limiter = RateLimiter<A, C>> + Clone + Unpin,
    A: Algorithm,
    C: Clock,
{
    type Response = Response<B>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = ClientRateLimitFuture<T, T::Future, Q, F>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        // The service that is called must be the one that was ready. The clone is polled for readiness again.
        let clone = self.inner.clone();
        let inner = core::mem::replace(&mut self.inner, clone);
        let ClientRateLimitLayer { limiter, max_wait } = &self.layer;
        let acquire = Acquire::new(limiter.clone(), 1);
        ClientRateLimitFuture {
            acquire: match *max_wait {
                Some(max_wait) => acquire.within(max_wait),
                None => acquire,
            },
            call: Some((inner, request)),
            response: None,
        }
    }
}

pin_project! {
    /// The future of a [`ClientRateLimitService`], which waits for a permit and returns the response
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
    pub struct ClientRateLimitFuture<T, R, Q, F: FairRef>
    where
        u64: WaitRequest<F::Limiter>,
    {
        acquire: Acquire<F>,
        // `None` once the inner service was called, or after an error.
        call: Option<(T, Request<Q>)>,
        #[pin]
        response: Option<R>,
    }
}

impl<T, Q, B, F, A, C> Future for ClientRateLimitFuture<T, T::Future, Q, F>
where
    T: Service<Request<Q>, Response = Response<B>, Error: Into<Box<dyn Error + Send + Sync>>>,
    F: FairRef<Limiter = RateLimiter<A, C>> + Unpin,
    A: Algorithm,
    C: Clock,
{
    type Output = Result<Response<B>, Box<dyn Error + Send + Sync>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some((mut inner, request)) = this.call.take() {
            let Poll::Ready(acquired) = Pin::new(&mut *this.acquire).poll(cx) else {
                *this.call = Some((inner, request));
                return Poll::Pending;
            };
            let _charged = acquired?;
            this.response.set(Some(inner.call(request)));
        }
        let Some(response) = this.response.as_pin_mut() else {
            panic!("`ClientRateLimitFuture` polled after completion");
        };
        let response = ready!(response.poll(cx)).map_err(Into::into)?;
        obey(&response, this.acquire.limiter());
        Poll::Ready(Ok(response))
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

impl<T, R, Q, F: FairRef> fmt::Debug for ClientRateLimitFuture<T, R, Q, F>
where
    u64: WaitRequest<F::Limiter>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRateLimitFuture")
            .field("waiting", &self.call.is_some())
            .finish_non_exhaustive()
    }
}
