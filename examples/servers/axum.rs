//! An axum server limited by the rules of a file, which can be edited while it serves, with its counters at `/metrics`.
//!
//! ```text
//! cargo run --release --package ringgate-servers --bin axum -- --once
//! cargo run --release --package ringgate-servers --bin axum -- examples/servers/axum.toml
//! curl -i -H 'X-Api-Key: alice' http://127.0.0.1:3000/
//! ```
//!
//! With `--once` it works on a copy of that file, sends itself requests, changes the copy, sends some more, and ends.

extern crate alloc;

use alloc::sync::Arc;
use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::{env, fs};

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use http::HeaderName;
use metrics_exporter_prometheus::PrometheusBuilder;
use ringgate::http::{ClientIp, HttpKey, RateLimitLayer};
use ringgate::{DenialEvents, Extractors, LiveRules, Missing, Observer, RuleSetBuilder, RulesWatcher};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/axum.toml");

/// Whether to end after a few requests, and the file.
fn arguments() -> Result<(bool, PathBuf), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => Ok((false, RULES.into())),
        (Some("--once"), None) => Ok((true, RULES.into())),
        (Some(path), None) if !path.starts_with('-') => Ok((false, path.into())),
        _ => Err("usage: axum [--once | FILE]".into()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (once, mut path) = arguments()?;
    let folder = tempfile::tempdir()?;
    if once {
        // Only what happens in the file's own directory is watched.
        path = folder.path().join("rules.toml");
        fs::copy(RULES, &path)?;
    }

    // The recorder first: counters are registered with the one that is there.
    let recorder = PrometheusBuilder::new().build_recorder();
    let scrape = recorder.handle();
    metrics::set_global_recorder(recorder)?;

    // What the names in the file mean. Behind a proxy: `ClientIp::peer().….x_forwarded_for(["10.0.0.0/8"])?`.
    let clients = ClientIp::peer().peer_from(|info: &ConnectInfo<SocketAddr>| Some(info.0.ip()));
    let user = HttpKey::header(HeaderName::from_static("x-api-key")).on_missing(Missing::Skip);
    let extractors = Extractors::new()
        .key(HttpKey::client(clients).key())?
        .key(user.key())?;

    let rules = RuleSetBuilder::from_file(&path, &extractors)?;
    let live = Arc::new(LiveRules::new(rules.build()?));
    let (report, reloaded) = mpsc::channel();
    let _watcher = RulesWatcher::new(Arc::clone(&live), &path, extractors, move |became| {
        match &became {
            Ok(_) => println!("new rules hold"),
            Err(error) => println!("the old rules still hold: {error}"),
        }
        let _ = report.send(became.is_ok());
    })?;

    // What is refused, at most ten times a second, for whoever has installed a subscriber.
    let events = DenialEvents::new("10/s".parse()?)?;
    let observer = Arc::new(Observer::new());
    let counted = Arc::clone(&live);
    let layer = RateLimitLayer::new(live)
        .skip_preflight()
        .on_rejected(move |refused| events.tell(refused));
    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .layer(layer)
        // After the layer, so that no rule is about it.
        .route(
            "/metrics",
            get(move || {
                observer.publish(&counted.load());
                core::future::ready(scrape.render())
            }),
        );

    let listener = TcpListener::bind(if once { "127.0.0.1:0" } else { "127.0.0.1:3000" }).await?;
    let address = listener.local_addr()?;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    let serving = tokio::spawn(async move { axum::serve(listener, service).await });
    if !once {
        println!("http://{address}/, by the rules of {}", path.display());
        return Ok(serving.await??);
    }
    // What the watcher has read at the start.
    wait(&reloaded)?;
    show(address, &path, &reloaded).await
}

/// Sends requests, and others after the rules have changed.
async fn show(
    server: SocketAddr,
    path: &Path,
    reloaded: &mpsc::Receiver<bool>,
) -> Result<(), Box<dyn Error>> {
    println!("three a minute for each user:");
    for user in ["alice", "alice", "alice", "alice", "bob"] {
        print(user, &ask(server, "/", user).await?);
    }
    println!("the refusal to the letter:\n{}", ask(server, "/", "alice").await?);

    let looser = fs::read_to_string(path)?.replace("3/min", "4/min");
    fs::write(path, looser)?;
    wait(reloaded)?;
    println!("four a minute from now on, and what was spent still counts:");
    for user in ["alice", "alice", "bob"] {
        print(user, &ask(server, "/", user).await?);
    }

    println!("what a scrape gets of it:");
    let metrics = ask(server, "/metrics", "").await?;
    let mut lines: Vec<_> = (metrics.lines())
        .filter(|line| line.starts_with("ringgate_decisions_total") && !line.ends_with(" 0"))
        .collect();
    lines.sort_unstable();
    println!("{}", lines.join("\n"));
    Ok(())
}

fn wait(reloaded: &mpsc::Receiver<bool>) -> Result<(), Box<dyn Error>> {
    let right = reloaded.recv_timeout(Duration::from_secs(10))?;
    if right {
        Ok(())
    } else {
        Err("the rules were wrong".into())
    }
}

/// The status, and what is said of quotas.
fn print(user: &str, answer: &str) {
    let mut lines = answer.lines();
    let status = lines.next().unwrap_or_default();
    let told = lines.filter(|line| line.starts_with("ratelimit:") || line.starts_with("retry-after:"));
    println!("  {user:<6} {status}  {}", told.collect::<Vec<_>>().join("  "));
}

/// Asks as a browser would, and answers with what came over the line.
async fn ask(server: SocketAddr, path: &str, user: &str) -> Result<String, Box<dyn Error>> {
    let mut connection = TcpStream::connect(server).await?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nX-Api-Key: {user}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    Ok(answer)
}
