use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use ::http::Response;
use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::reserved::Reserved;
use crate::http::rules::HttpRules;

/// The type of a layer's bodies: [`Unmetered`] or [`Metered`]. This trait is sealed.
#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub trait Metering<B, S: HttpRules> {
    /// The body of a response.
    type Body;

    /// Gives a response this body.
    fn meter(response: Response<B>, reserved: Option<Reserved<S>>) -> Response<Self::Body>;
}

/// Response bodies are those of the inner service. This is the default of a [`RateLimitLayer`](crate::http::RateLimitLayer).
#[derive(Clone, Copy, Debug)]
pub enum Unmetered {}

/// The bytes of response bodies are counted: see [`RateLimitLayer::settle_body`](crate::http::RateLimitLayer::settle_body).
#[derive(Clone, Copy, Debug)]
pub enum Metered {}

impl<B, S: HttpRules> Metering<B, S> for Unmetered {
    type Body = B;

    #[inline]
    fn meter(response: Response<B>, _: Option<Reserved<S>>) -> Response<B> {
        response
    }
}

impl<B, S: HttpRules> Metering<B, S> for Metered {
    type Body = MeteredBody<B, S>;

    fn meter(response: Response<B>, reserved: Option<Reserved<S>>) -> Response<MeteredBody<B, S>> {
        response.map(|inner| MeteredBody { inner, reserved })
    }
}

pin_project! {
    /// A body that counts the bytes of its data frames, and settles their charge when it ends or is dropped.
    pub struct MeteredBody<B, S>
    where
        S: HttpRules,
    {
        #[pin]
        inner: B,
        reserved: Option<Reserved<S>>,
    }
}

impl<B: Body, S: HttpRules> Body for MeteredBody<B, S> {
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
                if let (Some(reserved), Some(data)) = (this.reserved.as_mut(), frame.data_ref()) {
                    reserved.bytes = reserved.bytes.saturating_add(data.remaining() as u64);
                }
            }
            // Dropping it settles the charge.
            Some(Err(_)) | None => drop(this.reserved.take()),
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

impl<B: fmt::Debug, S: HttpRules> fmt::Debug for MeteredBody<B, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeteredBody")
            .field("inner", &self.inner)
            .field("bytes", &self.reserved.as_ref().map(|reserved| reserved.bytes))
            .finish()
    }
}
