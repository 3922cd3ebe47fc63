use core::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::time::Nanos;

/// A clock that reads tokio's time, for tests of code that waits. `tokio::time::pause` stops and advances this time.
///
/// If tokio's time is paused and a limiter has any other clock, awaiting the limiter polls it in a loop until the time has
/// really passed. A reading reads the operating system's clock, which costs two to three times as much as a reading of the
/// default clock.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::wait::TokioClock;
/// use ringgate::{CounterRing, Fair, Quota, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let ring = CounterRing::new(Quota::per_hour(1)?)?;
/// let limiter = Fair::new(RateLimiter::with_clock(ring, TokioClock::new()));
/// let start = tokio::time::Instant::now();
/// limiter.acquire(1).await?;
/// // Tokio's time advances by an hour at once.
/// limiter.acquire(1).await?;
/// assert!(start.elapsed() >= Duration::from_secs(3600));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    origin: Instant,
}

impl TokioClock {
    /// Creates a clock whose origin is the current time.
    #[must_use]
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Nanos {
        Nanos::ZERO.saturating_add(self.origin.elapsed())
    }

    /// 500 ppm, the most that the operating system may slew its clock (`adjtimex(2)`).
    fn error(&self, over: Duration) -> Duration {
        over / 2000
    }
}
