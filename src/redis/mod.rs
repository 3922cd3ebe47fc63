#![doc = include_str!("protocol.md")]

mod builder;
mod cluster;
mod connection;
mod endpoint;
mod error_class;
mod script;
mod sentinel;
mod store;
#[cfg(feature = "redis-tls")]
mod tls;

pub use builder::RedisStoreBuilder;
pub use store::RedisStore;
#[cfg(feature = "redis-tls")]
pub use tls::install_tls_provider;
