use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use super::error::WaitError;
use super::fair::{Fair, FairRef};
#[cfg(feature = "shared")]
use super::queue::Ticket;
use super::queue::{GRACE_PERIOD, QueuePosition};
use super::runtime::Runtime;
use super::waitable::{IntoRequest, WaitRequest, Waitable};
use crate::time::Nanos;

/// A future that waits for its turn and for capacity, and returns the charged permits. The methods of
/// [`Fair`] create it.
///
/// `F` is a reference or an `Arc` to the [`Fair`]. `Q` is the request: a number of permits, a
/// [`KeyRequest`](super::KeyRequest), or the value that rules check.
///
/// The first poll joins the queue. The permits are charged in the poll that returns them, at the clock reading of that poll.
/// If the future is polled again after it has completed, it waits for the same permits again.
///
/// # Cancel safety
///
/// Dropping the future at any time charges nothing. If it was notified or first in its queue, the next waiter is woken.
///
/// # Caveats
///
/// - A future that is kept but not polled delays the waiters behind it. If it was notified that there is capacity, it delays
///   them for 10 ms. If it is the first of its queue, it delays them until another request for the same state begins to wait.
///   So poll it or drop it. In particular, do not await a limiter while holding an unpolled wait for the same limiter.
/// - A leaked future stays in the queue forever, and calls that do not wait are then denied forever.
/// - The first poll may return `Pending` although there is capacity, to let other tasks run.
///
/// # Examples
///
/// A dropped wait charges nothing:
///
/// ```
/// use core::time::Duration;
/// use ringgate::wait::TokioClock;
/// use ringgate::{CounterRing, Fair, Quota, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let ring = CounterRing::new(Quota::per_second(2)?)?;
/// let limiter = Fair::new(RateLimiter::with_clock(ring, TokioClock::new()));
/// limiter.acquire(2).await?;
/// let wait = tokio::time::timeout(Duration::from_millis(10), limiter.acquire(1));
/// assert!(wait.await.is_err());
/// limiter.acquire(1).within(Duration::from_secs(2)).await?;
/// # Ok(())
/// # }
/// ```
///
/// The type can be named in a struct:
///
/// ```
/// use std::sync::Arc;
/// use ringgate::wait::Acquire;
/// use ringgate::{Fair, Gcra, RateLimiter};
///
/// type Limiter = Arc<Fair<RateLimiter<Gcra>>>;
///
/// struct Connection {
///     limiter: Limiter,
///     pending: Option<Acquire<Limiter>>,
/// }
///
/// impl Connection {
///     fn start(&mut self, permits: u64) {
///         self.pending = Some(Arc::clone(&self.limiter).acquire_owned(permits));
///     }
/// }
/// ```
#[must_use = "a future does nothing until it is polled"]
pub struct Acquire<F: FairRef, Q: WaitRequest<F::Limiter> = u64> {
    fair: F,
    request: Q,
    deadline: Option<Nanos>,
    position: QueuePosition,
    deadline_timer: Option<<F::Runtime as Runtime>::Timer>,
}

impl<L: Waitable, T: Runtime> Fair<L, T> {
    /// Waits until a [request](Self#requests) can be charged, and returns its charge, to [`refund`](Self::refund) or
    /// [`settle`](Self::settle) later.
    ///
    /// A charge of permits may be ignored. Dropping a [`Reservation`](crate::rules::Reservation) keeps its permits charged, and releases
    /// its slots in flight.
    ///
    /// # Errors
    ///
    /// The request cannot wait, or its deadline has passed: see [`WaitError`]. Nothing was charged.
    /// A request for more permits than the limit (for an even ring the largest share, for GCRA the burst) fails at once with
    /// [`WaitError::Never`].
    pub fn acquire<Q: IntoRequest<L>>(&self, request: Q) -> Acquire<&Self, Q::Request> {
        Acquire::new(self, request)
    }

    /// Waits as [`acquire`](Self::acquire) does. The future holds the limiter by its `Arc`, so that a task can be spawned with
    /// it.
    ///
    /// # Errors
    ///
    /// The errors of [`acquire`](Self::acquire).
    pub fn acquire_owned<Q: IntoRequest<L>>(self: Arc<Self>, request: Q) -> Acquire<Arc<Self>, Q::Request> {
        Acquire::new(self, request)
    }
}

impl<F: FairRef, Q: WaitRequest<F::Limiter>> Acquire<F, Q> {
    pub(crate) fn new(fair: F, request: impl IntoRequest<F::Limiter, Request = Q>) -> Self {
        let request = request.into_request(&fair.fair().limiter);
        Self {
            fair,
            request,
            deadline: None,
            position: QueuePosition::default(),
            deadline_timer: None,
        }
    }

    pub(crate) fn limiter(&self) -> &F::Limiter {
        &self.fair.fair().limiter
    }

    /// Exempts the wait from [`Fair::max_waiting`].
    pub(super) const fn exempt(mut self) -> Self {
        self.position.is_exempt = true;
        self
    }

    /// Waits with this ticket until the deadline.
    #[cfg(feature = "shared")]
    pub(super) const fn with_ticket(mut self, ticket: Ticket, deadline: Option<Nanos>) -> Self {
        self.position.reserved = Some(ticket);
        self.deadline = deadline;
        self
    }

    #[cfg(feature = "shared")]
    pub(super) const fn is_queued(&self) -> bool {
        self.position.ticket.is_some()
    }

    /// Sets a deadline: the wait takes at most `allowed`, counted from this call.
    ///
    /// The first poll fails with [`WaitError::TooLate`] if the deadline cannot be met. This is estimated from the permits of
    /// the waiters ahead and from the most that the algorithm admits. The estimate is never too long. It is repeated when half
    /// of the time is left, a quarter and so on, so a wait that was delayed fails before its deadline.
    ///
    /// The timer of the deadline may fire a little late. If there is capacity then, the permits are charged, although the
    /// deadline has passed.
    pub fn within(mut self, allowed: Duration) -> Self {
        self.deadline = Some(self.limiter().now().saturating_add(allowed));
        self
    }
}

impl<F: FairRef + Unpin, Q: WaitRequest<F::Limiter> + Unpin> Future for Acquire<F, Q> {
    type Output = Result<<F::Limiter as Waitable>::Charge, WaitError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            fair,
            request,
            deadline,
            position,
            deadline_timer,
        } = self.get_mut();
        let Fair { queues, limiter, .. } = fair.fair();
        let waker = context.waker();
        let polled = queues.poll((limiter, &*request), position, *deadline, waker);
        match (&polled, *deadline) {
            (Poll::Ready(_), _) => *deadline_timer = None,
            (Poll::Pending, Some(deadline)) if position.ticket.is_some() => {
                let left = deadline.saturating_since(limiter.now());
                // Halfway, the queue tells whether the deadline can still be met.
                let after = if left > 2 * GRACE_PERIOD { left / 2 } else { left };
                // The timer is set again in each poll, because the waker may have changed, and because the last timer
                // may have fired early. There are few polls.
                *deadline_timer = Some(queues.runtime().set_timer(after, waker));
            }
            (Poll::Pending, _) => {}
        }
        polled
    }
}

impl<F: FairRef + Unpin, Q: WaitRequest<F::Limiter> + Unpin> Acquire<F, Q> {
    /// Polls a wait that is used for one request after another. A request that is never admitted stays pending.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<<F::Limiter as Waitable>::Charge> {
        match Pin::new(self).poll(context) {
            Poll::Ready(Ok(acquired)) => Poll::Ready(acquired),
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl<F: FairRef, Q: WaitRequest<F::Limiter>> Acquire<F, Q> {
    pub(super) fn leave(&mut self) {
        let Fair { queues, limiter, .. } = self.fair.fair();
        queues.abandon(&mut self.position, || limiter.now());
    }
}

impl<F: FairRef, Q: WaitRequest<F::Limiter>> Drop for Acquire<F, Q> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<F: FairRef, Q: WaitRequest<F::Limiter>> fmt::Debug for Acquire<F, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire")
            .field("position", &self.position)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
