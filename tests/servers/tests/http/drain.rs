//! Request bodies that are read before a response that was made without them.

use super::*;
use axum::routing::post;
use http_body::{Body as _, SizeHint};
use ringgate::http::{DrainBody, DrainLayer};

const SECOND: Duration = Duration::from_secs(1);

/// A body of frames with 10 bytes, which counts those that were read. It can end in an error, or never.
#[derive(Debug)]
struct Frames {
    left: u64,
    end: End,
    read: Arc<AtomicU64>,
    size: SizeHint,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Normal,
    Error,
    Never,
    /// The client waits for permission to send.
    Waits,
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        match (self.left.checked_sub(1), self.end) {
            (Some(left), _) => {
                self.left = left;
                self.read.fetch_add(10, Ordering::Relaxed);
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"0123456789")))))
            }
            (None, End::Normal | End::Waits) => Poll::Ready(None),
            (None, End::Error) => Poll::Ready(Some(Err("broken"))),
            (None, End::Never) => Poll::Pending,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }
}

/// Each case: the frames, their end, the size that is known, the most bytes, and the bytes that are read.
#[tokio::test(start_paused = true)]
async fn the_rest_of_a_body_is_read_within_bounds() {
    use End::{Error, Never, Normal, Waits};
    let cases = [
        ("a whole body", 10, Normal, None, 1000, 100),
        ("exactly the bound", 10, Normal, None, 100, 100),
        ("a frame beyond the bound", 10, Normal, None, 95, 100),
        ("more than the bound", 100, Normal, None, 100, 110),
        ("known to be more", 100, Normal, Some(1000), 999, 0),
        ("known to be as much", 100, Normal, Some(1000), 1000, 1000),
        ("an error", 3, Error, None, 1000, 30),
        ("a client that stops", 3, Never, None, 1000, 30),
        ("a client that waits to send", 10, Waits, None, 1000, 0),
    ];
    for (name, left, end, size, max_bytes, bytes) in cases {
        let read = Arc::new(AtomicU64::new(0));
        let rejecting = tower::service_fn(|request: Request<DrainBody<Frames>>| async move {
            drop(request);
            Ok::<_, Infallible>(Response::builder().status(429).body(()).expect("a response"))
        });
        let mut request = frames(left, end, &read);
        request.body_mut().size = size.map_or_else(SizeHint::new, SizeHint::with_exact);
        if end == Waits {
            let value = "100-continue".parse().expect("a value");
            request.headers_mut().insert("expect", value);
        }
        let start = Instant::now();
        let layer = DrainLayer::new(max_bytes, SECOND);
        let Ok(response) = layer.layer(rejecting).oneshot(request).await;
        let time = if end == Never { SECOND } else { Duration::ZERO };
        let seen = (
            response.status().as_u16(),
            read.load(Ordering::Relaxed),
            start.elapsed(),
        );
        assert_eq!(seen, (429, bytes, time), "{name}");
    }
}

fn frames(left: u64, end: End, read: &Arc<AtomicU64>) -> Request<Frames> {
    let (read, size) = (Arc::clone(read), SizeHint::new());
    Request::new(Frames {
        left,
        end,
        read,
        size,
    })
}

/// A body that is always ready is read for no longer than the time, and other tasks run meanwhile.
#[tokio::test(start_paused = true)]
async fn a_body_that_is_always_ready_does_not_exceed_the_time() {
    let rejecting = tower::service_fn(|request: Request<DrainBody<Frames>>| async move {
        drop(request);
        Ok::<_, Infallible>(Response::new(()))
    });
    let read = Arc::new(AtomicU64::new(0));
    let request = frames(1_000_000, End::Normal, &read);
    let layer = DrainLayer::new(u64::MAX, SECOND);
    let mut response = Box::pin(layer.layer(rejecting).oneshot(request));
    assert!(poll_once(&mut response).is_pending());
    tokio::time::advance(SECOND).await;
    assert!(poll_once(&mut response).is_ready());
    assert!(read.load(Ordering::Relaxed) < 10_000_000);
}

/// The future of the inner service may hold a permit, which is free before the rest of a body is read.
#[tokio::test(start_paused = true)]
async fn the_inner_future_ends_before_the_rest_is_read() {
    let permits = Arc::new(tokio::sync::Semaphore::new(1));
    let held = Arc::clone(&permits);
    let rejecting = tower::service_fn(move |request: Request<DrainBody<Frames>>| {
        let permit = Arc::clone(&held).try_acquire_owned().expect("a permit");
        drop(request);
        // An async block would drop the permit when it ends.
        core::future::poll_fn(move |_| {
            assert_eq!(permit.num_permits(), 1);
            Poll::Ready(Ok::<_, Infallible>(Response::new(())))
        })
    });
    let request = frames(3, End::Never, &Arc::default());
    let layer = DrainLayer::new(1000, SECOND);
    let mut response = Box::pin(layer.layer(rejecting).oneshot(request));
    let polled = poll_once(&mut response);
    assert!(polled.is_pending());
    assert_eq!(permits.available_permits(), 1);
    assert!(response.await.is_ok());
}

/// A service that reads the body, or keeps it, is not disturbed.
#[tokio::test]
async fn a_body_of_the_service_is_left_to_it() {
    let layer = DrainLayer::new(1000, SECOND);
    let begin = || {
        let read = Arc::new(AtomicU64::new(0));
        let request = frames(5, End::Normal, &read);
        (request, move || read.load(Ordering::Relaxed))
    };
    let (request, read) = begin();
    let echo = tower::service_fn(|request: Request<DrainBody<Frames>>| async move {
        let body = request.into_body().collect().await?.to_bytes();
        Ok::<_, &'static str>(Response::new(body))
    });
    let response = layer.layer(echo).oneshot(request).await.expect("a response");
    assert_eq!((response.into_body().len(), read()), (50, 50));
    let (request, read) = begin();
    let streams = tower::service_fn(|request: Request<DrainBody<Frames>>| {
        core::future::ready(Ok::<_, Infallible>(Response::new(request.into_body())))
    });
    let response = layer.layer(streams).oneshot(request).await.expect("a response");
    assert!(read() == 0 && !response.body().is_end_stream());
    let body = response.into_body().collect().await.expect("a body");
    assert_eq!(body.to_bytes().len(), 50);
    // Part of the body was read.
    let (request, read) = begin();
    let partly = tower::service_fn(|mut request: Request<DrainBody<Frames>>| async move {
        let frame = request.body_mut().frame().await;
        assert!(matches!(frame, Some(Ok(_))));
        Ok::<_, Infallible>(Response::new(()))
    });
    layer.layer(partly).oneshot(request).await.expect("a response");
    assert_eq!(read(), 50);
    // A service that fails has no response to deliver.
    let (request, read) = begin();
    let broken = tower::service_fn(|_: Request<DrainBody<Frames>>| {
        core::future::ready(Err::<Response<()>, _>("broken"))
    });
    assert!(layer.layer(broken).oneshot(request).await.is_err());
    assert_eq!(read(), 0);
}

/// Clients that send ten megabytes before they read, over one connection each.
#[tokio::test]
async fn a_client_that_sends_first_reads_its_rejection() {
    let layer = layer([rule("all", "1/h")]);
    let app: Router = Router::new()
        .route("/", post(|| async { "hello" }))
        .layer(layer)
        .layer(DrainLayer::new(16 << 20, Duration::from_secs(60)));
    let (listener, address) = listen().await;
    tokio::spawn(async move { axum::serve(listener, app).await });
    let body = vec![b'x'; 10_000_000];
    let mut socket = tokio::net::TcpStream::connect(address)
        .await
        .expect("a connection");
    for turn in 0..5 {
        let head = format!(
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all(head.as_bytes()).await.expect("a connection");
        socket.write_all(&body).await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await.expect("a response"));
        }
        let head = String::from_utf8(head).expect("text").to_lowercase();
        let status = if turn == 0 { "200" } else { "429" };
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{turn}: {head}");
        let length = head.split("content-length: ").nth(1).expect("a length");
        let length = length.lines().next().expect("a line").parse().expect("a number");
        socket.read_exact(&mut vec![0; length]).await.expect("a body");
    }
}
