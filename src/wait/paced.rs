use core::pin::Pin;
use core::task::{Context, Poll, ready};

use alloc::sync::Arc;
use futures_core::Stream;
use futures_core::stream::FusedStream;
use futures_sink::Sink;
use pin_project_lite::pin_project;

use super::ask::Ask;
use super::direct::Direct;
use super::fair::Fair;
use super::runtime::Runtime;
use super::until::Until;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;

pin_project! {
    /// A stream whose items come at the pace of a limiter: one permit each. Made by [`Fair::stream`].
    ///
    /// An item is fetched first and then waits for its permit, so that no permit is taken while nothing comes, nor for
    /// the end. Dropping the stream drops an item that waits. It waits in line as any other, but [`Fair::max_waiting`]
    /// does not concern it: it waits for one permit at a time.
    ///
    /// # Caveats
    ///
    /// While it waits and is not polled it keeps its place in line, as an [`Until`] does: go on polling it, or drop it.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::{CounterRing, Fair, Quota, RateLimiter, TokioClock};
    /// use tokio::time::Instant;
    /// use tokio_stream::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let ring = CounterRing::new(Quota::per_second(2)?)?;
    /// let limiter = Fair::new(RateLimiter::with_clock(ring, TokioClock::new()));
    /// let began = Instant::now();
    /// let mut paced = core::pin::pin!(limiter.stream(tokio_stream::iter(1..=3)));
    /// assert_eq!((paced.next().await, paced.next().await), (Some(1), Some(2)));
    /// // The third of a second waits for the next one.
    /// assert_eq!(paced.next().await, Some(3));
    /// assert!(began.elapsed().as_millis() >= 1_000);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug)]
    #[must_use = "a stream does nothing until it is polled"]
    pub struct PacedStream<S: Stream, A: Ask> {
        #[pin]
        inner: S,
        item: Option<S::Item>,
        until: Until<A>,
    }
}

pin_project! {
    /// A sink that takes items at the pace of a limiter: one permit each. Made by [`Fair::sink`].
    ///
    /// It is ready when the inner sink is and a permit has been taken. If nothing is sent then, the permit is kept for
    /// the next item. Waiting is as with [`PacedStream`], with the same caveat; closing it leaves the line.
    #[derive(Debug)]
    #[must_use = "a sink does nothing until it is polled"]
    pub struct PacedSink<S, A: Ask> {
        #[pin]
        inner: S,
        paid: bool,
        until: Until<A>,
    }
}

impl<A: Algorithm, C: Clock, T: Runtime> Fair<RateLimiter<A, C>, T> {
    /// Gives the items of a stream at the limiter's pace.
    pub fn stream<S: Stream>(
        &self,
        inner: S,
    ) -> PacedStream<S, impl Ask<Taken = (), Runtime = T> + Unpin + use<'_, A, C, T, S>> {
        PacedStream::new(inner, Direct::new(self, 1, drop))
    }

    /// As [`stream`](Self::stream), with the limiter by its `Arc`: for a task that is spawned.
    pub fn stream_owned<S: Stream>(
        self: Arc<Self>,
        inner: S,
    ) -> PacedStream<S, impl Ask<Taken = (), Runtime = T> + Unpin + use<A, C, T, S>> {
        PacedStream::new(inner, Direct::new(self, 1, drop))
    }

    /// Takes items for a sink at the limiter's pace.
    pub fn sink<S>(
        &self,
        inner: S,
    ) -> PacedSink<S, impl Ask<Taken = (), Runtime = T> + Unpin + use<'_, A, C, T, S>> {
        PacedSink::new(inner, Direct::new(self, 1, drop))
    }

    /// As [`sink`](Self::sink), with the limiter by its `Arc`: for a task that is spawned.
    pub fn sink_owned<S>(
        self: Arc<Self>,
        inner: S,
    ) -> PacedSink<S, impl Ask<Taken = (), Runtime = T> + Unpin + use<A, C, T, S>> {
        PacedSink::new(inner, Direct::new(self, 1, drop))
    }
}

impl<S: Stream, A: Ask> PacedStream<S, A> {
    fn new(inner: S, ask: A) -> Self {
        Self {
            inner,
            item: None,
            until: Until::new(ask).insisting(),
        }
    }

    /// The stream inside.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S: Stream, A: Ask + Unpin> Stream for PacedStream<S, A> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        if this.item.is_none() {
            *this.item = ready!(this.inner.poll_next(context));
        }
        if this.item.is_some() {
            ready!(this.until.poll_again(context));
        }
        Poll::Ready(this.item.take())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.inner.size_hint();
        let held = usize::from(self.item.is_some());
        (
            least.saturating_add(held),
            most.and_then(|most| most.checked_add(held)),
        )
    }
}

impl<S: FusedStream, A: Ask + Unpin> FusedStream for PacedStream<S, A> {
    fn is_terminated(&self) -> bool {
        self.item.is_none() && self.inner.is_terminated()
    }
}

impl<S, A: Ask> PacedSink<S, A> {
    fn new(inner: S, ask: A) -> Self {
        Self {
            inner,
            paid: false,
            until: Until::new(ask).insisting(),
        }
    }

    /// The sink inside.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S: Sink<I>, I, A: Ask + Unpin> Sink<I> for PacedSink<S, A> {
    type Error = S::Error;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let this = self.project();
        ready!(this.inner.poll_ready(context))?;
        if !*this.paid {
            ready!(this.until.poll_again(context));
            *this.paid = true;
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, item: I) -> Result<(), S::Error> {
        let this = self.project();
        *this.paid = false;
        this.inner.start_send(item)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.project().inner.poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let this = self.project();
        this.until.leave();
        this.inner.poll_close(context)
    }
}
