use crate::time::Nanos;

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
///     match request.extensions().get::<Decision>() {
///         Some(decision) if decision.is_limited() => "within your limits",
///         _ => "not limited",
///     }
/// }
/// # let _ = handler;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub(in crate::http) at: Nanos,
    pub(in crate::http) admitted: bool,
    pub(in crate::http) limited: bool,
}

impl Decision {
    #[inline(always)]
    pub(in crate::http) const fn admission(at: Nanos, limited: bool) -> Self {
        Self {
            at,
            admitted: true,
            limited,
        }
    }

    /// Returns the clock reading at which the rules decided. With shared rules, it is a reading after the decision.
    #[must_use]
    pub const fn at(self) -> Nanos {
        self.at
    }

    /// Returns whether the request was admitted.
    #[must_use]
    pub const fn is_admitted(self) -> bool {
        self.admitted
    }

    /// Returns whether a rule applied to the request: it was charged or rejected by at least one.
    #[must_use]
    pub const fn is_limited(self) -> bool {
        self.limited
    }
}
