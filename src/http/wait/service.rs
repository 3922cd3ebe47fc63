use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use ::http::request::Parts;
use ::http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::clock::Clock;
use crate::clock::DefaultClock;
use crate::http::config::{Charge, Config, Queue, RejectedResponse};
use crate::http::policy;
use crate::http::problem::Problem;
use crate::http::rejection::{Rejection, RejectionResponse};
use crate::http::service::{ConditionalCharge, OnResponse};
use crate::rules::{Admitted, Reservation};
use crate::time::Nanos;
use crate::wait::{CheckError, WaitError};

/// Rate-limited service that delays requests, made by [`WaitLayer`](crate::http::WaitLayer).
pub struct WaitService<S, C = DefaultClock, R = Problem> {
    inner: S,
    config: Arc<Config<C, R>>,
    queue: Queue<C>,
    max_wait: Duration,
}

impl<S, C, R> WaitService<S, C, R> {
    pub(super) const fn new(
        inner: S,
        config: Arc<Config<C, R>>,
        queue: Queue<C>,
        max_wait: Duration,
    ) -> Self {
        Self {
            inner,
            config,
            queue,
            max_wait,
        }
    }
}

impl<S, C, R, Q, B> Service<Request<Q>> for WaitService<S, C, R>
where
    S: Service<Request<Q>, Response = Response<B>> + Clone,
    C: Clock + Clone + Send + Sync + 'static,
    R: RejectionResponse<B>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = WaitFuture<S, S::Future, Q, B, C, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let config = &self.config;
        let (mut head, body) = request.into_parts();
        if config.skip.contains(&head) {
            let inner = self.inner.call(Request::from_parts(head, body));
            return WaitFuture::admitted(inner, OnResponse::Nothing);
        }
        let reserves = config.charge_if.is_some();
        if !reserves {
            match self.queue.check(&head) {
                Ok(charge) => {
                    let headers = config.admit(
                        &config.rules.load(),
                        &mut head,
                        config.key_hashes().as_mut(),
                        &charge,
                    );
                    let inner = self.inner.call(Request::from_parts(head, body));
                    return WaitFuture::admitted(inner, OnResponse::add_headers(headers));
                }
                // A request that is never admitted gets its error from `Turn`.
                Err(CheckError::Denied(_) | CheckError::Queued) => {}
            }
        }
        let head = Arc::new(head);
        // The service that was ready must be the one that is called. The clone is polled for readiness again.
        let clone = self.inner.clone();
        let waiting = Waiting {
            inner: core::mem::replace(&mut self.inner, clone),
            config: Arc::clone(config),
            queue: Arc::clone(&self.queue),
            turn: turn(&self.queue, &head, reserves, self.max_wait),
            head,
            body,
        };
        WaitFuture {
            state: State::Waiting {
                waiting: Some(Box::new(waiting)),
            },
        }
    }
}

/// Waits until the request is charged.
fn turn<C>(queue: &Queue<C>, head: &Arc<Parts>, reserves: bool, max_wait: Duration) -> Turn
where
    C: Clock + Clone + Send + Sync + 'static,
{
    let (queue, head) = (Arc::clone(queue), Arc::clone(head));
    if reserves {
        let turn = queue.acquire_owned(head).within(max_wait);
        Box::pin(async { turn.await.map(|charge| TurnCharge::Reserved(Box::new(charge))) })
    } else {
        let turn = queue.until_ready_owned(head).within(max_wait);
        Box::pin(async { turn.await.map(TurnCharge::Final) })
    }
}

type Turn = Pin<Box<dyn Future<Output = Result<TurnCharge, WaitError>> + Send>>;

/// Charge of a request that has waited.
enum TurnCharge {
    Final(Admitted),
    /// The response decides whether it is refunded.
    Reserved(Box<Reservation<Parts>>),
}

impl Charge for TurnCharge {
    fn at(&self) -> Nanos {
        match self {
            Self::Final(charge) => charge.at(),
            Self::Reserved(charge) => charge.at(),
        }
    }

    fn is_limited(&self) -> bool {
        match self {
            Self::Final(charge) => charge.is_limited(),
            Self::Reserved(charge) => charge.is_limited(),
        }
    }
}

/// Request that waits.
struct Waiting<S, Q, C, R> {
    inner: S,
    config: Arc<Config<C, R>>,
    queue: Queue<C>,
    turn: Turn,
    /// Shared with `turn`, until that is dropped.
    head: Arc<Parts>,
    body: Q,
}

impl<S, Q, C: Clock + Clone, R> Waiting<S, Q, C, R> {
    /// Calls the inner service after the request was charged.
    fn call<B>(self, charge: TurnCharge) -> (S::Future, OnResponse<C>)
    where
        S: Service<Request<Q>, Response = Response<B>>,
    {
        let Self {
            mut inner,
            config,
            queue,
            turn,
            head,
            body,
        } = self;
        drop(turn);
        // The last reference: nothing is cloned.
        let mut head = Arc::unwrap_or_clone(head);
        let headers = config.admit(
            &config.rules.load(),
            &mut head,
            config.key_hashes().as_mut(),
            &charge,
        );
        let on_response = match (charge, &config.charge_if) {
            (TurnCharge::Reserved(charge), Some(charge_if)) => {
                OnResponse::Charge(Box::new(ConditionalCharge {
                    rules: Arc::clone(&config.rules),
                    charge: *charge,
                    charge_if: Arc::clone(charge_if),
                    headers,
                    queue: Some(queue),
                }))
            }
            (TurnCharge::Final(_), _) | (_, None) => OnResponse::add_headers(headers),
        };
        (inner.call(Request::from_parts(head, body)), on_response)
    }
}

/// Rejects a request that did not get its turn.
fn reject<C, R, B>(config: &Config<C, R>, request: &Parts, error: WaitError) -> RejectedResponse<B>
where
    C: Clock + Clone,
    R: RejectionResponse<B>,
{
    let rules = config.rules.load();
    let now = rules.clock().now();
    let rejection = Rejection {
        request,
        policies: policy::exhausted(&rules, request, now),
        retry_after: match error {
            WaitError::Never => None,
            WaitError::TooLate { needed, .. } | WaitError::QueueFull { needed, .. } => Some(needed),
        },
        status: config.status,
    };
    config.reject(rejection, now)
}

pin_project! {
    /// Future of a [`WaitService`]: it waits, and then is the response of the inner service, or the rejection.
    ///
    /// # Cancel safety
    ///
    /// Dropping it while it waits charges nothing, and passes its turn on.
    ///
    /// # Panics
    ///
    /// Panics if it is polled after it returned the rejection, or if it waits outside of a tokio runtime with a timer.
    #[must_use = "futures do nothing unless polled"]
    pub struct WaitFuture<S, F, Q, B, C, R> {
        #[pin]
        state: State<S, F, Q, B, C, R>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, F, Q, B, C, R> {
        Waiting {
            waiting: Option<Box<Waiting<S, Q, C, R>>>,
        },
        Admitted {
            #[pin]
            inner: F,
            on_response: OnResponse<C>,
        },
        Rejected {
            response: Option<RejectedResponse<B>>,
        },
    }
}

impl<S, F, Q, B, C, R> WaitFuture<S, F, Q, B, C, R> {
    const fn admitted(inner: F, on_response: OnResponse<C>) -> Self {
        Self {
            state: State::Admitted { inner, on_response },
        }
    }
}

impl<S, Q, B, C, R> Future for WaitFuture<S, S::Future, Q, B, C, R>
where
    S: Service<Request<Q>, Response = Response<B>>,
    C: Clock + Clone,
    R: RejectionResponse<B>,
{
    type Output = Result<Response<B>, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let mut state = self.as_mut().project().state;
            let next = match state.as_mut().project() {
                StateProjection::Waiting { waiting } => {
                    let Some(mut request) = waiting.take() else {
                        panic!("`WaitFuture` polled after a panic");
                    };
                    match request.turn.as_mut().poll(cx) {
                        Poll::Pending => {
                            *waiting = Some(request);
                            return Poll::Pending;
                        }
                        Poll::Ready(Ok(charge)) => {
                            let (inner, on_response) = request.call(charge);
                            State::Admitted { inner, on_response }
                        }
                        Poll::Ready(Err(error)) => State::Rejected {
                            response: Some(reject(&request.config, &request.head, error)),
                        },
                    }
                }
                StateProjection::Admitted { inner, on_response } => {
                    return inner.poll(cx).map_ok(|response| on_response.apply(response));
                }
                StateProjection::Rejected { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(*response)),
                    None => panic!("`WaitFuture` polled after completion"),
                },
            };
            state.set(next);
        }
    }
}

impl<S: Clone, C, R> Clone for WaitService<S, C, R> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            config: Arc::clone(&self.config),
            queue: Arc::clone(&self.queue),
            max_wait: self.max_wait,
        }
    }
}

impl<S: fmt::Debug, C, R: fmt::Debug> fmt::Debug for WaitService<S, C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitService")
            .field("inner", &self.inner)
            .field("config", &self.config)
            .field("max_wait", &self.max_wait)
            .finish_non_exhaustive()
    }
}

impl<S, F, Q, B, C, R> fmt::Debug for WaitFuture<S, F, Q, B, C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitFuture")
            .field("waiting", &matches!(self.state, State::Waiting { .. }))
            .finish_non_exhaustive()
    }
}
