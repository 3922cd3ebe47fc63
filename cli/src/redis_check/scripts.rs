//! Decisions by the strict scripts, as limiters make them, and the latency of calls.

use alloc::sync::Arc;
use core::hash::BuildHasher;
use core::time::Duration;
use std::time::Instant;

use ringgate::redis::RedisStore;
use ringgate::shared::{OnError, SharedLimiter};
use serde::Serialize;

use super::finding::Finding;
use super::findings::{finding, of_error};
use crate::failure::Failure;

/// Limits that the probe does not reach. Their keys expire a cell after the window.
const CELLS: &str = "1000000/10s";
const LOG: &str = "100000/10s";

/// Keys in a cluster, enough to reach most of its nodes.
const KEYS_OF_A_CLUSTER: usize = 32;

/// Calls of one measurement, and its longest duration.
const ANSWERS: usize = 300;
const PATIENCE: Duration = Duration::from_secs(1);

/// The default `response_timeout` of a store.
const LIMIT: Duration = Duration::from_millis(100);

/// A probe of the scripts: limiters with unique keys.
pub(super) struct Scripts {
    store: Arc<RedisStore>,
    cells: SharedLimiter,
    log: SharedLimiter,
    keys: Vec<String>,
    timeout: Duration,
}

/// A random key.
pub(super) fn unique_key() -> String {
    let random = |number: u8| std::hash::RandomState::new().hash_one(number);
    format!("{:016x}{:016x}", random(0), random(1))
}

impl Scripts {
    /// # Errors
    ///
    /// When an address or the prefix is invalid.
    pub(super) fn new(
        urls: &[String],
        prefix: &str,
        timeout: Duration,
        cluster: bool,
    ) -> Result<Self, Failure> {
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        let (builder, keys) = match cluster {
            true => (RedisStore::cluster(&urls), KEYS_OF_A_CLUSTER),
            false => (RedisStore::builder(urls[0]), 1),
        };
        let builder = builder.prefix(prefix).connect_timeout(timeout);
        let builder = builder.response_timeout(timeout).call_timeout(timeout);
        let store = Arc::new(builder.build()?);
        let limiter = |quota: &str, log: bool| {
            let builder = SharedLimiter::builder("doctor", quota.parse()?);
            let builder = if log { builder.log() } else { builder };
            let limiter = builder.on_error(OnError::Deny).capacity(1).build(store.clone());
            limiter.map_err(|error| Failure::Config(error.error))
        };
        Ok(Self {
            cells: limiter(CELLS, false)?,
            log: limiter(LOG, true)?,
            keys: (0..keys).map(|_| unique_key()).collect(),
            timeout,
            store,
        })
    }

    /// Runs the scripts with each key, and measures their latency.
    pub(super) async fn judge(&self) -> (Finding, Vec<Figures>) {
        let figures = self.run().await;
        let removed = self.remove().await;
        match figures {
            Err(error) => {
                let found = format!("a decision failed: {error}");
                (of_error("scripts", found, &error), Vec::new())
            }
            Ok(figures) => {
                let left = removed.err().map_or_else(String::new, |error| {
                    format!("; test keys not removed, they expire within 12 s: {error}")
                });
                let found = format!("the scripts for cells and for logs work{left}");
                (finding("scripts", "work", found), figures)
            }
        }
    }

    async fn run(&self) -> Result<Vec<Figures>, String> {
        let ready = self.store.ready(self.timeout).await;
        ready.map_err(|error| error.to_string())?;
        let decide = async |limiter: &SharedLimiter, number: usize| {
            let decision = limiter.check(&self.keys[number % self.keys.len()]).await;
            decision.map_err(|denied| match denied.error() {
                Some(error) => error.to_string(),
                None => denied.to_string(),
            })
        };
        let mut figures = Vec::new();
        for (what, limiter) in [("strict, cells", &self.cells), ("strict, log", &self.log)] {
            // The first call on each server loads the script.
            for number in 0..self.keys.len() {
                let admitted = decide(limiter, number).await?;
                let refunded = limiter.refund(admitted).await;
                refunded.map_err(|error| error.to_string())?;
            }
            let call = async |number| decide(limiter, number).await.map(drop);
            figures.push(Figures::measure(what, call).await?);
        }
        Ok(figures)
    }

    async fn remove(&self) -> Result<(), String> {
        for key in &self.keys {
            for limiter in [&self.cells, &self.log] {
                limiter.reset(key).await.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

/// The latencies of one kind of call; the fields are those of the JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Figures {
    what: &'static str,
    answers: usize,
    p50_us: u128,
    p99_us: u128,
    max_us: u128,
    /// Answers that took longer than the default timeout.
    late: usize,
}

impl Figures {
    /// Makes one call after the other with its number; ends with the first error.
    pub(super) async fn measure<E>(
        what: &'static str,
        call: impl AsyncFn(usize) -> Result<(), E>,
    ) -> Result<Self, E> {
        let start = Instant::now();
        let mut took = Vec::with_capacity(ANSWERS);
        while took.is_empty() || took.len() < ANSWERS && start.elapsed() < PATIENCE {
            let sent = Instant::now();
            call(took.len()).await?;
            took.push(sent.elapsed());
        }
        Ok(Self::from(what, took))
    }

    /// The figures of one or more latencies.
    fn from(what: &'static str, mut took: Vec<Duration>) -> Self {
        took.sort_unstable();
        // The smallest latency that so many percent do not exceed.
        let part = |percent: usize| took[(took.len() * percent).div_ceil(100) - 1].as_micros();
        Self {
            what,
            answers: took.len(),
            p50_us: part(50),
            p99_us: part(99),
            max_us: part(100),
            late: took.iter().filter(|took| **took > LIMIT).count(),
        }
    }
}

/// The finding about the latency of one or more kinds of calls.
pub(super) fn latency(figures: &[Figures]) -> Finding {
    let millis = |micros: u128| format!("{}.{:02} ms", micros / 1000, micros % 1000 / 10);
    let parts = figures.iter().map(|of| {
        let (p50, p99) = (millis(of.p50_us), millis(of.p99_us));
        format!("{} p50 {p50}, p99 {p99}", of.what)
    });
    let found = parts.collect::<Vec<_>>().join("; ");
    let late: usize = figures.iter().map(|of| of.late).sum();
    let is_most = figures.iter().any(|of| 2 * of.late > of.answers);
    let (state, late) = match late {
        0 => ("low", String::new()),
        _ if is_most => ("most-late", format!("; {late} answers took longer")),
        _ => ("some-late", format!("; {late} answers took longer")),
    };
    finding("latency", state, found + &late)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis_check::finding::Level;

    fn figures(took: impl IntoIterator<Item = u64>) -> Figures {
        Figures::from("PING", took.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn percentiles_are_exact() {
        let all = |of: Figures| (of.p50_us, of.p99_us, of.max_us, of.answers);
        assert_eq!(all(figures((1..=100).rev())), (50_000, 99_000, 100_000, 100));
        assert_eq!(all(figures([7])), (7_000, 7_000, 7_000, 1));
        assert_eq!(all(figures([7, 8])), (7_000, 8_000, 8_000, 2));
    }

    #[test]
    fn late_answers_are_judged() {
        let level = |took: &[u64]| latency(&[figures([1]), figures(took.iter().copied())]).level;
        assert_eq!(level(&[1, 100]), Level::Ok);
        assert_eq!(level(&[1, 101]), Level::Warning);
        assert_eq!(level(&[1, 101, 101]), Level::Problem);
    }
}
