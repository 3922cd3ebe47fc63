use core::fmt;
use core::time::Duration;

/// Why a wait ended without permits, or did not begin. Nothing was charged.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::wait::{TokioClock, WaitError};
/// use ringgate::{CounterRing, Fair, Quota, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let ring = CounterRing::new(Quota::per_second(2)?)?;
/// let limiter = Fair::new(RateLimiter::with_clock(ring, TokioClock::new()));
/// assert_eq!(limiter.acquire(3).await, Err(WaitError::Never));
/// limiter.acquire(2).await?;
/// match limiter.acquire(1).within(Duration::from_millis(100)).await {
///     // The error is returned at once, without waiting for the deadline.
///     Err(WaitError::TooLate { needed, allowed }) => assert!(needed > allowed),
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError {
    /// The request is never admitted: it needs more permits than the limit, its key is always denied, or it lacks a
    /// required key.
    Never,
    /// The wait queue is full: see [`Fair::max_waiting`](super::Fair::max_waiting).
    QueueFull {
        /// The maximum number of waiters.
        max_waiting: usize,
        /// The shortest time that the wait would have taken.
        needed: Duration,
    },
    /// The deadline cannot be met or has passed. If it has passed, `allowed` is zero, and `needed` does not count the
    /// requests of other waiters: it is zero if only they, or a late timer, have delayed the request.
    TooLate {
        /// The shortest time that the wait takes from now on.
        needed: Duration,
        /// The time until the deadline.
        allowed: Duration,
    },
    /// The store of shared rules does not answer, and a rule denies requests then (`OnError::Deny`).
    Unavailable,
}

/// Why a call that does not wait was denied. Nothing was charged.
///
/// # Examples
///
/// ```
/// use ringgate::wait::{CheckError, TokioClock};
/// use ringgate::{CounterRing, Fair, Quota, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let ring = CounterRing::new(Quota::per_second(2)?)?;
/// let limiter = Fair::new(RateLimiter::with_clock(ring, TokioClock::new()));
/// assert!(limiter.check(2).is_ok());
/// match limiter.check(1) {
///     Err(CheckError::Denied(Some(retry_after))) => println!("retry after {retry_after:?}"),
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckError {
    /// The limiter has no capacity. A retry after this time is admitted if no other request came before. `None` if the request
    /// is never admitted, or needs a slot in flight, which no time frees.
    Denied(Option<Duration>),
    /// Other requests are waiting, and are served first.
    Queued,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => {
                f.write_str("request is never admitted (it exceeds the limit, or its key is denied)")
            }
            Self::QueueFull { max_waiting, .. } => write!(f, "wait queue is full ({max_waiting} waiters)"),
            Self::TooLate { needed, allowed } if allowed.is_zero() => {
                f.write_str("deadline has passed")?;
                if needed.is_zero() {
                    Ok(())
                } else {
                    write!(f, " (capacity in {needed:?} at the earliest)")
                }
            }
            Self::TooLate { needed, allowed } => {
                write!(
                    f,
                    "deadline cannot be met: in {allowed:?} (expected at least {needed:?})"
                )
            }
            Self::Unavailable => f.write_str("store of the limits does not answer"),
        }
    }
}

impl core::error::Error for WaitError {}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(Some(after)) => write!(f, "rate limit reached (retry after {after:?})"),
            Self::Denied(None) => f.write_str("request is never admitted"),
            Self::Queued => f.write_str("rate limit reached (other requests are waiting)"),
        }
    }
}

impl core::error::Error for CheckError {}
