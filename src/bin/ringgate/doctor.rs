//! Whether a server keeps what ringgate promises, and what to do about it.

// Floors, from the ground up: a module names only modules above it in this list.
mod args;
#[cfg(feature = "redis")]
mod address;
#[cfg(feature = "redis")]
mod finding;
#[cfg(feature = "redis")]
mod wire;
#[cfg(feature = "redis")]
mod facts;
#[cfg(feature = "redis")]
mod kind;
#[cfg(feature = "redis")]
mod login;
#[cfg(feature = "redis")]
mod memory;
#[cfg(feature = "redis")]
mod persistence;
#[cfg(feature = "redis")]
mod replication;
#[cfg(feature = "redis")]
mod rights;
#[cfg(feature = "redis")]
mod clock;
#[cfg(feature = "redis")]
mod cluster;
#[cfg(feature = "redis")]
mod latency;
#[cfg(feature = "redis")]
mod strict;
#[cfg(feature = "redis")]
mod report;
#[cfg(feature = "redis")]
mod examine;

pub(crate) use args::{DoctorArgs, RedisCommand, without_secrets};

use crate::failure::Failure;

/// What a look at a server has come to.
#[derive(Debug)]
pub(crate) struct Examined {
    /// To be printed.
    pub(crate) text: String,
    /// Whether anything breaks a promise.
    pub(crate) problem: bool,
}

/// Looks at the server, or the cluster, for no longer than the arguments say.
///
/// # Errors
///
/// When the arguments make no sense, and when nobody answers in time.
#[cfg(feature = "redis")]
pub(crate) fn doctor(args: &DoctorArgs) -> Result<Examined, Failure> {
    let urls = args.urls()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("no runtime can be started", error))?;
    let report = runtime.block_on(examine::examine(args, &urls));
    // A name that is still being looked up is not waited for.
    runtime.shutdown_background();
    let report = report?;
    Ok(Examined {
        text: if args.json { report.json()? } else { report.text() },
        problem: report.has_problem(),
    })
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
