//! The primary of a service, as Sentinels report it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ::redis::Value;
use tokio::task::JoinSet;

use super::endpoint::{Endpoint, ServerConnection};
use super::error_class::diagnose;
use crate::shared::supervision::{Connected, ServerRole};
use crate::shared::{StoreError, StoreErrorKind};

/// Sentinels, and the service whose primary they name.
pub(super) struct Sentinels {
    pub(super) service: String,
    pub(super) sentinels: Vec<Endpoint>,
    /// The settings of connections to the primary.
    pub(super) server: Endpoint,
}

/// The host and the port of a server.
type Address = (String, u16);

/// The result of one task of [`Sentinels::connect`].
enum SentinelStep {
    /// A Sentinel has named this server.
    Named(Address),
    /// A server that was named is the primary, or it is not usable.
    Tried(Result<Connected<ServerConnection>, StoreError>),
}

impl Sentinels {
    /// Connects to the primary.
    ///
    /// All Sentinels are asked at once, and each server that they name is connected to at once. So neither a Sentinel that
    /// does not answer nor one that names a lost server delays the others. The first server that is a primary, or does not
    /// tell its role, is taken.
    pub(super) async fn connect(&self) -> Result<Connected<ServerConnection>, StoreError> {
        let mut steps = JoinSet::new();
        for sentinel in &self.sentinels {
            steps.spawn(look_up(sentinel.clone(), self.service.clone()));
        }
        let mut named: Vec<Address> = Vec::new();
        let mut last = StoreError::new(StoreErrorKind::Down, "no Sentinel has answered");
        while let Some(step) = steps.join_next().await {
            let step = step.unwrap_or_else(|error| {
                Err(StoreError::new(
                    StoreErrorKind::UnexpectedReply,
                    error.to_string(),
                ))
            });
            match step {
                Ok(SentinelStep::Tried(Ok(connected))) => return Ok(connected),
                Ok(SentinelStep::Tried(Err(error))) => last = error,
                Ok(SentinelStep::Named(address)) if named.contains(&address) => {}
                Ok(SentinelStep::Named(address)) => {
                    let (server, (host, port)) = (self.server.clone(), address.clone());
                    steps.spawn(async move {
                        Ok(SentinelStep::Tried(connect_to_primary(server, host, port).await))
                    });
                    named.push(address);
                }
                // The error of a server says more than that of a Sentinel.
                Err(error) if named.is_empty() => last = error,
                Err(_) => {}
            }
        }
        Err(last)
    }
}

async fn connect_to_primary(
    server: Endpoint,
    host: String,
    port: u16,
) -> Result<Connected<ServerConnection>, StoreError> {
    let server = server.at(host.clone(), port);
    let connection = server.connect().await.map_err(|error| diagnose(&error).error)?;
    match connection.role(server.has_password()).await? {
        ServerRole::Replica => Err(StoreError::new(
            StoreErrorKind::Refused,
            format!("{host}:{port} is named as the primary, and is a replica"),
        )),
        role @ (ServerRole::Primary | ServerRole::Unknown(_)) => Ok(Connected { connection, role }),
    }
}

async fn look_up(sentinel: Endpoint, service: String) -> Result<SentinelStep, StoreError> {
    let failed = |error| diagnose(&error).error;
    let mut connection = sentinel.connect().await.map_err(failed)?;
    let mut command = ::redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(&service);
    let reply = connection.inner.send_packed_command(&command).await;
    let reply = reply.and_then(Value::extract_error).map_err(failed)?;
    if reply == Value::Nil {
        let detail = format!("the Sentinels know no service of the name {service:?}");
        return Err(StoreError::new(StoreErrorKind::UnexpectedReply, detail));
    }
    let (host, port): (String, String) = ::redis::from_redis_value(reply)
        .map_err(|error| StoreError::new(StoreErrorKind::UnexpectedReply, error.to_string()))?;
    let port = port
        .parse()
        .map_err(|_| StoreError::new(StoreErrorKind::UnexpectedReply, format!("port {port:?}")))?;
    Ok(SentinelStep::Named((host, port)))
}
