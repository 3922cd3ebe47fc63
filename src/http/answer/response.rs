use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use ::http::request::Parts;
use ::http::{Request, Response, StatusCode};

use super::decision::Decision;
use super::headers::{QuotaHeaders, add_retry_after};
use super::policy;
use super::problem::Problem;
use super::rejection::{Rejection, RejectionReason, RejectionResponse};
use crate::rules::{Denial, QuotaStatus};
use crate::time::Nanos;

/// The statuses of rejections that differ from the default of their reason.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct Statuses(Vec<(RejectionReason, StatusCode)>);

impl Statuses {
    pub(in crate::http) fn of(&self, reason: RejectionReason) -> StatusCode {
        let own = self.0.iter().rev().find(|(other, _)| *other == reason);
        own.map_or(reason.default_status(), |&(_, status)| status)
    }

    pub(in crate::http) fn set(&mut self, reason: RejectionReason, status: StatusCode) {
        self.0.push((reason, status));
    }
}

/// Makes the response to a rejected request, with `Retry-After`, the quota headers and the decision.
pub(in crate::http) fn respond<B>(
    rejection: &Rejection<'_>,
    headers: QuotaHeaders,
    by: &impl RejectionResponse<B>,
) -> Response<B> {
    let mut response = by.response(rejection);
    let map = response.headers_mut();
    let retry_after = add_retry_after(rejection.retry_after_seconds(), map);
    headers.add_rejection(&rejection.policies, retry_after, map);
    response.extensions_mut().insert(Decision::Rejected);
    response
}

/// The layer's own response to a denial, for a limit that a handler checks.
///
/// Some limits need more than the head of a request, such as the user name in a JSON body. A handler checks them by a
/// [`RuleSet`](crate::RuleSet) of its own request type, or by `shared::SharedRules`. Its response to a denial is then the one of a
/// [`RateLimitLayer`](crate::http::RateLimitLayer) with default options: status 429, `Retry-After`, the quota headers of the violated
/// quotas, and the body of [`Problem`]. A denial for another reason has the status of the layer: 400 if the request lacks a key, 500 if
/// the server should have provided it, and 503 if the store does not answer.
///
/// A denial knows only the quotas that it violates. So the [name](crate::http::QuotaPolicy::name) of a policy is that of its rule, and
/// has the window only if several quotas of the rule are violated. The layer knows all quotas of a rule, so it adds the window
/// whenever the rule has several.
///
/// With the feature `axum`, it is an `IntoResponse`, so a handler can return it as an error.
///
/// # Examples
///
/// ```
/// use core::hash::Hash;
/// use http::Response;
/// use ringgate::http::DenialResponse;
/// # use ringgate::ManualClock;
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::{Key, Rule};
///
/// struct Login {
///     user: String,
/// }
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let user = Key::new("user", |login: &Login, key| login.user.hash(key));
/// let rules = RuleSetBuilder::new().rule(Rule::new("logins", "1/min".parse()?).by(&user));
/// # let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// # #[cfg(any())]
/// let rules = rules.build()?;
/// let handler = |login: Login| -> Response<String> {
///     if let Err(denied) = rules.check(&login) {
///         return DenialResponse::new(&denied).response();
///     }
///     Response::new(format!("hello {}", login.user))
/// };
/// let login = || Login { user: "alice".to_owned() };
/// assert_eq!(handler(login()).status(), 200);
/// let denied = handler(login());
/// assert_eq!(denied.status(), 429);
/// assert_eq!(denied.headers()["retry-after"], "62");
/// assert_eq!(denied.headers()["ratelimit"], "\"logins\";r=0;t=62");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a response does nothing until it is sent"]
pub struct DenialResponse {
    violations: Vec<QuotaStatus>,
    retry_after: Option<Duration>,
    at: Nanos,
    unavailable: bool,
    headers: QuotaHeaders,
}

impl DenialResponse {
    /// Creates the response to a denial by local or shared rules. It reads the values of the violated quotas, and borrows nothing.
    pub fn new(denial: &impl Denial) -> Self {
        Self {
            violations: denial.violated_quotas(),
            retry_after: denial.retry_after(),
            at: denial.denied_at(),
            unavailable: denial.is_unavailable(),
            headers: QuotaHeaders::Standard,
        }
    }

    /// Chooses the quota headers. The default is [`QuotaHeaders::Standard`].
    pub const fn headers(mut self, headers: QuotaHeaders) -> Self {
        self.headers = headers;
        self
    }

    /// Makes the response with the body of [`Problem`].
    pub fn response<B: From<String>>(&self) -> Response<B> {
        let (head, ()) = Request::new(()).into_parts();
        self.response_to(&head, &Problem)
    }

    /// Makes the response to a request by a [`RejectionResponse`], such as [`Grpc`](super::Grpc).
    pub fn response_to<B>(&self, request: &Parts, by: &impl RejectionResponse<B>) -> Response<B> {
        let policies = policy::of_violations(&self.violations);
        let mut rejection = Rejection::new(request, policies, self.retry_after, self.at);
        rejection.unavailable = self.unavailable;
        rejection.status = rejection.reason().default_status();
        respond(&rejection, self.headers, by)
    }
}

#[cfg(feature = "axum")]
impl axum::response::IntoResponse for DenialResponse {
    fn into_response(self) -> axum::response::Response {
        self.response()
    }
}
