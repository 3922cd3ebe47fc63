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

use super::config::{AdmittedHeaders, ChargeIf, Config, RejectedResponse};
use super::layer::RateLimitLayer;
use super::problem::Problem;
use super::rejection::RejectionResponse;
use crate::clock::Clock;
use crate::clock::DefaultClock;
use crate::rules::{Cost, LiveRules, Reservation};

/// Charges the bytes of response bodies: an estimate before the response, the real number after it.
///
/// [`RateLimitLayer::settle_body`] makes it. The rules with one [`Cost`] are charged the estimate of that cost. When the
/// body has ended or is dropped, they are settled by the bytes that were sent: surplus is refunded as far as
/// [`RuleSet::refund`](crate::RuleSet::refund) can, and a deficit is charged as debt, which delays later requests. Other
/// rules keep their charge. If [`charge_if`](RateLimitLayer::charge_if) does not accept the response, everything is
/// refunded.
///
/// It is a layer of its own because it changes the body type to [`MeteredBody`]. The options of the [`RateLimitLayer`]
/// stay in force.
///
/// # Guarantee
///
/// Each charge is settled once: when the body ends, fails or is dropped, or by 0 bytes if there is no response. The bytes
/// of data frames are counted, as the inner service made them.
///
/// # Caveats
///
/// Concurrent requests are each admitted by the estimate. If it is too low, they can go far into debt together.
///
/// # Examples
///
/// A gigabyte an hour for each client:
///
/// ```
/// use ringgate::http::{HttpKey, RateLimitLayer};
/// use ringgate::rules::{Cost, RuleSetBuilder};
/// use ringgate::{ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let bytes = Cost::new("bytes", |_: &http::request::Parts| 10_000);
/// let volume = Rule::new("volume", "1_000_000_000/h".parse()?)
///     .cost(&bytes)
///     .by(&HttpKey::peer().key());
/// let rules = RuleSetBuilder::new().rule(volume);
/// # let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// # #[cfg(any())]
/// let rules = rules.build()?;
/// let layer = RateLimitLayer::from(rules).settle_body(&bytes);
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
#[must_use = "a layer does nothing until it wraps a service"]
pub struct SettleLayer<C = DefaultClock, R = Problem> {
    layer: RateLimitLayer<C, R>,
    cost: Cost<Parts>,
}

impl<C, R> RateLimitLayer<C, R> {
    /// Settles the rules with this cost by the bytes of the response body: see [`SettleLayer`].
    pub fn settle_body(self, cost: &Cost<Parts>) -> SettleLayer<C, R> {
        SettleLayer {
            layer: self,
            cost: cost.clone(),
        }
    }
}

impl<S, C, R: Clone> Layer<S> for SettleLayer<C, R> {
    type Service = SettleService<S, C, R>;

    fn layer(&self, inner: S) -> SettleService<S, C, R> {
        SettleService {
            inner,
            config: self.layer.config(),
            cost: self.cost.clone(),
        }
    }
}

/// Rate-limited service that charges the bytes of its responses, made by [`SettleLayer`].
pub struct SettleService<S, C = DefaultClock, R = Problem> {
    inner: S,
    config: Arc<Config<C, R>>,
    cost: Cost<Parts>,
}

impl<S, C, R, Q, B> Service<Request<Q>> for SettleService<S, C, R>
where
    S: Service<Request<Q>, Response = Response<B>>,
    C: Clock + Clone,
    R: RejectionResponse<B>,
{
    type Response = Response<MeteredBody<B, C>>;
    type Error = S::Error;
    type Future = SettleFuture<S::Future, B, C>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let config = &self.config;
        let (mut head, body) = request.into_parts();
        let (headers, meter) = if config.skip.contains(&head) {
            (None, None)
        } else {
            match config.check(&mut head, |rules, head, _| rules.reserve(head)) {
                Ok((charge, headers)) => {
                    let meter = Meter {
                        rules: Arc::clone(&config.rules),
                        cost: self.cost.clone(),
                        charge_if: config.charge_if.clone(),
                        charge: Some(charge),
                        bytes: 0,
                    };
                    (headers, Some(meter))
                }
                Err(response) => {
                    return SettleFuture {
                        state: State::Rejected {
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
    /// Future of a [`SettleService`]: the response of the inner service with a metered body, or the rejection.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the inner future, and settles the charge at 0 bytes.
    ///
    /// # Panics
    ///
    /// Panics if it is polled after it returned the rejection.
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
            headers: AdmittedHeaders,
            meter: Option<Meter<C>>,
        },
        Rejected {
            response: Option<RejectedResponse<B>>,
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
                    response = meter.apply_charge_if(response);
                }
                if let Some(headers) = headers.take() {
                    headers.add_to(response.headers_mut());
                }
                (response, meter)
            }
            StateProjection::Rejected { response } => match response.take() {
                Some(response) => (*response, None),
                None => panic!("`SettleFuture` polled after completion"),
            },
        };
        Poll::Ready(Ok(response.map(|inner| MeteredBody { inner, meter })))
    }
}

pin_project! {
    /// Body that counts the bytes of its data frames, and settles their charge when it ends or is dropped.
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
            // The drop settles the charge.
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

/// Charge that is settled when it is dropped.
struct Meter<C: Clock + Clone> {
    rules: Arc<LiveRules<Parts, C>>,
    cost: Cost<Parts>,
    charge_if: Option<Arc<ChargeIf>>,
    charge: Option<Reservation<Parts>>,
    bytes: u64,
}

impl<C: Clock + Clone> Meter<C> {
    /// Refunds the whole charge if `charge_if` does not accept the response.
    fn apply_charge_if<B>(&mut self, response: Response<B>) -> Response<B> {
        let Some(charge_if) = &self.charge_if else {
            return response;
        };
        let (head, body) = response.into_parts();
        if !charge_if(&head)
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

impl<C, R: Clone> Clone for SettleLayer<C, R> {
    fn clone(&self) -> Self {
        Self {
            layer: self.layer.clone(),
            cost: self.cost.clone(),
        }
    }
}

impl<S: Clone, C, R> Clone for SettleService<S, C, R> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            config: Arc::clone(&self.config),
            cost: self.cost.clone(),
        }
    }
}

impl<C, R: fmt::Debug> fmt::Debug for SettleLayer<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettleLayer")
            .field("layer", &self.layer)
            .field("cost", &self.cost)
            .finish()
    }
}

impl<S: fmt::Debug, C, R: fmt::Debug> fmt::Debug for SettleService<S, C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettleService")
            .field("inner", &self.inner)
            .field("config", &self.config)
            .field("cost", &self.cost)
            .finish()
    }
}

impl<F, B, C: Clock + Clone> fmt::Debug for SettleFuture<F, B, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettleFuture")
            .field("rejected", &matches!(self.state, State::Rejected { .. }))
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
