use core::fmt;
use core::future::Future;
use core::hash::{Hash, Hasher};
use core::pin::Pin;
use core::task::{Context, Waker};
use core::time::Duration;

use alloc::boxed::Box;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::coop::{Unconstrained, unconstrained};
use tokio::time::{Sleep, sleep};

/// What wakes those who wait.
///
/// [`TokioRuntime`] is the one that is meant for use; another one is for another runtime, or for tests that fire alarms
/// by hand.
///
/// # Examples
///
/// ```
/// use core::task::Waker;
/// use core::time::Duration;
/// use ringgate::{Fair, Gcra, Quota, RateLimiter, Runtime, TokioClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// /// A thread for each alarm: enough for a few who wait, in any executor.
/// struct Threads;
///
/// impl Runtime for Threads {
///     /// An alarm that cannot be called off wakes somebody for nothing, which is allowed.
///     type Alarm = ();
///
///     fn alarm(&self, after: Duration, waker: &Waker) {
///         let waker = waker.clone();
///         std::thread::spawn(move || {
///             std::thread::sleep(after);
///             waker.wake();
///         });
///     }
/// }
///
/// let pace = Gcra::token_bucket(Quota::per_second(100)?, 1)?;
/// let limiter = RateLimiter::with_clock(pace, TokioClock::new());
/// let limiter = Fair::with_runtime(limiter, Threads);
/// limiter.until_ready().await?;
/// limiter.until_ready().await?;
/// # Ok(())
/// # }
/// ```
pub trait Runtime {
    /// An alarm that was set; dropping it calls it off.
    type Alarm: Send + Unpin;

    /// Wakes `waker` once when `after` has passed, or later; also when the alarm can no longer be kept. Waking it too
    /// early or more than once costs a look at the limiter, no more.
    ///
    /// Called while a lock of the [`Fair`](super::Fair) is held: wake nobody at once, do not block, and do not come
    /// back to it.
    fn alarm(&self, after: Duration, waker: &Waker) -> Self::Alarm;

    /// A number of the runtime that this runs in, which no other has; `None` outside of any, or where there is only
    /// one. An alarm is set by whoever runs in the same runtime, or by the one it is for.
    fn here(&self) -> Option<u64> {
        None
    }

    /// A number of the task that is running, which no other task has; `None` where that is not known, and then no task
    /// is made to give way to others while permits are to be had at once.
    fn task(&self) -> Option<u64> {
        None
    }

    /// Wakes all of them, so that they run in this order as far as the runtime lets that be chosen.
    fn wake(&self, wakers: impl Iterator<Item = Waker>) {
        wakers.for_each(Waker::wake);
    }
}

/// Waiting by tokio's timer, to the millisecond.
///
/// # Panics
///
/// Whoever has to wait outside of a tokio runtime, or in one without its time driver, panics, as with
/// [`tokio::time::sleep`].
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioRuntime;

/// An alarm of [`TokioRuntime`].
pub struct TokioAlarm {
    /// Registered with the timer, and never looked at again: whoever is woken asks the limiter.
    _sleep: Pin<Box<Unconstrained<Sleep>>>,
}

impl fmt::Debug for TokioAlarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioAlarm").finish_non_exhaustive()
    }
}

impl Runtime for TokioRuntime {
    type Alarm = TokioAlarm;

    fn alarm(&self, after: Duration, waker: &Waker) -> TokioAlarm {
        // Unconstrained: the waker may be another task's, whom the budget of this one does not concern.
        let mut alarm = Box::pin(unconstrained(sleep(after)));
        // Over already, if the thread was stopped for a while: a little later then, when no lock is held.
        while alarm.as_mut().poll(&mut Context::from_waker(waker)).is_ready() {
            alarm.set(unconstrained(sleep(Duration::from_millis(1))));
        }
        TokioAlarm { _sleep: alarm }
    }

    fn here(&self) -> Option<u64> {
        Handle::try_current().ok().map(|handle| Number::of(handle.id()))
    }

    fn task(&self) -> Option<u64> {
        tokio::task::try_id().map(Number::of)
    }

    fn wake(&self, mut wakers: impl Iterator<Item = Waker>) {
        // A worker of several runs next what was woken last, and all others in order.
        let next = if wakes_last_first() { wakers.next() } else { None };
        wakers.chain(next).for_each(Waker::wake);
    }
}

/// Whether the running task is on a worker of tokio's runtime of several threads.
fn wakes_last_first() -> bool {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    tokio::task::try_id().is_some() && matches!(flavor, Ok(RuntimeFlavor::MultiThread))
}

/// A hash that is the number itself.
struct Number(u64);

impl Number {
    fn of(id: impl Hash) -> u64 {
        let mut number = Self(0);
        id.hash(&mut number);
        number.finish()
    }
}

impl Hasher for Number {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 << 8) | u64::from(byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
