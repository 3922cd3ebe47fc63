//! Over connections: an axum server on the loopback, asked by hyper's client and by curl.

use core::net::{IpAddr, SocketAddr};
use std::process::Command;

use axum::Router;
use axum::extract::{ConnectInfo, MatchedPath};
use axum::routing::get;
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use ringgate::Missing;
use ringgate::http::{ClientIp, HttpKey};

use super::rejections::items;
use super::*;

/// A client of its own connections, from this address of the loopback.
#[derive(Clone)]
struct Browser {
    client: Client<HttpConnector, Full<Bytes>>,
    server: SocketAddr,
}

/// An answer that has come whole.
type Answer = Response<String>;

impl Browser {
    fn new(server: SocketAddr, address: &str) -> Self {
        let mut connector = HttpConnector::new();
        let address: IpAddr = address.parse().expect("an address");
        connector.set_local_address(Some(address));
        Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            server,
        }
    }

    async fn get(&self, path: &str) -> Answer {
        self.get_as(path, None).await
    }

    async fn get_as(&self, path: &str, user: Option<&str>) -> Answer {
        let mut request = Request::get(format!("http://{}{path}", self.server));
        if let Some(user) = user {
            request = request.header("x-api-key", user);
        }
        let request = request.body(Full::default()).expect("a request");
        let answer = self.client.request(request).await.expect("an answer");
        let (head, body) = answer.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let body = String::from_utf8(body.to_vec()).expect("text");
        Response::from_parts(head, body)
    }
}

/// Serves until the runtime ends.
async fn serve(app: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

fn by_client() -> Key<Parts> {
    let clients = ClientIp::peer().peer_from(|info: &ConnectInfo<SocketAddr>| Some(info.0.ip()));
    HttpKey::client(clients).key()
}

fn by_user() -> Key<Parts> {
    HttpKey::header(HeaderName::from_static("x-api-key"))
        .missing(Missing::Skip)
        .key()
}

#[tokio::test]
async fn rules_by_address_and_by_user() {
    let (live, clock) = live([
        rule("client", "4/min").by(&by_client()),
        rule("user", "2/min").by(&by_user()),
    ]);
    let server = serve(hello().layer(RateLimitLayer::new(Arc::clone(&live)))).await;
    let [one, other] = ["127.0.0.1", "127.0.0.2"].map(|address| Browser::new(server, address));

    let answer = one.get_as("/", Some("alice")).await;
    assert_eq!((answer.status().as_u16(), answer.body().as_str()), (200, "hello"));
    let policies = items(&answer, "ratelimit-policy");
    assert_eq!(policies.len(), 2);
    assert!(policies.iter().any(|(name, parameters)| {
        name == "user" && *parameters == [("q".to_owned(), 2), ("w".to_owned(), 60)]
    }));
    let states = items(&answer, "ratelimit");
    assert!(states.iter().any(|(name, parameters)| {
        name == "user" && *parameters == [("r".to_owned(), 1), ("t".to_owned(), 72)]
    }));

    // A user is one on all addresses.
    assert_eq!(other.get_as("/", Some("alice")).await.status(), 200);
    let refused = one.get_as("/", Some("alice")).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(header(&refused, "content-type"), Some("application/problem+json"));
    assert_eq!(header(&refused, "retry-after"), Some("72"));
    let body: serde_json::Value = serde_json::from_str(refused.body()).expect("JSON");
    assert_eq!(body["violated-policies"], serde_json::json!(["user"]));

    // What was refused has charged the address nothing: three of four are left.
    for _ in 0..3 {
        assert_eq!(one.get("/").await.status(), 200);
    }
    let refused = one.get("/").await;
    let body: serde_json::Value = serde_json::from_str(refused.body()).expect("JSON");
    assert_eq!(body["violated-policies"], serde_json::json!(["client"]));
    assert_eq!(other.get("/").await.status(), 200);

    // Other rules while it serves: one more, not six.
    let more = [
        rule("client", "5/min").by(&by_client()),
        rule("user", "2/min").by(&by_user()),
    ];
    live.store(&set(more)).expect("rules");
    assert_eq!(one.get("/").await.status(), 200);
    assert_eq!(one.get("/").await.status(), 429);
    clock.advance(Duration::from_secs(72));
    assert_eq!(one.get("/").await.status(), 200);
}

/// How many of the requests are admitted that so many connections send at the same time, each so many.
async fn admitted(server: SocketAddr, connections: usize, requests: usize) -> usize {
    let browsers = (0..connections).map(|_| {
        let browser = Browser::new(server, "127.0.0.1");
        tokio::spawn(async move {
            let mut admitted = 0;
            for _ in 0..requests {
                admitted += usize::from(browser.get("/").await.status() == 200);
            }
            admitted
        })
    });
    let mut all = 0;
    for browser in browsers.collect::<Vec<_>>() {
        all += browser.await.expect("no panic");
    }
    all
}

/// The fault of peers: 1500 passed for 5 a second, since each connection had a clone of the service.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_connections_share_one_limit() {
    let (live, clock) = live([rule("all", "100/10s")]);
    let server = serve(hello().layer(RateLimitLayer::new(live))).await;
    for _ in 0..3 {
        assert_eq!(admitted(server, 64, 10).await, 100);
        clock.advance(Duration::from_secs(12));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_connections_share_one_limit_by_the_real_clock() {
    let rules = set([rule("all", "100/1h").by(&by_client())])
        .build()
        .expect("rules");
    let server = serve(hello().layer(RateLimitLayer::from(rules))).await;
    assert_eq!(admitted(server, 64, 10).await, 100);
}

#[tokio::test]
async fn by_route_each_has_its_own() {
    let route = HttpKey::route(|path: &MatchedPath| path.as_str()).key();
    let (live, _) = live([rule("route", "1/min").by(&route)]);
    let app = Router::new()
        .route("/user/{id}", get(|| async { "user" }))
        .route("/", get(|| async { "hello" }))
        .route_layer(RateLimitLayer::new(live));
    let browser = Browser::new(serve(app).await, "127.0.0.1");
    let mut statuses = Vec::new();
    for path in ["/user/1", "/user/2", "/", "/none"] {
        statuses.push(browser.get(path).await.status().as_u16());
    }
    assert_eq!(statuses, [200, 429, 200, 404]);
}

#[tokio::test]
async fn bytes_are_settled_when_they_are_sent() {
    let bytes = ringgate::Cost::new("bytes", |_: &Parts| 10);
    let (live, _) = live([rule("volume", "1000/min").cost(&bytes)]);
    let app = Router::new()
        .route("/", get(|| async { "x".repeat(400) }))
        .layer(RateLimitLayer::new(Arc::clone(&live)).settle_body(&bytes));
    let browser = Browser::new(serve(app).await, "127.0.0.1");
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let answer = browser.get("/").await;
        statuses.push(answer.status().as_u16());
    }
    // 400, 800, 1200.
    assert_eq!(statuses, [200, 200, 200, 429]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_is_told_the_same() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("not run: there is no curl here");
        return;
    }
    let (live, _) = live([rule("client", "1/min").by(&by_client())]);
    let server = serve(hello().layer(RateLimitLayer::new(live))).await;
    let curl = || {
        let url = format!("http://{server}/");
        let output = Command::new("curl")
            .args(["-s", "-i", "--max-time", "10", &url])
            .output();
        String::from_utf8(output.expect("curl").stdout).expect("text")
    };
    let answer = curl();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("\r\nratelimit-policy: \"client\";q=1;w=60\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("\r\nratelimit: \"client\";r=0;t=72\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    let answer = curl();
    assert!(
        answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n"),
        "{answer}"
    );
    assert!(answer.contains("\r\nretry-after: 72\r\n"), "{answer}");
    assert!(answer.contains("\"violated-policies\":[\"client\"]"), "{answer}");
}
