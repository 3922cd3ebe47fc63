use alloc::boxed::Box;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use ::http::Response;
use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::http::admission::OnResponse;

/// The type of a layer's bodies: [`Unmetered`] or [`Metered`]. This trait is sealed.
// Metering is a type parameter and not a second layer. A second layer that is missing, or that is outside of `RateLimitLayer`, would
// settle each request by 0 bytes without an error. It would also need a lock on the charge, because `charge_if` refunds it after
// the inner service has responded.
#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub trait Metering<B> {
    /// The body of a response.
    type Body;

    /// Gives the response of an inner future this body. A response that keeps its body is not moved.
    fn meter<E>(
        response: Poll<Result<Response<B>, E>>,
        on_response: Option<Box<OnResponse>>,
    ) -> Poll<Result<Response<Self::Body>, E>>;
}

/// Response bodies are those of the inner service. This is the default of a [`RateLimitLayer`](crate::http::RateLimitLayer).
#[derive(Clone, Copy, Debug)]
pub enum Unmetered {}

/// The bytes of response bodies are counted: see [`RateLimitLayer::settle_body`](crate::http::RateLimitLayer::settle_body).
#[derive(Clone, Copy, Debug)]
pub enum Metered {}

impl<B> Metering<B> for Unmetered {
    type Body = B;

    #[inline(always)]
    fn meter<E>(
        response: Poll<Result<Response<B>, E>>,
        _: Option<Box<OnResponse>>,
    ) -> Poll<Result<Response<B>, E>> {
        response
    }
}

impl<B> Metering<B> for Metered {
    type Body = MeteredBody<B>;

    fn meter<E>(
        response: Poll<Result<Response<B>, E>>,
        on_response: Option<Box<OnResponse>>,
    ) -> Poll<Result<Response<MeteredBody<B>>, E>> {
        response.map_ok(|response| response.map(|inner| MeteredBody { inner, on_response }))
    }
}

pin_project! {
    /// A body that counts the bytes of its data frames, and settles their charge when it ends or is dropped.
    #[derive(Debug)]
    pub struct MeteredBody<B> {
        #[pin]
        inner: B,
        on_response: Option<Box<OnResponse>>,
    }
}

impl<B: Body> Body for MeteredBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = ready!(this.inner.poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(work), Some(data)) = (this.on_response.as_mut(), frame.data_ref()) {
                    work.bytes = work.bytes.saturating_add(data.remaining() as u64);
                }
            }
            // Dropping it settles the charge.
            Some(Err(_)) | None => drop(this.on_response.take()),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
