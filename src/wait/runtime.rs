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

/// The timers and tasks that a [`Fair`](super::Fair) needs of an async runtime.
///
/// [`TokioRuntime`] is the default. Implement the trait for another runtime, or for tests that fire timers by hand.
///
/// # Examples
///
/// For a few waiters, in any executor, one thread per timer suffices:
///
/// ```
/// use core::task::Waker;
/// use core::time::Duration;
/// use ringgate::wait::{Runtime, TokioClock};
/// use ringgate::{Fair, Gcra, Quota, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// struct Threads;
///
/// impl Runtime for Threads {
///     /// Not cancellable: a spurious wake-up is allowed.
///     type Timer = ();
///
///     fn set_timer(&self, after: Duration, waker: &Waker) {
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
/// limiter.acquire(1).await?;
/// limiter.acquire(1).await?;
/// # Ok(())
/// # }
/// ```
pub trait Runtime {
    /// A timer that was set. Dropping it cancels it.
    type Timer: Send + Unpin;

    /// Sets a timer that wakes `waker` once, when `after` has passed or later, and also if the runtime shuts down before. An
    /// early or repeated wake-up costs a check for capacity.
    ///
    /// This method is called while a lock of the [`Fair`](super::Fair) is held. It must not wake `waker` itself, block, or call
    /// the `Fair`.
    fn set_timer(&self, after: Duration, waker: &Waker) -> Self::Timer;

    /// Returns a number that identifies the current runtime. `None` outside of any runtime, or if there is only one runtime.
    ///
    /// A waiter relies only on timers that were set in its own runtime, because another runtime may stop.
    fn runtime_id(&self) -> Option<u64> {
        None
    }

    /// Returns a number that identifies the current task. `None` if it is unknown. Such a task never yields to others while
    /// there is capacity.
    fn task_id(&self) -> Option<u64> {
        None
    }

    /// Wakes all of `wakers`, so that their tasks run in this order as far as the runtime allows it.
    fn wake_all(&self, wakers: impl Iterator<Item = Waker>) {
        wakers.for_each(Waker::wake);
    }
}

/// The timers of tokio, with a resolution of one millisecond.
///
/// # Panics
///
/// A wait without capacity panics outside of a tokio runtime, or in one without its time driver, as
/// [`tokio::time::sleep`] does.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioRuntime;

/// A timer of [`TokioRuntime`].
#[expect(unnameable_types, reason = "it is only dropped")]
pub struct TokioTimer {
    /// It is registered with the time driver, and not polled again. The waiter that it wakes checks for capacity.
    _sleep: Pin<Box<Unconstrained<Sleep>>>,
}

impl fmt::Debug for TokioTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioTimer").finish_non_exhaustive()
    }
}

impl Runtime for TokioRuntime {
    type Timer = TokioTimer;

    fn set_timer(&self, after: Duration, waker: &Waker) -> Self::Timer {
        // Unconstrained: the waker may belong to another task, and must not depend on the budget of this one.
        let mut timer = Box::pin(unconstrained(sleep(after)));
        // If the thread was suspended, the time may already have passed. The timer then fires a little later, when the lock is
        // released.
        while timer.as_mut().poll(&mut Context::from_waker(waker)).is_ready() {
            timer.set(unconstrained(sleep(Duration::from_millis(1))));
        }
        TokioTimer { _sleep: timer }
    }

    fn runtime_id(&self) -> Option<u64> {
        Handle::try_current().ok().map(|handle| IdHasher::id(handle.id()))
    }

    fn task_id(&self) -> Option<u64> {
        tokio::task::try_id().map(IdHasher::id)
    }

    fn wake_all(&self, mut wakers: impl Iterator<Item = Waker>) {
        // A worker of a multi-thread runtime begins with the task that was woken last. It runs the others in order.
        let first = if is_worker() { wakers.next() } else { None };
        wakers.chain(first).for_each(Waker::wake);
    }
}

/// Whether the current task runs on a worker of a multi-thread runtime.
fn is_worker() -> bool {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    tokio::task::try_id().is_some() && matches!(flavor, Ok(RuntimeFlavor::MultiThread))
}

/// Extracts the number from an id of tokio, which offers it only to a hasher.
struct IdHasher(u64);

impl IdHasher {
    fn id(id: impl Hash) -> u64 {
        let mut hasher = Self(0);
        id.hash(&mut hasher);
        hasher.finish()
    }
}

impl Hasher for IdHasher {
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
