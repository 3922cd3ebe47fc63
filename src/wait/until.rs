use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use super::ask::Ask;
use super::error::WaitError;
use super::room::Place;
use super::runtime::Runtime;
use crate::time::Nanos;

/// Waits for its turn and for room: a future, made by the methods of [`Fair`](super::Fair).
///
/// It stands in line from its first poll on. What it takes, it takes in the poll that says so, at the reading of that
/// moment. Polled once more after that, it waits for as much again.
///
/// # Cancel safety
///
/// Dropping it at any time takes nothing, and passes its turn on.
///
/// # Caveats
///
/// - A wait that is kept and not polled holds up the others: for 10 ms when it was told that there is room, and when it
///   is the first in line until somebody else begins to wait for the same state. Poll it or drop it. So do not wait for
///   a limiter while you hold another wait for the same one that you do not poll. (One that is leaked is in line for
///   ever, and keeps calls that do not wait from taking.)
/// - Now and then it lets other tasks run before it takes what is to be had at once, so it may be pending the first
///   time that it is polled though there is room.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::{CounterRing, Fair, Quota, RateLimiter, TokioClock};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let ring = CounterRing::new(Quota::per_second(2)?)?;
/// let limiter = Fair::new(RateLimiter::with_clock(ring, TokioClock::new()));
/// limiter.until_n_ready(2).await?;
/// // Dropped before its turn: nothing was taken, and whoever is behind it goes on.
/// let waits = tokio::time::timeout(Duration::from_millis(10), limiter.until_ready());
/// assert!(waits.await.is_err());
/// limiter.until_ready().within(Duration::from_secs(2)).await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a future does nothing until it is polled"]
pub struct Until<A: Ask> {
    ask: A,
    deadline: Option<Nanos>,
    place: Place,
    /// For the deadline.
    alarm: Option<<A::Runtime as Runtime>::Alarm>,
}

impl<A: Ask> Until<A> {
    pub(super) fn new(ask: A) -> Self {
        Self {
            ask,
            deadline: None,
            place: Place::default(),
            alarm: None,
        }
    }

    /// Waits even when as many wait as may.
    pub(super) fn insisting(mut self) -> Self {
        self.place.insist();
        self
    }

    /// Waits for `allowed` at the most, from this call on (not from the first poll). It is refused at once when it
    /// cannot be served by then, to judge by what those before it need and by the algorithm's bound.
    ///
    /// An alarm may ring a little late. If there is room then, the permits are taken although the deadline has passed.
    pub fn within(mut self, allowed: Duration) -> Self {
        self.deadline = Some(self.ask.now().saturating_add(allowed));
        self
    }
}

impl<A: Ask + Unpin> Future for Until<A> {
    type Output = Result<A::Taken, WaitError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let waker = context.waker();
        let polled = this
            .ask
            .room()
            .poll(&this.ask, &mut this.place, this.deadline, waker);
        match (&polled, this.deadline) {
            (Poll::Ready(_), _) => this.alarm = None,
            (Poll::Pending, Some(deadline)) if this.place.is_taken() => this.watch(deadline, waker),
            (Poll::Pending, _) => {}
        }
        polled
    }
}

impl<A: Ask + Unpin> Until<A> {
    /// Waits as often as it is polled to its end; for ever for what never comes.
    pub(super) fn poll_again(&mut self, context: &mut Context<'_>) -> Poll<A::Taken> {
        match Pin::new(self).poll(context) {
            Poll::Ready(Ok(taken)) => Poll::Ready(taken),
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl<A: Ask> Until<A> {
    /// Leaves the line, if it stands in one.
    pub(super) fn leave(&mut self) {
        let Self { ask, place, .. } = self;
        ask.room().abandon(place, || ask.now());
    }

    /// Sees to it that the waker is woken at the deadline.
    fn watch(&mut self, deadline: Nanos, waker: &Waker) {
        let after = deadline.saturating_since(self.ask.now());
        // Each time anew: it is polled once or twice, and an alarm that was early is not to be the last.
        self.alarm = Some(self.ask.room().runtime().alarm(after, waker));
    }
}

impl<A: Ask> Drop for Until<A> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<A: Ask> fmt::Debug for Until<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Until")
            .field("place", &self.place)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
