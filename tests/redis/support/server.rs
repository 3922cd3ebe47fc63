//! Servers of the tests' own.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU16, Ordering};
use core::time::Duration;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use ringgate::redis::{RedisStore, RedisStoreBuilder};
use tempfile::TempDir;

use crate::skipped::skipped;

/// A server that ends with the test.
pub(crate) struct Server {
    child: Child,
    arguments: Vec<String>,
    port: u16,
    /// Where the nodes of a cluster talk.
    bus: u16,
    folder: TempDir,
}

/// How long a server may take to answer, or to stop.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The program of the server, if the machine has one.
pub(crate) fn program() -> Option<&'static str> {
    static PROGRAM: OnceLock<Option<&'static str>> = OnceLock::new();
    *PROGRAM.get_or_init(|| {
        let works = |program: &&str| {
            let version = Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .status();
            version.is_ok_and(|status| status.success())
        };
        ["redis-server", "valkey-server"].into_iter().find(works)
    })
}

/// A free port, below those that the system gives to clients.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let spread = std::process::id().wrapping_mul(97).wrapping_add(u32::from(next)) % 20_000;
        let port = 10_000 + u16::try_from(spread).expect("less than 20,000");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Server {
    /// A server that keeps nothing on disk. Without such a program, reports that the test is skipped and returns `None`.
    pub(crate) fn start() -> Option<Self> {
        Self::with(&[])
    }

    /// Starts a server with further arguments.
    pub(crate) fn with(arguments: &[&str]) -> Option<Self> {
        Self::start_as(arguments, false)
    }

    /// One that asks for a password.
    pub(crate) fn guarded(password: &str) -> Option<Self> {
        Self::with(&["--requirepass", password])
    }

    /// One that can be a node of a cluster.
    pub(crate) fn node() -> Option<Self> {
        Self::start_as(
            &["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"],
            true,
        )
    }

    fn start_as(arguments: &[&str], node: bool) -> Option<Self> {
        let Some(program) = program() else {
            skipped("redis-server");
            return None;
        };
        // Another program may take the port before the server does.
        for _ in 0..5 {
            let (port, folder) = (free_port(), tempfile::tempdir().expect("a folder"));
            let mut own: Vec<String> = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--dir"]
                .map(String::from)
                .to_vec();
            own.push(folder.path().display().to_string());
            own.extend(["--port".into(), port.to_string(), "--unixsocket".into()]);
            own.push(folder.path().join("socket").display().to_string());
            own.extend(arguments.iter().map(|&argument| argument.to_owned()));
            let bus = free_port();
            if node {
                own.extend(["--cluster-port".into(), bus.to_string()]);
            }
            let child = spawn(program, &own);
            let mut server = Self {
                child,
                arguments: own,
                port,
                bus,
                folder,
            };
            if server.answers() {
                return Some(server);
            }
        }
        panic!("no server can be started");
    }

    /// Whether it answers, in the end.
    fn answers(&mut self) -> bool {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            // Without the socket, another server may have taken the port, and answer in place of this one.
            if self.folder.path().join("socket").exists()
                && let Ok(client) = redis::Client::open(self.url())
                && let Ok(mut connection) = client.get_connection()
                && match redis::cmd("PING").query::<String>(&mut connection) {
                    Ok(_) => true,
                    // It is there, and asks for a password.
                    Err(error) => error.code() == Some("NOAUTH"),
                }
            {
                return true;
            }
            if !matches!(self.child.try_wait(), Ok(None)) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn bus(&self) -> u16 {
        self.bus
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn socket_url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// A connection of the test's own.
    pub(crate) fn client(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).expect("an address");
        client.get_connection().expect("the server answers")
    }

    /// A store with patience: for tests that are not about time, on machines that are busy.
    pub(crate) async fn store(&self) -> Arc<RedisStore> {
        ready(patient(RedisStore::builder(&self.url()))).await
    }

    /// Sends a command over a connection of its own, and returns the answer.
    pub(crate) fn ask<T: redis::FromRedisValue>(&self, command: &str) -> T {
        ask(&mut self.client(), command)
    }

    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts again at the same port, with nothing in it.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let _ = std::fs::remove_file(self.socket());
        self.child = spawn(program().expect("it has run before"), &self.arguments);
        assert!(self.answers(), "the server does not come back");
    }

    /// Starts again with more arguments, and does not wait until it answers.
    pub(crate) fn restart_slowly(&mut self, arguments: &[&str]) {
        self.kill();
        let mut all = self.arguments.clone();
        all.extend(arguments.iter().map(|&argument| argument.to_owned()));
        self.child = spawn(program().expect("it has run before"), &all);
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .arg(signal)
            .arg(self.child.id().to_string())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn spawn(program: &str, arguments: &[String]) -> Child {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server can be started")
}

/// Sends a command, whose words are separated by spaces, and returns the answer.
pub(crate) fn ask<T: redis::FromRedisValue>(client: &mut redis::Connection, command: &str) -> T {
    let mut words = redis::Cmd::new();
    words.arg(command.split(' ').collect::<Vec<_>>());
    words.query(client).expect(command)
}

/// With times that no busy machine exceeds.
pub(crate) fn patient(builder: RedisStoreBuilder) -> RedisStoreBuilder {
    patient_calls(builder).supervision(|settings| settings.connect_timeout = PATIENCE)
}

/// With calls that no busy machine exceeds.
pub(crate) fn patient_calls(builder: RedisStoreBuilder) -> RedisStoreBuilder {
    builder.supervision(|settings| {
        settings.response_timeout = PATIENCE;
        settings.call_timeout = PATIENCE;
    })
}

/// With a breaker that never opens by itself, and this time between two connections.
pub(crate) fn without_breaker(builder: RedisStoreBuilder, reconnect_after: Duration) -> RedisStoreBuilder {
    builder.supervision(|settings| {
        settings.breaker.percent = 100;
        settings.breaker.calls = 1_000_000;
        settings.reconnect_after = reconnect_after;
    })
}

/// Built and connected.
pub(crate) async fn ready(builder: RedisStoreBuilder) -> Arc<RedisStore> {
    let store = builder.build().expect("a store");
    store.ready(PATIENCE).await.expect("a connection");
    Arc::new(store)
}

/// A store at an address, whether a server listens there or not.
pub(crate) fn ready_or_not(url: &str) -> Arc<RedisStore> {
    Arc::new(RedisStore::builder(url).build().expect("a store"))
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Makes a call again and again, until it has the result that the test waits for. This may take several times as long as one call.
pub(crate) async fn repeated<T>(what: &str, mut call: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(result) = call().await {
            return result;
        }
        assert!(
            began.elapsed() < 3 * PATIENCE,
            "not within {:?}: {what}",
            3 * PATIENCE
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
