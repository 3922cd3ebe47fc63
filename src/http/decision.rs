use crate::time::Nanos;

/// What the layer has decided: in the extensions of an admitted request, for handlers, and in those of a refusal's
/// answer, for layers further outside.
///
/// A request that the layer [skips](super::RateLimitLayer::skip_if) has none.
///
/// # Examples
///
/// In a handler (one of axum gets it as an argument, `Option<Extension<Decision>>`):
///
/// ```
/// use ringgate::http::Decision;
///
/// fn handler(request: &::http::Request<()>) -> &'static str {
///     match request.extensions().get::<Decision>() {
///         Some(decision) if decision.is_limited() => "within your limits",
///         _ => "not limited",
///     }
/// }
/// # let _ = handler;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub(super) at: Nanos,
    pub(super) admitted: bool,
    pub(super) limited: bool,
}

impl Decision {
    /// The reading of the rules' clock that the request was judged at.
    #[must_use]
    pub const fn at(self) -> Nanos {
        self.at
    }

    /// Whether the request was admitted.
    #[must_use]
    pub const fn is_admitted(self) -> bool {
        self.admitted
    }

    /// Whether any rule was about the request: it was charged to one, or refused by one.
    #[must_use]
    pub const fn is_limited(self) -> bool {
        self.limited
    }
}
