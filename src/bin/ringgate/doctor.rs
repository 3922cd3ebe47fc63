//! Whether a server keeps what ringgate promises, and what to do about it.

// Floors, from the ground up: a module names only modules above it in this list.
mod args;
#[cfg(feature = "redis")]
mod examine;

pub(crate) use args::{DoctorArgs, RedisCommand, without_secrets};
#[cfg(feature = "redis")]
pub(crate) use examine::doctor;

#[cfg(not(feature = "redis"))]
use crate::failure::Failure;

/// What a look at a server has come to.
#[derive(Debug)]
pub(crate) struct Examined {
    /// To be printed.
    pub(crate) text: String,
    /// Whether anything breaks a promise.
    pub(crate) problem: bool,
}

/// Says how to get what is not here.
///
/// # Errors
///
/// Always.
#[cfg(not(feature = "redis"))]
pub(crate) fn doctor(_: &DoctorArgs) -> Result<Examined, Failure> {
    Err(Failure::NotBuilt {
        what: "redis doctor",
        features: "cli,redis (or cli,redis-cluster, for clusters)",
    })
}
