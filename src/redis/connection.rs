//! The interface to the client library: connecting and sending.

#[cfg(feature = "redis-cluster")]
use alloc::boxed::Box;
use alloc::format;

use ::redis::{Cmd, RedisError, Value};

use super::endpoint::{Endpoint, Role, ServerConnection};
use super::error_class::{code, describe, diagnose};
use super::sentinel::Sentinels;
use crate::shared::{StoreError, StoreErrorKind};

/// The server, or the servers, of a store.
pub(super) enum ServerTarget {
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

impl ServerTarget {
    pub(super) const fn is_cluster(&self) -> bool {
        match self {
            Self::Server(_) | Self::Sentinels(_) => false,
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(_) => true,
        }
    }

    /// Connects, checks that the server accepts calls of this user, and returns the role of the server.
    pub(super) async fn connect(&self, prefix: &str) -> Result<(Connection, Role), StoreError> {
        let (connection, role) = self.open().await?;
        connection.check_right_to_expire(prefix).await?;
        Ok((connection, role))
    }

    async fn open(&self) -> Result<(Connection, Role), StoreError> {
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
    /// Checks that the user may set the expiry of keys. A script of a user without that right would leave keys for ever.
    async fn check_right_to_expire(&self, prefix: &str) -> Result<(), StoreError> {
        let mut command = ::redis::cmd("PEXPIREAT");
        // The store has no key of this name, so this changes nothing.
        command.arg(format!("{prefix}:{{rights}}")).arg(1);
        let Err(error) = self.send(&command).await else {
            return Ok(());
        };
        let missing = match code(&error) {
            Some("NOPERM") => "the user may not run PEXPIREAT",
            _ if describe(&error).contains("unknown command") => "the server does not have PEXPIREAT",
            // The server has checked the rights, and does not accept writes now.
            Some(_) => return Ok(()),
            None => return Err(diagnose(&error).0),
        };
        let detail = format!(
            "{missing} on the keys {prefix}:*, which would never expire (ACL SETUSER <user> +pexpireat \
             ~{prefix}:*): {}",
            describe(&error)
        );
        Err(StoreError::new(StoreErrorKind::UnexpectedReply, detail))
    }

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
