//! Shares a limit between four nodes through Redis: by leases, strictly, and while the server is unavailable.
//!
//! ```text
//! cargo run --release --features redis --example redis
//! cargo run --release --features redis --example redis -- redis://127.0.0.1:6379
//! ```
//!
//! Without an address, the example starts a `redis-server`, kills it, and starts it again without its data.

extern crate alloc;

use alloc::sync::Arc;
use core::error::Error;
use core::num::NonZeroU32;
use core::time::Duration;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ringgate::redis::RedisStore;
use ringgate::shared::{DecidedBy, OnError, SharedLimiter};

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

const NODES: u32 = 4;
const CALLS: u32 = 250;

/// A server process, which is killed on drop.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(port: u16) -> Fallible<Self> {
        let child = Command::new("redis-server")
            .args(["--save", "", "--bind", "127.0.0.1", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("redis-server cannot be started: {error}"))?;
        Ok(Self { child, port })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::main]
async fn main() -> Fallible<()> {
    let given = std::env::args().nth(1);
    let server = match given {
        Some(_) => None,
        None => Some(Server::start(
            TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port(),
        )?),
    };
    let url = match (&given, &server) {
        (Some(url), _) => url.clone(),
        (None, Some(server)) => format!("redis://127.0.0.1:{}", server.port),
        (None, None) => return Err("no address".into()),
    };

    // Each node has a separate store and connection, as on a separate machine.
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        let store = Arc::new(RedisStore::builder(&url).prefix("example").build()?);
        store.ready(Duration::from_secs(5)).await?;
        let limiter = SharedLimiter::builder("login", "100/min".parse()?)
            .log()
            .on_error(OnError::Share)
            .nodes(NonZeroU32::new(NODES).ok_or("no nodes")?)
            .build(Arc::clone(&store) as Arc<dyn ringgate::shared::CounterStore>)?;
        limiter.reset("alice").await?;
        limiter.reset("bob").await?;
        nodes.push((store, Arc::new(limiter)));
    }

    lease(&url).await?;
    println!("strict, 100 a minute for each user; {NODES} nodes send {CALLS} requests each:");
    check_on_all(&nodes, "alice").await?;
    let (_, first) = &nodes[0];
    if let Err(denied) = first.check("alice").await {
        let wait = denied.retry_after().unwrap_or_default().as_secs_f64().ceil();
        let rules: Vec<String> = denied
            .violations()
            .map(|violation| violation.rule.to_string())
            .collect();
        println!("  denied by {}, retry after {wait} s", rules.join(", "));
    }
    if let Some(server) = server {
        let port = server.port;
        drop(server);
        for (store, _) in &nodes {
            while store.health().connected {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        println!(
            "the server is killed; each node admits a quarter of the limit, and counts its earlier admissions:"
        );
        check_on_all(&nodes, "alice").await?;
        check_on_all(&nodes, "bob").await?;
        let _server = Server::start(port)?;
        for (store, _) in &nodes {
            store.ready(Duration::from_secs(5)).await?;
        }
        println!("the server is started again, without its data:");
        check_on_all(&nodes, "bob").await?;
    }
    Ok(())
}

/// Limits a hot key by leases. Each node spends permits that the server has registered, and calls the server rarely.
async fn lease(url: &str) -> Fallible<()> {
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        let store = Arc::new(RedisStore::builder(url).prefix("example").build()?);
        store.ready(Duration::from_secs(5)).await?;
        let limiter = SharedLimiter::builder("api", "20000/s".parse()?)
            .lease(2000)
            // A new server grants leases after a term and a window. A short term shortens that time.
            .term(Duration::from_millis(400))
            .build(Arc::clone(&store) as Arc<dyn ringgate::shared::CounterStore>)?;
        nodes.push((store, Arc::new(limiter)));
    }
    println!("leases, 20,000 a second for one key; {NODES} nodes send requests for 3 s as fast as possible:");
    let tasks = nodes.iter().map(|(_, limiter)| {
        let limiter = Arc::clone(limiter);
        tokio::spawn(async move {
            let began = Instant::now();
            let (mut by_lease, mut by_store) = (0_u64, 0_u64);
            while began.elapsed() < Duration::from_secs(3) {
                match limiter.check("key").await.map(|admitted| admitted.decided_by()) {
                    Ok(DecidedBy::Local) => by_lease += 1,
                    Ok(_) => by_store += 1,
                    // The node denied the request without a call. Let another task run.
                    Err(_) => tokio::task::yield_now().await,
                }
            }
            (by_lease, by_store)
        })
    });
    let (mut by_lease, mut by_store) = (0, 0);
    for task in tasks.collect::<Vec<_>>() {
        let counts = task.await?;
        by_lease += counts.0;
        by_store += counts.1;
    }
    let calls: u64 = nodes.iter().map(|(store, _)| store.health().calls).sum();
    println!("  {by_lease} admitted by leases, {by_store} by the server; {calls} calls to the server");
    for (_, limiter) in &nodes {
        // Charges the uncharged permits and returns the leases.
        limiter.rules().flush().await?;
    }
    Ok(())
}

/// Sends requests of one user to all nodes concurrently.
async fn check_on_all(nodes: &[(Arc<RedisStore>, Arc<SharedLimiter>)], user: &'static str) -> Fallible<()> {
    let tasks = nodes.iter().map(|(_, limiter)| {
        let limiter = Arc::clone(limiter);
        tokio::spawn(async move {
            let (mut by_store, mut by_node) = (0, 0);
            for _ in 0..CALLS {
                match limiter.check(user).await.map(|admitted| admitted.decided_by()) {
                    Ok(DecidedBy::Store) => by_store += 1,
                    Ok(_) => by_node += 1,
                    Err(_) => {}
                }
            }
            (by_store, by_node)
        })
    });
    let (mut by_store, mut by_node) = (0, 0);
    for task in tasks.collect::<Vec<_>>() {
        let counts = task.await?;
        by_store += counts.0;
        by_node += counts.1;
    }
    let requests = NODES * CALLS;
    println!("  {user}: {requests} requests, {by_store} admitted by the server, {by_node} by the nodes");
    Ok(())
}
