use std::time::Duration;

use ringgate::sync::Shared;
use ringgate::{Algorithm, Nanos};

use crate::{Any, HORIZON, Kind, Setting, fresh};

/// Permits that were admitted or charged, at the reading that the caller gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub now: Nanos,
    pub permits: u64,
    pub debt: bool,
}

/// The definition of an algorithm, evaluated over the whole history each time.
#[derive(Clone, Debug)]
pub struct Reference {
    kind: Kind,
    limit: u64,
    burst: u64,
    window: u64,
    cells: u64,
    width: u64,
    /// Where in the cycle of shares the first cell is.
    phase: u64,
    events: Vec<Event>,
    /// The newest reading that later calls adopt.
    published: Nanos,
    denial_publishes: bool,
    exact: bool,
}

impl Reference {
    pub fn new(setting: &Setting, algorithm: &Any) -> Self {
        let window = setting.window().as_nanos() as u64;
        let limit = setting.limit();
        let cells = setting.cells();
        let width = window.div_ceil(cells);
        let phase = match setting.kind {
            Kind::Even => phase(algorithm, limit, cells, width),
            _ => 0,
        };
        Self {
            kind: setting.kind,
            limit,
            burst: setting.burst(),
            window,
            cells,
            width,
            phase,
            events: Vec::new(),
            published: Nanos::ZERO,
            // A counter ring of several words enters a cell when it is first looked at.
            denial_publishes: matches!(algorithm, Any::Counter(_)) && algorithm.words() > 1,
            exact: match setting.kind {
                // The cells of further windows begin where the definition leaves open.
                Kind::Several => false,
                // Up to here a timestamp ring counts single nanoseconds.
                Kind::TimestampRing => limit <= 2,
                _ => true,
            },
        }
    }

    pub fn cell(&self) -> Duration {
        Duration::from_nanos(self.width)
    }

    pub fn newest(&self) -> Nanos {
        self.published
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Whether the definition admits `permits`. `None` if it leaves the answer open.
    pub fn fits(&self, now: Nanos, permits: u64) -> Option<bool> {
        let used = self.used(now);
        // The reading that a timestamp ring adopts is rounded, which makes the ring stricter by a unit.
        let rounded = self.kind == Kind::TimestampRing && now < self.published;
        if !self.exact || rounded || used.get() > HORIZON {
            return None;
        }
        if permits == 0 {
            return Some(true);
        }
        let ring = |summed: u64| {
            let cell = used.get() / self.width;
            let sum: u64 = self.sum(|event| event / self.width + summed > cell);
            sum.saturating_add(permits) <= self.limit
        };
        Some(match self.kind {
            Kind::Strict => ring(self.cells + 1),
            Kind::Classic => ring(self.cells),
            Kind::Even => {
                let cell = used.get() / self.width;
                let share = share(cell + self.phase, self.limit, self.cells);
                let newest: u64 = self.sum(|event| event / self.width == cell);
                ring(self.cells) && newest.saturating_add(permits) <= share
            }
            Kind::TimestampRing => {
                let sum = self.sum(|event| event + self.window > used.get());
                sum.saturating_add(permits) <= self.limit
            }
            Kind::Gcra => {
                let permit = u128::from((self.window * 2).div_ceil(self.limit));
                let units = |nanos: Nanos| u128::from(nanos.get()) * 2;
                let arrival = |seen: u128, now: Nanos, permits: u64| {
                    seen.max(units(now)) + u128::from(permits) * permit
                };
                let seen = self
                    .events
                    .iter()
                    .fold(0, |seen, event| arrival(seen, event.now, event.permits));
                arrival(seen, now, permits) - units(now) <= u128::from(self.burst) * permit
            }
            Kind::Several => unreachable!("never exact"),
        })
    }

    fn sum(&self, counts: impl Fn(u64) -> bool) -> u64 {
        self.events
            .iter()
            .filter(|event| counts(event.now.get()))
            .fold(0, |sum, event| sum.saturating_add(event.permits))
    }

    /// The reading that a call with the reading `now` uses. (The bucket has no newest time; it is
    /// judged at the caller's.)
    fn used(&self, now: Nanos) -> Nanos {
        if self.kind == Kind::Gcra {
            now
        } else {
            now.max(self.published)
        }
    }

    pub fn take(&mut self, now: Nanos, permits: u64, debt: bool) {
        if permits == 0 {
            // Nothing was taken, and no reading published.
            let now = Nanos::ZERO;
            self.events.push(Event { now, permits, debt });
            return;
        }
        let used = self.used(now);
        if self.kind == Kind::TimestampRing && now < self.published {
            // As in `fits`, and what was recorded stays.
            self.exact = false;
        }
        self.publish(now);
        self.events.push(Event {
            now: used,
            permits,
            debt,
        });
    }

    pub fn denied(&mut self, now: Nanos) {
        if self.denial_publishes {
            self.publish(now);
        }
    }

    fn publish(&mut self, now: Nanos) {
        self.published = self.published.max(now);
    }

    /// Takes `permits` of what event `index` took out of the history.
    pub fn give_back(&mut self, index: usize, permits: u64) {
        let event = &mut self.events[index];
        event.permits -= permits;
        if event.permits == 0 && self.kind != Kind::Gcra {
            // As if it had never been. (A bucket keeps the time: an older reading does not find it fuller.)
            event.now = Nanos::ZERO;
        }
    }

    /// Debt was forgiven: from here on there is nothing to compare with.
    pub fn forgive(&mut self) {
        self.exact = false;
    }
}

/// The share of a cell.
fn share(cell: u64, limit: u64, cells: u64) -> u64 {
    let index = cell % cells;
    (index + 1) * limit / cells - index * limit / cells
}

/// Where in the cycle of shares the first cell is, which is the ring's own business.
fn phase(algorithm: &Any, limit: u64, cells: u64, width: u64) -> u64 {
    let unused = fresh(algorithm.words());
    let offered = |cell: u64| algorithm.remaining(Shared::new(&unused), Nanos::new(cell * width));
    (0..cells)
        .find(|phase| (0..cells).all(|cell| offered(cell) == share(cell + phase, limit, cells)))
        .expect("the cells of a window are offered the shares of the limit, in turn")
}
