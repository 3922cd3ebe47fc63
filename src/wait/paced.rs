use core::pin::Pin;
use core::task::{Context, Poll, ready};

use alloc::sync::Arc;
use futures_core::Stream;
use futures_core::stream::FusedStream;
use futures_sink::Sink;
use pin_project_lite::pin_project;

use super::acquire::{Acquire, AcquireRequest};
use super::fair::{Fair, PermitRequest};
use super::runtime::Runtime;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;

pin_project! {
    /// A stream that yields items at the rate of a limiter, one permit per item. [`Fair::stream`] creates it.
    ///
    /// The stream first polls an item, and then waits for its permit. So no permit is charged while the inner stream has no
    /// item, or for the end of the inner stream. Dropping the stream also drops an item that waits.
    ///
    /// The wait is in the queue as any other. It does not count against [`Fair::max_waiting`], because a stream waits for one
    /// permit at a time.
    ///
    /// # Caveats
    ///
    /// A stream that waits and is not polled keeps its position in the queue, as an [`Acquire`] does. Keep polling the stream,
    /// or drop it.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::wait::TokioClock;
    /// use ringgate::{CounterRing, Fair, Quota, RateLimiter};
    /// use tokio::time::Instant;
    /// use tokio_stream::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let ring = CounterRing::new(Quota::per_second(2)?)?;
    /// let limiter = Fair::new(RateLimiter::with_clock(ring, TokioClock::new()));
    /// let start = Instant::now();
    /// let mut paced = core::pin::pin!(limiter.stream(tokio_stream::iter(1..=3)));
    /// assert_eq!((paced.next().await, paced.next().await), (Some(1), Some(2)));
    /// // The third item waits for the next second.
    /// assert_eq!(paced.next().await, Some(3));
    /// assert!(start.elapsed().as_millis() >= 1_000);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug)]
    #[must_use = "a stream does nothing until it is polled"]
    pub struct PacedStream<S: Stream, R: AcquireRequest> {
        #[pin]
        inner: S,
        item: Option<S::Item>,
        permit: Acquire<R>,
    }
}

pin_project! {
    /// A sink that accepts items at the rate of a limiter, one permit per item. [`Fair::sink`] creates it.
    ///
    /// The sink is ready when the inner sink is ready and a permit was charged. If no item is sent then, the permit is kept for
    /// the next item. Closing the sink leaves the queue. The caveat of [`PacedStream`] applies.
    #[derive(Debug)]
    #[must_use = "a sink does nothing until it is polled"]
    pub struct PacedSink<S, R: AcquireRequest> {
        #[pin]
        inner: S,
        has_permit: bool,
        permit: Acquire<R>,
    }
}

impl<A: Algorithm, C: Clock, T: Runtime> Fair<RateLimiter<A, C>, T> {
    /// Yields the items of a stream at the rate of the limiter.
    pub fn stream<S: Stream>(&self, inner: S) -> PacedStream<S, PermitRequest<&Self>> {
        PacedStream::new(inner, PermitRequest::new(self, 1))
    }

    /// Yields the items of a stream at the rate of the limiter. The result holds the limiter by its `Arc`, so that a task can be
    /// spawned with it.
    pub fn stream_owned<S: Stream>(self: Arc<Self>, inner: S) -> PacedStream<S, PermitRequest<Arc<Self>>> {
        PacedStream::new(inner, PermitRequest::new(self, 1))
    }

    /// Accepts items for a sink at the rate of the limiter.
    pub fn sink<S>(&self, inner: S) -> PacedSink<S, PermitRequest<&Self>> {
        PacedSink::new(inner, PermitRequest::new(self, 1))
    }

    /// Accepts items for a sink at the rate of the limiter. The result holds the limiter by its `Arc`, so that a task can be
    /// spawned with it.
    pub fn sink_owned<S>(self: Arc<Self>, inner: S) -> PacedSink<S, PermitRequest<Arc<Self>>> {
        PacedSink::new(inner, PermitRequest::new(self, 1))
    }
}

impl<S: Stream, R: AcquireRequest> PacedStream<S, R> {
    fn new(inner: S, request: R) -> Self {
        Self {
            inner,
            item: None,
            permit: Acquire::new(request).exempt(),
        }
    }

    /// Returns the inner stream.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S: Stream, R: AcquireRequest + Unpin> Stream for PacedStream<S, R> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        if this.item.is_none() {
            *this.item = ready!(this.inner.poll_next(context));
        }
        if this.item.is_some() {
            ready!(this.permit.poll_next(context));
        }
        Poll::Ready(this.item.take())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (lower, upper) = self.inner.size_hint();
        let buffered = usize::from(self.item.is_some());
        (
            lower.saturating_add(buffered),
            upper.and_then(|upper| upper.checked_add(buffered)),
        )
    }
}

impl<S: FusedStream, R: AcquireRequest + Unpin> FusedStream for PacedStream<S, R> {
    fn is_terminated(&self) -> bool {
        self.item.is_none() && self.inner.is_terminated()
    }
}

impl<S, R: AcquireRequest> PacedSink<S, R> {
    fn new(inner: S, request: R) -> Self {
        Self {
            inner,
            has_permit: false,
            permit: Acquire::new(request).exempt(),
        }
    }

    /// Returns the inner sink.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S: Sink<I>, I, R: AcquireRequest + Unpin> Sink<I> for PacedSink<S, R> {
    type Error = S::Error;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let this = self.project();
        ready!(this.inner.poll_ready(context))?;
        if !*this.has_permit {
            ready!(this.permit.poll_next(context));
            *this.has_permit = true;
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, item: I) -> Result<(), S::Error> {
        let this = self.project();
        *this.has_permit = false;
        this.inner.start_send(item)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.project().inner.poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let this = self.project();
        this.permit.leave();
        this.inner.poll_close(context)
    }
}
