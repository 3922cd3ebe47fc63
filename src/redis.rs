#![doc = include_str!("redis.md")]

mod answer;
mod breaker;
mod builder;
mod connection;
mod health;
#[cfg(feature = "observe")]
mod panel;
mod redis_store;
mod script;
mod settings;
mod shared_limiter;
mod shared_rules;
mod spread;
mod store;
mod store_error;
#[cfg(feature = "observe")]
mod store_observer;
mod supervisor;

pub use answer::{DecidedBy, Look, Reason, SharedPassed, SharedRefused};
pub use breaker::BreakerState;
pub use builder::RedisStoreBuilder;
pub use health::Health;
pub use redis_store::RedisStore;
pub use shared_limiter::{SharedLimiter, SharedLimiterBuilder};
pub use shared_rules::{SharedRules, SharedRulesBuilder};
pub use store::{Answer, Counting, Found, Part, Store, Verdict};
pub use store_error::{StoreError, StoreErrorKind};
#[cfg(feature = "observe")]
pub use store_observer::StoreObserver;

pub use crate::rules::{KeyParts, OnError};
