//! A service whose primary changes while callers continue: three Sentinels, a primary and two replicas.

use alloc::sync::Arc;
use core::time::Duration;
use std::process::Child;

use ringgate::redis::{RedisStore, RedisStoreBuilder};
use ringgate::shared::{OnError, SharedLimiter};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::faults::comes_back;
use crate::load::{Load, most_by_calls, most_by_stamps};
use crate::server::{Server, ask, free_port, program, ready, spawn, until};

const WINDOW: Duration = Duration::from_millis(500);
const LIMIT: usize = 40;

/// A Sentinel, which ends with the test.
struct Sentinel {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Sentinel {
    fn start(primary: u16) -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().expect("a folder"));
        let config = format!(
            "bind 127.0.0.1\nport {port}\ndir {}\nlogfile /dev/null\nrequirepass watch\n\
             sentinel monitor shop 127.0.0.1 {primary} 2\nsentinel auth-pass shop general\n\
             sentinel down-after-milliseconds shop 1000\nsentinel failover-timeout shop 5000\n\
             sentinel sentinel-pass watch\n",
            folder.path().display()
        );
        let path = folder.path().join("config");
        std::fs::write(&path, config).expect("a file");
        let arguments = [path.display().to_string(), "--sentinel".to_owned()];
        Self {
            child: spawn(program().expect("it has run before"), &arguments),
            port,
            _folder: folder,
        }
    }

    fn url(&self) -> String {
        format!("redis://:watch@127.0.0.1:{}", self.port)
    }

    /// Asks for one number or text; `None` while it does not answer.
    fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> Option<T> {
        let client = redis::Client::open(self.url()).expect("an address");
        let mut connection = client.get_connection().ok()?;
        redis::cmd("SENTINEL").arg(words).query(&mut connection).ok()
    }

    /// The port of the primary.
    fn primary(&self) -> Option<u16> {
        let (_, port): (String, String) = self.ask(&["GET-MASTER-ADDR-BY-NAME", "shop"])?;
        port.parse().ok()
    }

    /// The numbers of replicas and of other Sentinels that it knows.
    fn knows(&self) -> Option<(usize, usize)> {
        let replicas: Vec<redis::Value> = self.ask(&["REPLICAS", "shop"])?;
        let others: Vec<redis::Value> = self.ask(&["SENTINELS", "shop"])?;
        Some((replicas.len(), others.len()))
    }
}

fn server(primary: Option<u16>) -> Option<Server> {
    let port = primary.unwrap_or(0).to_string();
    let mut arguments = vec!["--requirepass", "general", "--masterauth", "general"];
    arguments.extend(["--repl-diskless-sync-delay", "0"]);
    if primary.is_some() {
        arguments.extend(["--replicaof", "127.0.0.1", &port]);
    }
    Server::with(&arguments)
}

fn store(sentinels: &[&Sentinel]) -> RedisStoreBuilder {
    let urls: Vec<String> = sentinels.iter().map(|sentinel| sentinel.url()).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    RedisStore::sentinel(&urls, "shop").password("general")
}

/// Each failover may forget what was charged, up to the limit. Otherwise the limit holds, and no process is restarted.
#[tokio::test(flavor = "multi_thread")]
async fn failovers_under_load() {
    let Some(first) = server(None) else { return };
    let mut servers = vec![first];
    for _ in 0..2 {
        servers.push(server(Some(servers[0].port())).expect("one more server"));
    }
    let sentinels: Vec<Sentinel> = (0..3).map(|_| Sentinel::start(servers[0].port())).collect();
    until("the Sentinels know each other", || {
        sentinels.iter().all(|sentinel| sentinel.knows() == Some((2, 2)))
    })
    .await;
    let all: Vec<&Sentinel> = sentinels.iter().collect();
    let store = ready(store(&all)).await;
    let limiter = SharedLimiter::builder("failover", "40/500ms".parse().expect("a quota"));
    let limiter = limiter
        .on_error(OnError::Deny)
        .log()
        .build(store.clone())
        .expect("a limiter");
    let limiter = Arc::new(limiter);
    let load = Load::new(8, &limiter);
    comes_back(&limiter).await;

    // A failover on request: the old primary becomes a replica.
    let before = sentinels[0].primary().expect("a primary");
    until("a failover begins", || {
        sentinels[0].ask::<String>(&["FAILOVER", "shop"]).is_some()
    })
    .await;
    until("all Sentinels name another", || {
        sentinels
            .iter()
            .all(|sentinel| sentinel.primary().is_some_and(|port| port != before))
    })
    .await;
    until("the store has left the old primary", || {
        store.health().connections >= 2
    })
    .await;
    comes_back(&limiter).await;

    // The primary dies.
    let before = sentinels[0].primary().expect("a primary");
    let dead = servers
        .iter_mut()
        .find(|server| server.port() == before)
        .expect("one of ours");
    dead.kill();
    until("the loss is noticed", || !store.health().connected).await;
    comes_back(&limiter).await;
    let others = sentinels.iter().filter_map(Sentinel::primary);
    assert!(others.into_iter().any(|port| port != before));

    let calls = load.end().await;
    assert!(most_by_stamps(&calls, WINDOW) <= 3 * LIMIT as u64);
    assert!(most_by_calls(&calls, WINDOW) <= 3 * LIMIT);
    let decided = calls.iter().filter(|call| call.at.is_some()).count();
    assert!(decided > LIMIT, "{decided}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_addresses_are_explained() {
    let Some(primary) = server(None) else { return };
    let sentinel = Sentinel::start(primary.port());
    until("the Sentinel answers", || sentinel.primary().is_some()).await;
    let reason = async |builder: RedisStoreBuilder| {
        let store = builder.build().expect("a store");
        until("an attempt has failed", || store.health().last_error.is_some()).await;
        store.health().last_error.expect("an error").to_string()
    };
    // A Sentinel in the place of a server.
    let error = reason(crate::server::patient(RedisStore::builder(&sentinel.url()))).await;
    assert!(error.contains("RedisStore::sentinel"), "{error}");
    let patient = |builder: RedisStoreBuilder| crate::server::patient(builder);
    let builder = |service: &str, password: &str| {
        patient(RedisStore::sentinel(&[&sentinel.url()], service)).password(password)
    };
    let error = reason(builder("shoe", "general")).await;
    assert!(error.contains("shoe"), "{error}");
    let error = reason(builder("shop", "wrong")).await;
    assert!(error.contains("authentication failed"), "{error}");
    let error = reason(patient(RedisStore::sentinel(&[&sentinel.url()], "shop"))).await;
    assert!(error.contains("none was given"), "{error}");
    // An address where nothing listens, beside one that answers.
    let urls = ["redis://127.0.0.1:1", &sentinel.url()];
    ready(patient(RedisStore::sentinel(&urls, "shop")).password("general")).await;
}

/// The next command of a client: a line with the number of its words, and two lines for each word. `None` at the end.
async fn next_command(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut text = String::new();
    stream.read_line(&mut text).await.ok()?;
    let words: usize = text.trim_end().strip_prefix('*')?.parse().ok()?;
    for _ in 0..2 * words {
        stream.read_line(&mut text).await.ok()?;
    }
    Some(text)
}

/// A Sentinel that names a server, whatever the service, as soon as it may.
async fn sentinel_that_names(port: u16, may_answer: watch::Receiver<bool>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("an address"));
    let address = format!(
        "*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n",
        port.to_string().len()
    );
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (address, mut may_answer) = (address.clone(), may_answer.clone());
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                while let Some(command) = next_command(&mut stream).await {
                    let reply = if command.to_ascii_uppercase().contains("GET-MASTER-ADDR-BY-NAME") {
                        may_answer.wait_for(|&may| may).await.expect("the test runs");
                        &address
                    } else {
                        "+OK\r\n"
                    };
                    stream.write_all(reply.as_bytes()).await.expect("a connection");
                }
            });
        }
    });
    url
}

/// The server that a stale Sentinel names accepts connections and never answers. Each attempt learns of it first.
#[tokio::test(flavor = "multi_thread")]
async fn a_stale_sentinel_delays_no_other() {
    let Some(primary) = server(None) else { return };
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let silent_port = silent.local_addr().expect("an address").port();
    let (set_waiting, is_waiting) = watch::channel(false);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            open.push(stream);
            set_waiting.send_replace(true);
        }
    });
    let (_always, at_once) = watch::channel(true);
    let stale = sentinel_that_names(silent_port, at_once).await;
    // This one answers while the store waits for the silent server.
    let current = sentinel_that_names(primary.port(), is_waiting).await;
    let builder = RedisStore::sentinel(&[&stale, &current], "shop").password("general");
    let store = ready(crate::server::patient(builder)).await;
    assert_eq!(store.health().connections, 1);
    assert!(store.health().last_error.is_none(), "{:?}", store.health());
}

/// A Sentinel may name a replica during a failover. Each of two rights is enough to recognize it.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_recognized_with_either_right() {
    let Some(primary) = server(None) else { return };
    let replica = server(Some(primary.port())).expect("one more server");
    let url = format!("redis://:general@127.0.0.1:{}", replica.port());
    let mut client = redis::Client::open(url)
        .and_then(|client| client.get_connection())
        .expect("a connection");
    let (_always, at_once) = watch::channel(true);
    let sentinel = sentinel_that_names(replica.port(), at_once).await;
    let builder = || crate::server::patient(RedisStore::sentinel(&[&sentinel], "shop")).password("general");
    for rules in [["-info", "+role"], ["+info", "-role"]] {
        let _: () = ask(&mut client, &format!("ACL SETUSER default {}", rules.join(" ")));
        let store = builder().build().expect("a store");
        until("an attempt has failed", || store.health().last_error.is_some()).await;
        let error = store.health().last_error.expect("an error").to_string();
        assert!(error.contains("is a replica"), "{rules:?}: {error}");
        assert!(store.health().role_error.is_none(), "{rules:?}");
    }
    let _: () = ask(&mut client, "ACL SETUSER default -info");
    let store = ready(builder()).await;
    let error = store.health().role_error.expect("it was noted").to_string();
    assert!(error.contains("ROLE") && error.contains("+role"), "{error}");
    assert!(store.health().last_error.is_none());
}
