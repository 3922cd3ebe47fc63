//! The cost of a layer of tower, compared with another layer.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::hint::black_box;
use std::net::IpAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use ringgate::http::{HttpKey, PeerAddress, QuotaHeaders, RateLimitLayer};
use ringgate::rules::RuleAlgorithm;
use ringgate::{Quota, Rule, RuleSet};
use tower::{Layer, Service};
use tower_governor::governor::GovernorConfigBuilder;
use tower_governor::key_extractor::KeyExtractor;
use tower_governor::{GovernorError, GovernorLayer};

use crate::contestant::Side;
use crate::measure::{
    Done, Effort, Entrant, Row, Turn, compare, on_threads, one_and_all, print_head, repeat, together,
};

const FLOOR: &str = "floor: the service alone";
const OTHER: &str = "tower_governor";
const OTHER_HEADERS: &str = "tower_governor, headers";
const GCRA: &str = "ringgate, Gcra, no extension, no headers";
const BARE: &str = "ringgate, no extension, no headers";
const DECISION: &str = "ringgate, extension, no headers";
const ONLY_HEADERS: &str = "ringgate, no extension, headers";
const HEADERS: &str = "ringgate, extension and headers";

/// Clients, which send requests in turn.
const CLIENTS: u32 = 100;

/// Requests between two readings of the time.
const BATCH: u64 = 256;

thread_local! {
    /// The request after the service has returned, so that the next turn can use it again.
    static SERVED: Cell<Option<Request<()>>> = const { Cell::new(None) };
}

/// A service with an empty response.
#[derive(Clone)]
struct Empty;

impl Service<Request<()>> for Empty {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        SERVED.set(Some(request));
        ready(Ok(Response::new(Body::empty())))
    }
}

/// The key, in the extension that both layers read.
#[derive(Clone, Copy, Debug)]
struct Peer;

impl KeyExtractor for Peer {
    type Key = IpAddr;

    fn extract<T>(&self, request: &Request<T>) -> Result<IpAddr, GovernorError> {
        let peer = request.extensions().get::<PeerAddress>();
        peer.map(|peer| peer.0).ok_or(GovernorError::UnableToExtractKey)
    }
}

pub fn run(effort: &Effort) {
    print_head("As a layer, admitted, by the peer's address", FLOOR);
    let plenty = Quota::new(1_000_000_000, Duration::from_secs(60)).expect("a quota");
    let by = |algorithm| {
        let rule = Rule::new("client", plenty)
            .by(&HttpKey::peer())
            .algorithm(algorithm);
        RateLimitLayer::from(RuleSet::builder().rule(rule).build().expect("rules"))
    };
    let ours = || by(RuleAlgorithm::Counter);
    let mut config = GovernorConfigBuilder::default();
    config.period(Duration::from_nanos(1)).burst_size(u32::MAX);
    let mut config = config.key_extractor(Peer);
    let other = GovernorLayer::new(config.finish().expect("a quota")).layer(Empty);
    let other_headers = GovernorLayer::new(config.use_headers().finish().expect("a quota")).layer(Empty);
    let off = || ours().headers(QuotaHeaders::Off);
    let gcra = by(RuleAlgorithm::Gcra).headers(QuotaHeaders::Off);
    let gcra = gcra.decision_extension(false).layer(Empty);
    let bare = off().decision_extension(false).layer(Empty);
    let only_headers = ours().decision_extension(false).layer(Empty);
    let (decision, headers) = (off().layer(Empty), ours().layer(Empty));
    let entrants = [
        (GCRA, Side::Ours),
        (BARE, Side::Ours),
        (DECISION, Side::Ours),
        (ONLY_HEADERS, Side::Ours),
        (HEADERS, Side::Ours),
        (OTHER, Side::Rival),
        (OTHER_HEADERS, Side::Rival),
        (FLOOR, Side::Floor),
    ];
    let entrants = entrants.map(|(name, side)| Entrant { name, side });
    let mut rows: Vec<Row> = Vec::new();
    for threads in one_and_all() {
        rows.extend(compare(
            effort,
            "100 clients",
            threads,
            FLOOR,
            &entrants,
            |index| match index {
                0 => turn(effort, threads, &gcra),
                1 => turn(effort, threads, &bare),
                2 => turn(effort, threads, &decision),
                3 => turn(effort, threads, &only_headers),
                4 => turn(effort, threads, &headers),
                5 => turn(effort, threads, &other),
                6 => turn(effort, threads, &other_headers),
                _ => turn(effort, threads, &Empty),
            },
        ));
    }
    println!("\n### Beside tower_governor, the same requests\n");
    println!("| threads | | times tower_governor |");
    println!("|--:|---|--:|");
    let pairs = [
        (GCRA, OTHER),
        (BARE, OTHER),
        (DECISION, OTHER),
        (ONLY_HEADERS, OTHER_HEADERS),
        (HEADERS, OTHER_HEADERS),
    ];
    for (ours, others) in pairs {
        for row in rows.iter().filter(|row| row.name == ours) {
            let same = |other: &&Row| other.name == others && other.threads == row.threads;
            let other = rows.iter().find(same).expect("it is in the table");
            println!(
                "| {} | {ours}, to {others} | {:.2} |",
                row.threads,
                row.times(other)
            );
        }
    }
}

/// Runs this number of threads, each with a clone of the service.
fn turn<S>(effort: &Effort, threads: usize, service: &S) -> Turn
where
    S: Service<Request<()>, Response = Response<Body>, Error = Infallible> + Clone + Sync,
{
    let done: Vec<Done> = on_threads(threads, |thread| {
        let mut service = service.clone();
        let address = |number: u32| PeerAddress(IpAddr::from((0x0a00_0000 + number).to_be_bytes()));
        let mut number = thread as u32;
        SERVED.set(Some(request(address(0))));
        repeat(effort.least, || {
            let mut admitted = 0;
            for _ in 0..BATCH {
                let mut request = SERVED.take().expect("it was served");
                number = (number + 1) % CLIENTS;
                request.extensions_mut().insert(address(number));
                admitted += u64::from(ask(&mut service, black_box(request)));
            }
            (BATCH, admitted)
        })
    });
    together(&done)
}

fn request(peer: PeerAddress) -> Request<()> {
    let request = Request::get("/orders/17")
        .header("host", "example.com")
        .header("accept", "*/*");
    request.extension(peer).body(()).expect("a request")
}

fn ask<S>(service: &mut S, request: Request<()>) -> bool
where
    S: Service<Request<()>, Response = Response<Body>, Error = Infallible>,
{
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    let Poll::Ready(Ok(answer)) = pin!(service.call(request)).poll(&mut cx) else {
        unreachable!("nothing waits");
    };
    black_box(answer).status().is_success()
}
