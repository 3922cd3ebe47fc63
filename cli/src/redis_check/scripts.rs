//! Decisions by the strict scripts, as limiters make them.

use alloc::sync::Arc;
use core::hash::BuildHasher;
use core::time::Duration;

use ringgate::redis::RedisStore;
use ringgate::shared::{OnError, SharedLimiter};

use super::finding::{Finding, Level};
use super::latency::Figures;
use crate::failure::Failure;

const CHECK: &str = "scripts";

/// Limits that the probe does not reach. Their keys expire a cell after the window.
const CELLS: &str = "1000000/10s";
const LOG: &str = "100000/10s";

/// Keys in a cluster, enough to reach most of its nodes.
const KEYS_OF_A_CLUSTER: usize = 32;

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
        let builder = if cluster {
            RedisStore::cluster(&urls)
        } else {
            RedisStore::builder(urls[0])
        };
        let store = builder
            .prefix(prefix)
            .connect_timeout(timeout)
            .response_timeout(timeout)
            .call_timeout(timeout)
            .build()?;
        let store = Arc::new(store);
        let limiter = |quota: &str, log: bool| {
            let builder = SharedLimiter::builder("doctor", quota.parse()?);
            let builder = if log { builder.log() } else { builder };
            let builder = builder.on_error(OnError::Deny).capacity(1);
            builder
                .build(store.clone())
                .map_err(|error| Failure::Config(error.error))
        };
        let keys = if cluster { KEYS_OF_A_CLUSTER } else { 1 };
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
            Ok(figures) => {
                let mut finding = Finding::new(CHECK, Level::Ok, "the scripts for cells and for logs work")
                    .means("Strict decisions are atomic, at one reading of the server's TIME.");
                if let Err(error) = removed {
                    finding.found += &format!("; test keys not removed, they expire within 12 s: {error}");
                }
                (finding, figures)
            }
            Err(message) => (failed(&message), Vec::new()),
        }
    }

    async fn run(&self) -> Result<Vec<Figures>, String> {
        self.store
            .ready(self.timeout)
            .await
            .map_err(|error| error.to_string())?;
        let key = |number: usize| self.keys[number % self.keys.len()].as_str();
        let decide = async |limiter: &SharedLimiter, number: usize| match limiter.check(key(number)).await {
            Ok(passed) => Ok(passed),
            Err(refused) => Err(match refused.error() {
                Some(error) => error.to_string(),
                None => refused.to_string(),
            }),
        };
        let mut figures = Vec::new();
        for (what, limiter) in [("strict, cells", &self.cells), ("strict, log", &self.log)] {
            // The first call on each server loads the script.
            for number in 0..self.keys.len() {
                let passed = decide(limiter, number).await?;
                limiter.refund(passed).await.map_err(|error| error.to_string())?;
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

/// The finding about an error of a decision.
fn failed(message: &str) -> Finding {
    let advice = [
        ("NOPERM", "Type the command of the finding about rights."),
        ("NO PERMISSIONS", "Type the command of the finding about rights."),
        ("READONLY", "Use the address of the primary."),
        ("OOM", "CONFIG SET maxmemory with a larger size, or free memory."),
        ("MISCONF", "See the server's log for why it cannot write to disk."),
        (
            "NOREPLICAS",
            "Restore replicas, or CONFIG SET min-replicas-to-write 0.",
        ),
        ("CLUSTERDOWN", "See the finding about the cluster."),
        ("NON DETERMINISTIC", "Upgrade to Redis 5 or later."),
    ];
    // The client spells some codes in its own way.
    let upper = message.to_uppercase();
    let advice = advice.into_iter().find(|(code, _)| upper.contains(code));
    Finding::new(CHECK, Level::Problem, format!("a decision failed: {message}"))
        .means("Every call is an error, and OnError decides.")
        .advise(advice.map_or("See the server's log.", |(_, advice)| advice))
}

/// The finding where rights are missing: a script that stops in the middle would leave keys without an expiry.
pub(super) fn not_tried() -> Finding {
    Finding::new(CHECK, Level::Note, "not tried: rights are missing")
        .means("A script that stops in the middle could leave keys without an expiry.")
        .advise("Type the command of the finding about rights, and check again.")
}
