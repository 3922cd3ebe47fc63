//! The interface to the client library's connections to a cluster.

use alloc::boxed::Box;
use alloc::vec::Vec;

use ::redis::aio::ConnectionLike;
use ::redis::cluster::{ClusterClient, ClusterClientBuilder};
use ::redis::{Cmd, ConnectionInfo, ProtocolVersion, RedisResult, Value};

use super::endpoint::invalid;
use super::tls::Certificates;
use crate::error::ConfigError;
use crate::shared::supervision::SupervisorSettings;

/// The nodes of a cluster, and how to connect to them.
pub(super) struct ClusterTarget(Box<ClusterClient>);

impl ClusterTarget {
    #[cfg_attr(
        not(feature = "redis-tls"),
        expect(unused_variables, reason = "there are no certificates")
    )]
    pub(super) fn new(
        nodes: Vec<ConnectionInfo>,
        resp3: bool,
        certificates: &Certificates,
        settings: &SupervisorSettings,
    ) -> Result<Self, ConfigError> {
        let client = ClusterClientBuilder::new(nodes)
            .tcp_settings(::redis::io::tcp::TcpSettings::default().set_nodelay(true))
            .connection_timeout(settings.connect_timeout)
            // Not shorter than a call: after it the client would send a call again, and a refund must not run twice.
            .response_timeout(settings.call_timeout)
            // Redirections count as retries, and nothing was executed before one. The client also retries after a
            // connection has ended. A charge that runs twice is stricter. A refund that runs twice may remove other
            // permits, so up to the refunded permits more may be admitted.
            .retries(16)
            .min_retry_wait(1)
            .max_retry_wait(20)
            .overall_response_timeout(Some(settings.call_timeout));
        let client = match resp3 {
            true => client.use_protocol(ProtocolVersion::RESP3),
            false => client,
        };
        #[cfg(feature = "redis-tls")]
        let client = match certificates.for_cluster() {
            Some(certificates) => client.certs(certificates),
            None => client,
        };
        let client = client.build().map_err(|error| invalid(&error))?;
        Ok(Self(Box::new(client)))
    }

    pub(super) async fn connect(&self) -> RedisResult<ClusterConnection> {
        Ok(ClusterConnection(self.0.get_async_connection().await?))
    }
}

/// A connection to a cluster that many calls share.
#[derive(Clone)]
pub(super) struct ClusterConnection(::redis::cluster_async::ClusterConnection);

impl ClusterConnection {
    pub(super) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        self.0.req_packed_command(command).await
    }
}
