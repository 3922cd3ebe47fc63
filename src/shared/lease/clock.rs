//! The clock that terms end by. It counts the time that the machine is suspended, since a node that wakes up must not spend
//! permits that others were granted meanwhile.

use alloc::sync::Arc;
use core::fmt;
#[cfg(target_os = "linux")]
use core::sync::atomic::Ordering;
use core::time::Duration;

use crate::clock::Clock;
#[cfg(target_os = "linux")]
use crate::sync::AtomicU64;

/// A clock for terms, in nanoseconds from an arbitrary origin.
pub(crate) struct TermClock(ClockSource);

/// The clocks by which terms end.
enum ClockSource {
    #[cfg(target_os = "linux")]
    Boot(Boot),
    /// On other systems, the monotonic clock, which may stop during a suspension, or the wall clock, whichever has advanced
    /// more. If the wall clock is set back, that much of a suspension is not counted.
    #[cfg(not(target_os = "linux"))]
    Both {
        monotonic: std::time::Instant,
        wall: std::time::SystemTime,
    },
    /// A clock of the user's.
    Given(Arc<dyn Clock + Send + Sync>),
}

/// The duration in nanoseconds, at most `u64::MAX`.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl TermClock {
    /// The system's clock. `coarse`: readings of [`now`](Self::now) may be late, by less than the [margin](Self::margin).
    pub(crate) fn new(coarse: bool) -> Self {
        #[cfg(target_os = "linux")]
        return Self(ClockSource::Boot(Boot::new(coarse)));
        #[cfg(not(target_os = "linux"))]
        {
            let _ = coarse;
            Self(ClockSource::Both {
                monotonic: std::time::Instant::now(),
                wall: std::time::SystemTime::now(),
            })
        }
    }

    pub(crate) fn given(clock: Arc<dyn Clock + Send + Sync>) -> Self {
        Self(ClockSource::Given(clock))
    }

    /// The shortest term for which late readings are worth their margin, in nanoseconds.
    ///
    /// The kernel's coarse clock has steps of 1 to 10 ms. On a virtual processor it is also late by the time that the
    /// processor waits to run.
    pub(crate) const LEAST_COARSE: u64 = 1_000_000_000;

    /// The part of a term that must stay unused: an eighth, since this clock and the store's may run at different speeds
    /// while one of them is corrected, and another eighth if readings may be late.
    pub(crate) const fn margin(&self, term: u64) -> u64 {
        match &self.0 {
            #[cfg(target_os = "linux")]
            ClockSource::Boot(boot) if boot.coarse => term / 4,
            _ => term / 8,
        }
    }

    /// The present time, for a decision.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        match &self.0 {
            #[cfg(target_os = "linux")]
            ClockSource::Boot(boot) => boot.now(),
            _ => self.exact(),
        }
    }

    /// The present time, without delay.
    pub(crate) fn exact(&self) -> u64 {
        match &self.0 {
            #[cfg(target_os = "linux")]
            ClockSource::Boot(_) => read(rustix::time::ClockId::Boottime),
            #[cfg(not(target_os = "linux"))]
            ClockSource::Both { monotonic, wall } => {
                let most = monotonic.elapsed().max(wall.elapsed().unwrap_or_default());
                u64::try_from(most.as_nanos()).unwrap_or(u64::MAX)
            }
            ClockSource::Given(clock) => clock.now().get(),
        }
    }
}

/// A cheap form of `CLOCK_BOOTTIME`.
///
/// `CLOCK_BOOTTIME` takes 23 ns to read, the coarse clocks 2.4 ns each, measured on the machine of `benches/README.md`.
/// The coarse monotonic clock does not count suspended time, and the coarse wall clock can be set. But the wall clock
/// is the monotonic clock plus an offset, which only a suspension or a change of the wall clock alters. While that
/// offset is the same to the nanosecond, the offset from the monotonic clock to `CLOCK_BOOTTIME` is unchanged, too.
#[cfg(target_os = "linux")]
struct Boot {
    coarse: bool,
    /// The wall clock minus the monotonic clock, modulo 2^64.
    wall: AtomicU64,
    /// `CLOCK_BOOTTIME` minus the monotonic clock, rounded up by a few nanoseconds. It never decreases.
    boot: AtomicU64,
}

#[cfg(target_os = "linux")]
impl Boot {
    fn new(coarse: bool) -> Self {
        let boot = Self {
            coarse,
            wall: AtomicU64::new(u64::MAX),
            boot: AtomicU64::new(0),
        };
        boot.learn();
        boot
    }

    #[inline]
    fn now(&self) -> u64 {
        use rustix::time::ClockId::{MonotonicCoarse, RealtimeCoarse};
        let (monotonic, wall) = (read(MonotonicCoarse), read(RealtimeCoarse));
        // Acquire: pairs with the Release in `learn`; a reader of the new wall offset reads the boot offset that belongs to it.
        if self.coarse && wall.wrapping_sub(monotonic) == self.wall.load(Ordering::Acquire) {
            // Relaxed: ordered by the load above; a newer offset is larger, which is stricter.
            return monotonic + self.boot.load(Ordering::Relaxed);
        }
        self.learn()
    }

    /// Reads the exact time and both offsets again, after the machine was suspended, the wall clock was set, or a step of the
    /// coarse clocks fell between two readings.
    #[cold]
    fn learn(&self) -> u64 {
        use rustix::time::ClockId::{Boottime, Monotonic, MonotonicCoarse, RealtimeCoarse};
        if self.coarse {
            let wall = read(RealtimeCoarse).wrapping_sub(read(MonotonicCoarse));
            // The monotonic clock first: time that passes in between makes the offset larger, which ends terms earlier.
            let offset = |_| {
                let monotonic = read(Monotonic);
                read(Boottime).saturating_sub(monotonic)
            };
            // After the wall clock: if the machine is suspended in between, the wall offset is outdated and never matches. Three
            // times, since a thread that is stopped between two readings would make the offset larger for ever.
            let boot = (0..3).map(offset).fold(u64::MAX, u64::min);
            // Relaxed: published by the store that follows. Of two threads here at once, the larger offset stays.
            self.boot.fetch_max(boot, Ordering::Relaxed);
            // Release: pairs with the Acquire in `now`.
            self.wall.store(wall, Ordering::Release);
        }
        read(Boottime)
    }
}

#[cfg(target_os = "linux")]
#[inline]
fn read(clock: rustix::time::ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    // Not negative before the year 2262.
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

impl fmt::Debug for TermClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TermClock").field(&self.exact()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A coarse reading is late by less than the margin.
    #[test]
    fn late_readings_are_within_their_margin() {
        let clock = TermClock::new(true);
        let margin = clock.margin(2_000_000_000);
        for _ in 0..100_000 {
            let before = clock.exact();
            let now = clock.now();
            assert!(now + margin.max(1) > before, "{now} {before}");
        }
    }

    #[test]
    fn a_suspension_is_noticed() {
        let clock = TermClock::new(true);
        #[cfg(target_os = "linux")]
        if let ClockSource::Boot(boot) = &clock.0 {
            // As if the machine had been suspended since the offsets were read. Relaxed: `learn` is called by this thread, which sees
            // its own stores.
            boot.wall.store(1, Ordering::Relaxed);
            boot.boot.store(0, Ordering::Relaxed);
            let before = clock.exact();
            assert!(clock.now() >= before, "the first reading is exact");
            assert_ne!(boot.wall.load(Ordering::Relaxed), 1);
        }
    }
}
