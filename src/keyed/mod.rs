//! A limiter for each of many keys, in fixed memory.

mod builder;
mod client;
mod decider;
#[cfg(all(feature = "quanta", not(all(target_family = "wasm", target_os = "unknown"))))]
mod default_clock;
mod forward;
mod key_hasher;
mod keys;
mod limiter;
mod many;
mod on_full;
#[cfg(all(feature = "std", not(all(target_family = "wasm", target_os = "unknown"))))]
mod random;
#[cfg(feature = "std")]
mod saved;
mod settle;
mod key_states;
mod with_limit;

pub use crate::table::TableCounts;
pub(crate) use builder::DEFAULT_CAPACITY;
pub use builder::KeyedBuilder;
pub use client::ClientAddress;
pub(crate) use client::Prefixes;
pub(crate) use client::networks::{Network, Networks};
pub use key_hasher::KeyHasher;
pub(crate) use key_hasher::SeededState;
pub use keys::{AnyKey, Keys, Tiers};
pub use limiter::KeyedRateLimiter;
pub use on_full::OnFull;
#[cfg(all(feature = "std", not(all(target_family = "wasm", target_os = "unknown"))))]
pub use random::random_seeds;
#[cfg(feature = "std")]
pub use saved::SeededKeys;
pub use with_limit::WithLimit;

pub(crate) use decider::{CapacityLeft, Charged, Decider};
pub(crate) use key_states::KeyStates;
#[cfg(feature = "std")]
pub(crate) use saved::Charger;
