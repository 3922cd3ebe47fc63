use super::*;

/// The time line of all processes. The clock of each process has its origin somewhere on it.
pub(crate) struct Line {
    now: u64,
    /// The origin of the clock of the current process.
    origin: u64,
    pub(crate) clock: ManualClock,
}

impl Line {
    /// A line whose first process has a clock that shows `reading`.
    pub(crate) fn new(reading: u64) -> Self {
        // Later processes have earlier and later origins.
        let now = 1_000_000_000_000;
        let clock = ManualClock::new();
        clock.set(Nanos::new(reading));
        Self {
            now,
            origin: now - reading,
            clock,
        }
    }

    pub(crate) fn wait(&mut self, time: u64) {
        self.now += time;
        self.show();
    }

    /// Steps back, but not to a time before the origin of the clock.
    pub(crate) fn back(&mut self, time: u64) {
        self.now = self.now.saturating_sub(time).max(self.origin);
        self.show();
    }

    /// Begins another process, whose clock shows `reading`.
    pub(crate) fn restart(&mut self, gap: u64, reading: u64) {
        self.now += gap;
        self.origin = self.now - reading;
        self.clock = ManualClock::new();
        self.show();
    }

    fn show(&self) {
        self.clock.set(Nanos::new(self.now - self.origin));
    }

    /// The current time on the line.
    pub(crate) fn now(&self) -> Nanos {
        Nanos::new(self.now)
    }

    /// The time on the line that a reading of the current clock stands for.
    pub(crate) fn time_of(&self, reading: Nanos) -> Nanos {
        reading.saturating_add(Duration::from_nanos(self.origin))
    }
}
