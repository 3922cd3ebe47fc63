use super::*;

/// The time line of all processes. The clock of each process has its origin somewhere on it.
pub(crate) struct Line {
    now: u64,
    newest: u64,
    /// The origin of the clock of the current process.
    pub(crate) origin: u64,
    pub(crate) clock: ManualClock,
    /// How far the clock may step back behind the newest time.
    pub(crate) behind: u64,
    /// The time on the line that a wait or a gap of a history stands for.
    pub(crate) pace: fn(u64) -> u64,
    /// The first reading of a clock that a reading of a history stands for.
    pub(crate) pace_of_readings: fn(u64) -> u64,
}

impl Line {
    /// A line at the time `now`. Its first process has a clock that shows `reading`, and later ones have earlier and later origins.
    pub(crate) fn new(now: u64, reading: u64) -> Self {
        let clock = ManualClock::new();
        clock.set(Nanos::new(reading));
        Self {
            now,
            newest: now,
            origin: now - reading,
            clock,
            behind: u64::MAX,
            pace: |time| time,
            pace_of_readings: |reading| reading,
        }
    }

    pub(crate) fn wait(&mut self, time: u64) {
        self.now += (self.pace)(time);
        self.show();
    }

    /// Steps back, but not to a time before the origin of the clock.
    pub(crate) fn back(&mut self, time: u64) {
        let least = self.newest.saturating_sub(self.behind).max(self.origin);
        self.now = self.now.saturating_sub((self.pace)(time)).max(least);
        self.show();
    }

    /// Begins another process, whose clock shows `reading`.
    pub(crate) fn restart(&mut self, gap: u64, reading: u64) {
        self.now += (self.pace)(gap);
        self.origin = self.now - (self.pace_of_readings)(reading);
        self.clock = ManualClock::new();
        self.show();
    }

    fn show(&mut self) {
        self.newest = self.newest.max(self.now);
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
