#![doc = include_str!("protocol.md")]

mod builder;
mod cluster;
#[cfg_attr(not(feature = "redis-cluster"), path = "no_cluster_client.rs")]
mod cluster_client;
mod connection;
mod endpoint;
mod error_class;
mod script;
mod sentinel;
mod store;
#[cfg_attr(not(feature = "redis-tls"), path = "no_tls.rs")]
mod tls;

pub use builder::RedisStoreBuilder;
pub use store::RedisStore;
#[cfg(feature = "redis-tls")]
pub use tls::install_tls_provider;
