//! Reads the rest of a request body before a response that was made without it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use ::http::header::EXPECT;
use ::http::{Request, Response};
use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_layer::Layer;
use tower_service::Service;

/// Reads and discards the request body that a response was made without, up to a number of bytes and for a time.
///
/// A rejection does not read the request body. Over HTTP/1, the server then closes the connection while the client still sends. A client
/// that sends the whole body before it reads, such as most do, may then see a broken pipe instead of the response 429. With this
/// layer, the response follows when the body has been read, and the connection can be used again. It applies to every response for
/// which the inner service dropped the body unread, whatever the status.
///
/// Add it outside of the [`RateLimitLayer`](crate::http::RateLimitLayer): in axum, by a call of `layer` after that of the rate
/// limit.
///
/// # Guarantee
///
/// At most `max_bytes` and one frame are read, for at most `max_time`. Then the response is returned as without this layer. Nothing is
/// read if the body is known to be longer, or if the client waits for permission to send it (`Expect: 100-continue`). A body that the
/// inner service still has when it responds is left to it.
///
/// # Cost
///
/// A request with a body allocates one reference-counted cell. A rejected client occupies its connection while its body is read,
/// and uses the bandwidth of the server. So choose `max_bytes` close to the largest body of an honest request.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::http::DrainLayer;
///
/// // 16 MiB, for at most five seconds.
/// let drain = DrainLayer::new(16 << 20, Duration::from_secs(5));
/// # let _ = drain;
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct DrainLayer {
    max_bytes: u64,
    max_time: Duration,
}

impl DrainLayer {
    /// Creates a layer that reads up to `max_bytes` of a body for at most `max_time`. With 0 bytes, it reads nothing.
    pub const fn new(max_bytes: u64, max_time: Duration) -> Self {
        Self { max_bytes, max_time }
    }

    /// Whether the body of this request can be read to its end.
    fn applies_to<Q: Body>(&self, request: &Request<Q>) -> bool {
        let body = request.body();
        let is_short = body.size_hint().lower() <= self.max_bytes;
        self.max_bytes > 0 && is_short && !body.is_end_stream() && !request.headers().contains_key(EXPECT)
    }
}

impl<T> Layer<T> for DrainLayer {
    type Service = DrainService<T>;

    fn layer(&self, inner: T) -> DrainService<T> {
        DrainService { inner, layer: *self }
    }
}

/// A service that reads the rest of request bodies, made by [`DrainLayer`].
#[derive(Clone, Debug)]
pub struct DrainService<T> {
    inner: T,
    layer: DrainLayer,
}

/// The place to which a body comes that was dropped unread.
type Rest<Q> = Arc<Mutex<Option<Q>>>;

impl<T, Q, B> Service<Request<Q>> for DrainService<T>
where
    T: Service<Request<DrainBody<Q>>, Response = Response<B>>,
    Q: Body + Unpin,
{
    type Response = Response<B>;
    type Error = T::Error;
    type Future = DrainFuture<T::Future, Q, Response<B>>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), T::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let rest: Option<Rest<Q>> = self.layer.applies_to(&request).then(Arc::default);
        let body_rest = rest.clone();
        let request = request.map(|body| DrainBody {
            inner: Some(body),
            rest: body_rest,
        });
        DrainFuture {
            inner: Some(self.inner.call(request)),
            rest,
            draining: None,
            layer: self.layer,
        }
    }
}

/// The request body of the inner service of a [`DrainService`].
pub struct DrainBody<Q: Body + Unpin> {
    /// `None` after the end or an error.
    inner: Option<Q>,
    rest: Option<Rest<Q>>,
}

impl<Q: Body + Unpin> Body for DrainBody<Q> {
    type Data = Q::Data;
    type Error = Q::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Q::Data>, Q::Error>>> {
        let Some(inner) = &mut self.inner else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(inner).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            self.inner = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner
            .as_ref()
            .map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<Q: Body + Unpin> Drop for DrainBody<Q> {
    fn drop(&mut self) {
        if let (Some(inner), Some(rest)) = (self.inner.take(), &self.rest)
            && !inner.is_end_stream()
        {
            *rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(inner);
        }
    }
}

impl<Q: Body + Unpin> fmt::Debug for DrainBody<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrainBody")
            .field("is_end_stream", &self.is_end_stream())
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of a request to a [`DrainService`].
    #[must_use = "futures do nothing unless polled"]
    pub struct DrainFuture<F, Q, A> {
        // `None` after the inner service has responded.
        #[pin]
        inner: Option<F>,
        rest: Option<Rest<Q>>,
        // After the inner service has responded, until the response is returned.
        draining: Option<Draining<Q, A>>,
        layer: DrainLayer,
    }
}

/// A body that is read and discarded before the response.
struct Draining<Q, A> {
    response: A,
    body: Q,
    bytes_left: u64,
    timeout: Pin<Box<Sleep>>,
}

/// The most frames that one poll reads, so that a body that is always ready delays neither other tasks nor the timeout.
const FRAMES_PER_POLL: usize = 64;

impl<Q: Body + Unpin, A> Draining<Q, A> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..FRAMES_PER_POLL {
            let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
                return self.timeout.as_mut().poll(cx);
            };
            let Some(Ok(frame)) = frame else {
                return Poll::Ready(());
            };
            let bytes = frame.data_ref().map_or(0, Buf::remaining) as u64;
            // An empty frame counts too, so that the number of frames is bounded.
            let Some(left) = self.bytes_left.checked_sub(bytes.max(1)) else {
                return Poll::Ready(());
            };
            self.bytes_left = left;
        }
        cx.waker().wake_by_ref();
        self.timeout.as_mut().poll(cx)
    }
}

impl<F, Q, B, E> Future for DrainFuture<F, Q, Response<B>>
where
    F: Future<Output = Result<Response<B>, E>>,
    Q: Body + Unpin,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let mut draining = match this.draining.take() {
            Some(draining) => draining,
            None => {
                let inner = this.inner.as_mut().as_pin_mut();
                let inner = inner.expect("`DrainFuture` polled after completion");
                let response = ready!(inner.poll(cx));
                // It may hold a permit of its own until it is dropped, which a client that sends slowly must not keep.
                this.inner.set(None);
                let response = response?;
                let rest = this.rest.take();
                let rest = rest.and_then(|rest| rest.lock().unwrap_or_else(PoisonError::into_inner).take());
                let Some(body) = rest else {
                    return Poll::Ready(Ok(response));
                };
                Draining {
                    response,
                    body,
                    bytes_left: this.layer.max_bytes,
                    timeout: Box::pin(sleep(this.layer.max_time)),
                }
            }
        };
        if draining.poll(cx).is_pending() {
            *this.draining = Some(draining);
            return Poll::Pending;
        }
        Poll::Ready(Ok(draining.response))
    }
}

impl<F, Q, A> fmt::Debug for DrainFuture<F, Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrainFuture")
            .field("layer", &self.layer)
            .finish_non_exhaustive()
    }
}
