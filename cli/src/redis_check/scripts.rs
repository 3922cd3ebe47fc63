//! Decisions by the strict scripts, as limiters make them, and the latency of calls.

use alloc::sync::Arc;
use core::hash::BuildHasher;
use core::time::Duration;
use std::time::Instant;

use ringgate::redis::RedisStore;
use ringgate::shared::{OnError, SharedLimiter};

use super::finding::{Finding, Level};
use super::findings::of_error;
use crate::failure::Failure;

/// Limits that the probe does not reach. Their keys expire a cell after the window.
const CELLS: &str = "1000000/10s";
const LOG: &str = "100000/10s";

/// Keys in a cluster, enough to reach most of its nodes.
const KEYS_OF_A_CLUSTER: usize = 32;

/// Decisions whose latency is measured, and the longest duration of the measurement.
const DECISIONS: usize = 300;
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
        let builder = builder.prefix(prefix).supervision(|settings| {
            settings.connect_timeout = timeout;
            settings.response_timeout = timeout;
            settings.call_timeout = timeout;
        });
        let store = Arc::new(builder.build()?);
        let limiter = |quota: &str, log: bool| {
            let builder = SharedLimiter::builder("doctor", quota.parse()?);
            let builder = if log { builder.log() } else { builder };
            let limiter = builder.on_error(OnError::Deny).capacity(1).build(store.clone());
            limiter.map_err(|error| Failure::from(error.error))
        };
        Ok(Self {
            cells: limiter(CELLS, false)?,
            log: limiter(LOG, true)?,
            keys: (0..keys).map(|_| unique_key()).collect(),
            timeout,
            store,
        })
    }

    /// Runs the scripts with each key, and measures the latency of decisions.
    pub(super) async fn judge(&self) -> Vec<Finding> {
        let latencies = self.run().await;
        let removed = self.remove().await;
        let latencies = match latencies {
            Err(error) => return vec![of_error("scripts", format!("a decision failed: {error}"), &error)],
            Ok(latencies) => latencies,
        };
        let left = removed.err().map_or_else(String::new, |error| {
            format!("; test keys not removed, they expire within 12 s: {error}")
        });
        let found = format!("the scripts for cells and for logs work{left}");
        let means = "Strict decisions are atomic, at one reading of the server's TIME.";
        vec![
            Finding::new("scripts", Level::Ok, found, means),
            latency(latencies),
        ]
    }

    async fn run(&self) -> Result<Vec<Duration>, String> {
        let ready = self.store.ready(self.timeout).await;
        ready.map_err(|error| error.to_string())?;
        let decide = async |limiter: &SharedLimiter, key: &String| {
            let decision = limiter.check(key).await;
            decision.map_err(|denied| match denied.error() {
                Some(error) => error.to_string(),
                None => denied.to_string(),
            })
        };
        // The first call on each server loads the script.
        for limiter in [&self.cells, &self.log] {
            for key in &self.keys {
                let admitted = decide(limiter, key).await?;
                let refunded = limiter.rules().refund(admitted).await;
                refunded.map_err(|error| error.to_string())?;
            }
        }
        let start = Instant::now();
        let mut latencies = Vec::with_capacity(DECISIONS);
        for key in self.keys.iter().cycle().take(DECISIONS) {
            let sent = Instant::now();
            decide(&self.cells, key).await?;
            latencies.push(sent.elapsed());
            if start.elapsed() > PATIENCE {
                break;
            }
        }
        Ok(latencies)
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

/// The finding about the latencies of one or more decisions.
fn latency(mut latencies: Vec<Duration>) -> Finding {
    latencies.sort_unstable();
    // The smallest latency that so many percent do not exceed.
    let part = |percent: usize| {
        let latency = latencies[(latencies.len() * percent).div_ceil(100) - 1];
        format!("{:.2} ms", latency.as_secs_f64() * 1000.0)
    };
    let found = format!("a decision takes {} (p50), {} (p99)", part(50), part(99));
    let late = latencies.iter().filter(|latency| **latency > LIMIT).count();
    let level = match late {
        0 => {
            let means = "All answers came within 100 ms, the default response_timeout.";
            return Finding::new("latency", Level::Ok, found, means);
        }
        _ if 2 * late > latencies.len() => Level::Problem,
        _ => Level::Warning,
    };
    let found = format!(
        "{found}; {late} of {} answers took longer than 100 ms",
        latencies.len()
    );
    let means = "With the default response_timeout, 100 ms, late calls are errors, and OnError decides.";
    Finding::new("latency", level, found, means).advice(
        "SLOWLOG GET and LATENCY DOCTOR show slow commands; or raise the timeouts in `RedisStoreBuilder::supervision`.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies: impl IntoIterator<Item = u64>) -> Finding {
        latency(latencies.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn percentiles_are_exact() {
        for (latencies, found) in [
            (
                (1..=100).rev().collect(),
                "a decision takes 50.00 ms (p50), 99.00 ms (p99)",
            ),
            (vec![7], "a decision takes 7.00 ms (p50), 7.00 ms (p99)"),
            (vec![7, 8], "a decision takes 7.00 ms (p50), 8.00 ms (p99)"),
        ] {
            assert_eq!(of(latencies).found, found);
        }
    }

    #[test]
    fn late_answers_are_judged() {
        assert_eq!(of([1, 100]).level, Level::Ok);
        assert_eq!(of([1, 101]).level, Level::Warning);
        assert_eq!(of([1, 101, 101]).level, Level::Problem);
        assert!(
            of([1, 101])
                .found
                .ends_with("; 1 of 2 answers took longer than 100 ms")
        );
    }
}
