use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use ::redis::{ConnectionAddr, ConnectionInfo};

use super::cluster_client::ClusterTarget;
use super::connection::{RedisServer, ServerTarget};
use super::endpoint::{Endpoint, Login, parse};
use super::sentinel::Sentinels;
use super::store::RedisStore;
use super::tls::{Certificates, Tls, needs_installed_provider};
use crate::error::ConfigError;
use crate::shared::supervision::{BreakerSettings, Supervisor, SupervisorSettings};

/// Builds a [`RedisStore`].
///
/// Times are 1 ms to 60 s.
#[must_use = "a builder does nothing until it is built"]
pub struct RedisStoreBuilder {
    addresses: Addresses,
    login: Login,
    certificates: Certificates,
    prefix: Box<str>,
    settings: SupervisorSettings,
}

/// Where the store connects to.
enum Addresses {
    Server(String),
    Sentinels(Vec<String>, String),
    #[cfg_attr(not(feature = "redis-cluster"), expect(dead_code, reason = "never made"))]
    Cluster(Vec<String>),
    #[cfg_attr(not(feature = "redis-client"), expect(dead_code, reason = "never made"))]
    Client(Box<ConnectionInfo>),
}

impl RedisStore {
    /// Begins a store in one server, at an address such as `redis://user:password@host:6379/0` or
    /// `unix:///run/redis.sock`.
    ///
    /// With the feature `redis-tls`, `rediss://host:6379` connects by TLS. `?protocol=resp3` at the end selects RESP3.
    pub fn builder(url: &str) -> RedisStoreBuilder {
        RedisStoreBuilder::new(Addresses::Server(url.to_owned()))
    }

    /// Begins a store in the primary of a service, by the addresses of its Sentinels, such as `redis://host:26379`, and the
    /// name of the service.
    ///
    /// For each connection all Sentinels are asked at once, and every server that they name is tried at once. The first one
    /// that reports to be a primary is used. So after a failover the store continues at the new primary without a restart of
    /// the process, and a Sentinel that still names a lost server delays nothing.
    ///
    /// User and password of an address are those of the Sentinel. [`username`](RedisStoreBuilder::username),
    /// [`password`](RedisStoreBuilder::password) and [`database`](RedisStoreBuilder::database) are those of the servers.
    /// With `rediss://` the Sentinels and the servers are connected to by TLS.
    pub fn sentinel(urls: &[&str], service: &str) -> RedisStoreBuilder {
        let urls = urls.iter().map(|&url| url.to_owned()).collect();
        RedisStoreBuilder::new(Addresses::Sentinels(urls, service.to_owned()))
    }

    /// Begins a store in a cluster, by the addresses of some of its nodes.
    ///
    /// With `rediss://` the nodes are connected to by TLS. The client library makes these connections, and needs a provider of
    /// cryptography that is installed in the process, for example by `install_tls_provider`.
    #[cfg(feature = "redis-cluster")]
    pub fn cluster(urls: &[&str]) -> RedisStoreBuilder {
        let urls = urls.iter().map(|&url| url.to_owned()).collect();
        RedisStoreBuilder::new(Addresses::Cluster(urls))
    }

    /// Begins a store in the server of a client, with the client's address, user, protocol, certificates and options of TCP.
    ///
    /// The store makes connections of its own, by its own timeouts. If the client connects by TLS, a provider of
    /// cryptography must be installed in the process, for example by `install_tls_provider`.
    #[cfg(feature = "redis-client")]
    pub fn client(client: &::redis::Client) -> RedisStoreBuilder {
        RedisStoreBuilder::new(Addresses::Client(Box::new(client.get_connection_info().clone())))
    }
}

impl RedisStoreBuilder {
    fn new(addresses: Addresses) -> Self {
        Self {
            addresses,
            login: Login::default(),
            certificates: Certificates::default(),
            prefix: "ringgate".into(),
            settings: SupervisorSettings::default(),
        }
    }

    /// Sets the user, for servers with access control lists. It replaces the user of the address.
    ///
    /// The user needs the commands `EVAL`, `EVALSHA`, `DEL`, `PEXPIREAT` and `PING`, the keys of the [prefix](Self::prefix),
    /// and the commands that scripts call: `ACL SETUSER limits on >password ~ringgate:* +@all -@admin +info +role` is enough.
    pub fn username(mut self, name: impl Into<Box<str>>) -> Self {
        self.login.username = Some(name.into());
        self
    }

    /// Sets the password. It replaces the password of the address.
    pub fn password(mut self, password: impl Into<Box<str>>) -> Self {
        self.login.password = Some(password.into());
        self
    }

    /// Sets the number of the database. It replaces the number of the address.
    pub fn database(mut self, number: i64) -> Self {
        self.login.database = Some(number);
        self
    }

    /// Selects the protocol RESP3. The default is RESP2, unless the address ends with `?protocol=resp3`.
    pub fn resp3(mut self) -> Self {
        self.login.resp3 = true;
        self
    }

    /// Sets the roots that certificates of servers must lead to, as PEM, instead of those of the system.
    ///
    /// Roots are read once, when the store is built, also those of the system. A server whose new certificate leads to one of them
    /// needs no new store.
    #[cfg(feature = "redis-tls")]
    pub fn tls_roots(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificates.roots = Some(pem.into());
        self
    }

    /// Sets the certificate by which the client identifies itself, with its chain, and its private key, as PEM.
    ///
    /// A store keeps its certificate. After its expiry the store makes no new connection, so build another store before.
    #[cfg(feature = "redis-tls")]
    pub fn client_certificate(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.certificates.client = Some((chain.into(), key.into()));
        self
    }

    /// Sets the prefix of all names in the server, without braces: `ringgate` by default.
    pub fn prefix(mut self, prefix: impl Into<Box<str>>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets how long a connection may take to be made, with the lookup of the host's name: 200 ms by default.
    ///
    /// After an outage all processes connect at once. So with TLS this time must be longer than their number times the server's time
    /// for a handshake. Otherwise the server may only work on attempts that were given up.
    ///
    /// In a cluster, this is the time for each node. The nodes of the addresses are connected to at once, and then the nodes that
    /// they name. So the connection to the cluster may take twice this time and twice that of a
    /// [call](Self::call_timeout), and at most 60 s, if a node does not answer.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// Sets how long a reply may take: 100 ms by default.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.settings.response_timeout = timeout;
        self
    }

    /// Sets how long a call may take in all: 150 ms by default, and at least the [response timeout](Self::response_timeout).
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

    /// Sets the time from the end of a connection, or a failed attempt, to the next attempt: 60 ms by default.
    ///
    /// Each wait is half to one and a half of that time, at random. So with the default, the next attempt begins within
    /// 90 ms after a server that refused connections accepts them again. If the server answers that it does not accept the store, as
    /// without a password, the next attempt is made a second later.
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
    /// Then no call is made for `rest`, or until there is a new connection. After that, one call at a time is made,
    /// until three in a row are answered. The default is 50 % of 20 calls in a second, and a rest of 500 ms.
    pub fn breaker(mut self, percent: u32, calls: u32, over: Duration, rest: Duration) -> Self {
        self.settings.breaker = BreakerSettings {
            percent,
            calls,
            over,
            rest,
        };
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
    /// When a setting is invalid. The error names the field: `url`, `service`, `username`, `password`, `database`,
    /// `prefix`, `connect_timeout`, `response_timeout`, `call_timeout`, `failures`, `reconnect_after`, `heartbeat`,
    /// `max_in_flight`, `breaker.percent`, `breaker.calls`, `breaker.over`, `breaker.rest`; `runtime`, outside of a
    /// tokio runtime. With TLS also `tls_roots`, `client_certificate`, and `tls_provider` if there is no cryptography
    /// for this processor.
    pub fn build(self) -> Result<RedisStore, ConfigError> {
        if self.prefix.contains(['{', '}']) {
            let given = format!("{:?}", self.prefix);
            return Err(ConfigError::new("prefix", given, "a text without braces"));
        }
        self.login.validate()?;
        let server = RedisServer {
            target: self.target()?,
            prefix: self.prefix,
        };
        let mut settings = self.settings;
        if server.target.is_cluster() {
            settings.validate()?;
            // The nodes are connected to in two rounds, and one that does not answer takes the whole time of each.
            let of_two_rounds = 2 * (settings.connect_timeout + settings.call_timeout);
            settings.connect_timeout = of_two_rounds.min(SupervisorSettings::LONGEST);
        }
        Ok(RedisStore::new(Supervisor::start(server, settings)?))
    }

    fn target(&self) -> Result<ServerTarget, ConfigError> {
        match &self.addresses {
            Addresses::Server(url) => {
                let info = self.login.apply(parse(url)?);
                Ok(ServerTarget::Server(self.endpoint(info)?))
            }
            Addresses::Sentinels(urls, service) => {
                if service.is_empty() {
                    return Err(ConfigError::new(
                        "service",
                        "\"\"",
                        "the name of a service of the Sentinels",
                    ));
                }
                let sentinels = urls.iter().map(|url| self.endpoint(parse(url)?));
                let sentinels: Vec<Endpoint> = sentinels.collect::<Result<_, _>>()?;
                let first = urls.first().ok_or_else(no_address)?;
                // The users and databases of Sentinels are not those of servers.
                let server = parse(first)?.set_redis_settings(::redis::RedisConnectionInfo::default());
                Ok(ServerTarget::Sentinels(Sentinels {
                    service: service.clone(),
                    sentinels,
                    server: self.endpoint(self.login.apply(server))?,
                }))
            }
            Addresses::Cluster(urls) => self.cluster_of(urls),
            Addresses::Client(info) => {
                if has_tls(info) {
                    needs_installed_provider()?;
                }
                let info = self.login.apply((**info).clone());
                Ok(ServerTarget::Server(Endpoint::new(info, &self.settings, None)))
            }
        }
    }

    /// Whether connections to an address are encrypted. Certificates are an error if they are not.
    fn is_encrypted(&self, info: &ConnectionInfo) -> Result<bool, ConfigError> {
        let is_encrypted = has_tls(info);
        if !is_encrypted && !self.certificates.is_empty() {
            return Err(ConfigError::new(
                "url",
                "an address without TLS, with certificates",
                "rediss://",
            ));
        }
        Ok(is_encrypted)
    }

    fn endpoint(&self, info: ConnectionInfo) -> Result<Endpoint, ConfigError> {
        let tls = match self.is_encrypted(&info)? {
            true => Some(Tls::new(&self.certificates)?),
            false => None,
        };
        Ok(Endpoint::new(info, &self.settings, tls))
    }

    fn cluster_of(&self, urls: &[String]) -> Result<ServerTarget, ConfigError> {
        let nodes = urls.iter().map(|url| Ok(self.login.apply(parse(url)?)));
        let nodes: Vec<ConnectionInfo> = nodes.collect::<Result<_, ConfigError>>()?;
        if self.is_encrypted(nodes.first().ok_or_else(no_address)?)? {
            needs_installed_provider()?;
        }
        let cluster = ClusterTarget::new(nodes, self.login.resp3, &self.certificates, &self.settings)?;
        Ok(ServerTarget::Cluster(cluster))
    }
}

fn has_tls(info: &ConnectionInfo) -> bool {
    matches!(info.addr(), ConnectionAddr::TcpTls { .. })
}

fn no_address() -> ConfigError {
    ConfigError::new("url", "none", "at least one address")
}

impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Addresses and certificates are left out: they may contain a password or a key.
        let addresses = match &self.addresses {
            Addresses::Server(_) => "server",
            Addresses::Sentinels(..) => "sentinels",
            Addresses::Cluster(_) => "cluster",
            Addresses::Client(_) => "client",
        };
        f.debug_struct("RedisStoreBuilder")
            .field("addresses", &addresses)
            .field("prefix", &self.prefix)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
