//! The interface to the client library: connecting and sending.

#[cfg(feature = "redis-cluster")]
use alloc::boxed::Box;

use ::redis::{Cmd, RedisError, Value};

use super::endpoint::{Endpoint, Role, ServerConnection};
use super::error_class::diagnose;
use super::sentinel::Sentinels;
use crate::shared::StoreError;

/// The server, or the servers, of a store.
pub(super) enum Target {
    Server(Endpoint),
    Sentinels(Sentinels),
    #[cfg(feature = "redis-cluster")]
    Cluster(Box<::redis::cluster::ClusterClient>),
}

/// A connection that many calls share.
#[derive(Clone)]
pub(super) enum Connection {
    Server(ServerConnection),
    #[cfg(feature = "redis-cluster")]
    Cluster(::redis::cluster_async::ClusterConnection),
}

impl Target {
    pub(super) const fn is_cluster(&self) -> bool {
        match self {
            Self::Server(_) | Self::Sentinels(_) => false,
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(_) => true,
        }
    }

    /// Connects, checks that the server accepts calls of this user, and returns the role of the server.
    pub(super) async fn connect(&self) -> Result<(Connection, Role), StoreError> {
        match self {
            Self::Server(server) => {
                let connection = server.connect().await.map_err(|error| diagnose(&error).0)?;
                // A replica is accepted, because it may become the primary. Until then it answers writes with an error.
                let role = connection.role(server.has_password()).await?;
                Ok((Connection::Server(connection), role))
            }
            Self::Sentinels(sentinels) => {
                let (connection, role) = sentinels.connect().await?;
                Ok((Connection::Server(connection), role))
            }
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(client) => {
                let connection = client.get_async_connection().await;
                // The client library sends writes to the primary of each slot.
                connection
                    .map(|connection| (Connection::Cluster(connection), Role::Primary))
                    .map_err(|error| diagnose(&error).0)
            }
        }
    }
}

impl Connection {
    /// Sends a command, and returns its reply or its error.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let answer = match self.clone() {
            Self::Server(mut connection) => connection.inner.send_packed_command(command).await,
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(mut connection) => {
                ::redis::aio::ConnectionLike::req_packed_command(&mut connection, command).await
            }
        };
        answer?.extract_error()
    }
}
