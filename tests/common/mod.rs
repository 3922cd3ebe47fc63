//! What the test binaries share: words that can be copied and compared, any algorithm behind one
//! type, and the exact log.

use core::fmt;
use core::sync::atomic::Ordering;
use core::time::Duration;

use ringgate::sync::{AtomicU64, Exclusive, Shared, Words};
use ringgate::{Algorithm, ConfigError, CounterRing, Gcra, Nanos, Receipt, Reclaim, Refusal, TimestampRing};

/// The words of one key, as a test holds them.
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

/// Any of the crate's algorithms, so that one test speaks of all of them.
#[derive(Clone, Debug)]
pub(crate) enum Any {
    Counter(CounterRing),
    Stamps(TimestampRing),
    Gcra(Gcra),
}

impl From<CounterRing> for Any {
    fn from(ring: CounterRing) -> Self {
        Self::Counter(ring)
    }
}

impl From<TimestampRing> for Any {
    fn from(ring: TimestampRing) -> Self {
        Self::Stamps(ring)
    }
}

impl From<Gcra> for Any {
    fn from(gcra: Gcra) -> Self {
        Self::Gcra(gcra)
    }
}

macro_rules! each {
    ($any:expr, $algorithm:ident => $work:expr) => {
        match $any {
            Any::Counter($algorithm) => $work,
            Any::Stamps($algorithm) => $work,
            Any::Gcra($algorithm) => $work,
        }
    };
}

impl Algorithm for Any {
    fn words(&self) -> usize {
        each!(self, it => it.words())
    }

    fn most(&self) -> u64 {
        each!(self, it => it.most())
    }

    fn bound(&self) -> u64 {
        each!(self, it => it.bound())
    }

    fn window(&self) -> Duration {
        each!(self, it => it.window())
    }

    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Result<Receipt, Refusal> {
        each!(self, it => it.decide(words, now, permits))
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        each!(self, it => it.ready_at(words, now, permits))
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        each!(self, it => it.remaining(words, now))
    }

    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        each!(self, it => it.refund(words, receipt, permits))
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        each!(self, it => it.charge(words, now, permits))
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        each!(self, it => it.spent(words, now))
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        each!(self, it => it.idle_at(words, now))
    }
}

impl Reclaim for Any {
    fn span(&self) -> Duration {
        each!(self, it => it.span())
    }

    fn attempt<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Result<Receipt, Refusal>> {
        each!(self, it => it.attempt(words, now, permits))
    }

    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        each!(self, it => it.is_idle(first, now))
    }

    fn later(&self, first: u64, now: Nanos) -> Option<u64> {
        each!(self, it => it.later(first, now))
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        each!(self, it => it.idle_from(first))
    }

    fn reached(&self, first: u64) -> Nanos {
        each!(self, it => it.reached(first))
    }

    fn lowered(&self, limit: u64) -> Result<Self, ConfigError> {
        Ok(match self {
            Self::Counter(it) => Self::Counter(it.lowered(limit)?),
            Self::Stamps(it) => Self::Stamps(it.lowered(limit)?),
            Self::Gcra(it) => Self::Gcra(it.lowered(limit)?),
        })
    }
}

/// Every admission that was not given back: when, by the reading that decided it, and how many permits.
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

    /// Takes back `permits` of the admission numbered `index`.
    pub(crate) fn remove(&mut self, index: usize, permits: u64) {
        self.0[index].1 -= permits;
    }

    /// Permits admitted in the half-open interval `(now − window, now]`, and after `now`.
    pub(crate) fn count(&self, now: u64, window: u64) -> u64 {
        let counts = |&&(at, _): &&(u64, u64)| at.saturating_add(window) > now;
        self.0.iter().filter(counts).map(|&(_, permits)| permits).sum()
    }

    /// The most permits in any half-open interval of one window, over the whole history: the worst
    /// one ends at an admission.
    pub(crate) fn worst(&self, window: Duration) -> u64 {
        let window = u64::try_from(window.as_nanos()).expect("a window of at most 366 days");
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let (mut first, mut sum, mut worst) = (0, 0, 0);
        for &(end, permits) in &sorted {
            sum += permits;
            // An admission exactly one window old no longer counts.
            while sorted[first].0 + window <= end {
                sum -= sorted[first].1;
                first += 1;
            }
            worst = worst.max(sum);
        }
        worst
    }
}

/// One limiter under test: the algorithm and every window that it promises something for, with that window's
/// bound.
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

    /// The same with a further window, for a ring that has several.
    pub(crate) fn and(mut self, window: Duration, bound: u64) -> Self {
        self.bounds.push((window, bound));
        self
    }

    /// The first window that holds more than its bound: the window, what it holds, and the bound.
    pub(crate) fn broken(&self, log: &Log) -> Option<(Duration, u64, u64)> {
        self.bounds
            .iter()
            .map(|&(window, bound)| (window, log.worst(window), bound))
            .find(|&(_, worst, bound)| worst > bound)
    }
}

/// The name alone: it says how to build the rest.
impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
