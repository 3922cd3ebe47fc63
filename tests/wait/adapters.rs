//! Streams and sinks at the rate of a limiter.

use alloc::collections::VecDeque;

use futures_core::stream::FusedStream;

use super::*;

/// A stream of the numbers from `.0` to `.1`, which are ready at once.
struct Numbers(u64, u64);

impl Stream for Numbers {
    type Item = u64;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u64>> {
        let next = (self.0 < self.1).then_some(self.0);
        self.0 += 1;
        Poll::Ready(next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.1 - self.0).unwrap();
        (left, Some(left))
    }
}

impl FusedStream for Numbers {
    fn is_terminated(&self) -> bool {
        self.0 >= self.1
    }
}

async fn next<S: Stream>(stream: &mut Pin<&mut S>) -> Option<S::Item> {
    core::future::poll_fn(|context| stream.as_mut().poll_next(context)).await
}

#[tokio::test(start_paused = true)]
async fn a_stream_yields_items_at_the_limiters_rate() {
    let limiter = log("2/1s");
    let began = Instant::now();
    let mut stream = pin!(PacedStream::new(Numbers(0, 5), &limiter));
    let mut seen = Vec::new();
    while let Some(number) = next(&mut stream).await {
        seen.push((number, began.elapsed().as_millis()));
        assert_eq!(stream.size_hint().0, 4 - usize::try_from(number).unwrap());
    }
    assert_eq!(seen, [(0, 0), (1, 0), (2, 1000), (3, 1000), (4, 2000)]);
    // The end of the stream costs nothing.
    assert_eq!(limiter.limiter().peek().remaining(), 1);
}

/// An item that waits for its permit is part of the size, also once the inner stream has ended.
#[tokio::test(start_paused = true)]
async fn a_stream_counts_the_item_that_waits() {
    let limiter = log("1/1s");
    limiter.check(1).unwrap();
    let mut stream = pin!(PacedStream::new(Numbers(0, 1), &limiter));
    let waits = core::future::poll_fn(|context| Poll::Ready(stream.as_mut().poll_next(context))).await;
    assert!(waits.is_pending());
    assert_eq!(stream.size_hint(), (1, Some(1)));
    assert!(!stream.is_terminated());
    assert_eq!(next(&mut stream).await, Some(0));
    assert_eq!(stream.size_hint(), (0, Some(0)));
    assert!(stream.is_terminated());
}

/// Two streams share a limiter. An item that a dropped stream had buffered costs nothing.
#[tokio::test(start_paused = true)]
async fn a_dropped_stream_charges_only_yielded_items() {
    let limiter = log("2/1s");
    let mut first = Box::pin(PacedStream::new(Numbers(0, 5), Arc::clone(&limiter)));
    let mut second = pin!(PacedStream::new(Numbers(0, 1), &limiter));
    assert_eq!(next(&mut first.as_mut()).await, Some(0));
    assert_eq!(next(&mut first.as_mut()).await, Some(1));
    let waits = core::future::poll_fn(|context| Poll::Ready(first.as_mut().poll_next(context))).await;
    assert!(waits.is_pending());
    let waits = core::future::poll_fn(|context| Poll::Ready(second.as_mut().poll_next(context))).await;
    assert!(waits.is_pending());
    drop(first);
    let began = Instant::now();
    assert_eq!(next(&mut second).await, Some(0));
    assert_eq!(began.elapsed(), ms(1000));
    assert_eq!(limiter.limiter().peek().remaining(), 1);
}

/// The items that were sent, with their times.
#[derive(Default)]
struct Sent(VecDeque<(u64, u128)>, Option<Instant>);

impl Sink<u64> for Sent {
    type Error = &'static str;

    fn poll_ready(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.1.get_or_insert_with(Instant::now);
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, item: u64) -> Result<(), Self::Error> {
        let at = self.1.ok_or("not ready")?.elapsed().as_millis();
        self.0.push_back((item, at));
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Err("closed"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_accepts_items_at_the_limiters_rate() {
    let limiter = log("2/1s");
    let mut sent = Sent::default();
    let mut sink = Box::pin(PacedSink::new(&mut sent, &limiter));
    for number in 0..5 {
        core::future::poll_fn(|context| sink.as_mut().poll_ready(context))
            .await
            .unwrap();
        // A sink that is ready stays ready, and is charged once.
        core::future::poll_fn(|context| sink.as_mut().poll_ready(context))
            .await
            .unwrap();
        sink.as_mut().start_send(number).unwrap();
    }
    assert_eq!(limiter.limiter().peek().remaining(), 1);
    let closed = core::future::poll_fn(|context| sink.as_mut().poll_close(context)).await;
    assert_eq!(closed, Err("closed"));
    drop(sink);
    assert_eq!(sent.0, [(0, 0), (1, 0), (2, 1000), (3, 1000), (4, 2000)]);
}

/// A sink that is closed while it waits leaves its queue.
#[tokio::test(start_paused = true)]
async fn a_closed_sink_leaves_the_queue() {
    let limiter = log("1/1s");
    assert!(limiter.check(1).is_ok());
    let mut sink = pin!(PacedSink::new(Sent::default(), &limiter));
    let ready = tokio::time::timeout(
        ms(10),
        core::future::poll_fn(|context| sink.as_mut().poll_ready(context)),
    );
    assert!(ready.await.is_err());
    assert_eq!(limiter.waiting(), 1);
    let _ = core::future::poll_fn(|context| sink.as_mut().poll_close(context)).await;
    assert_eq!(limiter.waiting(), 0);
}
