//! One limit over four nodes, kept by Redis, by leases and strictly; and what they do when it is gone.
//!
//! ```text
//! cargo run --release --features redis --example redis
//! cargo run --release --features redis --example redis -- redis://127.0.0.1:6379
//! ```
//!
//! Without an address it starts a `redis-server` of its own, kills it in the middle, and starts it again.

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

/// A server that ends with the example.
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
        // It may have ended by itself.
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

    // Each node has a store, and a connection, of its own, as on a machine of its own.
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
    println!("100 a minute for each user, on {NODES} nodes that ask {CALLS} times each:");
    ask_all(&nodes, "alice").await?;
    let (_, first) = &nodes[0];
    if let Err(refused) = first.check("alice").await {
        let wait = refused.retry_after().unwrap_or_default().as_secs_f64().ceil();
        let named: Vec<&str> = refused.violations().map(|look| look.rule()).collect();
        println!("  refused by {} for {wait} s", named.join(", "));
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
            "the server is gone; each node has a quarter of the limit, and knows what it has let through:"
        );
        ask_all(&nodes, "alice").await?;
        ask_all(&nodes, "bob").await?;
        let _server = Server::start(port)?;
        for (store, _) in &nodes {
            store.ready(Duration::from_secs(5)).await?;
        }
        println!("the server is back, with nothing of what it had:");
        ask_all(&nodes, "bob").await?;
    }
    Ok(())
}

/// A hot key: each node spends a hold, that the server knows of, and asks hardly ever.
async fn lease(url: &str) -> Fallible<()> {
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        let store = Arc::new(RedisStore::builder(url).prefix("example").build()?);
        store.ready(Duration::from_secs(5)).await?;
        let limiter = SharedLimiter::builder("api", "20000/s".parse()?)
            .lease(2000)
            // So short that a server that was just started grants holds soon: after a term and a window.
            .term(Duration::from_millis(400))
            .build(Arc::clone(&store) as Arc<dyn ringgate::shared::CounterStore>)?;
        nodes.push((store, Arc::new(limiter)));
    }
    println!("20,000 a second of one key, on {NODES} nodes that ask for 3 s as fast as they can:");
    let asking = nodes.iter().map(|(_, limiter)| {
        let limiter = Arc::clone(limiter);
        tokio::spawn(async move {
            let began = Instant::now();
            let (mut by_account, mut by_store) = (0_u64, 0_u64);
            while began.elapsed() < Duration::from_secs(3) {
                match limiter.check("key").await.map(|passed| passed.decided_by()) {
                    Ok(DecidedBy::Local) => by_account += 1,
                    Ok(_) => by_store += 1,
                    // Denied here, without a call: the turn of another task.
                    Err(_) => tokio::task::yield_now().await,
                }
            }
            (by_account, by_store)
        })
    });
    let (mut by_account, mut by_store) = (0, 0);
    for node in asking.collect::<Vec<_>>() {
        let node = node.await?;
        by_account += node.0;
        by_store += node.1;
    }
    let calls: u64 = nodes.iter().map(|(store, _)| store.health().calls).sum();
    println!("  {by_account} admitted by holds, {by_store} by the server, in {calls} calls");
    for (_, limiter) in &nodes {
        // Charges the uncharged permits, and gives the leases back.
        limiter.flush().await?;
    }
    Ok(())
}

/// All nodes ask at once.
async fn ask_all(nodes: &[(Arc<RedisStore>, Arc<SharedLimiter>)], user: &'static str) -> Fallible<()> {
    let asking = nodes.iter().map(|(_, limiter)| {
        let limiter = Arc::clone(limiter);
        tokio::spawn(async move {
            let (mut by_store, mut by_node) = (0, 0);
            for _ in 0..CALLS {
                match limiter.check(user).await.map(|passed| passed.decided_by()) {
                    Ok(DecidedBy::Store) => by_store += 1,
                    Ok(_) => by_node += 1,
                    Err(_) => {}
                }
            }
            (by_store, by_node)
        })
    });
    let (mut by_store, mut by_node) = (0, 0);
    for node in asking.collect::<Vec<_>>() {
        let node = node.await?;
        by_store += node.0;
        by_node += node.1;
    }
    let asked = NODES * CALLS;
    println!("  {user}: {asked} asked, {by_store} admitted by the server, {by_node} by the nodes");
    Ok(())
}
