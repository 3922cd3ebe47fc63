//! The interface to the client library: connecting, sending, and classifying its errors.

use alloc::boxed::Box;
use alloc::string::ToString;

use ::redis::aio::MultiplexedConnection;
use ::redis::io::tcp::TcpSettings;
use ::redis::{AsyncConnectionConfig, Client, Cmd, IntoConnectionInfo, RedisError, RedisResult, Value};

use super::settings::Settings;
use crate::error::ConfigError;
use crate::shared::{StoreError, StoreErrorKind};

/// The address of a server or a cluster, and how to connect to it.
#[derive(Debug)]
pub(super) enum Target {
    Server {
        client: Client,
        config: Box<AsyncConnectionConfig>,
    },
    #[cfg(feature = "redis-cluster")]
    Cluster(Box<::redis::cluster::ClusterClient>),
}

/// A connection that many calls share.
#[derive(Clone)]
pub(super) enum Connection {
    Server(MultiplexedConnection),
    #[cfg(feature = "redis-cluster")]
    Cluster(::redis::cluster_async::ClusterConnection),
}

/// The state of a connection, as an error indicates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// Nothing.
    None,
    /// The server cannot serve the call.
    Unwell,
    /// The connection may be broken. After several of these in a row, another one may work.
    Ailing,
    /// The connection has ended.
    Dead,
}

impl Target {
    /// One server, at an address as `redis://127.0.0.1:6379` or `unix:///run/redis.sock`.
    pub(super) fn server(url: &str, settings: &Settings) -> Result<Self, ConfigError> {
        let info = url.into_connection_info().map_err(|error| wrong(&error))?;
        let info = info.set_tcp_settings(tcp());
        let client = Client::open(info).map_err(|error| wrong(&error))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(settings.connect_timeout))
            .set_response_timeout(Some(settings.response_timeout))
            .set_pipeline_buffer_size(WAITING);
        Ok(Self::Server {
            client,
            config: Box::new(config),
        })
    }

    /// A cluster, by the addresses of some of its nodes.
    #[cfg(feature = "redis-cluster")]
    pub(super) fn cluster(urls: &[alloc::string::String], settings: &Settings) -> Result<Self, ConfigError> {
        let client =
            ::redis::cluster::ClusterClientBuilder::new(urls.iter().map(alloc::string::String::as_str))
                .tcp_settings(tcp())
                .connection_timeout(settings.connect_timeout)
                .response_timeout(settings.response_timeout)
                // Redirections count as retries, and nothing was executed before one. The client also retries after a
                // connection has ended, which may charge a call twice. That is stricter.
                .retries(16)
                .min_retry_wait(1)
                .max_retry_wait(20)
                .overall_response_timeout(Some(settings.call_timeout))
                .build()
                .map_err(|error| wrong(&error))?;
        Ok(Self::Cluster(Box::new(client)))
    }

    pub(super) const fn is_cluster(&self) -> bool {
        match self {
            Self::Server { .. } => false,
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(_) => true,
        }
    }

    pub(super) async fn connect(&self) -> RedisResult<Connection> {
        match self {
            Self::Server { client, config } => client
                .get_multiplexed_async_connection_with_config(config)
                .await
                .map(Connection::Server),
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(client) => client.get_async_connection().await.map(Connection::Cluster),
        }
    }
}

/// The size of the send queue.
const WAITING: usize = 1024;

fn tcp() -> TcpSettings {
    // Calls are small, and each one waits for its reply.
    TcpSettings::default().set_nodelay(true)
}

/// The error without the address, which may contain a password.
fn wrong(error: &RedisError) -> ConfigError {
    ConfigError::new(
        "url",
        "an address with the error: ".to_string() + error.category(),
        "redis://[user:password@]host:port[/database] or unix:///path[?db=n]; TLS is not built in",
    )
}

impl Connection {
    /// Sends a command, and returns its reply or its error.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let answer = match self.clone() {
            Self::Server(mut connection) => connection.send_packed_command(command).await,
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(mut connection) => {
                ::redis::aio::ConnectionLike::req_packed_command(&mut connection, command).await
            }
        };
        answer?.extract_error()
    }
}

/// Whether the server does not know a script.
pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.code() == Some("NOSCRIPT")
}

/// Classifies an error of the client library.
pub(super) fn diagnose(error: &RedisError) -> (StoreError, ErrorClass) {
    let (kind, symptom) = if error.is_timeout() {
        (StoreErrorKind::TimedOut, ErrorClass::Ailing)
    } else if let Some(code) = error.code() {
        // Older servers put the code into the message of the script's error.
        let hidden = |code: &str| error.detail().is_some_and(|detail| detail.contains(code));
        match code {
            // After a failover, the address may lead to the new primary.
            "READONLY" | "MASTERDOWN" => (StoreErrorKind::Refused, ErrorClass::Ailing),
            _ if hidden("-READONLY") => (StoreErrorKind::Refused, ErrorClass::Ailing),
            "OOM" | "LOADING" | "BUSY" | "MISCONF" | "NOREPLICAS" | "CLUSTERDOWN" | "TRYAGAIN" | "MOVED"
            | "ASK" => (StoreErrorKind::Refused, ErrorClass::Unwell),
            _ if hidden("-OOM") => (StoreErrorKind::Refused, ErrorClass::Unwell),
            "NOAUTH" | "WRONGPASS" => (StoreErrorKind::UnexpectedReply, ErrorClass::Ailing),
            // The error concerns this call, or data of another program under its name.
            _ => (StoreErrorKind::UnexpectedReply, ErrorClass::None),
        }
    } else if error.is_unrecoverable_error() {
        (StoreErrorKind::Disconnected, ErrorClass::Dead)
    } else if error.is_io_error() {
        (StoreErrorKind::Disconnected, ErrorClass::Ailing)
    } else {
        (StoreErrorKind::UnexpectedReply, ErrorClass::Ailing)
    };
    (StoreError::new(kind, error.to_string()), symptom)
}
