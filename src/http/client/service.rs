use alloc::boxed::Box;
use alloc::sync::Arc;
use core::error::Error;
use core::fmt;
use core::task::{Context, Poll};
use core::time::Duration;

use ::http::{Request, Response};
use tower_service::Service;

use super::future::ClientRateLimitFuture;
use crate::algorithm::{Algorithm, CounterRing};
use crate::clock::{Clock, DefaultClock};
use crate::limiter::RateLimiter;
use crate::wait::{Fair, Runtime, TokioRuntime};

/// A client that waits for its permits, made by [`ClientRateLimitLayer`](super::ClientRateLimitLayer).
///
/// `T` is the inner service. It must be `Clone`: the future of a request takes the service that was ready, and a clone replaces
/// it.
pub struct ClientRateLimitService<T, A = CounterRing, C = DefaultClock, N: Runtime = TokioRuntime> {
    inner: T,
    limiter: Arc<Fair<RateLimiter<A, C>, N>>,
    max_wait: Option<Duration>,
}

impl<T, A, C, N: Runtime> ClientRateLimitService<T, A, C, N> {
    pub(super) const fn new(
        inner: T,
        limiter: Arc<Fair<RateLimiter<A, C>, N>>,
        max_wait: Option<Duration>,
    ) -> Self {
        Self {
            inner,
            limiter,
            max_wait,
        }
    }

    /// Returns the inner service.
    pub const fn get_ref(&self) -> &T {
        &self.inner
    }
}

impl<T, A, C, N, Q, B> Service<Request<Q>> for ClientRateLimitService<T, A, C, N>
where
    T: Service<Request<Q>, Response = Response<B>, Error: Into<Box<dyn Error + Send + Sync>>> + Clone,
    A: Algorithm,
    C: Clock,
    N: Runtime,
{
    type Response = Response<B>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = ClientRateLimitFuture<T, T::Future, Q, A, C, N>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        // The service that is called must be the one that was ready. The clone is polled for readiness again.
        let clone = self.inner.clone();
        let inner = core::mem::replace(&mut self.inner, clone);
        ClientRateLimitFuture::new(inner, request, Arc::clone(&self.limiter), self.max_wait)
    }
}

impl<T: Clone, A, C, N: Runtime> Clone for ClientRateLimitService<T, A, C, N> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            limiter: Arc::clone(&self.limiter),
            max_wait: self.max_wait,
        }
    }
}

impl<T: fmt::Debug, A, C, N: Runtime> fmt::Debug for ClientRateLimitService<T, A, C, N>
where
    RateLimiter<A, C>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRateLimitService")
            .field("inner", &self.inner)
            .field("limiter", &self.limiter)
            .field("max_wait", &self.max_wait)
            .finish()
    }
}
