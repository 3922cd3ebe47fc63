//! The cost of a limit over many machines, compared with bare calls of its script. Also the cost of decisions that a node
//! makes from its leases, compared with the limiters of one process.
//!
//! `cargo bench -p ringgate-benches --bench redis` starts a `redis-server` of its own on a Unix socket, and prints a table of
//! ratios, measured in one process in alternating rounds. No figure makes this bench fail. `benches/README.md` has a run.

extern crate alloc;

use alloc::sync::Arc;
use core::error::Error;
use core::time::Duration;
use std::time::Instant;

use redis::aio::MultiplexedConnection;
use ringgate::Quota;
use ringgate::redis::RedisStore;
use ringgate::shared::{OnError, SharedLimiter};
use ringgate_benches::start_redis;

#[path = "redis/node.rs"]
mod node;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The script that decides, as the limiter sends it.
const SCRIPT: &str = concat!(
    include_str!("../src/redis/script/prelude.lua"),
    include_str!("../src/redis/script/log.lua"),
    include_str!("../src/redis/script/cells.lua"),
    include_str!("../src/redis/script/gcra.lua"),
    include_str!("../src/redis/script/leases.lua"),
    include_str!("../src/redis/script/counters.lua"),
    include_str!("../src/redis/script/decide.lua"),
);

/// One way to make a decision.
#[derive(Clone)]
enum Route {
    /// A script that does nothing.
    Nothing(MultiplexedConnection, String),
    /// The script that decides, by the bare client.
    Bare(MultiplexedConnection, String, &'static [&'static str]),
    /// The limiter.
    Strict(Arc<SharedLimiter>),
}

// The arguments of the script for a counter of cells and for a log: two keys, then the words of the request.
const CELLS: [&str; 14] = [
    "{bare}:cells",
    "{bare}:cells:leases",
    "charge",
    "cells",
    "1000000000",
    "12000000",
    "5",
    "1",
    "0",
    "0",
    "0",
    "0",
    "0",
    "0",
];
const LOG: [&str; 14] = [
    "{bare}:log",
    "{bare}:log:leases",
    "charge",
    "log",
    "1000",
    "60000000",
    "0",
    "1",
    "0",
    "0",
    "0",
    "0",
    "0",
    "0",
];

impl Route {
    async fn decide(&mut self) -> Fallible<()> {
        match self {
            Self::Nothing(connection, digest) => {
                redis::cmd("EVALSHA")
                    .arg(&*digest)
                    .arg(0)
                    .exec_async(connection)
                    .await?;
            }
            Self::Bare(connection, digest, arguments) => {
                let mut call = redis::cmd("EVALSHA");
                call.arg(&*digest).arg(2).arg(*arguments);
                let reply: Vec<i64> = call.query_async(connection).await?;
                if reply.len() != 7 {
                    return Err("the reply has not the form that the limiter expects".into());
                }
            }
            Self::Strict(limiter) => {
                let error = match limiter.check("strict").await {
                    Ok(admitted) => admitted.error().cloned(),
                    Err(denied) => denied.error().cloned(),
                };
                if let Some(error) = error {
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Runs `tasks` tasks for at least `least`. Returns the calls per second, and the p50 and p99 of a call in microseconds.
    async fn run(&self, tasks: usize, least: Duration) -> Fallible<(f64, f64, f64)> {
        let start = Instant::now();
        let calls = (0..tasks).map(|_| {
            let mut route = self.clone();
            tokio::spawn(async move {
                let mut times = Vec::new();
                while start.elapsed() < least {
                    let call_start = Instant::now();
                    route.decide().await?;
                    times.push(call_start.elapsed().as_secs_f64() * 1e6);
                }
                Fallible::Ok(times)
            })
        });
        let mut times = Vec::new();
        for call in calls.collect::<Vec<_>>() {
            times.extend(call.await??);
        }
        let elapsed = start.elapsed().as_secs_f64();
        times.sort_by(f64::total_cmp);
        let at = |part: usize| times[(times.len() - 1) * part / 100];
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52 calls")]
        Ok((times.len() as f64 / elapsed, at(50), at(99)))
    }
}

fn main() -> Fallible<()> {
    let has = |flag: &str| std::env::args().any(|arg| arg == flag);
    if has("--list") {
        return Ok(());
    }
    // `cargo bench` passes `--bench`. Without it, or with `--test`, one round shows that the cases run.
    let (rounds, least) = if has("--bench") && !has("--test") {
        (9, Duration::from_millis(400))
    } else {
        (1, Duration::from_millis(1))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(compare(rounds, least))
}

async fn compare(rounds: usize, least: Duration) -> Fallible<()> {
    let folder = tempfile::tempdir()?;
    let (_server, url) = match start_redis(folder.path()) {
        Ok(started) => started,
        Err(error) => {
            println!("not run: redis-server cannot be started: {error}");
            return Ok(());
        }
    };
    let store = Arc::new(
        RedisStore::builder(&url)
            .supervision(|settings| {
                settings.call_timeout = Duration::from_secs(5);
                settings.response_timeout = Duration::from_secs(5);
            })
            .build()?,
    );
    store.ready(Duration::from_secs(10)).await?;
    let connection = redis::Client::open(url.as_str())?
        .get_multiplexed_async_connection()
        .await?;
    let load = async |text: &str| -> Fallible<String> {
        let mut connection = connection.clone();
        Ok(redis::cmd("SCRIPT")
            .arg("LOAD")
            .arg(text)
            .query_async(&mut connection)
            .await?)
    };
    let (nothing, script) = (load("return 1").await?, load(SCRIPT).await?);
    let limiter = |name: &'static str, quota: &str| -> Fallible<_> {
        let quota: Quota = quota.parse()?;
        Ok(SharedLimiter::builder(name, quota).on_error(OnError::Deny))
    };
    let cells = limiter("cells", "1000000000/min")?
        .cells(5)
        .build(store.clone())?;
    let log = limiter("log", "1000/min")?.log().build(store.clone())?;
    let routes = [
        (
            "a script that does nothing",
            Route::Nothing(connection.clone(), nothing),
        ),
        (
            "cells: bare script",
            Route::Bare(connection.clone(), script.clone(), &CELLS),
        ),
        ("cells: SharedLimiter", Route::Strict(Arc::new(cells))),
        (
            "log, full: bare script",
            Route::Bare(connection.clone(), script, &LOG),
        ),
        ("log, full: SharedLimiter", Route::Strict(Arc::new(log))),
    ];
    println!("Redis on a Unix socket, {rounds} alternating rounds of {least:?} each; medians");
    println!("ratio: of calls a second, to the bare script");
    println!(
        "{:<28} {:>5} {:>10} {:>6} {:>9} {:>9}",
        "", "tasks", "calls/s", "ratio", "p50 µs", "p99 µs"
    );
    for tasks in [1, 16, 256] {
        let mut figures = vec![Vec::new(); routes.len()];
        for _ in 0..rounds {
            for ((_, route), figures) in routes.iter().zip(&mut figures) {
                figures.push(route.run(tasks, least).await?);
            }
        }
        let mut bare = 0.0;
        for ((name, route), figures) in routes.iter().zip(figures) {
            let median = |pick: fn(&(f64, f64, f64)) -> f64| {
                let mut picked: Vec<f64> = figures.iter().map(pick).collect();
                picked.sort_by(f64::total_cmp);
                picked[picked.len() / 2]
            };
            let (rate, middle, late) = (median(|it| it.0), median(|it| it.1), median(|it| it.2));
            let ratio = match route {
                Route::Strict(_) => format!("{:.2}", rate / bare),
                _ => String::new(),
            };
            bare = rate;
            println!("{name:<28} {tasks:>5} {rate:>10.0} {ratio:>6} {middle:>9.0} {late:>9.0}");
        }
    }
    node::compare(&store, if rounds == 1 { 1 } else { 301 }).await
}
