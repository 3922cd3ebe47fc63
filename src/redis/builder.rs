use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::connection::Target;
use super::settings::Settings;
use super::store::RedisStore;
use super::supervisor::Supervisor;
use crate::error::ConfigError;

/// Where a [`RedisStore`] is and how it goes about it, until it is built.
///
/// Times are 1 ms to 60 s.
#[must_use = "a builder does nothing until it is built"]
pub struct RedisStoreBuilder {
    urls: Vec<String>,
    cluster: bool,
    settings: Settings,
}

impl RedisStore {
    /// Begins a store in one server, at an address such as `redis://user:password@host:6379/0` or
    /// `unix:///run/redis.sock`.
    pub fn builder(url: &str) -> RedisStoreBuilder {
        RedisStoreBuilder::server(url)
    }

    /// Begins a store in a cluster, by the addresses of some of its nodes.
    #[cfg(feature = "redis-cluster")]
    pub fn cluster(urls: &[&str]) -> RedisStoreBuilder {
        RedisStoreBuilder::cluster(urls)
    }
}

impl RedisStoreBuilder {
    fn server(url: &str) -> Self {
        Self {
            urls: alloc::vec![url.to_owned()],
            cluster: false,
            settings: Settings::default(),
        }
    }

    #[cfg(feature = "redis-cluster")]
    fn cluster(urls: &[&str]) -> Self {
        Self {
            urls: urls.iter().map(|&url| url.to_owned()).collect(),
            cluster: true,
            settings: Settings::default(),
        }
    }

    /// What all names in the server begin with, `ringgate` when nothing is said: without braces.
    pub fn prefix(mut self, prefix: impl Into<Box<str>>) -> Self {
        self.settings.prefix = prefix.into();
        self
    }

    /// How long making a connection may take, 200 ms when nothing is said.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// How long an answer may take, 100 ms when nothing is said.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.settings.response_timeout = timeout;
        self
    }

    /// How long a call may take in all, 150 ms when nothing is said: no less than an answer may. Waiting to be
    /// written is included, and a second attempt, where nothing was executed at the first.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.settings.call_timeout = timeout;
        self
    }

    /// After how many failures in a row a connection is given up, 3 when nothing is said.
    pub fn failures(mut self, failures: u64) -> Self {
        self.settings.failures = failures;
        self
    }

    /// How long after a connection has ended, or could not be made, another is made: 100 ms when nothing is said,
    /// doubled while that fails, up to a second or this time if it is longer; of all this half to one and a half, at random.
    pub fn reconnect_after(mut self, wait: Duration) -> Self {
        self.settings.reconnect_after = wait;
        self
    }

    /// How long nobody may have heard from the server before it is asked whether it is there, 1 s when nothing is
    /// said. So a connection that nobody uses is known to be lost before somebody needs it.
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.settings.heartbeat = every;
        self
    }

    /// How many calls may be on their way, 10,000 when nothing is said, 1,000,000 at the most. One more is an error
    /// at once.
    pub fn max_in_flight(mut self, calls: usize) -> Self {
        self.settings.max_in_flight = calls;
        self
    }

    /// When the circuit breaker opens: when `percent` of at least `calls` calls in the last one to two spans of
    /// `over` have failed. No call is made for the time of `rest` then, and after it one at a time, until three in a
    /// row were answered. 50 % of 20 calls in a second, and a rest of 500 ms, when nothing is said.
    pub fn breaker(mut self, percent: u32, calls: u32, over: Duration, rest: Duration) -> Self {
        let trip = &mut self.settings.trip;
        (trip.percent, trip.calls, trip.over, trip.rest) = (percent, calls, over, rest);
        self
    }

    /// Builds the store, which begins to connect at once, in a task of its own. It needs no server to be there: until
    /// one is, every call is an error, at once. [`ready`](RedisStore::ready) waits for it. The task lives in the
    /// runtime that this is called in: when that has ended, no other connection is made.
    ///
    /// # Errors
    ///
    /// With the field: `url`, `prefix`, `connect_timeout`, `response_timeout`, `call_timeout`, `failures`,
    /// `reconnect_after`, `heartbeat`, `max_in_flight`, `breaker.percent`, `breaker.calls`, `breaker.over`,
    /// `breaker.rest`; `runtime`: not called from within a tokio runtime.
    pub fn build(self) -> Result<RedisStore, ConfigError> {
        self.settings.validate()?;
        let target = self.target()?;
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| {
            ConfigError::new(
                "runtime",
                format!("none: {error}"),
                "a tokio runtime with time and input",
            )
        })?;
        let supervisor = Arc::new(Supervisor::new(target, self.settings));
        let task = runtime.spawn(Arc::clone(&supervisor).keep_connected());
        Ok(RedisStore::new(supervisor, task.abort_handle()))
    }

    fn target(&self) -> Result<Target, ConfigError> {
        #[cfg(feature = "redis-cluster")]
        if self.cluster {
            return Target::cluster(&self.urls, &self.settings);
        }
        let url = self.urls.first().map_or("", String::as_str);
        Target::server(url, &self.settings)
    }
}

impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the addresses, which may hold a password.
        f.debug_struct("RedisStoreBuilder")
            .field("addresses", &self.urls.len())
            .field("cluster", &self.cluster)
            .field("settings", &self.settings)
            .finish()
    }
}
