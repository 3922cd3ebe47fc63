#![doc = include_str!("protocol.md")]

mod blocks;
mod charges;
pub mod conformance;
mod convert;
mod decide;
mod lease;
mod limiter;
mod live;
mod memory;
#[cfg(feature = "observe")]
mod metric_set;
#[cfg(feature = "observe")]
mod observer;
mod plan;
mod ready;
mod rules;
mod rules_builder;
mod settle;
mod slots;
pub(crate) mod statuses;
pub(crate) mod store;
pub mod supervision;

pub use charges::{Charges, Decision};
pub use lease::LeaseStats;
pub use limiter::{SharedLimiter, SharedLimiterBuilder};
pub use live::LiveSharedRules;
pub use memory::MemoryStore;
#[cfg(feature = "observe")]
pub use observer::LeaseObserver;
pub use rules::SharedRules;
pub use rules_builder::SharedRulesBuilder;
pub use store::{
    CheckResult, CounterRequest, CounterStatus, CounterStore, Counting, LeaseFuture, LeaseGrant,
    LeaseRequest, LeaseStore, SlotId, StoreError, StoreErrorKind, StoreFuture,
};

pub use crate::rules::{Admitted, DecidedBy, Denied, KeyParts, Mode, OnError, QuotaStatus, Reason};

pub(crate) use plan::CheckPlan;
