//! The items of `cluster_client` in a program without the feature `redis-cluster`, which makes no connections to clusters.

use alloc::vec::Vec;
use core::future::Ready;

use ::redis::{Cmd, ConnectionInfo, RedisResult, Value};

use super::tls::Certificates;
use crate::error::ConfigError;
use crate::shared::supervision::SupervisorSettings;

/// The nodes of a cluster. There is no value of it.
pub(super) enum ClusterTarget {}

impl ClusterTarget {
    pub(super) fn new(
        _: Vec<ConnectionInfo>,
        _resp3: bool,
        _: &Certificates,
        _: &SupervisorSettings,
    ) -> Result<Self, ConfigError> {
        Err(ConfigError::new(
            "url",
            "addresses of a cluster, which is not built in",
            "the address of a server, or the feature redis-cluster",
        ))
    }

    pub(super) const fn connect(&self) -> Ready<RedisResult<ClusterConnection>> {
        match *self {}
    }
}

/// A connection to a cluster. There is no value of it.
#[derive(Clone)]
pub(super) enum ClusterConnection {}

impl ClusterConnection {
    pub(super) const fn send(&mut self, _: &Cmd) -> Ready<RedisResult<Value>> {
        match *self {}
    }
}
