//! The events about a store, for `tracing`. `prefix` is that of its names in the server.

use crate::shared::store::StoreError;

pub(super) fn lost(server: &str, prefix: &str, error: &StoreError) {
    tracing::warn!(target: "ringgate", prefix, %error, "{server} is lost: on_error decides until it answers");
}

pub(super) fn found(server: &str, prefix: &str) {
    tracing::info!(target: "ringgate", prefix, "{server} is found: it decides");
}

/// A server has answered a call with an error.
pub(super) fn refused(server: &str, prefix: &str, error: &StoreError) {
    tracing::error!(target: "ringgate", prefix, %error, "{server} answers with an error: on_error decides");
}

/// The user lacks a right.
pub(super) fn restricted(effect: &StoreError) {
    tracing::error!("{effect}");
}
