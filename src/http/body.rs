use alloc::sync::Arc;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use ::http::request::Parts;
use ::http::{Request, Response};
use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::config::{ChargeIf, Headers, Refusal, Shared, add_headers};
use super::layer::RateLimitLayer;
use super::rejection::{Problem, RejectionResponse};
use crate::clock::Clock;
#[cfg(feature = "quanta")]
use crate::clock::QuantaClock;
use crate::rules::{Cost, LiveRules, Reservation};

/// Charges the bytes of answers: an estimate before, what was sent after.
///
/// The rules with one [`Cost`] are charged before what it estimates. When the body has ended, or nobody wants the rest
/// of it, they are settled by the bytes that were sent: what was taken too much is given back as far as it can
/// be ([`RuleSet::refund`](crate::RuleSet::refund)), what was taken too little is charged as debt, which later requests
/// have to wait for. Other rules keep their charge, unless [`charge_if`](RateLimitLayer::charge_if) says that the answer
/// is not to be counted: then all is given back.
///
/// All else is as in the [`RateLimitLayer`] that it is made of by
/// [`settle_body`](RateLimitLayer::settle_body). It is a layer of its own because it changes the body's type, to
/// [`MeteredBody`].
///
/// # Guarantee
///
/// Every charge is settled once, whether the body ends, fails or is dropped half-way, or the service inside never answers
/// (then by nothing). Bytes are those of data frames, as the service inside has made them.
///
/// # Caveats
///
/// Without an estimate that is about right, many requests at once can go far into debt together: each is let in for
/// what was estimated.
///
/// # Examples
///
/// A gigabyte an hour for each client:
///
/// ```
/// use ringgate::http::{HttpKey, RateLimitLayer};
/// use ringgate::{Cost, ManualClock, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let bytes = Cost::new("bytes", |_: &http::request::Parts| 10_000);
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("volume", "1_000_000_000/h".parse()?).cost(&bytes).by(&HttpKey::peer().key()));
/// # let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// # #[cfg(any())]
/// let rules = rules.build()?;
/// let layer = RateLimitLayer::from(rules).settle_body(&bytes);
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
#[must_use = "a layer does nothing until a service is in it"]
pub struct SettleLayer<
    #[cfg(feature = "quanta")] C = QuantaClock,
    #[cfg(not(feature = "quanta"))] C,
    A = Problem,
> {
    layer: RateLimitLayer<C, A>,
    cost: Cost<Parts>,
}

impl<C, A> SettleLayer<C, A> {
    pub(super) const fn new(layer: RateLimitLayer<C, A>, cost: Cost<Parts>) -> Self {
        Self { layer, cost }
    }
}

impl<S, C, A: Clone> Layer<S> for SettleLayer<C, A> {
    type Service = SettleService<S, C, A>;

    fn layer(&self, inner: S) -> SettleService<S, C, A> {
        SettleService {
            inner,
            judge: self.layer.judge(),
            cost: self.cost.clone(),
        }
    }
}

/// A service whose answers are charged by their bytes: what a [`SettleLayer`] makes of one.
pub struct SettleService<
    S,
    #[cfg(feature = "quanta")] C = QuantaClock,
    #[cfg(not(feature = "quanta"))] C,
    A = Problem,
> {
    inner: S,
    judge: Arc<Shared<C, A>>,
    cost: Cost<Parts>,
}

impl<S, C, A, Q, B> Service<Request<Q>> for SettleService<S, C, A>
where
    S: Service<Request<Q>, Response = Response<B>>,
    C: Clock + Clone,
    A: RejectionResponse<B>,
{
    type Response = Response<MeteredBody<B, C>>;
    type Error = S::Error;
    type Future = SettleFuture<S::Future, B, C>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let (headers, meter) = if self.judge.config.skip.skips(&head) {
            (None, None)
        } else {
            match self.judge.judge(&mut head, |rules, head| rules.reserve(head)) {
                Ok((charge, headers)) => {
                    let meter = Meter {
                        rules: Arc::clone(&self.judge.rules),
                        cost: self.cost.clone(),
                        count: self.judge.config.charge_if.clone(),
                        charge: Some(charge),
                        bytes: 0,
                    };
                    (headers, Some(meter))
                }
                Err(response) => {
                    return SettleFuture {
                        state: State::Refused {
                            response: Some(response),
                        },
                    };
                }
            }
        };
        let inner = self.inner.call(Request::from_parts(head, body));
        SettleFuture {
            state: State::Admitted {
                inner,
                headers,
                meter,
            },
        }
    }
}

pin_project! {
    /// What becomes of a request: the answer of the service inside, whose body counts its bytes, or the refusal.
    ///
    /// Dropping it drops the service's own future, and settles the charge at 0 bytes.
    ///
    /// # Panics
    ///
    /// When it is polled again after it has answered.
    #[must_use = "futures do nothing unless polled"]
    pub struct SettleFuture<F, B, C>
    where
        C: Clock,
        C: Clone,
    {
        #[pin]
        state: State<F, B, C>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, B, C>
    where
        C: Clock,
        C: Clone,
    {
        Admitted {
            #[pin]
            inner: F,
            headers: Headers,
            meter: Option<Meter<C>>,
        },
        Refused {
            response: Option<Refusal<B>>,
        },
    }
}

impl<F, B, C, E> Future for SettleFuture<F, B, C>
where
    F: Future<Output = Result<Response<B>, E>>,
    C: Clock + Clone,
{
    type Output = Result<Response<MeteredBody<B, C>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (response, meter) = match self.project().state.project() {
            StateProjection::Admitted {
                inner,
                headers,
                meter,
            } => {
                let mut response = ready!(inner.poll(cx))?;
                let mut meter = meter.take();
                if let Some(meter) = &mut meter {
                    response = meter.answered(response);
                }
                if let Some(headers) = headers.take() {
                    add_headers(*headers, response.headers_mut());
                }
                (response, meter)
            }
            StateProjection::Refused { response } => match response.take() {
                Some(response) => (*response, None),
                None => panic!("polled again after it had answered"),
            },
        };
        Poll::Ready(Ok(response.map(|inner| MeteredBody { inner, meter })))
    }
}

pin_project! {
    /// A body that counts the bytes of its data, and settles their charge when it ends or is dropped.
    pub struct MeteredBody<B, C>
    where
        C: Clock,
        C: Clone,
    {
        #[pin]
        inner: B,
        meter: Option<Meter<C>>,
    }
}

impl<B: Body, C: Clock + Clone> Body for MeteredBody<B, C> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = ready!(this.inner.poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(meter), Some(data)) = (this.meter.as_mut(), frame.data_ref()) {
                    meter.bytes = meter.bytes.saturating_add(data.remaining() as u64);
                }
            }
            // Settles.
            Some(Err(_)) | None => drop(this.meter.take()),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A charge that is settled when it is dropped.
struct Meter<C: Clock + Clone> {
    rules: Arc<LiveRules<Parts, C>>,
    cost: Cost<Parts>,
    count: Option<Arc<ChargeIf>>,
    charge: Option<Reservation<Parts>>,
    bytes: u64,
}

impl<C: Clock + Clone> Meter<C> {
    /// Gives all of the charge back if the answer is not to be counted.
    fn answered<B>(&mut self, response: Response<B>) -> Response<B> {
        let Some(count) = &self.count else {
            return response;
        };
        let (head, body) = response.into_parts();
        if !count(&head)
            && let Some(charge) = self.charge.take()
        {
            self.rules.load().refund(charge);
        }
        Response::from_parts(head, body)
    }
}

impl<C: Clock + Clone> Drop for Meter<C> {
    fn drop(&mut self) {
        if let Some(charge) = self.charge.take() {
            self.rules.load().settle(charge, &self.cost, self.bytes);
        }
    }
}

impl<C, A: Clone> Clone for SettleLayer<C, A> {
    fn clone(&self) -> Self {
        Self::new(self.layer.clone(), self.cost.clone())
    }
}

impl<S: Clone, C, A> Clone for SettleService<S, C, A> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            judge: Arc::clone(&self.judge),
            cost: self.cost.clone(),
        }
    }
}

impl<C: fmt::Debug, A: fmt::Debug> fmt::Debug for SettleLayer<C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SettleLayer")
            .field(&self.layer)
            .field(&self.cost)
            .finish()
    }
}

impl<S: fmt::Debug, C, A: fmt::Debug> fmt::Debug for SettleService<S, C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettleService")
            .field("inner", &self.inner)
            .field("config", &self.judge.config)
            .field("cost", &self.cost)
            .finish_non_exhaustive()
    }
}

impl<F, B, C: Clock + Clone> fmt::Debug for SettleFuture<F, B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettleFuture")
            .field("refused", &matches!(self.state, State::Refused { .. }))
            .finish_non_exhaustive()
    }
}

impl<B: fmt::Debug, C: Clock + Clone> fmt::Debug for MeteredBody<B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeteredBody")
            .field("inner", &self.inner)
            .field("bytes", &self.meter.as_ref().map(|meter| meter.bytes))
            .finish()
    }
}
