//! Four axum servers that share limits in one Redis: requests a second and latencies of each mode, and the worst window.
//!
//! `cargo bench -p ringgate-benches --bench servers` starts a `redis-server`, and four processes for each mode, which are
//! loaded over HTTP in alternating rounds. No figure makes this bench fail. `benches/README.md` has a run.

extern crate alloc;

use alloc::sync::Arc;
use core::error::Error;
use core::hash::Hash as _;
use core::hint::black_box;
use core::time::Duration;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use axum::Router;
use axum::routing::get;
use http::request::Parts;
use ringgate::http::RateLimitLayer;
use ringgate::redis::RedisStore;
use ringgate::rules::Mode;
use ringgate::shared::{OnError, SharedRules};
use ringgate::{Key, LiveRules, Quota, Rule, RuleSet};
use ringgate_benches::{Process, start_redis};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

const NODES: usize = 4;
const CONNECTIONS: usize = 4;
const WINDOW: Duration = Duration::from_secs(1);
const TERM: Duration = Duration::from_secs(1);
/// More than is ever requested.
const UNLIMITED: &str = "100000000/s";
const LIMIT: &str = "1000/s";
const MODES: [&str; 4] = [
    "no layer",
    "local rules",
    "shared rules, lease",
    "shared rules, strict",
];

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if has("--list") {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let [_, node, mode, quota, url] = &arguments[..]
        && node == "node"
    {
        return runtime.block_on(serve(mode, quota, url));
    }
    // `cargo bench` passes `--bench`. Without it, and with `--test`, the bench only shows that it runs.
    let (rounds, time) = if has("--bench") && !has("--test") {
        (5, Duration::from_secs(1))
    } else {
        (1, Duration::from_millis(50))
    };
    runtime.block_on(compare(rounds, time))
}

fn rule(quota: Quota) -> Rule<Parts> {
    let user = |request: &Parts| {
        request
            .headers
            .get("x-api-key")
            .map(|user| user.as_bytes().to_vec())
    };
    let key = Key::new("user", move |request: &Parts, key| user(request).hash(key)).shared_as(
        move |request, key| {
            key.part(user(request).unwrap_or_default());
        },
    );
    Rule::new("user", quota).cells(5).by(&key).on_error(OnError::Deny)
}

async fn shared(mode: Mode, quota: Quota, url: &str) -> Fallible<SharedRules<Parts>> {
    let store = RedisStore::builder(url)
        .supervision(|settings| {
            settings.call_timeout = Duration::from_secs(5);
            settings.response_timeout = Duration::from_secs(5);
        })
        .build()?;
    store.ready(Duration::from_secs(10)).await?;
    let rules = SharedRules::builder().term(TERM).rule(rule(quota).mode(mode));
    Ok(rules.build(Arc::new(store))?)
}

/// Serves until the bench ends, on a port that is printed.
async fn serve(mode: &str, quota: &str, url: &str) -> Fallible<()> {
    let quota: Quota = quota.parse()?;
    let permits = (quota.limit() / 100).max(10);
    let app = Router::new().route("/", get(|| async { "hello\n" }));
    let app = match MODES.iter().position(|&name| name == mode) {
        Some(0) => app,
        Some(1) => {
            let rules = RuleSet::builder().rule(rule(quota)).build()?;
            app.layer(RateLimitLayer::new(Arc::new(LiveRules::new(rules))))
        }
        Some(2) => {
            let rules = shared(Mode::Lease { permits }, quota, url).await?;
            app.layer(RateLimitLayer::new(Arc::new(rules)))
        }
        Some(3) => app.layer(RateLimitLayer::new(Arc::new(
            shared(Mode::Strict, quota, url).await?,
        ))),
        _ => return Err(format!("invalid mode: {mode:?}").into()),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    std::io::stdout().flush()?;
    // The standard input ends with the bench.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    axum::serve(listener, app).await?;
    Ok(())
}

/// Four servers, and their ports.
fn start(mode: &str, quota: &str, url: &str) -> Fallible<Vec<(Process, u16)>> {
    let start = |_| {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["node", mode, quota, url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let process = Process(child);
        let mut port = String::new();
        BufReader::new(output).read_line(&mut port)?;
        Ok((process, port.trim().parse()?))
    };
    (0..NODES).map(start).collect()
}

/// A request: when it was sent and answered, and its status.
type Call = (Instant, Instant, u16);

/// Sends requests over one connection, one after the other.
async fn send(port: u16, until: Instant) -> Fallible<Vec<Call>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let (mut calls, mut buffer) = (Vec::new(), Vec::new());
    while Instant::now() < until {
        let began = Instant::now();
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: bench\r\nx-api-key: alice\r\n\r\n")
            .await?;
        buffer.clear();
        let status = loop {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Err("a server has closed a connection".into());
            }
            let text = core::str::from_utf8(&buffer)?;
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.ok_or("no content-length")?.parse()? {
                break head.get(9..12).ok_or("no status")?.parse()?;
            }
        };
        calls.push((began, Instant::now(), status));
    }
    Ok(calls)
}

async fn load(nodes: &[(Process, u16)], time: Duration) -> Fallible<Vec<Call>> {
    let until = Instant::now() + time;
    let ports = nodes.iter().flat_map(|&(_, port)| [port; CONNECTIONS]);
    let tasks: Vec<_> = ports.map(|port| tokio::spawn(send(port, until))).collect();
    let mut calls = Vec::new();
    for task in tasks {
        calls.extend(task.await??);
    }
    Ok(calls)
}

/// The most admitted requests that were sent and answered within one window.
fn worst_window(calls: &[Call]) -> usize {
    let mut admitted: Vec<&Call> = calls.iter().filter(|call| call.2 == 200).collect();
    admitted.sort();
    let within = |first: usize| {
        let end = admitted[first].0 + WINDOW;
        let after = admitted[first..].iter().take_while(|call| call.0 < end);
        after.filter(|call| call.1 < end).count()
    };
    (0..admitted.len()).map(within).max().unwrap_or(0)
}

fn at<T: Copy + Ord>(values: &mut [T], percent: usize) -> T {
    values.sort_unstable();
    values[(values.len() - 1) * percent / 100]
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^52 requests")]
async fn compare(rounds: usize, time: Duration) -> Fallible<()> {
    let folder = tempfile::tempdir()?;
    let (mut server, url) = match start_redis(folder.path()) {
        Ok(started) => started,
        Err(error) => {
            println!("not run: redis-server cannot be started: {error}");
            return Ok(());
        }
    };
    let nodes: Vec<_> = MODES
        .iter()
        .map(|mode| start(mode, UNLIMITED, &url))
        .collect::<Fallible<_>>()?;
    let lease = shared(Mode::Lease { permits: 1_000_000 }, UNLIMITED.parse()?, &url).await?;
    // A server that was just started grants no lease before a term and a window have passed.
    let request = request()?;
    while lease.check_now(&request).is_none_or(|decision| decision.is_err()) {
        let _ = lease.check(&request).await;
    }
    println!(
        "{NODES} processes, {CONNECTIONS} connections to each; {rounds} alternating rounds of {time:?}; medians"
    );
    println!(
        "{:<24} {:>10} {:>6} {:>8} {:>8}",
        "", "requests/s", "ratio", "p50 µs", "p99 µs"
    );
    let mut figures = vec![(Vec::new(), Vec::new(), Vec::new()); MODES.len()];
    for nodes in &nodes {
        load(nodes, time).await?;
    }
    for _ in 0..rounds {
        for (nodes, figures) in nodes.iter().zip(&mut figures) {
            let calls = load(nodes, time).await?;
            if let Some(call) = calls.iter().find(|call| call.2 != 200) {
                return Err(format!("unexpected status: {}", call.2).into());
            }
            let mut micros: Vec<u128> = calls
                .iter()
                .map(|call| call.1.duration_since(call.0).as_micros())
                .collect();
            figures.0.push(calls.len());
            figures.1.push(at(&mut micros, 50));
            figures.2.push(at(&mut micros, 99));
        }
    }
    let without = at(&mut figures[0].0.clone(), 50) as f64;
    for (mode, (calls, middle, late)) in MODES.iter().zip(&mut figures) {
        let calls = at(calls, 50) as f64;
        let rate = calls / time.as_secs_f64();
        let (middle, late) = (at(middle, 50), at(late, 50));
        println!(
            "{mode:<24} {rate:>10.0} {:>6.2} {middle:>8} {late:>8}",
            calls / without
        );
    }
    drop(nodes);
    decisions(&lease, &request, rounds)?;
    drop(lease);
    println!();
    println!("the most admitted requests that began and ended within a window, of a limit of {LIMIT}");
    for mode in &MODES[2..] {
        for fault in [Fault::None, Fault::Frozen, Fault::Restarted] {
            let nodes = start(mode, LIMIT, &url)?;
            let (calls, ()) = tokio::try_join!(
                load(&nodes, 10 * time),
                fault.cause(&mut server, folder.path(), 2 * time)
            )?;
            let admitted = calls.iter().filter(|call| call.2 == 200).count();
            println!(
                "{mode:<24} {:<28} {:>5} of {:>5}  ({} requests, {admitted} admitted)",
                fault.name(),
                worst_window(&calls),
                fault.bound(LIMIT.parse::<Quota>()?.limit()),
                calls.len()
            );
        }
    }
    Ok(())
}

/// A failure of the store while the servers are loaded.
#[derive(Clone, Copy)]
enum Fault {
    None,
    /// The store does not answer for a while, and continues with its data.
    Frozen,
    /// The store is killed, and another one without data takes its place.
    Restarted,
}

impl Fault {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "Redis answers",
            Self::Frozen => "Redis is frozen for a while",
            Self::Restarted => "Redis restarts without data",
        }
    }

    /// The most permits of a window that the guide states for rules whose requests are denied while the store fails.
    const fn bound(self, limit: u64) -> u64 {
        match self {
            Self::None | Self::Frozen => limit,
            Self::Restarted => 2 * limit,
        }
    }

    /// Causes the failure after `delay`. It lasts as long.
    async fn cause(self, server: &mut Process, folder: &Path, delay: Duration) -> Fallible<()> {
        tokio::time::sleep(delay).await;
        match self {
            Self::None => {}
            Self::Frozen => {
                signal(&server.0, "-STOP")?;
                tokio::time::sleep(delay).await;
                signal(&server.0, "-CONT")?;
            }
            Self::Restarted => {
                server.0.kill()?;
                server.0.wait()?;
                tokio::time::sleep(delay).await;
                *server = start_redis(folder)?.0;
            }
        }
        Ok(())
    }
}

fn signal(process: &Child, signal: &str) -> Fallible<()> {
    let status = Command::new("kill")
        .arg(signal)
        .arg(process.id().to_string())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("kill {signal} has failed").into())
    }
}

fn request() -> Fallible<Parts> {
    let request = http::Request::builder().header("x-api-key", "alice").body(())?;
    Ok(request.into_parts().0)
}

/// One decision on the node: by local rules, and by a lease.
fn decisions(lease: &SharedRules<Parts>, request: &Parts, rounds: usize) -> Fallible<()> {
    let local = RuleSet::builder().rule(rule(UNLIMITED.parse()?)).build()?;
    let (mut by_local, mut by_lease, mut by_store) = (Vec::new(), Vec::new(), 0_u32);
    for _ in 0..40 * rounds {
        for _ in 0..1_000 {
            let began = Instant::now();
            let is_admitted = black_box(&local).check(black_box(request)).is_ok();
            by_local.push(began.elapsed().as_nanos());
            assert!(is_admitted, "the limit is never reached");
        }
        for _ in 0..1_000 {
            let began = Instant::now();
            let decision = black_box(lease).check_now(black_box(request));
            let nanos = began.elapsed().as_nanos();
            match decision {
                Some(Ok(_)) => by_lease.push(nanos),
                _ => by_store += 1,
            }
        }
    }
    println!();
    println!("one decision in a process, alternating; nanoseconds with two readings of the clock");
    println!("{:<24} {:>8} {:>8}", "", "p50 ns", "p99 ns");
    for (name, nanos) in [
        ("local rules", &mut by_local),
        ("shared rules, lease", &mut by_lease),
    ] {
        if nanos.is_empty() {
            return Err("no decision by a lease".into());
        }
        println!("{name:<24} {:>8} {:>8}", at(nanos, 50), at(nanos, 99));
    }
    println!("left to the store: {by_store}");
    Ok(())
}
