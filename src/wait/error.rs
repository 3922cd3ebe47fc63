use core::fmt;
use core::time::Duration;

/// Why a wait has ended without permits, or did not begin. Nothing was taken.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::{CounterRing, Fair, Quota, RateLimiter, TokioClock, WaitError};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let ring = CounterRing::new(Quota::per_second(2)?)?;
/// let limiter = Fair::new(RateLimiter::with_clock(ring, TokioClock::new()));
/// assert_eq!(limiter.until_n_ready(3).await, Err(WaitError::Never));
/// limiter.until_n_ready(2).await?;
/// match limiter.until_ready().within(Duration::from_millis(100)).await {
///     // Said at once, so that there is time to do something else.
///     Err(WaitError::TooLate { needed, allowed }) => assert!(needed > allowed),
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError {
    /// It is never admitted: it asks for more permits than the limit, its key is always refused, or it lacks a key that
    /// it must have.
    Never,
    /// As many wait already as [may](super::Fair::max_waiting).
    QueueFull {
        /// The most that may wait.
        allowed: usize,
        /// How long it would have taken at the least.
        needed: Duration,
    },
    /// The deadline cannot be met, or has passed. When it has passed, `allowed` is zero, and `needed` is for this
    /// request alone.
    TooLate {
        /// How long it takes at the least, from now on.
        needed: Duration,
        /// How long there is.
        allowed: Duration,
    },
}

/// Why a call that does not wait got no permits. Nothing was taken.
///
/// # Examples
///
/// ```
/// use ringgate::{CounterRing, Fair, Quota, RateLimiter, TokioClock, TurnError};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let ring = CounterRing::new(Quota::per_second(2)?)?;
/// let limiter = Fair::new(RateLimiter::with_clock(ring, TokioClock::new()));
/// assert!(limiter.check_n(2).is_ok());
/// match limiter.check() {
///     Err(TurnError::Denied(Some(after))) => println!("come back in {after:?}"),
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnError {
    /// There is no room; after this time there would be if nobody else asked. `None`: never.
    Denied(Option<Duration>),
    /// Others wait, and come first.
    Queued,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => {
                f.write_str("never admitted: more permits than the limit, or a key that is always refused")
            }
            Self::QueueFull { allowed, .. } => write!(f, "{allowed} wait already, and no more than that may"),
            Self::TooLate { needed, allowed } => {
                write!(f, "it takes at least {needed:?}, but allowed is {allowed:?}")
            }
        }
    }
}

impl core::error::Error for WaitError {}

impl fmt::Display for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(Some(after)) => write!(f, "rate limit reached; try again in {after:?}"),
            Self::Denied(None) => f.write_str("never admitted"),
            Self::Queued => f.write_str("others wait, and come first"),
        }
    }
}

impl core::error::Error for TurnError {}
