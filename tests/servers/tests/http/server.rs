//! An axum server on the loopback, with hyper's client.

use super::rejections::items;
use super::*;
use axum::extract::MatchedPath;
use axum::routing::get;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// Client with connections of its own, from one address of the loopback.
#[derive(Clone)]
struct Browser {
    client: Client<HttpConnector, Full<Bytes>>,
    server: SocketAddr,
}

/// Response with its whole body.
type TextResponse = Response<String>;

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

    async fn get(&self, path: &str) -> TextResponse {
        self.get_as(path, None).await
    }

    async fn get_as(&self, path: &str, user: Option<&str>) -> TextResponse {
        let mut request = Request::get(format!("http://{}{path}", self.server));
        if let Some(user) = user {
            request = request.header("x-api-key", user);
        }
        let request = request.body(Full::default()).expect("a request");
        let response = self.client.request(request).await.expect("a response");
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let body = String::from_utf8(body.to_vec()).expect("text");
        Response::from_parts(head, body)
    }
}

/// Serves until the runtime shuts down.
async fn serve(app: Router) -> SocketAddr {
    let (listener, address) = listen().await;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

fn by_client() -> Key<Parts> {
    HttpKey::client(ClientIp::peer())
}

fn by_user() -> Key<Parts> {
    HttpKey::header(HeaderName::from_static("x-api-key")).on_missing(OnMissingKey::Skip)
}

#[tokio::test]
async fn rules_by_address_and_by_user() {
    let (live, clock) = live([
        rule("client", "4/min").by(&by_client()),
        rule("user", "2/min").by(&by_user()),
    ]);
    let server = serve(hello().layer(RateLimitLayer::new(Arc::clone(&live)))).await;
    let [one, other] = ["127.0.0.1", "127.0.0.2"].map(|address| Browser::new(server, address));

    let response = one.get_as("/", Some("alice")).await;
    assert_eq!(
        (response.status().as_u16(), response.body().as_str()),
        (200, "hello")
    );
    let policies = items(&response, "ratelimit-policy");
    assert_eq!(policies.len(), 2);
    assert!(policies.iter().any(|(name, parameters)| {
        name == "user" && *parameters == [("q".to_owned(), 2), ("w".to_owned(), 60)]
    }));
    let states = items(&response, "ratelimit");
    assert!(states.iter().any(|(name, parameters)| {
        name == "user" && *parameters == [("r".to_owned(), 1), ("t".to_owned(), 62)]
    }));

    // A user has one budget over all addresses.
    assert_eq!(other.get_as("/", Some("alice")).await.status(), 200);
    let rejected = one.get_as("/", Some("alice")).await;
    assert_eq!(rejected.status(), 429);
    let found = header(&rejected, "content-type");
    assert_eq!(found, Some("application/problem+json"));
    assert_eq!(header(&rejected, "retry-after"), Some("62"));
    let body: serde_json::Value = serde_json::from_str(rejected.body()).expect("JSON");
    assert_eq!(body["violated-policies"], serde_json::json!(["user"]));

    // The rejected request charged nothing to the address: three of four remain.
    for _ in 0..3 {
        assert_eq!(one.get("/").await.status(), 200);
    }
    let rejected = one.get("/").await;
    let body: serde_json::Value = serde_json::from_str(rejected.body()).expect("JSON");
    assert_eq!(body["violated-policies"], serde_json::json!(["client"]));
    assert_eq!(other.get("/").await.status(), 200);

    // The reload adds one permit, not a fresh budget.
    let more = [
        rule("client", "5/min").by(&by_client()),
        rule("user", "2/min").by(&by_user()),
    ];
    live.store(&set(more)).expect("rules");
    assert_eq!(one.get("/").await.status(), 200);
    assert_eq!(one.get("/").await.status(), 429);
    clock.advance(Duration::from_secs(61));
    assert_eq!(one.get("/").await.status(), 200);
}

/// Counts the admitted requests of concurrent connections.
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

/// With state per clone of the service, other crates admitted 1500 for 5 a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_connections_share_one_limit() {
    let (live, clock) = live([rule("all", "100/10s")]);
    let server = serve(hello().layer(RateLimitLayer::new(live))).await;
    for _ in 0..3 {
        assert_eq!(admitted(server, 64, 10).await, 100);
        clock.advance(Duration::from_secs(12));
    }
}

#[tokio::test]
async fn each_route_has_its_own_budget() {
    let route = HttpKey::route(|path: &MatchedPath| path.as_str());
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
