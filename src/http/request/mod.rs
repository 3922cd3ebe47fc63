//! The parts of a request that rules count by.

mod client_ip;
mod http_key;
mod spelling;

use ::http::request::Parts;

pub use client_ip::{ClientIp, PeerAddress};
pub use http_key::HttpKey;

/// Returns the path of the request as it was sent.
///
/// A nested router of axum removes its prefix from the path, and leaves the whole URI in an extension.
#[inline]
pub(super) fn outer_path(request: &Parts) -> &str {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(uri)) = request.extensions.get() {
        return uri.path();
    }
    request.uri.path()
}
