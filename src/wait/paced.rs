use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_core::stream::FusedStream;
use futures_sink::Sink;
use pin_project_lite::pin_project;

use super::acquire::Acquire;
use super::fair::FairRef;
use super::waitable::WaitRequest;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;

pin_project! {
    /// A stream that yields items at the rate of a limiter, one permit per item.
    ///
    /// `F` is a [`Fair`](super::Fair) of a [`RateLimiter`], or a reference or an `Arc` to one. With an `Arc`, a task can be spawned
    /// with the stream.
    ///
    /// The stream first polls an item, and then waits for its permit. So no permit is charged while the inner stream has no
    /// item, or for the end of the inner stream. Dropping the stream also drops an item that waits.
    ///
    /// The wait is in the queue as any other. It does not count against [`max_waiting`](super::Fair::max_waiting), because a stream
    /// waits for one permit at a time.
    ///
    /// # Caveats
    ///
    /// A stream that waits and is not polled keeps its position in the queue, as an [`Acquire`] does. Keep polling the stream,
    /// or drop it.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::wait::{PacedStream, TokioClock};
    /// use ringgate::{CounterRing, Fair, Quota, RateLimiter};
    /// use tokio::time::Instant;
    /// use tokio_stream::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let ring = CounterRing::new(Quota::per_second(2)?)?;
    /// let limiter = Fair::new(RateLimiter::with_clock(ring, TokioClock::new()));
    /// let start = Instant::now();
    /// let mut paced = core::pin::pin!(PacedStream::new(tokio_stream::iter(1..=3), &limiter));
    /// assert_eq!((paced.next().await, paced.next().await), (Some(1), Some(2)));
    /// // The third item waits for the next second.
    /// assert_eq!(paced.next().await, Some(3));
    /// assert!(start.elapsed().as_millis() >= 1_000);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug)]
    #[must_use = "a stream does nothing until it is polled"]
    pub struct PacedStream<S: Stream, F: FairRef>
    where
        u64: WaitRequest<F::Limiter>,
    {
        #[pin]
        inner: S,
        item: Option<S::Item>,
        permit: Acquire<F>,
    }
}

pin_project! {
    /// A sink that accepts items at the rate of a limiter, one permit per item.
    ///
    /// `F` is a [`Fair`](super::Fair) of a [`RateLimiter`], or a reference or an `Arc` to one.
    ///
    /// The sink is ready when the inner sink is ready and a permit was charged. If no item is sent then, the permit is kept for
    /// the next item. Closing the sink leaves the queue. The caveat of [`PacedStream`] applies.
    #[derive(Debug)]
    #[must_use = "a sink does nothing until it is polled"]
    pub struct PacedSink<S, F: FairRef>
    where
        u64: WaitRequest<F::Limiter>,
    {
        #[pin]
        inner: S,
        has_permit: bool,
        permit: Acquire<F>,
    }
}

impl<S: Stream, F: FairRef<Limiter = RateLimiter<A, C>>, A: Algorithm, C: Clock> PacedStream<S, F> {
    /// Yields the items of a stream at the rate of a limiter.
    pub fn new(inner: S, limiter: F) -> Self {
        Self {
            inner,
            item: None,
            permit: Acquire::new(limiter, 1).exempt(),
        }
    }
}

impl<S: Stream, F: FairRef + Unpin> Stream for PacedStream<S, F>
where
    u64: WaitRequest<F::Limiter>,
{
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

impl<S: FusedStream, F: FairRef + Unpin> FusedStream for PacedStream<S, F>
where
    u64: WaitRequest<F::Limiter>,
{
    fn is_terminated(&self) -> bool {
        self.item.is_none() && self.inner.is_terminated()
    }
}

impl<S, F: FairRef<Limiter = RateLimiter<A, C>>, A: Algorithm, C: Clock> PacedSink<S, F> {
    /// Accepts items for a sink at the rate of a limiter.
    pub fn new(inner: S, limiter: F) -> Self {
        Self {
            inner,
            has_permit: false,
            permit: Acquire::new(limiter, 1).exempt(),
        }
    }
}

impl<S: Sink<I>, I, F: FairRef + Unpin> Sink<I> for PacedSink<S, F>
where
    u64: WaitRequest<F::Limiter>,
{
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
