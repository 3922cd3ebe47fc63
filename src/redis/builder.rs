use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use ::redis::{ConnectionAddr, ConnectionInfo};

use super::cluster_client::ClusterTarget;
use super::connection::{RedisServer, ServerTarget};
use super::endpoint::{Endpoint, Login, parse};
use super::sentinel::Sentinels;
use super::store::RedisStore;
use super::tls::{Certificates, Tls, needs_installed_provider};
use crate::error::ConfigError;
use crate::shared::supervision::{Supervisor, SupervisorSettings};

/// Builds a [`RedisStore`].
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

    /// Changes the timeouts of connections and calls, the circuit breaker and the other [settings](SupervisorSettings) of the
    /// connection.
    ///
    /// The connect timeout includes the lookup of the host's name. The call timeout includes the wait in the send queue, and a second
    /// attempt if the first was not executed.
    ///
    /// In a cluster, the connect timeout is the time for each node. The nodes of the addresses are connected to at once, and then the
    /// nodes that they name. So the connection to the cluster may take twice this time and twice that of a call, and at most 60 s, if a
    /// node does not answer.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use core::time::Duration;
    /// use ringgate::redis::RedisStore;
    ///
    /// # fn example() -> Result<(), ringgate::ConfigError> {
    /// let store = RedisStore::builder("redis://far-away:6379")
    ///     .supervision(|settings| {
    ///         settings.response_timeout = Duration::from_millis(300);
    ///         settings.call_timeout = Duration::from_millis(400);
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn supervision(mut self, change: impl FnOnce(&mut SupervisorSettings)) -> Self {
        change(&mut self.settings);
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
