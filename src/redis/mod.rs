#![doc = include_str!("protocol.md")]

mod breaker;
mod builder;
mod cluster;
mod connection;
mod endpoint;
mod error_class;
mod health;
#[cfg(feature = "observe")]
mod observer;
mod script;
mod sentinel;
mod settings;
mod store;
mod supervisor;
#[cfg(feature = "redis-tls")]
mod tls;

pub use breaker::BreakerState;
pub use builder::RedisStoreBuilder;
pub use health::Health;
#[cfg(feature = "observe")]
pub use observer::RedisObserver;
pub use store::RedisStore;
#[cfg(feature = "redis-tls")]
pub use tls::install_tls_provider;
