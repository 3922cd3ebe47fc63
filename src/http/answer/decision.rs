/// The decision of the layer about one request.
///
/// The layer inserts it into the extensions of an admitted request, for handlers, and into the extensions of a rejection
/// response, for outer layers. A request that the layer [skips](crate::http::RateLimitLayer::skip_if) has none.
///
/// # Examples
///
/// A handler reads it from the request. A handler of axum can take it as an argument, `Option<Extension<Decision>>`.
///
/// ```
/// use ringgate::http::Decision;
///
/// fn handler(request: &http::Request<()>) -> &'static str {
///     match request.extensions().get() {
///         Some(Decision::Admitted) => "within your limits",
///         _ => "not limited",
///     }
/// }
/// # let _ = handler;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The request was admitted, and charged by at least one rule.
    Admitted,
    /// The request was admitted, because no rule applied to it.
    NotLimited,
    /// The request was rejected.
    Rejected,
}

impl Decision {
    #[inline(always)]
    pub(in crate::http) const fn admission(limited: bool) -> Self {
        if limited { Self::Admitted } else { Self::NotLimited }
    }
}
