use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use ::http::header::{HeaderMap, HeaderName, HeaderValue};
use ::http::request::Parts;
use ::http::{Response, StatusCode, response};
use smallvec::SmallVec;

use super::decision::Decision;
use super::headers::{self, QuotaHeaders};
use super::policy;
use super::rejection::{Rejection, RejectionResponse};
use super::skip::Skip;
use crate::clock::Clock;
use crate::rules::{LiveRules, Passed, Refused, Reservation, RuleSet};
use crate::time::Nanos;

/// What all services of a layer share.
#[derive(Debug)]
pub(super) struct Shared<C, A> {
    pub(super) rules: Arc<LiveRules<Parts, C>>,
    pub(super) config: Config<A>,
}

/// What a layer was told.
#[derive(Clone)]
pub(super) struct Config<A> {
    pub(super) answer: A,
    pub(super) status: StatusCode,
    pub(super) missing_status: StatusCode,
    pub(super) headers: QuotaHeaders,
    pub(super) decision: bool,
    pub(super) skip: Skip,
    pub(super) charge_if: Option<Arc<ChargeIf>>,
    pub(super) on_refused: Option<Arc<OnRefused>>,
}

pub(super) type ChargeIf = dyn Fn(&response::Parts) -> bool + Send + Sync;
type OnRefused = dyn Fn(&Refused<'_, Parts>) + Send + Sync;

/// The headers that an admitted answer gets.
pub(super) type Headers = Option<Box<Told>>;

/// Names and values: of the standard headers without another allocation.
pub(super) type Told = SmallVec<[(HeaderName, HeaderValue); 2]>;

/// The answer to a request that was refused: boxed, so that what becomes of those that were admitted stays small.
pub(super) type Refusal<B> = Box<Response<B>>;

/// What was taken for an admitted request.
pub(super) trait Taken {
    fn at(&self) -> Nanos;
    fn is_limited(&self) -> bool;
}

impl Taken for Passed {
    fn at(&self) -> Nanos {
        self.at()
    }

    fn is_limited(&self) -> bool {
        self.is_limited()
    }
}

impl Taken for Reservation<Parts> {
    fn at(&self) -> Nanos {
        self.at()
    }

    fn is_limited(&self) -> bool {
        self.is_limited()
    }
}

impl<C: Clock + Clone, A> Shared<C, A> {
    /// Decides about a request, by what `take` says.
    ///
    /// # Errors
    ///
    /// With the answer, when it is refused.
    #[inline]
    pub(super) fn judge<B, T: Taken>(
        &self,
        request: &mut Parts,
        take: impl for<'a> FnOnce(&'a RuleSet<Parts, C>, &'a Parts) -> Result<T, Refused<'a, Parts>>,
    ) -> Result<(T, Headers), Refusal<B>>
    where
        A: RejectionResponse<B>,
    {
        let rules = self.rules.load();
        let taken = match take(&rules, request) {
            Ok(taken) => taken,
            Err(refused) => return Err(self.refuse(&rules, &refused, request)),
        };
        let headers = self.admit(&rules, request, taken.at(), taken.is_limited());
        Ok((taken, headers))
    }

    /// Says what there is to say of an admitted request, to the service inside and to the client.
    #[inline]
    pub(super) fn admit(
        &self,
        rules: &RuleSet<Parts, C>,
        request: &mut Parts,
        at: Nanos,
        limited: bool,
    ) -> Headers {
        let headers = match self.config.headers {
            QuotaHeaders::Off => None,
            which => Some(told(which, rules, request, at)),
        };
        if self.config.decision {
            request.extensions.insert(Decision {
                at,
                admitted: true,
                limited,
            });
        }
        headers
    }

    #[cold]
    #[inline(never)]
    fn refuse<'a, B>(
        &self,
        rules: &'a RuleSet<Parts, C>,
        refused: &Refused<'a, Parts>,
        request: &'a Parts,
    ) -> Refusal<B>
    where
        A: RejectionResponse<B>,
    {
        let config = &self.config;
        if let Some(on_refused) = &config.on_refused {
            on_refused(refused);
        }
        let it = Rejection {
            request,
            policies: policy::violated(rules, refused, request),
            retry_after: refused.retry_after(),
            status: config.status,
        };
        self.answer(it, refused.at())
    }

    /// The answer to a refused request.
    pub(super) fn answer<B>(&self, mut refused: Rejection<'_>, at: Nanos) -> Refusal<B>
    where
        A: RejectionResponse<B>,
    {
        let config = &self.config;
        if refused.lacks_key() {
            refused.status = config.missing_status;
        }
        let mut response = config.answer.answer(&refused);
        headers::retry_after(refused.retry_after, response.headers_mut());
        config.headers.tell(&refused.policies, |name, value| {
            headers::put(name, value, response.headers_mut());
        });
        response.extensions_mut().insert(Decision {
            at,
            admitted: false,
            limited: true,
        });
        Box::new(response)
    }
}

#[inline(never)]
fn told<C: Clock>(which: QuotaHeaders, rules: &RuleSet<Parts, C>, request: &Parts, at: Nanos) -> Box<Told> {
    let mut told = Box::new(Told::new());
    which.tell(&policy::policies(rules, request, at), |name, value| {
        told.push((name, value));
    });
    told
}

/// Adds what was told to the headers of an answer.
#[inline(never)]
pub(super) fn add_headers(told: Told, to: &mut HeaderMap) {
    for (name, value) in told {
        headers::put(name, value, to);
    }
}

impl<A: fmt::Debug> fmt::Debug for Config<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("answer", &self.answer)
            .field("status", &self.status)
            .field("headers", &self.headers)
            .field("skip", &self.skip)
            .finish_non_exhaustive()
    }
}
