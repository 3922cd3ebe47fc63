use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use ::http::Response;
use ::http::request::Parts;
use pin_project_lite::pin_project;

use super::config::{ChargeIf, Headers, Refusal, Told, add_headers};
#[cfg(feature = "tokio")]
use super::wait::Line;
use crate::clock::Clock;
use crate::rules::{LiveRules, Reservation};

pin_project! {
    /// What becomes of a request: the answer of the service inside, or the refusal.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the service's own future. What the request was charged stays charged.
    ///
    /// # Panics
    ///
    /// When it is polled again after it has answered.
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
            after: After<C>,
        },
        Refused {
            response: Option<Refusal<B>>,
        },
    }
}

/// What is to be done when there is an answer.
pub(super) enum After<C> {
    Nothing,
    Tell(Box<Told>),
    Settle(Box<Pending<C>>),
}

impl<C> After<C> {
    #[inline]
    pub(super) fn telling(headers: Headers) -> Self {
        headers.map_or(Self::Nothing, Self::Tell)
    }
}

impl<C: Clock + Clone> After<C> {
    #[inline(never)]
    pub(super) fn answered<B>(&mut self, mut response: Response<B>) -> Response<B> {
        match mem::replace(self, Self::Nothing) {
            Self::Nothing => {}
            Self::Tell(headers) => add_headers(*headers, response.headers_mut()),
            Self::Settle(pending) => response = pending.settle(response),
        }
        response
    }
}

/// A charge that depends on the answer.
pub(super) struct Pending<C> {
    rules: Arc<LiveRules<Parts, C>>,
    charge: Reservation<Parts>,
    count: Arc<ChargeIf>,
    headers: Headers,
    /// Those who wait for what is given back.
    #[cfg(feature = "tokio")]
    line: Option<Line<C>>,
}

impl<C> Pending<C> {
    pub(super) const fn new(
        rules: Arc<LiveRules<Parts, C>>,
        charge: Reservation<Parts>,
        count: Arc<ChargeIf>,
        headers: Headers,
    ) -> Self {
        Self {
            rules,
            charge,
            count,
            headers,
            #[cfg(feature = "tokio")]
            line: None,
        }
    }

    /// The same, with those who wait.
    #[cfg(feature = "tokio")]
    pub(super) fn before(self, line: &Line<C>) -> Self {
        let line = Some(Arc::clone(line));
        Self { line, ..self }
    }
}

impl<C: Clock + Clone> Pending<C> {
    /// Gives the charge back if the answer is not to be counted, and tells what there is to tell.
    fn settle<B>(self, response: Response<B>) -> Response<B> {
        let (mut head, body) = response.into_parts();
        if !(self.count)(&head) {
            self.rules.load().refund(self.charge);
            #[cfg(feature = "tokio")]
            if let Some(line) = self.line {
                line.look_again();
            }
        }
        if let Some(headers) = self.headers {
            add_headers(*headers, &mut head.headers);
        }
        Response::from_parts(head, body)
    }
}

impl<F, B, C> RateLimitFuture<F, B, C> {
    #[inline]
    pub(super) const fn admitted(inner: F, after: After<C>) -> Self {
        Self {
            state: State::Admitted { inner, after },
        }
    }

    pub(super) const fn refused(response: Refusal<B>) -> Self {
        Self {
            state: State::Refused {
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
            // The answer goes straight to whoever asks for it.
            StateProjection::Admitted {
                inner,
                after: After::Nothing,
            } => inner.poll(cx),
            StateProjection::Admitted { inner, after } => {
                inner.poll(cx).map_ok(|response| after.answered(response))
            }
            StateProjection::Refused { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(*response)),
                None => panic!("polled again after it had answered"),
            },
        }
    }
}

impl<F, B, C> fmt::Debug for RateLimitFuture<F, B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitFuture")
            .field("refused", &matches!(self.state, State::Refused { .. }))
            .finish_non_exhaustive()
    }
}
