//! The clock that terms end by, which also counts the time that the machine was suspended: a node that wakes up is not to
//! spend what was given to others meanwhile.

use alloc::sync::Arc;
use core::fmt;

use crate::clock::Clock;

/// A clock for terms, in nanoseconds since some moment.
#[derive(Clone)]
pub(super) struct TermClock(Source);

#[derive(Clone)]
enum Source {
    /// Of Linux: since the machine was started.
    #[cfg(target_os = "linux")]
    Boot,
    /// Elsewhere, the monotonic clock, which may stand still meanwhile, or the wall clock, whichever has gone farther:
    /// with a wall clock that is set back, as much of a suspension is not counted as it was set back by.
    #[cfg(not(target_os = "linux"))]
    Both {
        monotonic: std::time::Instant,
        wall: std::time::SystemTime,
    },
    /// The user's.
    Given(Arc<dyn Clock + Send + Sync>),
}

impl TermClock {
    pub(super) fn new() -> Self {
        #[cfg(target_os = "linux")]
        return Self(Source::Boot);
        #[cfg(not(target_os = "linux"))]
        Self(Source::Both {
            monotonic: std::time::Instant::now(),
            wall: std::time::SystemTime::now(),
        })
    }

    pub(super) fn given(clock: Arc<dyn Clock + Send + Sync>) -> Self {
        Self(Source::Given(clock))
    }

    #[inline]
    pub(super) fn now(&self) -> u64 {
        match &self.0 {
            #[cfg(target_os = "linux")]
            Source::Boot => {
                let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
                // Neither is negative: since the machine was started.
                (now.tv_sec as u64)
                    .wrapping_mul(1_000_000_000)
                    .wrapping_add(now.tv_nsec as u64)
            }
            #[cfg(not(target_os = "linux"))]
            Source::Both { monotonic, wall } => {
                let most = monotonic.elapsed().max(wall.elapsed().unwrap_or_default());
                u64::try_from(most.as_nanos()).unwrap_or(u64::MAX)
            }
            Source::Given(clock) => clock.now().get(),
        }
    }
}

impl fmt::Debug for TermClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TermClock").field(&self.now()).finish()
    }
}
