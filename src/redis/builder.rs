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

/// Builds a [`RedisStore`].
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

    /// Sets the prefix of all names in the server, without braces: `ringgate` by default.
    pub fn prefix(mut self, prefix: impl Into<Box<str>>) -> Self {
        self.settings.prefix = prefix.into();
        self
    }

    /// Sets how long a connection may take to be made: 200 ms by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// Sets how long a reply may take: 100 ms by default.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.settings.response_timeout = timeout;
        self
    }

    /// Sets how long a call may take in all: 150 ms by default, and at least as long as a reply.
    ///
    /// The time includes the wait in the send queue, and a second attempt if the first was not executed.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.settings.call_timeout = timeout;
        self
    }

    /// Sets the number of failures in a row that end a connection: 3 by default.
    pub fn failures(mut self, failures: u64) -> Self {
        self.settings.failures = failures;
        self
    }

    /// Sets the time from the end of a connection, or a failed attempt, to the next attempt: 100 ms by default.
    ///
    /// It doubles while attempts fail, up to a second, or to this time if it is longer. Each wait is half to one and a half of
    /// that time, at random.
    pub fn reconnect_after(mut self, wait: Duration) -> Self {
        self.settings.reconnect_after = wait;
        self
    }

    /// Sets the idle time after which the connection is tested: 1 s by default. So a lost connection is noticed before a
    /// request needs it.
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.settings.heartbeat = every;
        self
    }

    /// Sets the limit of concurrent calls: 10,000 by default, at most 1,000,000. A call above it is an error at once.
    pub fn max_in_flight(mut self, calls: usize) -> Self {
        self.settings.max_in_flight = calls;
        self
    }

    /// Sets when the circuit breaker opens: when `percent` of at least `calls` calls in the last one to two spans of `over`
    /// have failed.
    ///
    /// Then no call is made for `rest`, and after it one at a time, until three in a row are answered. The default is 50 % of 20
    /// calls in a second, and a rest of 500 ms.
    pub fn breaker(mut self, percent: u32, calls: u32, over: Duration, rest: Duration) -> Self {
        let trip = &mut self.settings.trip;
        (trip.percent, trip.calls, trip.over, trip.rest) = (percent, calls, over, rest);
        self
    }

    /// Builds the store. A task in the present runtime begins to connect at once, and makes no connection after that runtime
    /// has ended.
    ///
    /// The server need not run yet: without a connection every call is an error at once. [`ready`](RedisStore::ready) waits
    /// for a connection.
    ///
    /// # Errors
    ///
    /// With the field: `url`, `prefix`, `connect_timeout`, `response_timeout`, `call_timeout`, `failures`,
    /// `reconnect_after`, `heartbeat`, `max_in_flight`, `breaker.percent`, `breaker.calls`, `breaker.over`,
    /// `breaker.rest`; `runtime`, outside of a tokio runtime.
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
        // Not the addresses: they may contain a password.
        f.debug_struct("RedisStoreBuilder")
            .field("addresses", &self.urls.len())
            .field("cluster", &self.cluster)
            .field("settings", &self.settings)
            .finish()
    }
}
