use core::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::time::Nanos;

/// Tokio's clock, which stands still and jumps with `tokio::time::pause`: for tests of what waits.
///
/// With any other clock, a limiter that is waited for while time is paused is asked again and again until the time has
/// really passed. A reading costs what the operating system's clock does, twice or three times the default clock's.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::{CounterRing, Fair, Quota, RateLimiter, TokioClock};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let ring = CounterRing::new(Quota::per_hour(1)?)?;
/// let limiter = Fair::new(RateLimiter::with_clock(ring, TokioClock::new()));
/// let began = tokio::time::Instant::now();
/// limiter.until_ready().await?;
/// // An hour later, in no time.
/// limiter.until_ready().await?;
/// assert!(began.elapsed() >= Duration::from_secs(3600));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    origin: Instant,
}

impl TokioClock {
    /// A clock whose origin is now.
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

    /// 500 parts in a million: as much as the operating system may slew its clock (`adjtimex(2)`).
    fn error(&self, over: Duration) -> Duration {
        over / 2000
    }
}
