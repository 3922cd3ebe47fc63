//! Slots of connections that are upgraded: a guard holds the slot as long as the connection.

use super::*;
use axum::extract::Request as AxumRequest;
use axum::routing::get;
use hyper_util::rt::TokioIo;
use ringgate::http::{InFlightSlot, SlotGuard};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// A response to an upgrade, as WebSocket handlers of axum make it. The connection echoes until it is closed.
fn upgrade(
    request: AxumRequest,
    holds: bool,
    ended: mpsc::UnboundedSender<()>,
) -> Response<axum::body::Body> {
    let slot = request.extensions().get::<InFlightSlot>().filter(|_| holds);
    let guard = slot.and_then(InFlightSlot::hold);
    assert_eq!(guard.is_some(), holds);
    tokio::spawn(async move {
        let upgraded = hyper::upgrade::on(request).await.expect("an upgrade");
        let mut socket = TokioIo::new(upgraded);
        let mut byte = [0];
        while matches!(socket.read(&mut byte).await, Ok(1)) {
            socket.write_all(&byte).await.expect("a socket");
        }
        drop(guard);
        ended.send(()).expect("a test");
    });
    Response::builder()
        .status(101)
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .body(axum::body::Body::empty())
        .expect("a response")
}

/// A server whose only route upgrades, and the receiver of the ends of its sockets.
async fn server(live: &Arc<Live>, holds: bool) -> (SocketAddr, mpsc::UnboundedReceiver<()>) {
    let (ended, ends) = mpsc::unbounded_channel();
    let handler = move |request: AxumRequest| {
        let ended = ended.clone();
        async move { upgrade(request, holds, ended) }
    };
    let layer = RateLimitLayer::new(Arc::clone(live)).until_body_end();
    let app: Router = Router::new().route("/", get(handler)).layer(layer);
    let (listener, address) = listen().await;
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, ends)
}

/// A connection, and the status of the response to its upgrade.
async fn connect(server: SocketAddr) -> (TcpStream, u16) {
    let mut socket = TcpStream::connect(server).await.expect("a connection");
    let request = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    socket.write_all(request.as_bytes()).await.expect("a connection");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.expect("a response"));
    }
    let status = String::from_utf8(head[9..12].to_vec()).expect("text");
    (socket, status.parse().expect("a status"))
}

/// Without a guard, the slot ends with the response 101.
#[tokio::test]
async fn a_slot_follows_an_upgraded_connection() {
    for holds in [true, false] {
        let (live, _) = live([Rule::in_flight("ws", 1)]);
        let (address, mut ends) = server(&live, holds).await;
        for _ in 0..3 {
            let (mut socket, status) = connect(address).await;
            // The connection is upgraded, and the response has ended.
            socket.write_all(b"x").await.expect("a socket");
            assert_eq!(socket.read_u8().await.expect("an echo"), b'x');
            assert_eq!((status, held(&live)), (101, u64::from(holds)));
            if holds {
                assert_eq!((connect(address).await.1, held(&live)), (429, 1));
            }
            drop(socket);
            ends.recv().await.expect("an end");
            assert_eq!(held(&live), 0);
        }
    }
}

/// A service that keeps a guard of each request.
fn keeping(
    guards: &Arc<std::sync::Mutex<Vec<Option<SlotGuard>>>>,
) -> impl Service<Request<()>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone + use<> {
    let guards = Arc::clone(guards);
    tower::service_fn(move |request: Request<()>| {
        let slot = request.extensions().get::<InFlightSlot>();
        guards
            .lock()
            .expect("no panic")
            .push(slot.and_then(InFlightSlot::hold));
        core::future::ready(Ok::<_, Infallible>(Response::new(Body::from("hello"))))
    })
}

#[test]
fn a_guard_and_a_body_both_hold_the_slot() {
    let slots = Rule::in_flight("slots", 1).into_any();
    let (live, _) = live([slots, rule("rate", "99/min").into_any()]);
    let guards = Arc::default();
    let layer = RateLimitLayer::new(Arc::clone(&live)).until_body_end();
    let mut service = layer.layer(keeping(&guards));
    let slots = || {
        let (head, ()) = alice().into_parts();
        let rules = live.load();
        let slots = rules.peek(&head).find(|peek| peek.rule() == "slots");
        slots.map(|peek| peek.spent())
    };
    // The body ends first, or the guard.
    let first = send(&mut service, Request::new(()));
    assert_eq!(slots(), Some(1));
    drop(first);
    assert_eq!(slots(), Some(1));
    guards.lock().expect("no panic").clear();
    assert_eq!(slots(), Some(0));
    let second = send(&mut service, Request::new(()));
    guards.lock().expect("no panic").clear();
    assert_eq!(slots(), Some(1));
    drop(second);
    assert_eq!(slots(), Some(0));
    // Without `until_body_end`, a guard holds it beyond the response.
    let mut service = RateLimitLayer::new(Arc::clone(&live)).layer(keeping(&guards));
    drop(send(&mut service, Request::new(())));
    assert_eq!(slots(), Some(1));
    guards.lock().expect("no panic").clear();
    assert_eq!(slots(), Some(0));
}

/// Without a guard in time there is none, and a request without slots has none.
#[test]
fn a_slot_that_was_released_cannot_be_held() {
    let (live, _) = live([Rule::in_flight("slots", 1)]);
    let kept: Arc<std::sync::Mutex<Vec<InFlightSlot>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let inner = tower::service_fn(move |request: Request<()>| {
        let slot = request.extensions().get::<InFlightSlot>().cloned();
        keep.lock().expect("no panic").extend(slot);
        core::future::ready(Ok::<_, Infallible>(Response::new(Body::default())))
    });
    let mut service = RateLimitLayer::new(Arc::clone(&live))
        .until_body_end()
        .layer(inner.clone());
    let response = send(&mut service, Request::new(()));
    let slot = kept.lock().expect("no panic").pop().expect("a slot");
    assert!(slot.hold().is_some());
    drop(response);
    assert!(slot.hold().is_none());
    assert_eq!(held(&live), 0);
    let mut unlimited = layer([rule("rate", "9/min")]).layer(inner);
    send(&mut unlimited, Request::new(()));
    assert!(kept.lock().expect("no panic").is_empty());
}

/// A guard holds the slots of nested layers, and the charge of the response is settled without it.
#[test]
fn a_guard_holds_the_slots_of_nested_layers() {
    let (outer, _) = live([Rule::in_flight("outer", 2)]);
    let slots = Rule::in_flight("inner", 2).into_any();
    let (inner, _) = live([slots, rule("rate", "1/min").into_any()]);
    let guards = Arc::default();
    let inner_layer = RateLimitLayer::new(Arc::clone(&inner)).charge_if(|_| false);
    let outer_layer = RateLimitLayer::new(Arc::clone(&outer));
    let mut service = outer_layer.layer(inner_layer.layer(keeping(&guards)));
    // The rate is refunded at once.
    for number in 1..=2 {
        assert_eq!(send(&mut service, Request::new(())).status(), 200);
        assert_eq!((held(&outer), held(&inner)), (number, number));
    }
    assert_eq!(send(&mut service, Request::new(())).status(), 429);
    guards.lock().expect("no panic").pop();
    assert_eq!((held(&outer), held(&inner)), (1, 1));
    guards.lock().expect("no panic").clear();
    assert_eq!((held(&outer), held(&inner)), (0, 0));
}

/// A request waits until the guard of another is dropped.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_guard_wakes_the_next_request() {
    let rules = paused([Rule::in_flight("slots", 1)]);
    let guards = Arc::default();
    let layer = RateLimitLayer::from(rules).wait(Duration::from_secs(60), 1_000);
    let service = layer.layer(keeping(&guards));
    drop(service.clone().oneshot(Request::new(())).await);
    let waiting = tokio::spawn(service.clone().oneshot(Request::new(())));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    let start = tokio::time::Instant::now();
    guards.lock().expect("no panic").clear();
    let response = waiting.await.expect("no panic").expect("a response");
    assert_eq!(
        (response.status().as_u16(), start.elapsed()),
        (200, Duration::ZERO)
    );
}

/// The slot of another node is free when the guard is dropped.
#[tokio::test(start_paused = true)]
async fn a_guard_holds_a_slot_of_a_store() {
    let store = memory().await;
    let slots = || Rule::in_flight("slots", 1).by(&HttpKey::peer());
    let [one, two] = [(); 2].map(|()| RateLimitLayer::new(over(&store, [slots()])));
    let guards = Arc::default();
    let response = one.layer(keeping(&guards)).oneshot(alice()).await;
    let response = response.expect("a response");
    assert_eq!(response.status(), 200);
    let Ok(_) = response.into_body().collect().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status = async || {
        let Ok(response) = two.layer(Hello).oneshot(alice()).await;
        response.status().as_u16()
    };
    assert_eq!(status().await, 429);
    guards.lock().expect("no panic").clear();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(status().await, 200);
}
