use std::time::Duration;

use ringgate::sync::Shared;
use ringgate::{Algorithm, Nanos};

use crate::{Any, HORIZON, Kind, Setting, fresh};

/// Permits that were admitted or charged.
///
/// `now` is the reading that the algorithm used, and `debt` is true for permits charged without a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub now: Nanos,
    pub permits: u64,
    pub debt: bool,
}

/// The definition of an algorithm, evaluated over the whole history in each call.
#[derive(Clone, Debug)]
pub struct Reference {
    kind: Kind,
    limit: u64,
    burst: u64,
    window: u64,
    cells: u64,
    width: u64,
    /// The position of the first cell in the cycle of shares.
    phase: u64,
    events: Vec<Event>,
    /// The newest reading in the state. Calls with an older reading use this one.
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
            // A counter ring of several words enters a cell with the first call in it, even if that is denied.
            denial_publishes: matches!(algorithm, Any::Counter(_)) && algorithm.words() > 1,
            exact: match setting.kind {
                // The definition leaves open where the cells of further windows begin, and what is forgotten with a unit.
                Kind::Several | Kind::Units | Kind::Window => false,
                // With a higher limit, a timestamp ring counts in units of several nanoseconds.
                Kind::TimestampRing => limit <= 2,
                _ => true,
            },
        }
    }

    pub fn cell(&self) -> Duration {
        Duration::from_nanos(self.width)
    }

    /// Whether the state may remember permits in units, which are forgotten as a whole.
    pub fn counts_units(&self) -> bool {
        matches!(self.kind, Kind::Units | Kind::Window)
    }

    pub fn newest(&self) -> Nanos {
        self.published
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns whether the definition admits `permits`, or `None` if it leaves the answer open.
    pub fn fits(&self, now: Nanos, permits: u64) -> Option<bool> {
        let used = self.used(now);
        // A timestamp ring stores its newest reading rounded, which makes the ring stricter by a unit.
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
            Kind::Several | Kind::Units | Kind::Window => unreachable!("never exact"),
        })
    }

    fn sum(&self, counts: impl Fn(u64) -> bool) -> u64 {
        self.events
            .iter()
            .filter(|event| counts(event.now.get()))
            .fold(0, |sum, event| sum.saturating_add(event.permits))
    }

    /// Returns the reading that a call uses which passes `now`. GCRA has no newest time and uses that of the caller.
    fn used(&self, now: Nanos) -> Nanos {
        if self.kind == Kind::Gcra {
            now
        } else {
            now.max(self.published)
        }
    }

    /// Records permits that were admitted, or charged if `debt` is true.
    pub fn charge(&mut self, now: Nanos, permits: u64, debt: bool) {
        if permits == 0 {
            // The event has no effect. It keeps the indexes of events equal to those of the calls.
            let now = Nanos::ZERO;
            self.events.push(Event { now, permits, debt });
            return;
        }
        let used = self.used(now);
        if self.kind == Kind::TimestampRing && now < self.published {
            // The recorded reading is rounded, as in `fits`, so no later answer is exact.
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

    /// Removes `permits` of the event `index` from the history.
    pub fn refund(&mut self, index: usize, permits: u64) {
        let event = &mut self.events[index];
        event.permits -= permits;
        if event.permits == 0 && self.kind != Kind::Gcra {
            // The event has no effect any more. GCRA keeps its time.
            event.now = Nanos::ZERO;
        }
    }

    /// Records that a charge exceeded the debt that the words can hold. No later answer is exact.
    pub fn charge_was_cut(&mut self) {
        self.exact = false;
    }
}

/// Returns the share of the limit that the cell has.
fn share(cell: u64, limit: u64, cells: u64) -> u64 {
    let index = cell % cells;
    (index + 1) * limit / cells - index * limit / cells
}

/// Returns the position of the first cell in the cycle of shares. The definition leaves it to the ring.
fn phase(algorithm: &Any, limit: u64, cells: u64, width: u64) -> u64 {
    let unused = fresh(algorithm.words());
    let capacity = |cell: u64| algorithm.remaining(Shared::new(&unused), Nanos::new(cell * width));
    (0..cells)
        .find(|phase| (0..cells).all(|cell| capacity(cell) == share(cell + phase, limit, cells)))
        .expect("the cells of a window have the shares of the limit, in turn")
}
