//! The store of shared limits: its traits, their requests and their answers.

mod check_result;
mod counter_request;
mod counter_store;
mod join_all;
mod lease_request;
mod lease_store;

pub use check_result::{CheckResult, CounterStatus};
pub use counter_request::{CounterRequest, Counting, SlotId};
pub use counter_store::{CounterStore, StoreFuture};
pub(crate) use join_all::join_all;
pub use lease_request::{LeaseGrant, LeaseRequest};
pub use lease_store::{LeaseFuture, LeaseStore};

pub use crate::rules::{StoreError, StoreErrorKind};
