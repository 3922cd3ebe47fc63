//! The primary of a service, as Sentinels report it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ::redis::Value;
use tokio::task::JoinSet;

use super::endpoint::{Endpoint, Role, ServerConnection};
use super::error_class::diagnose;
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

impl Sentinels {
    /// Connects to the primary.
    ///
    /// All Sentinels are asked at once, so one that does not answer delays nothing. The first server that they name and
    /// that is a primary is taken.
    pub(super) async fn connect(&self) -> Result<ServerConnection, StoreError> {
        let mut lookups = JoinSet::new();
        for sentinel in &self.sentinels {
            lookups.spawn(look_up(sentinel.clone(), self.service.clone()));
        }
        let mut tried: Vec<Address> = Vec::new();
        let mut last = StoreError::new(StoreErrorKind::Down, "no Sentinel has answered");
        while let Some(lookup) = lookups.join_next().await {
            let found = lookup.unwrap_or_else(|error| {
                Err(StoreError::new(
                    StoreErrorKind::UnexpectedReply,
                    error.to_string(),
                ))
            });
            let address = match found {
                Ok(address) if tried.contains(&address) => continue,
                Ok(address) => address,
                Err(error) => {
                    if tried.is_empty() {
                        last = error;
                    }
                    continue;
                }
            };
            match self.connect_to_primary(&address).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = error,
            }
            tried.push(address);
        }
        Err(last)
    }

    async fn connect_to_primary(&self, (host, port): &Address) -> Result<ServerConnection, StoreError> {
        let server = self.server.at(host.clone(), *port);
        let connection = server.connect().await.map_err(|error| diagnose(&error).0)?;
        match connection.role(server.has_password()).await? {
            Role::Replica => Err(StoreError::new(
                StoreErrorKind::Refused,
                format!("{host}:{port} is named as the primary, and is a replica"),
            )),
            Role::Other => Ok(connection),
        }
    }
}

async fn look_up(sentinel: Endpoint, service: String) -> Result<Address, StoreError> {
    let failed = |error| diagnose(&error).0;
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
    Ok((host, port))
}
