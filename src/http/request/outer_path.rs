use ::http::request::Parts;

/// Returns the path of the request as it was sent.
///
/// A nested router of axum removes its prefix from the path, and leaves the whole URI in an extension.
#[inline]
pub(in crate::http) fn outer_path(request: &Parts) -> &str {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(uri)) = request.extensions.get() {
        return uri.path();
    }
    request.uri.path()
}
