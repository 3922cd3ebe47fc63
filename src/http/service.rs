use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::task::{Context, Poll};

use ::http::request::Parts;
use ::http::{Request, Response};
use tower_service::Service;

use super::config::{Refusal, Shared};
use super::future::{After, Pending, RateLimitFuture};
use super::rejection::{Problem, RejectionResponse};
use crate::clock::Clock;
#[cfg(feature = "quanta")]
use crate::clock::QuantaClock;

/// A service whose requests are limited: what a [`RateLimitLayer`](super::RateLimitLayer) makes of one.
///
/// The decision is made when it is called; the service inside is called at once if the request is admitted, and not at
/// all otherwise.
///
/// # Concurrency
///
/// Clones share their rules, and decide beside each other without waiting. A service inside that reserves something when
/// it says that it is ready keeps it for the next request when this one is refused.
pub struct RateLimitService<
    S,
    #[cfg(feature = "quanta")] C = QuantaClock,
    #[cfg(not(feature = "quanta"))] C,
    A = Problem,
> {
    inner: S,
    judge: Arc<Shared<C, A>>,
}

impl<S, C, A> RateLimitService<S, C, A> {
    pub(super) const fn new(inner: S, judge: Arc<Shared<C, A>>) -> Self {
        Self { inner, judge }
    }

    /// The service inside.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S, C, A, Q, B> Service<Request<Q>> for RateLimitService<S, C, A>
where
    S: Service<Request<Q>, Response = Response<B>>,
    C: Clock + Clone,
    A: RejectionResponse<B>,
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
        let Self { inner, judge } = self;
        let (mut head, body) = request.into_parts();
        let after = if judge.config.skip.skips(&head) {
            After::Nothing
        } else if judge.config.charge_if.is_some() {
            match judge.reserve(&mut head) {
                Ok(after) => after,
                Err(response) => return RateLimitFuture::refused(response),
            }
        } else {
            match judge.judge(&mut head, |rules, head| rules.check(head)) {
                Ok((_, headers)) => After::telling(headers),
                Err(response) => return RateLimitFuture::refused(response),
            }
        };
        let request = Request::from_parts(head, body);
        match after {
            // With nothing to drop if the service panics, its future is made where it stays, and not moved there: many are
            // large.
            After::Nothing => RateLimitFuture::admitted(inner.call(request), After::Nothing),
            after => RateLimitFuture::admitted(inner.call(request), after),
        }
    }
}

impl<C: Clock + Clone, A> Shared<C, A> {
    /// Decides about a request whose charge depends on the answer.
    #[inline(never)]
    fn reserve<B>(&self, head: &mut Parts) -> Result<After<C>, Refusal<B>>
    where
        A: RejectionResponse<B>,
    {
        let (charge, headers) = self.judge(head, |rules, head| rules.reserve(head))?;
        Ok(match &self.config.charge_if {
            None => After::telling(headers),
            Some(count) => {
                let (rules, count) = (Arc::clone(&self.rules), Arc::clone(count));
                After::Settle(Box::new(Pending::new(rules, charge, count, headers)))
            }
        })
    }
}

impl<S: Clone, C, A> Clone for RateLimitService<S, C, A> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            judge: Arc::clone(&self.judge),
        }
    }
}

impl<S: fmt::Debug, C, A: fmt::Debug> fmt::Debug for RateLimitService<S, C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService")
            .field("inner", &self.inner)
            .field("config", &self.judge.config)
            .finish_non_exhaustive()
    }
}
