use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use ::http::request::Parts;
use ::http::{Request, Response};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::config::{Refusal, Shared};
use super::future::{After, Pending};
use super::layer::RateLimitLayer;
use super::policy;
use super::rejection::{Problem, Rejection, RejectionResponse};
use crate::clock::Clock;
#[cfg(feature = "quanta")]
use crate::clock::QuantaClock;
use crate::rules::{LiveRules, Passed, Reservation};
use crate::wait::{Fair, TurnError, WaitError};

/// Lets requests wait for room, first come, first served, and refuses only those that would wait too long.
///
/// A request that there is room for, and that nobody waits for the same as, is served at once. Another one waits, and is
/// served when its turn has come; when it cannot be in time it is refused at once, and when too many wait. All else
/// is as in the [`RateLimitLayer`] that it is made of by [`wait`](RateLimitLayer::wait).
///
/// # Guarantee
///
/// Those of [`Fair`]. A request whose client goes away while it waits has taken nothing, and holds up nobody.
///
/// # Cost
///
/// For a request that need not wait, what a [`RateLimitLayer`] takes and a look at the line; for one that waits, a few
/// boxes. With [`charge_if`](RateLimitLayer::charge_if), all requests are treated as if they waited.
///
/// # Caveats
///
/// - A request that waits keeps what the service inside has reserved for it, and what the server keeps for a connection: see that
///   [`max_waiting`](Self::max_waiting) is what the server can hold.
/// - `Retry-After` of a refusal says how long it would take at the least behind all those who wait.
/// - After a reload, call `look_again` of the [line](Self::line) (in the callback of a `RulesWatcher`, say): otherwise
///   those who wait look when their alarms ring, which were set by the old rules.
/// - [`on_refused`](RateLimitLayer::on_refused) is never called. What the rules count as denied is
///   how often they were asked in vain: also for requests that were admitted after a wait, and not for those that were refused
///   because others wait.
/// - It needs tokio's timer.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::http::{HttpKey, RateLimitLayer};
/// use ringgate::{ManualClock, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::new().rule(Rule::new("client", "10/s".parse()?).by(&HttpKey::peer().key()));
/// # let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// # #[cfg(any())]
/// let rules = rules.build()?;
/// // At most 1000 requests wait, each at most two seconds.
/// let layer = RateLimitLayer::from(rules).wait(Duration::from_secs(2)).max_waiting(1000);
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
#[must_use = "a layer does nothing until a service is in it"]
pub struct WaitLayer<
    #[cfg(feature = "quanta")] C = QuantaClock,
    #[cfg(not(feature = "quanta"))] C,
    A = Problem,
> {
    layer: RateLimitLayer<C, A>,
    line: Line<C>,
    within: Duration,
}

/// The rules, with a line before them.
pub(super) type Line<C> = Arc<Fair<Arc<LiveRules<Parts, C>>>>;

impl<C, A> WaitLayer<C, A> {
    pub(super) fn new(layer: RateLimitLayer<C, A>, within: Duration) -> Self {
        let line = Arc::new(Fair::new(Arc::clone(layer.rules())));
        Self { layer, line, within }
    }

    /// So many may wait at once, all clones and connections together: a million when nothing is said.
    ///
    /// Say it before the layer is used: it begins a new line.
    pub fn max_waiting(self, allowed: usize) -> Self {
        let line = Fair::new(Arc::clone(self.layer.rules())).max_waiting(allowed);
        Self {
            line: Arc::new(line),
            ..self
        }
    }

    /// The line, for whoever else waits in it, or wants to know how many do.
    pub const fn line(&self) -> &Arc<Fair<Arc<LiveRules<Parts, C>>>> {
        &self.line
    }
}

impl<S, C, A: Clone> Layer<S> for WaitLayer<C, A> {
    type Service = WaitService<S, C, A>;

    fn layer(&self, inner: S) -> WaitService<S, C, A> {
        WaitService {
            inner,
            judge: self.layer.judge(),
            line: Arc::clone(&self.line),
            within: self.within,
        }
    }
}

/// A service whose requests wait for room: what a [`WaitLayer`] makes of one.
pub struct WaitService<
    S,
    #[cfg(feature = "quanta")] C = QuantaClock,
    #[cfg(not(feature = "quanta"))] C,
    A = Problem,
> {
    inner: S,
    judge: Arc<Shared<C, A>>,
    line: Line<C>,
    within: Duration,
}

impl<S, C, A, Q, B> Service<Request<Q>> for WaitService<S, C, A>
where
    S: Service<Request<Q>, Response = Response<B>> + Clone,
    C: Clock + Clone + Send + Sync + 'static,
    A: RejectionResponse<B>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = WaitFuture<S, S::Future, Q, B, C, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        if self.judge.config.skip.skips(&head) {
            let inner = self.inner.call(Request::from_parts(head, body));
            return WaitFuture::admitted(inner, After::Nothing);
        }
        let conditional = self.judge.config.charge_if.is_some();
        if !conditional {
            match self.line.check(&head) {
                Ok(passed) => {
                    let rules = self.judge.rules.load();
                    let headers = self
                        .judge
                        .admit(&rules, &mut head, passed.at(), passed.is_limited());
                    drop(rules);
                    let inner = self.inner.call(Request::from_parts(head, body));
                    return WaitFuture::admitted(inner, After::telling(headers));
                }
                // Where waiting does not help, the turn says so.
                Err(TurnError::Denied(_) | TurnError::Queued) => {}
            }
        }
        let head = Arc::new(head);
        // The one that said that it is ready; its clone has to say so anew.
        let clone = self.inner.clone();
        let waiting = Waiting {
            inner: core::mem::replace(&mut self.inner, clone),
            judge: Arc::clone(&self.judge),
            line: Arc::clone(&self.line),
            turn: turn(&self.line, &head, conditional, self.within),
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

/// Waits until it is the request's turn.
fn turn<C>(line: &Line<C>, head: &Arc<Parts>, conditional: bool, within: Duration) -> Turn
where
    C: Clock + Clone + Send + Sync + 'static,
{
    let (line, head) = (Arc::clone(line), Arc::clone(head));
    if conditional {
        let turn = line.acquire_owned(head).within(within);
        Box::pin(async { turn.await.map(|charge| Charge::Pending(Box::new(charge))) })
    } else {
        let turn = line.until_ready_owned(head).within(within);
        Box::pin(async { turn.await.map(Charge::Passed) })
    }
}

type Turn = Pin<Box<dyn Future<Output = Result<Charge, WaitError>> + Send>>;

/// What was taken for a request that has waited.
enum Charge {
    Passed(Passed),
    Pending(Box<Reservation<Parts>>),
}

/// A request that waits.
struct Waiting<S, Q, C, A> {
    inner: S,
    judge: Arc<Shared<C, A>>,
    line: Line<C>,
    /// Dropped before the head is taken back.
    turn: Turn,
    head: Arc<Parts>,
    body: Q,
}

impl<S, Q, C: Clock + Clone, A> Waiting<S, Q, C, A> {
    /// Calls the service inside, now that it is its turn.
    fn call<B>(self, charge: Charge) -> (S::Future, After<C>)
    where
        S: Service<Request<Q>, Response = Response<B>>,
    {
        let Self {
            mut inner,
            judge,
            line,
            turn,
            head,
            body,
        } = self;
        drop(turn);
        // Nobody else has it any more.
        let mut head = Arc::unwrap_or_clone(head);
        let rules = judge.rules.load();
        let (at, limited) = match &charge {
            Charge::Passed(passed) => (passed.at(), passed.is_limited()),
            Charge::Pending(charge) => (charge.at(), charge.is_limited()),
        };
        let headers = judge.admit(&rules, &mut head, at, limited);
        drop(rules);
        let after = match (charge, &judge.config.charge_if) {
            (Charge::Pending(charge), Some(count)) => {
                let (rules, count) = (Arc::clone(&judge.rules), Arc::clone(count));
                let pending = Pending::new(rules, *charge, count, headers);
                After::Settle(Box::new(pending.before(&line)))
            }
            _ => After::telling(headers),
        };
        (inner.call(Request::from_parts(head, body)), after)
    }
}

impl<C: Clock + Clone, A> Shared<C, A> {
    /// The answer to a request that does not wait, or no longer.
    fn refuse_to_wait<B>(&self, request: &Parts, error: WaitError) -> Refusal<B>
    where
        A: RejectionResponse<B>,
    {
        let rules = self.rules.load();
        let now = rules.clock().now();
        let policies = policy::full(&rules, request, now);
        let retry_after = match error {
            WaitError::Never => None,
            WaitError::TooLate { needed, .. } | WaitError::QueueFull { needed, .. } => Some(needed),
        };
        let refused = Rejection {
            request,
            policies,
            retry_after,
            status: self.config.status,
        };
        self.answer(refused, now)
    }
}

pin_project! {
    /// What becomes of a request: it waits, and then it is the answer of the service inside, or the refusal.
    ///
    /// Dropping it while it waits takes nothing, and passes its turn on.
    ///
    /// # Panics
    ///
    /// When it is polled again after it has answered, and where tokio's timer is not to be had.
    #[must_use = "futures do nothing unless polled"]
    pub struct WaitFuture<S, F, Q, B, C, A> {
        #[pin]
        state: State<S, F, Q, B, C, A>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, F, Q, B, C, A> {
        Waiting {
            waiting: Option<Box<Waiting<S, Q, C, A>>>,
        },
        Admitted {
            #[pin]
            inner: F,
            after: After<C>,
        },
        Refused {
            response: Option<Refusal<B>>,
        },
    }
}

impl<S, F, Q, B, C, A> WaitFuture<S, F, Q, B, C, A> {
    const fn admitted(inner: F, after: After<C>) -> Self {
        Self {
            state: State::Admitted { inner, after },
        }
    }
}

impl<S, Q, B, C, A> Future for WaitFuture<S, S::Future, Q, B, C, A>
where
    S: Service<Request<Q>, Response = Response<B>>,
    C: Clock + Clone,
    A: RejectionResponse<B>,
{
    type Output = Result<Response<B>, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let mut state = self.as_mut().project().state;
            let next = match state.as_mut().project() {
                StateProjection::Waiting { waiting } => {
                    let Some(mut it) = waiting.take() else {
                        panic!("polled again after it had failed");
                    };
                    match it.turn.as_mut().poll(cx) {
                        Poll::Pending => {
                            *waiting = Some(it);
                            return Poll::Pending;
                        }
                        Poll::Ready(Ok(charge)) => {
                            let (inner, after) = it.call(charge);
                            State::Admitted { inner, after }
                        }
                        Poll::Ready(Err(error)) => State::Refused {
                            response: Some(it.judge.refuse_to_wait(&it.head, error)),
                        },
                    }
                }
                StateProjection::Admitted { inner, after } => {
                    return inner.poll(cx).map_ok(|response| after.answered(response));
                }
                StateProjection::Refused { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(*response)),
                    None => panic!("polled again after it had answered"),
                },
            };
            state.set(next);
        }
    }
}

impl<C, A: Clone> Clone for WaitLayer<C, A> {
    fn clone(&self) -> Self {
        Self {
            layer: self.layer.clone(),
            line: Arc::clone(&self.line),
            within: self.within,
        }
    }
}

impl<S: Clone, C, A> Clone for WaitService<S, C, A> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            judge: Arc::clone(&self.judge),
            line: Arc::clone(&self.line),
            within: self.within,
        }
    }
}

impl<C: fmt::Debug, A: fmt::Debug> fmt::Debug for WaitLayer<C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitLayer")
            .field("layer", &self.layer)
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

impl<S: fmt::Debug, C, A: fmt::Debug> fmt::Debug for WaitService<S, C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitService")
            .field("inner", &self.inner)
            .field("config", &self.judge.config)
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

impl<S, F, Q, B, C, A> fmt::Debug for WaitFuture<S, F, Q, B, C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitFuture")
            .field("waiting", &matches!(self.state, State::Waiting { .. }))
            .finish_non_exhaustive()
    }
}
