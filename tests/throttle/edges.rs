//! Ends of file, inner errors, partial writes and idle connections.

use std::io;

use super::*;
use ringgate::wait::WaitError;

#[tokio::test(start_paused = true)]
async fn the_end_of_file_costs_nothing() {
    let (own, local_counters) = limiter(steady(100_000));
    let (shared, counters) = limiter(steady(100_000));
    let mut stream = Throttled::builder(Wire::plain().ending(2_500))
        .read(own)
        .read_shared(Arc::new(Fair::new(shared)))
        .build()
        .unwrap();
    let mut all = Vec::new();
    assert_eq!(stream.read_to_end(&mut all).await.unwrap(), 2_500);
    assert_eq!(all, (0..2_500).map(Wire::byte).collect::<Vec<u8>>());
    assert_eq!(stream.read(&mut [0; 10]).await.unwrap(), 0);
    assert_eq!((local_counters.charged(), counters.charged()), (2_500, 2_500));
    assert_eq!(stream.into_inner().written.lock().unwrap().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_inner_error_is_returned_and_costs_nothing() {
    let behavior = Behavior::new(0, 0, 255);
    let (own, local_counters) = limiter(steady(100_000));
    let (shared, counters) = limiter(steady(100_000));
    let shared = Arc::new(Fair::new(shared));
    let mut stream = Throttled::builder(Wire::new(behavior, 1))
        .write(own)
        .read_shared(Arc::clone(&shared))
        .write_shared(shared)
        .build()
        .unwrap();
    let error = stream.write(&[7; 100]).await.unwrap_err();
    assert_eq!(error.to_string(), "injected");
    assert!(stream.read(&mut [0; 100]).await.is_err());
    assert_eq!(
        (local_counters.charged(), counters.charged(), stream.forfeited()),
        (0, 0, 0)
    );
}

/// A stream that is never ready, or a writer that reports this number of bytes, whatever it was given.
struct Stuck(Option<usize>);

impl AsyncRead for Stuck {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Stuck {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        self.0.map_or(Poll::Pending, |reported| Poll::Ready(Ok(reported)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_stuck_connection_holds_no_permits() {
    let (shared, counters) = limiter(steady(1_000_000));
    let shared = Arc::new(Fair::new(shared));
    for _ in 0..100 {
        let stuck = both_ways(&shared, Stuck(None));
        let (mut reader, mut writer) = tokio::io::split(stuck);
        tokio::spawn(async move { reader.read(&mut [0; 8192]).await });
        tokio::spawn(async move { writer.write(&[7; 8192]).await });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((counters.charged(), shared.waiting()), (0, 0));
    let mut stream = writer(&shared, Wire::plain());
    let began = Instant::now();
    stream.write_all(&[7; 1_000_000]).await.unwrap();
    let took = began.elapsed();
    assert!(
        took > Duration::from_millis(980) && took < Duration::from_millis(1_010),
        "{took:?}"
    );
}

/// A faulty writer is charged for the bytes that it was given, even if it reports more.
#[tokio::test(start_paused = true)]
async fn a_writer_is_charged_for_no_more_than_it_was_given() {
    let (own, local_counters) = limiter(steady(100_000));
    let (shared, counters) = limiter(steady(100_000));
    let mut stream = Throttled::builder(Stuck(Some(900)))
        .write(own)
        .write_shared(Arc::new(Fair::new(shared)))
        .build()
        .unwrap();
    assert_eq!(stream.write(&[7; 100]).await.unwrap(), 900);
    assert_eq!(
        (local_counters.charged(), counters.charged(), stream.forfeited()),
        (100, 100, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn slices_are_written_in_order() {
    let bytes: Vec<u8> = (0..10_000).map(Wire::byte).collect();
    for vectored in [true, false] {
        let wire = match vectored {
            true => Wire::plain(),
            false => Wire::plain().not_vectored(),
        };
        let written = Arc::clone(&wire.written);
        let (own, counters) = limiter(steady(100_000));
        let mut stream = Throttled::builder(wire)
            .write(own)
            .write_shared(shared(200_000))
            .build()
            .unwrap();
        assert_eq!(stream.is_write_vectored(), vectored);
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            // Slices of 0, 1, 2, ... bytes.
            let (mut slices, mut at) = (Vec::new(), 0);
            for length in 0..200 {
                let end = (at + length).min(rest.len());
                slices.push(IoSlice::new(&rest[at..end]));
                at = end;
            }
            let count = stream.write_vectored(&slices).await.unwrap();
            assert!(count > 0 && count <= 1_000, "{count}");
            done += count;
        }
        assert_eq!(*written.lock().unwrap(), bytes);
        assert_eq!((counters.charged(), stream.forfeited()), (10_000, 0));
        assert_eq!(stream.write_vectored(&[IoSlice::new(&[])]).await.unwrap(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn empty_buffers_cost_nothing() {
    let (own, counters) = limiter(CounterRing::new(Quota::per_hour(10).unwrap()).unwrap());
    let mut stream = Throttled::builder(Wire::plain()).write(own).build().unwrap();
    stream.write_all(&[7; 10]).await.unwrap();
    assert_eq!(stream.write(&[]).await.unwrap(), 0);
    assert_eq!(stream.read(&mut []).await.unwrap(), 0);
    stream.flush().await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(counters.charged(), 10);
    assert!(
        timeout(Duration::from_secs(60), stream.write(&[7]))
            .await
            .is_err()
    );
}

/// Bytes are read ahead while the limiter has no capacity, and delivered in several parts.
#[tokio::test(start_paused = true)]
async fn bytes_read_ahead_are_delivered_later() {
    let shared = shared(1_000);
    assert!(shared.check(10).is_ok());
    let mut stream = Throttled::builder(Wire::plain().ending(100))
        .read_shared(Arc::clone(&shared))
        .build()
        .unwrap();
    assert!(timeout(Duration::ZERO, stream.read(&mut [0; 50])).await.is_err());
    assert_eq!(stream.buffer(), &[0, 1, 2, 3, 4].map(Wire::byte));
    // The buffer is smaller than the turn that is pending.
    let mut all = Vec::new();
    let mut buf = [0; 2];
    loop {
        match stream.read(&mut buf).await.unwrap() {
            0 => break,
            count => all.extend_from_slice(&buf[..count]),
        }
    }
    assert_eq!(all, (0..100).map(Wire::byte).collect::<Vec<u8>>());
    assert!(stream.buffer().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_is_an_error_and_loses_nothing() {
    let shared = Arc::new(Fair::new(limiter(steady(1_000)).0).max_waiting(0));
    assert!(shared.check(10).is_ok());
    let mut stream = both_ways(&shared, Wire::plain());
    for error in [
        stream.read(&mut [0; 5]).await.unwrap_err(),
        stream.write(&[7; 5]).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        let error = error.get_ref().unwrap().downcast_ref::<WaitError>();
        assert!(
            matches!(error, Some(WaitError::QueueFull { max_waiting: 0, .. })),
            "{error:?}"
        );
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    let mut buf = [0; 5];
    stream.read_exact(&mut buf).await.unwrap();
    assert_eq!(buf, [0, 1, 2, 3, 4].map(Wire::byte));
}

/// The inner stream may be only a reader or only a writer.
#[tokio::test(start_paused = true)]
async fn a_reader_need_not_write() {
    let (own, counters) = limiter(steady(100_000));
    let mut reader = Throttled::builder(&[7_u8; 5_000][..]).read(own).build().unwrap();
    let began = Instant::now();
    let mut sink = Throttled::builder(Vec::new())
        .write(limiter(steady(50_000)).0)
        .build()
        .unwrap();
    tokio::io::copy(&mut reader, &mut sink).await.unwrap();
    assert_eq!((sink.get_ref().len(), counters.charged()), (5_000, 5_000));
    assert!(
        began.elapsed() >= Duration::from_millis(80),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn throttled_is_send_and_sync() {
    fn is<T: Send + Sync + Unpin>() {}
    is::<Throttled<Wire>>();
    is::<ringgate::throttle::ThrottledBuilder<Wire>>();
}
