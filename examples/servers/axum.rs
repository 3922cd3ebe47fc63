//! An axum server with rules from a file, which is reloaded when it changes, and with counters at `/metrics`.
//!
//! ```text
//! cargo run --release --package ringgate-servers --bin axum -- --once
//! cargo run --release --package ringgate-servers --bin axum -- examples/servers/axum.toml
//! curl -i -H 'X-Api-Key: alice' http://127.0.0.1:3000/
//! ```
//!
//! With `--once`, the server uses a copy of `axum.toml`, sends itself requests, changes the copy, sends more requests, and
//! exits.

extern crate alloc;

use alloc::sync::Arc;
use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::{env, fs};

use axum::Router;
use axum::routing::get;
use http::HeaderName;
use metrics_exporter_prometheus::PrometheusBuilder;
use ringgate::LiveRules;
use ringgate::http::{ClientIp, HttpKey, RateLimitLayer};
use ringgate::observe::{DenialEvents, Observer};
use ringgate::rules::{Extractors, OnMissingKey, RuleSetBuilder, RulesWatcher};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/axum.toml");

/// Returns whether to exit after a few requests, and the path of the rules file.
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
        // The watcher watches the directory of the file.
        path = folder.path().join("rules.toml");
        fs::copy(RULES, &path)?;
    }

    // The recorder is set first, because counters are registered with the current recorder.
    let recorder = PrometheusBuilder::new().build_recorder();
    let scrape = recorder.handle();
    metrics::set_global_recorder(recorder)?;

    // The keys that the file can name. Behind a proxy, add `.x_forwarded_for(["10.0.0.0/8"])?` to `ClientIp::peer()`.
    let user = HttpKey::header(HeaderName::from_static("x-api-key")).on_missing(OnMissingKey::Skip);
    let extractors = Extractors::new()
        .key(HttpKey::client(ClientIp::peer()))?
        .key(user)?;

    let rules = RuleSetBuilder::from_file(&path, &extractors)?;
    let live = Arc::new(LiveRules::new(rules.build()?));
    let (report, reloaded) = mpsc::channel();
    let _watcher = RulesWatcher::new(Arc::clone(&live), &path, extractors, move |result| {
        match &result {
            Ok(_) => println!("rules reloaded"),
            Err(error) => println!("rules unchanged: {error}"),
        }
        let _ = report.send(result.is_ok());
    })?;

    // At most ten denials a second become events of `tracing`.
    let events = DenialEvents::new("10/s".parse()?)?;
    let observer = Arc::new(Observer::new());
    let counted = Arc::clone(&live);
    let layer = RateLimitLayer::new(live)
        .skip_preflight()
        .on_rejected(move |rejection| events.emit(rejection));
    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .layer(layer)
        // No rule applies to a route that is added after the layer.
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
        println!("http://{address}/ with the rules of {}", path.display());
        return Ok(serving.await??);
    }
    // The watcher loads the file once at the start.
    wait(&reloaded)?;
    show(address, &path, &reloaded).await
}

/// Sends requests before and after a change of the rules.
async fn show(
    server: SocketAddr,
    path: &Path,
    reloaded: &mpsc::Receiver<bool>,
) -> Result<(), Box<dyn Error>> {
    println!("three requests a minute for each user:");
    for user in ["alice", "alice", "alice", "alice", "bob"] {
        print(user, &send(server, "/", user).await?);
    }
    println!("a complete rejection:\n{}", send(server, "/", "alice").await?);

    let looser = fs::read_to_string(path)?.replace("3/min", "4/min");
    fs::write(path, looser)?;
    wait(reloaded)?;
    println!("after the reload, four a minute; earlier requests still count:");
    for user in ["alice", "alice", "bob"] {
        print(user, &send(server, "/", user).await?);
    }

    println!("counters of the rules:");
    let metrics = send(server, "/metrics", "").await?;
    let mut lines: Vec<_> = (metrics.lines())
        .filter(|line| line.starts_with("ringgate_decisions_total") && !line.ends_with(" 0"))
        .collect();
    lines.sort_unstable();
    println!("{}", lines.join("\n"));
    Ok(())
}

fn wait(reloaded: &mpsc::Receiver<bool>) -> Result<(), Box<dyn Error>> {
    if reloaded.recv_timeout(Duration::from_secs(10))? {
        Ok(())
    } else {
        Err("invalid rules".into())
    }
}

/// Prints the status, the remaining quota and the retry time.
fn print(user: &str, response: &str) {
    let mut lines = response.lines();
    let status = lines.next().unwrap_or_default();
    let headers = lines.filter(|line| line.starts_with("ratelimit:") || line.starts_with("retry-after:"));
    println!("  {user:<6} {status}  {}", headers.collect::<Vec<_>>().join("  "));
}

/// Sends a request and returns the complete response.
async fn send(server: SocketAddr, path: &str, user: &str) -> Result<String, Box<dyn Error>> {
    let mut connection = TcpStream::connect(server).await?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nX-Api-Key: {user}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    connection.read_to_string(&mut response).await?;
    Ok(response)
}
