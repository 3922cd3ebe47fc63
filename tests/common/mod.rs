//! Parts that several test binaries use: words that can be copied and compared, all algorithms as one type, and the exact
//! log.

mod windows;

use core::fmt;
use core::sync::atomic::Ordering;
use core::time::Duration;

pub(crate) use ringgate::AnyAlgorithm as Any;
use ringgate::sync::{AtomicU64, Exclusive, Shared};
use ringgate::{Algorithm, Nanos};
use windows::most_in_a_window;

/// The share of a cell in the limit. Any `cells` consecutive shares add up to the limit, ⌊(i + 1)·L/N⌋ − ⌊i·L/N⌋ each. Cells are
/// counted from the origin of the clock.
pub(crate) fn share(limit: u64, cells: u64, cell: u64) -> u64 {
    (cell % cells + 1) * limit / cells - (cell % cells) * limit / cells
}

/// The nanoseconds per unit of a log: the smallest of 1, 2, 5, 10, … with which 20 years of 366 days fit into 62
/// bits, beside the index of `limit` slots and one bit. Recorded times are rounded up to a unit, and requested times
/// are rounded down.
pub(crate) fn unit(limit: u64) -> u64 {
    let twenty_years = 20 * 366 * 24 * 3600 * 1_000_000_000_u128;
    let times = (1 << 61) / u128::from(limit.next_power_of_two()) - 1;
    (0..)
        .flat_map(|power| [1, 2, 5].map(|step| step * 10_u64.pow(power)))
        .find(|&unit| u128::from(unit) * times >= twenty_years)
        .expect("some unit is large enough")
}

/// The words of one state.
#[derive(Debug)]
pub(crate) struct State(Vec<AtomicU64>);

impl State {
    pub(crate) fn fresh(algorithm: &impl Algorithm) -> Self {
        Self((0..algorithm.words()).map(|_| AtomicU64::new(0)).collect())
    }

    pub(crate) fn shared(&self) -> Shared<'_> {
        Shared::new(&self.0)
    }

    pub(crate) fn exclusive(&mut self) -> Exclusive<'_> {
        Exclusive::new(&mut self.0)
    }
}

impl Clone for State {
    fn clone(&self) -> Self {
        let copy = |word: &AtomicU64| AtomicU64::new(word.load(Ordering::Relaxed));
        Self(self.0.iter().map(copy).collect())
    }
}

/// All admissions that were not refunded: the reading that decided each, and its permits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Vec<(u64, u64)>);

impl Log {
    pub(crate) fn add(&mut self, at: Nanos, permits: u64) {
        self.0.push((at.get(), permits));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes `permits` of the admission with this index.
    pub(crate) fn remove(&mut self, index: usize, permits: u64) {
        self.0[index].1 -= permits;
    }

    /// Permits admitted in the half-open interval `(now − window, now]`, and after `now`.
    pub(crate) fn count(&self, now: u64, window: u64) -> u64 {
        let counts = |&&(at, _): &&(u64, u64)| at.saturating_add(window) > now;
        self.0.iter().filter(counts).map(|&(_, permits)| permits).sum()
    }

    /// The most permits in any window of the whole history.
    pub(crate) fn worst(&self, window: Duration) -> u64 {
        let window = u64::try_from(window.as_nanos()).expect("a window of at most 366 days");
        most_in_a_window(&mut self.0.clone(), window)
    }
}

/// An algorithm under test, with each of its windows and the bound of the window.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) algorithm: Any,
    pub(crate) bounds: Vec<(Duration, u64)>,
}

impl Subject {
    pub(crate) fn new(name: impl Into<String>, algorithm: impl Into<Any>) -> Self {
        let algorithm = algorithm.into();
        let bounds = vec![(algorithm.window(), algorithm.bound())];
        Self {
            name: name.into(),
            algorithm,
            bounds,
        }
    }

    /// Adds a further window with its bound, for a ring that has several windows.
    pub(crate) fn and(mut self, window: Duration, bound: u64) -> Self {
        self.bounds.push((window, bound));
        self
    }

    /// The first window that exceeds its bound: the window, its permits and the bound.
    pub(crate) fn broken(&self, log: &Log) -> Option<(Duration, u64, u64)> {
        self.bounds
            .iter()
            .map(|&(window, bound)| (window, log.worst(window), bound))
            .find(|&(_, worst, bound)| worst > bound)
    }
}

/// Only the name, from which the rest follows.
impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
