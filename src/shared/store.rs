//! What a store does for shared limits: the traits, what they are asked, and what they answer.

mod check_result;
mod counter_request;
mod counter_store;
mod error;
mod lease_request;
mod lease_store;

pub use check_result::{CheckResult, CounterStatus};
pub use counter_request::{CounterRequest, Counting};
pub use counter_store::{CounterStore, StoreFuture};
pub use error::{StoreError, StoreErrorKind};
pub use lease_request::{LeaseGrant, LeaseRequest};
pub use lease_store::{LeaseFuture, LeaseStore};
