use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use super::error::WaitError;
#[cfg(feature = "shared")]
use super::queue::Ticket;
use super::queue::{GRACE_PERIOD, QueuePosition, QueuedRequest, WaitQueues};
use super::runtime::Runtime;
use crate::time::Nanos;

/// A request that an [`Acquire`] waits for.
///
/// This trait is sealed. [`PermitRequest`](super::PermitRequest) implements it. With a bound such as
/// `AcquireRequest<Acquired = Receipt>`, a function takes an `Acquire` by reference and one by `Arc`.
pub trait AcquireRequest: QueuedRequest {
    /// The runtime of the limiter.
    type Runtime: Runtime;

    /// Calls `work` with the queues of the limiter.
    #[doc(hidden)]
    fn with_queues<O>(&self, work: impl FnOnce(&WaitQueues<Self::Runtime>) -> O) -> O;
}

/// A future that waits for its turn and for capacity, and returns the charged permits. The methods of
/// [`Fair`](super::Fair) create it.
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
/// use ringgate::wait::{Acquire, PermitRequest};
/// use ringgate::{Fair, Gcra, RateLimiter};
///
/// type Limiter = Arc<Fair<RateLimiter<Gcra>>>;
///
/// struct Connection {
///     limiter: Limiter,
///     pending: Option<Acquire<PermitRequest<Limiter>>>,
/// }
///
/// impl Connection {
///     fn start(&mut self, permits: u64) {
///         self.pending = Some(Arc::clone(&self.limiter).acquire_owned(permits));
///     }
/// }
/// ```
#[must_use = "a future does nothing until it is polled"]
pub struct Acquire<R: AcquireRequest> {
    request: R,
    deadline: Option<Nanos>,
    position: QueuePosition,
    deadline_timer: Option<<R::Runtime as Runtime>::Timer>,
}

impl<R: AcquireRequest> Acquire<R> {
    pub(super) fn new(request: R) -> Self {
        Self {
            request,
            deadline: None,
            position: QueuePosition::default(),
            deadline_timer: None,
        }
    }

    /// Exempts the wait from [`Fair::max_waiting`](super::Fair::max_waiting).
    pub(super) const fn exempt(mut self) -> Self {
        self.position.exempt();
        self
    }

    /// Waits with this ticket until the deadline.
    #[cfg(feature = "shared")]
    pub(super) const fn with_ticket(mut self, ticket: Ticket, deadline: Option<Nanos>) -> Self {
        self.position.reserve(ticket);
        self.deadline = deadline;
        self
    }

    #[cfg(feature = "shared")]
    pub(super) const fn is_queued(&self) -> bool {
        self.position.is_queued()
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
        self.deadline = Some(self.request.now().saturating_add(allowed));
        self
    }
}

impl<R: AcquireRequest + Unpin> Future for Acquire<R> {
    type Output = Result<R::Acquired, WaitError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            request,
            deadline,
            position,
            deadline_timer,
        } = self.get_mut();
        let (request, waker) = (&*request, context.waker());
        request.with_queues(|queues| {
            let polled = queues.poll(request, position, *deadline, waker);
            match (&polled, *deadline) {
                (Poll::Ready(_), _) => *deadline_timer = None,
                (Poll::Pending, Some(deadline)) if position.is_queued() => {
                    let left = deadline.saturating_since(request.now());
                    // Halfway, the queue tells whether the deadline can still be met.
                    let after = if left > 2 * GRACE_PERIOD { left / 2 } else { left };
                    // The timer is set again in each poll, because the waker may have changed, and because the last timer
                    // may have fired early. There are few polls.
                    *deadline_timer = Some(queues.runtime().set_timer(after, waker));
                }
                (Poll::Pending, _) => {}
            }
            polled
        })
    }
}

impl<R: AcquireRequest + Unpin> Acquire<R> {
    /// Polls a wait that is used for one request after another. A request that is never admitted stays pending.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<R::Acquired> {
        match Pin::new(self).poll(context) {
            Poll::Ready(Ok(acquired)) => Poll::Ready(acquired),
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl<R: AcquireRequest> Acquire<R> {
    pub(super) fn leave(&mut self) {
        let Self {
            request, position, ..
        } = self;
        request.with_queues(|queues| queues.abandon(position, || request.now()));
    }
}

impl<R: AcquireRequest> Drop for Acquire<R> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<R: AcquireRequest> fmt::Debug for Acquire<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire")
            .field("position", &self.position)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
