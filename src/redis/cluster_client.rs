//! The interface to the client library's connections to a cluster.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ::redis::aio::ConnectionLike;
use ::redis::cluster::{ClusterClient, ClusterClientBuilder};
use ::redis::cluster_async;
use ::redis::cluster_routing::SingleNodeRoutingInfo;
use ::redis::{Cmd, ConnectionInfo, ErrorKind, ProtocolVersion, RedisError, RedisResult, Value};
use tokio::sync::OnceCell;

use super::endpoint::invalid;
use super::tls::Certificates;
use crate::error::ConfigError;
use crate::shared::supervision::SupervisorSettings;

/// The most redirections that a call follows. There is a limit, because while a primary is dead, calls are redirected to it again.
const REDIRECTIONS: u32 = 4;

/// The nodes of a cluster, and how to connect to them.
pub(super) struct ClusterTarget {
    client: Box<ClusterClient>,
    /// A client with these settings that follows redirections itself.
    follower: Box<ClusterClient>,
}

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
        let with_retries = |retries| {
            let client = ClusterClientBuilder::new(nodes.clone())
                .tcp_settings(::redis::io::tcp::TcpSettings::default().set_nodelay(true))
                .connection_timeout(settings.connect_timeout)
                .response_timeout(settings.call_timeout)
                .retries(retries)
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
            Ok(Box::new(client))
        };
        Ok(Self {
            // The store follows redirections itself. The client would also send a call again whose connection has ended.
            client: with_retries(0)?,
            follower: with_retries(16)?,
        })
    }

    pub(super) async fn connect(&self) -> RedisResult<ClusterConnection> {
        Ok(ClusterConnection {
            inner: self.client.get_async_connection().await?,
            follower: Arc::new((self.follower.clone(), OnceCell::new())),
        })
    }
}

/// A connection to a cluster that many calls share.
#[derive(Clone)]
pub(super) struct ClusterConnection {
    inner: cluster_async::ClusterConnection,
    /// A client that follows redirections itself, and its connection once a call needs it. Only this client connects to a node that
    /// owns no slots, when it is redirected there.
    follower: Arc<(Box<ClusterClient>, OnceCell<cluster_async::ClusterConnection>)>,
}

impl ClusterConnection {
    /// Sends a command to the node of its slot, and follows redirections: a node that redirects a call has executed nothing.
    pub(super) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        let mut answer = self.inner.req_packed_command(command).await;
        for _ in 0..REDIRECTIONS {
            let Err(error) = &answer else {
                break;
            };
            answer = match (error.code(), named_node(error)) {
                // The client has read the map of the slots again before it sends this call. The named node is not addressed: a client
                // that has no connection to it would connect to all nodes anew.
                (Some("MOVED"), _) => self.inner.req_packed_command(command).await,
                (Some("ASK"), Some(node)) => match self.ask(node, command).await {
                    // There is no connection to the node that is named, and nothing was sent.
                    Err(error) if error.kind() == ErrorKind::ClusterConnectionNotFound => {
                        return self.follow(command).await;
                    }
                    asked => asked,
                },
                _ => break,
            };
        }
        answer
    }

    /// Sends a command by the client that follows redirections itself.
    async fn follow(&self, command: &Cmd) -> RedisResult<Value> {
        let (client, connection) = &*self.follower;
        let connection = connection.get_or_try_init(|| client.get_async_connection());
        connection.await?.clone().req_packed_command(command).await
    }

    /// Sends a command to the node that a slot moves to, directly after `ASKING`. Both are sent in one piece,
    /// because another call in between would be served instead.
    async fn ask(&mut self, node: SingleNodeRoutingInfo, command: &Cmd) -> RedisResult<Value> {
        let mut commands = ::redis::pipe();
        commands.cmd("ASKING").add_command(command.clone());
        let replies = self.inner.route_pipeline(commands, 1, 1, node).await?;
        replies.into_iter().next().unwrap_or(Value::Nil).extract_error()
    }
}

/// The node that a redirection names.
fn named_node(error: &RedisError) -> Option<SingleNodeRoutingInfo> {
    let (host, port) = error.redirect_node()?.0.rsplit_once(':')?;
    Some(SingleNodeRoutingInfo::ByAddress {
        host: host.trim_matches(['[', ']']).to_owned(),
        port: port.parse().ok()?,
    })
}
