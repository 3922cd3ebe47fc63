use std::time::Duration;

use ringgate::{Algorithm, Nanos};

use crate::exact::{Counting, Definition, Exact, Mark};
use crate::{Any, HORIZON, Kind, Setting};

/// Permits that were admitted or charged.
///
/// `now` is the reading that the algorithm used, and `debt` is true for permits charged without a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub now: Nanos,
    pub permits: u64,
    pub debt: bool,
}

/// The definition of an algorithm, and the history of its charges.
#[derive(Clone, Debug)]
pub struct Reference {
    kind: Kind,
    width: u64,
    definition: Exact,
    events: Vec<Event>,
    /// The charge of each event, and its permits before any refund.
    marks: Vec<(Mark, u64)>,
    /// The newest reading in the state. Calls with an older reading use this one.
    published: Nanos,
    denial_publishes: bool,
    exact: bool,
}

impl Reference {
    pub fn new(setting: &Setting, algorithm: &Any) -> Self {
        let window = setting.window().as_nanos() as u64;
        let (limit, cells) = (setting.limit(), setting.cells());
        let width = window.div_ceil(cells);
        let definition = match setting.kind {
            Kind::TimestampRing => Definition::log(limit, window),
            Kind::Gcra => Definition::bucket(limit, window, setting.burst()),
            kind => Definition {
                limit,
                counting: Counting::Cells {
                    cells,
                    summed: cells + u64::from(kind == Kind::Strict),
                    width,
                    tick: width,
                    shares: kind == Kind::Even,
                },
            },
        };
        // A counter ring of several words enters a cell with the first call in it, even if that is denied.
        let denial_publishes = matches!(algorithm, Any::Counter(_)) && algorithm.words() > 1;
        Self {
            kind: setting.kind,
            width,
            definition: Exact::new(vec![definition], denial_publishes),
            events: Vec::new(),
            marks: Vec::new(),
            published: Nanos::ZERO,
            denial_publishes,
            // The definition leaves open where the cells of further windows begin, and what is forgotten with a unit.
            exact: !matches!(setting.kind, Kind::Several | Kind::Units | Kind::Window),
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
        let is_known = self.exact && self.used(now).get() <= HORIZON;
        is_known.then(|| permits == 0 || permits <= self.definition.remaining(now.get()))
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
        self.marks
            .push((self.definition.charge(now.get(), permits), permits));
        // A charge of no permits has no effect. It keeps the indexes of events equal to those of the calls.
        let mut used = Nanos::ZERO;
        if permits > 0 {
            used = self.used(now);
            self.published = self.published.max(now);
        }
        self.events.push(Event {
            now: used,
            permits,
            debt,
        });
    }

    pub fn denied(&mut self, now: Nanos) {
        self.definition.deny(now.get());
        if self.denial_publishes {
            self.published = self.published.max(now);
        }
    }

    /// Removes `permits` of the event `index` from the history.
    pub fn refund(&mut self, index: usize, permits: u64) {
        let (mark, charged) = self.marks[index];
        let done = self.definition.refund(mark, charged, permits);
        // Near the end of time, the cells of some rings stand still.
        let is_known = self.exact && self.published.get() <= HORIZON;
        assert!(
            done || !is_known,
            "the definition refunds no {permits} of {mark:?}"
        );
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
