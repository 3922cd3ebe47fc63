//! The interface to the client library: connecting and sending.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use ::redis::{Cmd, RedisError, Value};
use tokio::task::JoinSet;

use super::cluster_client::{ClusterConnection, ClusterTarget};
use super::endpoint::{Endpoint, ServerConnection};
use super::error_class::{code, describe, diagnose, diagnose_of, is_unknown_script};
use super::script::Script;
use super::sentinel::Sentinels;
use crate::shared::supervision::{CallError, Connected, Server, ServerRole};
use crate::shared::{StoreError, StoreErrorKind};

/// The server of a store, and the prefix of its names there.
pub(super) struct RedisServer {
    pub(super) target: ServerTarget,
    pub(super) prefix: Box<str>,
}

impl Server for RedisServer {
    const NAME: &'static str = "Redis";

    type Connection = Connection;

    fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Connects, and checks that the user may set the expiry of keys.
    async fn connect(&self) -> Result<Connected<Connection>, StoreError> {
        let connected = self.target.connect().await?;
        connected.connection.check_right_to_expire(&self.prefix).await?;
        Ok(connected)
    }

    async fn ping(&self, connection: &Connection) -> Result<(), CallError> {
        let answer = connection.send(&::redis::cmd("PING")).await;
        answer.map(drop).map_err(|error| connection.diagnose(&error))
    }
}

/// The server, or the servers, of a store.
pub(super) enum ServerTarget {
    Server(Endpoint),
    Sentinels(Sentinels),
    Cluster(ClusterTarget),
}

/// A connection that many calls share.
#[derive(Clone)]
pub(super) enum Connection {
    Server(ServerConnection),
    Cluster(ClusterConnection),
}

impl ServerTarget {
    pub(super) const fn is_cluster(&self) -> bool {
        match self {
            Self::Server(_) | Self::Sentinels(_) => false,
            Self::Cluster(_) => true,
        }
    }

    async fn connect(&self) -> Result<Connected<Connection>, StoreError> {
        match self {
            Self::Server(server) => {
                let connection = server.connect().await.map_err(|error| diagnose(&error).error)?;
                // A replica is accepted, because it may become the primary. Until then it answers writes with an error.
                let role = connection.role(server.has_password()).await?;
                Ok(Connected {
                    connection: Connection::Server(connection),
                    role,
                })
            }
            Self::Sentinels(sentinels) => {
                let Connected { connection, role } = sentinels.connect().await?;
                Ok(Connected {
                    connection: Connection::Server(connection),
                    role,
                })
            }
            Self::Cluster(cluster) => {
                let connection = cluster.connect().await.map_err(|error| diagnose(&error).error)?;
                // The client library sends writes to the primary of each slot.
                Ok(Connected {
                    connection: Connection::Cluster(connection),
                    role: ServerRole::Primary,
                })
            }
        }
    }
}

/// Names of keys by which the right to set an expiry is checked. In a cluster they are in eight parts of the slots, so that a node
/// that is lost has not all of them.
const RIGHTS: [&str; 8] = [
    "rights", "rights1", "rights2", "rights4", "rights10", "rights11", "rights12", "rights13",
];

impl Connection {
    /// Checks that the user may set the expiry of keys, because a script without that right would leave keys for ever. The first
    /// server that answers decides.
    async fn check_right_to_expire(&self, prefix: &str) -> Result<(), StoreError> {
        let keys = match self {
            Self::Server(_) => &RIGHTS[..1],
            Self::Cluster(_) => &RIGHTS,
        };
        let mut answers = JoinSet::new();
        for key in keys {
            let (connection, mut command) = (self.clone(), ::redis::cmd("PEXPIREAT"));
            // The store has no key of this name, so this changes nothing.
            command.arg(format!("{prefix}:{{{key}}}")).arg(1);
            answers.spawn(async move { connection.send(&command).await });
        }
        let mut last = StoreError::new(StoreErrorKind::Disconnected, "");
        while let Some(answer) = answers.join_next().await {
            let error = match answer {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => error,
                Err(panicked) => {
                    last = StoreError::new(StoreErrorKind::UnexpectedReply, format!("{panicked}"));
                    continue;
                }
            };
            let missing = match code(&error) {
                Some("NOPERM") => "the user may not run PEXPIREAT",
                _ if describe(&error).contains("unknown command") => "the server does not have PEXPIREAT",
                // The server has checked the rights, and does not accept writes now.
                Some(_) => return Ok(()),
                None => {
                    last = self.diagnose(&error).error;
                    continue;
                }
            };
            let detail = format!(
                "{missing} on the keys {prefix}:*, which would never expire (ACL SETUSER <user> +pexpireat \
                 ~{prefix}:*): {}",
                describe(&error)
            );
            return Err(StoreError::new(StoreErrorKind::UnexpectedReply, detail));
        }
        Err(last)
    }

    /// Sends a command, and returns its reply or its error.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let answer = match self.clone() {
            Self::Server(mut connection) => connection.inner.send_packed_command(command).await,
            Self::Cluster(mut connection) => connection.send(command).await,
        };
        answer?.extract_error()
    }

    /// Calls a script by its digest, and by its text if the server does not know it.
    pub(super) async fn run(
        &self,
        script: &Script,
        names: &[String],
        arguments: &[String],
    ) -> Result<Value, CallError> {
        let answer = match self.send(&script.call(true, names, arguments)).await {
            // The server was restarted, or told to forget its scripts. Nothing was executed.
            Err(error) if is_unknown_script(&error) => self.send(&script.call(false, names, arguments)).await,
            answer => answer,
        };
        answer.map_err(|error| self.diagnose(&error))
    }

    /// Classifies an error of this connection.
    pub(super) fn diagnose(&self, error: &RedisError) -> CallError {
        match self {
            Self::Server(_) => diagnose(error),
            Self::Cluster(_) => diagnose_of(error, true),
        }
    }
}
