//! Whether a server keeps what ringgate promises, and what to do about it.

// Floors, from the ground up: a module names only modules above it in this list.
mod args;
mod examine;

pub(crate) use args::{DoctorArgs, RedisCommand, without_secrets};
pub(crate) use examine::doctor;

/// What a look at a server has come to.
#[derive(Debug)]
pub(crate) struct Examined {
    /// To be printed.
    pub(crate) text: String,
    /// Whether anything breaks a promise.
    pub(crate) problem: bool,
}
