//! Decisions by the strict scripts, as limiters make them.

use alloc::sync::Arc;
use core::hash::BuildHasher;
use core::time::Duration;

use ringgate::redis::{OnError, RedisStore, SharedLimiter};

use super::finding::{Finding, Level};
use super::latency::Figures;
use crate::failure::Failure;

const CHECK: &str = "scripts";

/// Limits of our own, which nobody reaches, and which expire a cell after their window.
const CELLS: &str = "1000000/10s";
const LOG: &str = "100000/10s";

/// How many keys are asked about in a cluster, to reach most of its nodes.
const KEYS_OF_A_CLUSTER: usize = 32;

/// Limiters over a store, with keys that nobody else has.
pub(super) struct Strict {
    store: Arc<RedisStore>,
    cells: SharedLimiter,
    log: SharedLimiter,
    keys: Vec<String>,
    within: Duration,
}

/// Random, by way of the standard library's own hasher.
pub(super) fn nobodys() -> String {
    let random = |number: u8| std::hash::RandomState::new().hash_one(number);
    format!("{:016x}{:016x}", random(0), random(1))
}

impl Strict {
    /// # Errors
    ///
    /// When the address or the prefix makes no sense.
    pub(super) fn new(
        urls: &[String],
        prefix: &str,
        within: Duration,
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
            .connect_timeout(within)
            .response_timeout(within)
            .call_timeout(within)
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
            keys: (0..keys).map(|_| nobodys()).collect(),
            within,
            store,
        })
    }

    /// Tries the scripts with each key, and takes their time: the figures, if they work.
    pub(super) async fn judge(&self) -> (Finding, Vec<Figures>) {
        let tried = self.run().await;
        let removed = self.remove().await;
        match tried {
            Ok(figures) => {
                let mut finding = Finding::new(
                    CHECK,
                    Level::Ok,
                    "EVALSHA, TIME in scripts and writes after it: decided by cells and by a log",
                    "Strict: a request is judged by all its rules in one script, at one reading of the server's TIME.",
                );
                if let Err(error) = removed {
                    finding.found += &format!("; not removed, and gone within 12 s: {error}");
                }
                (finding, figures)
            }
            Err(words) => (refused(&words), Vec::new()),
        }
    }

    async fn run(&self) -> Result<Vec<Figures>, String> {
        self.store
            .ready(self.within)
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
            // The first of each server brings it the script.
            for number in 0..self.keys.len() {
                let passed = decide(limiter, number).await?;
                limiter.refund(passed).await.map_err(|error| error.to_string())?;
            }
            let ask = async |number| decide(limiter, number).await.map(drop);
            figures.push(Figures::of(what, ask).await?);
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

/// What a refusal means, by the words in which it is put.
fn refused(words: &str) -> Finding {
    let advice = [
        ("NOPERM", "Give the user the rights that are missing."),
        ("NO PERMISSIONS", "Give the user the rights that are missing."),
        ("READONLY", "Give the address of the primary."),
        ("OOM", "Raise maxmemory, or free memory."),
        (
            "MISCONF",
            "See in the server's log why it cannot write to its disk.",
        ),
        (
            "NOREPLICAS",
            "Bring replicas back, or lower min-replicas-to-write.",
        ),
        ("CLUSTERDOWN", "See what is said of the cluster."),
        (
            "NON DETERMINISTIC",
            "Upgrade: Redis 5 is the oldest that the scripts run on.",
        ),
    ];
    // The client writes some of the codes in its own way.
    let words_to_find = words.to_uppercase();
    let advice = advice.into_iter().find(|(code, _)| words_to_find.contains(code));
    Finding::new(
        CHECK,
        Level::Problem,
        format!("a decision fails: {words}"),
        "Strict: every such call is an error, and OnError decides. The bound is that of a server that does not answer.",
    )
    .advise(advice.map_or("Look at the server's log.", |(_, advice)| advice))
}

/// For a user who may not run it all: a script that ends in the middle would leave what it has written.
pub(super) fn not_allowed() -> Finding {
    Finding::new(
        CHECK,
        Level::Note,
        "not tried, for want of rights",
        "A script that may not run one of its commands ends there, and what it has written before stays, perhaps without an \
         expiry.",
    )
    .advise("Give the user the rights that are missing, and look again.")
}
