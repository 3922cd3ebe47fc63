#![doc = include_str!("redis.md")]

mod accounts;
mod answer;
mod books;
mod breaker;
mod builder;
mod connection;
mod decision;
mod desk;
mod due;
mod flusher;
mod health;
mod looks;
#[cfg(feature = "observe")]
mod panel;
mod redis_store;
mod script;
mod settings;
mod shared_limiter;
mod shared_rules;
mod shared_rules_builder;
mod spread;
mod standing;
mod store;
mod store_error;
#[cfg(feature = "observe")]
mod store_observer;
mod supervisor;
mod term_clock;
mod yielding;

pub use accounts::{Accounts, Answers, Ask, Told};
pub use answer::{DecidedBy, Look, Reason, SharedPassed, SharedRefused};
pub use breaker::BreakerState;
pub use builder::RedisStoreBuilder;
pub use health::Health;
pub use redis_store::RedisStore;
pub use shared_limiter::{SharedLimiter, SharedLimiterBuilder};
pub use shared_rules::SharedRules;
pub use shared_rules_builder::SharedRulesBuilder;
pub use standing::Standing;
pub use store::{Answer, Counting, Found, Part, Store, Verdict};
pub use store_error::{StoreError, StoreErrorKind};
#[cfg(feature = "observe")]
pub use store_observer::StoreObserver;

pub use crate::rules::{KeyParts, Mode, OnError};
