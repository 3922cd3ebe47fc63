//! A node in a separate process, which is the test program itself, started by [`crate::nodes`]. It reports on its
//! standard output, and reads commands from its standard input.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{BufRead, Write};
use std::time::Instant;

use ringgate::redis::RedisStore;
use ringgate::shared::{DecidedBy, OnError, SharedLimiter};

use crate::server::{PATIENCE, ask, patient};

/// The environment variable with the configuration.
pub(crate) const ORDERS: &str = "RINGGATE_NODE";

/// The configuration of a node.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    /// The address of the store, perhaps through a proxy, and the direct address of the server.
    pub(crate) url: String,
    pub(crate) server: String,
    /// Whether the store has no timeout.
    pub(crate) patient: bool,
    pub(crate) quota: String,
    pub(crate) log: bool,
    /// The permits of a lease, or the pending permits in the mode `Sync`.
    pub(crate) permits: u64,
    pub(crate) sync: bool,
    pub(crate) term: Duration,
    pub(crate) period: Duration,
    pub(crate) callers: usize,
}

impl Orders {
    pub(crate) fn text(&self) -> String {
        let Self {
            url, server, quota, ..
        } = self;
        let patient = u8::from(self.patient);
        let (term, period) = (self.term.as_micros(), self.period.as_micros());
        let (log, sync) = (u8::from(self.log), u8::from(self.sync));
        let (permits, callers) = (self.permits, self.callers);
        format!("{url} {server} {patient} {quota} {log} {permits} {sync} {term} {period} {callers}")
    }

    fn read(text: &str) -> Self {
        let words: Vec<&str> = text.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        Self {
            url: words[0].to_owned(),
            server: words[1].to_owned(),
            patient: number(2) > 0,
            quota: words[3].to_owned(),
            log: number(4) > 0,
            permits: number(5),
            sync: number(6) > 0,
            term: Duration::from_micros(number(7)),
            period: Duration::from_micros(number(8)),
            callers: words[9].parse().expect("a number"),
        }
    }

    /// The limiter of each node.
    pub(crate) fn limiter(&self, store: Arc<RedisStore>) -> SharedLimiter {
        let builder = SharedLimiter::builder("nodes", self.quota.parse().expect("a quota"));
        let builder = builder
            .on_error(OnError::Deny)
            .term(self.term)
            .period(self.period);
        let builder = if self.log {
            builder.log()
        } else {
            builder.cells(20)
        };
        let builder = match self.sync {
            true => builder.sync(self.period, self.permits),
            false => builder.lease(self.permits),
        };
        builder.build(store).expect("a limiter")
    }
}

/// The most decisions of a caller between two readings of the server's clock.
const AT_ONCE: u64 = 8;

/// A caller that was not scheduled for this long counts as stopped, and then continues as fast as possible.
const STOPPED: Duration = Duration::from_millis(250);

/// A caller that makes requests until it is told to stop.
struct Caller {
    limiter: Arc<SharedLimiter>,
    runtime: tokio::runtime::Handle,
    clock: redis::Connection,
    stop: Arc<AtomicBool>,
    /// Whether the caller leaves most permits unspent until the process was stopped and continues.
    quiet: bool,
    /// The durations of immediate decisions, in nanoseconds.
    local: Vec<u64>,
}

/// The server's time, in microseconds.
pub(crate) fn time(client: &mut redis::Connection) -> u64 {
    let (seconds, micros): (u64, u64) = ask(client, "TIME");
    seconds * 1_000_000 + micros
}

/// The result of a request: whether it was admitted, whether the node decided, and whether at once.
fn decide(limiter: &SharedLimiter, runtime: &tokio::runtime::Handle) -> (bool, bool, bool) {
    let (answer, at_once) = match limiter.check_now("key") {
        Some(answer) => (answer, true),
        None => (runtime.block_on(limiter.check("key")), false),
    };
    match &answer {
        Ok(passed) => (true, passed.decided_by() == DecidedBy::Local, at_once),
        Err(refused) => (false, refused.decided_by() == DecidedBy::Local, at_once),
    }
}

impl Caller {
    fn run(mut self) -> Vec<u64> {
        while !self.stop.load(Ordering::Relaxed) {
            let most = if self.quiet { AT_ONCE / 2 } else { AT_ONCE };
            let before = time(&mut self.clock);
            let (mut admitted, mut here, mut refused) = (0_u64, 0_u64, false);
            while !refused && admitted < most {
                let began = Instant::now();
                let (is_admitted, is_local, at_once) = decide(&self.limiter, &self.runtime);
                if at_once {
                    let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    self.local.push(took);
                }
                admitted += u64::from(is_admitted);
                here += u64::from(is_admitted && is_local);
                refused = !is_admitted;
            }
            let after = time(&mut self.clock);
            let refused = u8::from(refused);
            say(&format!("call {before} {after} {admitted} {here} {refused}"));
            let began = Instant::now();
            if self.quiet {
                std::thread::sleep(Duration::from_millis(5));
            } else if refused > 0 {
                std::thread::sleep(Duration::from_micros(500));
            }
            self.quiet &= began.elapsed() < STOPPED;
        }
        self.local
    }
}

/// On a new line, whatever the test harness has written before.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("\n@{line}\n").as_bytes());
    let _ = out.flush();
}

fn quantiles(mut local: Vec<u64>) -> String {
    local.sort_unstable();
    let at = |thousandth: usize| local.get(local.len() * thousandth / 1000).copied().unwrap_or(0);
    let last = local.last().copied().unwrap_or(0);
    format!("local {} {} {} {last}", local.len(), at(500), at(999))
}

/// Not a test: the main function of a node.
#[test]
#[ignore = "other tests start it, in processes of its own"]
fn entry() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let orders = Orders::read(&orders);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let _inside = runtime.enter();
    let store = RedisStore::builder(&orders.url);
    let store = if orders.patient { patient(store) } else { store };
    let store = store.build().expect("a store");
    runtime.block_on(store.ready(PATIENCE)).expect("a connection");
    let limiter = Arc::new(orders.limiter(Arc::new(store)));
    let stop = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    say("ready");
    for line in std::io::stdin().lock().lines() {
        match line.expect("a line").as_str() {
            word @ ("go" | "quiet") => callers.extend((0..orders.callers).map(|_| {
                let client = redis::Client::open(orders.server.as_str()).expect("an address");
                let caller = Caller {
                    limiter: Arc::clone(&limiter),
                    runtime: runtime.handle().clone(),
                    clock: client.get_connection().expect("a connection"),
                    stop: Arc::clone(&stop),
                    quiet: word == "quiet",
                    local: Vec::new(),
                };
                std::thread::spawn(move || caller.run())
            })),
            "stop" => {
                stop.store(true, Ordering::Relaxed);
                let ended = callers.drain(..).map(|caller| caller.join().expect("no panic"));
                let local = ended.flatten().collect();
                say(&quantiles(local));
            }
            "flush" => {
                let flushed = runtime.block_on(limiter.rules().flush()).is_ok();
                let stats = limiter.rules().lease_stats();
                let (uncharged, held) = (stats.uncharged, stats.held);
                say(&format!("flushed {} {uncharged} {held}", u8::from(flushed)));
            }
            other => panic!("{other}"),
        }
    }
}
