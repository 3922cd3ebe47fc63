//! One server: its address, and connections to it.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo,
    ProtocolVersion, RedisError, RedisResult, Value,
};

use super::error_class::diagnose;
use super::tls::{self, Tls};
use crate::error::ConfigError;
use crate::shared::supervision::{ServerRole, SupervisorSettings};
use crate::shared::{StoreError, StoreErrorKind};

/// The user and the database of a connection, where they are not part of an address.
#[derive(Clone, Default)]
pub(super) struct Login {
    pub(super) username: Option<Box<str>>,
    pub(super) password: Option<Box<str>>,
    pub(super) database: Option<i64>,
    pub(super) resp3: bool,
}

/// The address of a server, and how to connect to it.
#[derive(Clone)]
pub(super) struct Endpoint {
    info: ConnectionInfo,
    config: AsyncConnectionConfig,
    /// `None` for a connection without TLS, and for one whose TLS is that of the client library.
    tls: Option<Tls>,
}

/// A connection to one server.
#[derive(Clone)]
pub(super) struct ServerConnection {
    pub(super) inner: MultiplexedConnection,
    /// The task that moves its bytes, if the client library does not keep it.
    _driver: Option<Arc<Driver>>,
}

/// Ends the task of a connection with the connection.
struct Driver(tokio::task::AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The calls that may wait in the send queue of a connection.
const SEND_QUEUE: usize = 1024;

/// The forms of an address, for errors.
const ACCEPTED: &str = if tls::IS_BUILT_IN {
    "redis://[user:password@]host:port[/database], rediss:// for TLS, or unix:///path[?db=n]"
} else {
    "redis://[user:password@]host:port[/database] or unix:///path[?db=n]; rediss:// needs the feature redis-tls"
};

/// Checks an address before the client library parses it, for errors that say what is missing. None of them contains the
/// address, which may contain a password.
pub(super) fn parse(url: &str) -> Result<ConnectionInfo, ConfigError> {
    let wrong = |given: &str| ConfigError::new("url", given.to_owned(), ACCEPTED);
    let scheme = url.split("://").next().unwrap_or("").to_ascii_lowercase();
    if scheme.contains("sentinel") {
        return Err(ConfigError::new(
            "url",
            "the address of a Sentinel",
            "RedisStore::sentinel with addresses such as redis://host:26379 and the name of the service",
        ));
    }
    if matches!(scheme.as_str(), "rediss" | "valkeys") {
        if !tls::IS_BUILT_IN {
            return Err(wrong("an address with TLS, which is not built in"));
        }
        if url.ends_with("#insecure") {
            return Err(ConfigError::new(
                "url",
                "#insecure",
                "a certificate that can be checked: RedisStoreBuilder::tls_roots accepts the roots of your own",
            ));
        }
    }
    let info = url.into_connection_info().map_err(|error| invalid(&error))?;
    let login = info.redis_settings();
    if login.username().is_some() && login.password().is_none() {
        return Err(wrong("an address with a user and without a password"));
    }
    Ok(info)
}

/// The client's reason without the address, which may contain a password.
pub(super) fn invalid(error: &RedisError) -> ConfigError {
    let text = error.to_string();
    let given = match error.kind() {
        // The text begins with a constant. The details after the dash may contain the address.
        ErrorKind::InvalidClientConfig => match text.split(" - ").next() {
            Some("Redis URL did not parse") | None => "not a URL of Redis",
            Some(reason) => reason,
        },
        _ => error.category(),
    };
    ConfigError::new("url", given.to_owned(), ACCEPTED)
}

impl Login {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if self.username.is_some() && self.password.is_none() {
            return Err(ConfigError::new(
                "password",
                "none, with a user name",
                "RedisStoreBuilder::password with the password of this user",
            ));
        }
        if self.database.is_some_and(|number| number < 0) {
            let given = format!("{}", self.database.unwrap_or(0));
            return Err(ConfigError::new("database", given, "0 or more"));
        }
        Ok(())
    }

    /// The values of an address, and of this login where it has them.
    pub(super) fn apply(&self, info: ConnectionInfo) -> ConnectionInfo {
        let mut login = info.redis_settings().clone();
        if let Some(username) = &self.username {
            login = login.set_username(username);
        }
        if let Some(password) = &self.password {
            login = login.set_password(password);
        }
        if let Some(database) = self.database {
            login = login.set_db(database);
        }
        if self.resp3 {
            login = login.set_protocol(ProtocolVersion::RESP3);
        }
        info.set_redis_settings(login)
    }
}

impl Endpoint {
    pub(super) fn new(info: ConnectionInfo, settings: &SupervisorSettings, tls: Option<Tls>) -> Self {
        // Calls are small and wait for their replies, so none should wait for more bytes to send.
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        Self {
            info: info.set_tcp_settings(tcp),
            config: AsyncConnectionConfig::new()
                .set_connection_timeout(Some(settings.connect_timeout))
                .set_response_timeout(Some(settings.response_timeout))
                .set_pipeline_buffer_size(SEND_QUEUE),
            tls,
        }
    }

    /// Another server with the same settings.
    pub(super) fn at(&self, host: String, port: u16) -> Self {
        let addr = match self.info.addr() {
            ConnectionAddr::TcpTls {
                insecure, tls_params, ..
            } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host, port),
        };
        Self {
            info: self.info.clone().set_addr(addr),
            ..self.clone()
        }
    }

    pub(super) fn has_password(&self) -> bool {
        self.info.redis_settings().password().is_some()
    }

    pub(super) async fn connect(&self) -> RedisResult<ServerConnection> {
        if let (Some(tls), ConnectionAddr::TcpTls { host, port, .. }) = (&self.tls, self.info.addr()) {
            let login = self.info.redis_settings();
            let (inner, driver) = tls.connect(host, *port, login, &self.config).await?;
            return Ok(ServerConnection {
                inner,
                _driver: Some(Arc::new(Driver(driver))),
            });
        }
        let client = Client::open(self.info.clone())?;
        let inner = client
            .get_multiplexed_async_connection_with_config(&self.config)
            .await?;
        Ok(ServerConnection { inner, _driver: None })
    }
}

const NO_ROLE: &str = "a replica is recognized only when it denies a write: this user may run neither ROLE nor INFO \
                       replication (ACL SETUSER <user> +role)";

/// The user may run neither `ROLE` nor `INFO replication`, or the server has neither.
const UNKNOWN: ServerRole = ServerRole::Unknown(NO_ROLE);

impl ServerConnection {
    /// The role that a server reports, or the reason why it accepts no calls.
    pub(super) async fn role(&self, has_password: bool) -> Result<ServerRole, StoreError> {
        let reply = match self.ask(&::redis::cmd("ROLE")).await {
            Ok(reply) => reply,
            Err(error) if error.code() == Some("NOAUTH") => {
                let missing = match has_password {
                    true => "the server does not accept the password",
                    false => "the server asks for a password, and none was given",
                };
                let detail = format!("{missing}: {error}");
                return Err(StoreError::new(StoreErrorKind::UnexpectedReply, detail));
            }
            // The user may not run the command, or the server does not know it. The server may still serve scripts.
            Err(error) if error.code().is_some() => return self.role_by_info().await,
            Err(error) => return Err(diagnose(&error).error),
        };
        let Value::Array(fields) = &reply else {
            return Ok(UNKNOWN);
        };
        match fields.first() {
            Some(Value::BulkString(role)) if role == b"sentinel" => Err(StoreError::new(
                StoreErrorKind::UnexpectedReply,
                "the address is that of a Sentinel, which RedisStore::sentinel accepts",
            )),
            Some(Value::BulkString(role)) if role == b"slave" => Ok(ServerRole::Replica),
            Some(Value::BulkString(role)) if role == b"master" => Ok(ServerRole::Primary),
            _ => Ok(UNKNOWN),
        }
    }

    async fn role_by_info(&self) -> Result<ServerRole, StoreError> {
        let mut command = ::redis::cmd("INFO");
        command.arg("replication");
        let reply = match self.ask(&command).await {
            Ok(reply) => reply,
            Err(error) if error.code().is_some() => return Ok(UNKNOWN),
            Err(error) => return Err(diagnose(&error).error),
        };
        let text: String = ::redis::from_redis_value(reply).unwrap_or_default();
        let role = text.lines().find_map(|line| line.strip_prefix("role:"));
        Ok(match role {
            Some("master") => ServerRole::Primary,
            Some("slave") => ServerRole::Replica,
            _ => UNKNOWN,
        })
    }

    async fn ask(&self, command: &::redis::Cmd) -> RedisResult<Value> {
        let mut connection = self.inner.clone();
        connection.send_packed_command(command).await?.extract_error()
    }
}
