//! The interface to the client library's connections to a cluster.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;

use ::redis::aio::ConnectionLike;
use ::redis::cluster::{ClusterClient, ClusterClientBuilder};
use ::redis::cluster_routing::SingleNodeRoutingInfo;
use ::redis::{Cmd, ConnectionInfo, ErrorKind, ProtocolVersion, RedisError, RedisResult, Value};

use super::endpoint::invalid;
use super::tls::Certificates;
use crate::error::ConfigError;
use crate::shared::supervision::SupervisorSettings;

/// The redirections that a call follows.
const REDIRECTIONS: usize = 16;

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
            .response_timeout(settings.call_timeout)
            // The store follows redirections itself. The client would also send a call again whose connection has ended.
            .retries(0)
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
    /// Sends a command to the node of its slot, and follows redirections: a node that redirects a call has executed nothing.
    pub(super) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        let mut answer = self.0.req_packed_command(command).await;
        for _ in 0..REDIRECTIONS {
            let Some((code, node)) = answer.as_ref().err().and_then(redirection) else {
                break;
            };
            match self.send_to(node, code == "ASK", command).await {
                // There is no connection to the node that is named, and nothing was sent.
                Err(error) if error.kind() == ErrorKind::ClusterConnectionNotFound => break,
                followed => answer = followed,
            }
        }
        answer
    }

    /// Sends a command to a node, directly after `ASKING` if a slot moves to it. Both are one piece. If another call came in between,
    /// it would be served instead.
    async fn send_to(
        &mut self,
        node: SingleNodeRoutingInfo,
        asks: bool,
        command: &Cmd,
    ) -> RedisResult<Value> {
        let mut commands = ::redis::pipe();
        if asks {
            commands.cmd("ASKING");
        }
        commands.add_command(command.clone());
        let replies = self
            .0
            .route_pipeline(commands, usize::from(asks), 1, node)
            .await?;
        replies.into_iter().next().unwrap_or(Value::Nil).extract_error()
    }
}

/// The code of a redirection, and the node that it names.
fn redirection(error: &RedisError) -> Option<(&str, SingleNodeRoutingInfo)> {
    let (host, port) = error.redirect_node()?.0.rsplit_once(':')?;
    let node = SingleNodeRoutingInfo::ByAddress {
        host: host.to_owned(),
        port: port.parse().ok()?,
    };
    Some((error.code()?, node))
}
