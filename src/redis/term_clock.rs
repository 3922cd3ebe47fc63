//! The clock that terms end by, which also counts the time that the machine was suspended: a node that wakes up is not to
//! spend what was given to others meanwhile.

use alloc::sync::Arc;
use core::fmt;
#[cfg(target_os = "linux")]
use core::sync::atomic::Ordering;

use crate::clock::Clock;
#[cfg(target_os = "linux")]
use crate::sync::AtomicU64;

/// A clock for terms, in nanoseconds since some moment.
pub(super) struct TermClock(Source);

enum Source {
    #[cfg(target_os = "linux")]
    Boot(Boot),
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
    /// The system's. `coarse`: readings of [`now`](Self::now) may be late, by less than the [margin](Self::margin).
    pub(super) fn new(coarse: bool) -> Self {
        #[cfg(target_os = "linux")]
        return Self(Source::Boot(Boot::new(coarse)));
        #[cfg(not(target_os = "linux"))]
        {
            let _ = coarse;
            Self(Source::Both {
                monotonic: std::time::Instant::now(),
                wall: std::time::SystemTime::now(),
            })
        }
    }

    pub(super) fn given(clock: Arc<dyn Clock + Send + Sync>) -> Self {
        Self(Source::Given(clock))
    }

    /// The shortest term for which late readings are worth their margin. The kernel's coarse clock has steps of 1 to
    /// 10 ms; where the processor that moves it is a virtual one that has to wait for its turn, it is later by as much.
    pub(super) const LEAST_COARSE: u64 = 1_000_000_000;

    /// By how much a term must be shorter: an eighth, since this clock and the server's may run at different speeds, as
    /// while one is corrected; and as much again where readings may be late.
    pub(super) const fn margin(&self, term: u64) -> u64 {
        match &self.0 {
            #[cfg(target_os = "linux")]
            Source::Boot(boot) if boot.coarse => term / 4,
            _ => term / 8,
        }
    }

    /// The time now, for a decision.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        match &self.0 {
            #[cfg(target_os = "linux")]
            Source::Boot(boot) => boot.now(),
            _ => self.exact(),
        }
    }

    /// The time now, as exactly as can be.
    pub(super) fn exact(&self) -> u64 {
        match &self.0 {
            #[cfg(target_os = "linux")]
            Source::Boot(_) => read(rustix::time::ClockId::Boottime),
            #[cfg(not(target_os = "linux"))]
            Source::Both { monotonic, wall } => {
                let most = monotonic.elapsed().max(wall.elapsed().unwrap_or_default());
                u64::try_from(most.as_nanos()).unwrap_or(u64::MAX)
            }
            Source::Given(clock) => clock.now().get(),
        }
    }
}

/// `CLOCK_BOOTTIME` takes 23 ns to read, the coarse clocks 2.4 ns each. Of these there is none that counts suspended time
/// and cannot be set; but the wall clock is the monotonic one and an offset, which nothing changes but a suspension or
/// somebody who sets it. So as long as the offset is, to the nanosecond, what it was, what lies between the
/// monotonic clock and `CLOCK_BOOTTIME` is what it was too.
#[cfg(target_os = "linux")]
struct Boot {
    coarse: bool,
    /// The wall clock less the monotonic one, modulo 2^64.
    wall: AtomicU64,
    /// `CLOCK_BOOTTIME` less the monotonic one, a little more than it is: it never becomes less.
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
        // Acquire: pairs with the Release in `learn`; who sees the new offset sees what goes with it.
        if self.coarse && wall.wrapping_sub(monotonic) == self.wall.load(Ordering::Acquire) {
            // Relaxed: as above; a newer one is later, and stricter.
            return monotonic + self.boot.load(Ordering::Relaxed);
        }
        self.learn()
    }

    /// The exact time, and the offsets anew: the clocks' step fell between two readings, or somebody has set the wall
    /// clock, or the machine was suspended.
    #[cold]
    fn learn(&self) -> u64 {
        use rustix::time::ClockId::{Boottime, Monotonic, MonotonicCoarse, RealtimeCoarse};
        if self.coarse {
            let wall = read(RealtimeCoarse).wrapping_sub(read(MonotonicCoarse));
            // After the wall clock: if the machine was suspended in between, what is noted belongs to the time before, and is
            // not found again. The monotonic clock first: what passes in between makes the offset greater.
            let monotonic = read(Monotonic);
            let boot = read(Boottime).saturating_sub(monotonic);
            // Relaxed: published by the store that follows. Two who learn at once leave the greater one.
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
    // Not negative, until the year 2262.
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

    /// It is late by less than the margin, and hardly ever early: by what passes between two readings.
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
        if let Source::Boot(boot) = &clock.0 {
            // As if the machine had been suspended since: what was noted is of another time.
            boot.wall.store(1, Ordering::Relaxed);
            boot.boot.store(0, Ordering::Relaxed);
            let before = clock.exact();
            assert!(clock.now() >= before, "the first reading is exact");
            assert_ne!(boot.wall.load(Ordering::Relaxed), 1);
        }
    }
}
