//! The items of `tls` in a program without the feature `redis-tls`, which makes no encrypted connections.

use core::future::Ready;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisResult};
use tokio::task::AbortHandle;

use crate::error::ConfigError;

/// Whether addresses with TLS are accepted.
pub(super) const IS_BUILT_IN: bool = false;

/// The certificates of the builder, which has no method to set them.
#[derive(Clone, Default)]
pub(super) struct Certificates {}

impl Certificates {
    pub(super) const fn is_empty(&self) -> bool {
        true
    }
}

/// Makes encrypted connections. There is no value of it.
#[derive(Clone)]
pub(super) enum Tls {}

impl Tls {
    pub(super) fn new(_: &Certificates) -> Result<Self, ConfigError> {
        Err(ConfigError::new(
            "url",
            "an address with TLS, which is not built in",
            "an address without TLS, or the feature redis-tls",
        ))
    }

    pub(super) const fn connect(
        &self,
        _host: &str,
        _port: u16,
        _login: &RedisConnectionInfo,
        _config: &AsyncConnectionConfig,
    ) -> Ready<RedisResult<(MultiplexedConnection, AbortHandle)>> {
        match *self {}
    }
}

/// Checks nothing: the client library makes no connection that needs a provider of cryptography.
pub(super) const fn needs_installed_provider() -> Result<(), ConfigError> {
    Ok(())
}
