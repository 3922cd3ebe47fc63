//! An algorithm that counts its charges, and the limiters of the tests.

use core::sync::atomic::AtomicU64;

use super::*;
use ringgate::sync::Words;
use ringgate::{Algorithm, Receipt, TimestampRing};

/// An algorithm with counters.
#[derive(Clone, Debug)]
pub(crate) struct Spy {
    algorithm: AnyAlgorithm,
    pub(crate) counters: Arc<Counters>,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) admitted: AtomicU64,
    pub(crate) refunded: AtomicU64,
    /// Calls that used shared words, by locked instructions.
    pub(crate) locked: AtomicU64,
    /// Permits charged without capacity.
    pub(crate) forced: AtomicU64,
}

impl Counters {
    pub(crate) fn charged(&self) -> u64 {
        self.admitted.load(Ordering::Relaxed) - self.refunded.load(Ordering::Relaxed)
    }

    fn step<W: Words>(&self) {
        if !core::any::type_name::<W>().contains("Exclusive") {
            self.locked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

pub(crate) type Limiter = RateLimiter<Spy, TokioClock>;

pub(crate) fn limiter(algorithm: impl Into<AnyAlgorithm>) -> (Limiter, Arc<Counters>) {
    let spy = Spy {
        algorithm: algorithm.into(),
        counters: Arc::default(),
    };
    let counters = Arc::clone(&spy.counters);
    (RateLimiter::with_clock(spy, TokioClock::new()), counters)
}

/// A bucket of `bytes` per second, in bursts of a hundredth of that.
pub(crate) fn steady(bytes: u64) -> Gcra {
    Gcra::token_bucket(Quota::per_second(bytes).unwrap(), (bytes / 100).max(1)).unwrap()
}

/// A bucket with a queue that connections share.
pub(crate) fn shared(bytes: u64) -> Arc<Fair<Limiter>> {
    Arc::new(Fair::new(limiter(steady(bytes)).0))
}

/// A connection that writes to a wire within a shared limit.
pub(crate) fn writer(shared: &Arc<Fair<Limiter>>, wire: Wire) -> Throttled<Wire> {
    let builder = Throttled::builder(wire).write_shared(Arc::clone(shared));
    builder.build().unwrap()
}

/// A connection that reads and writes within a shared limit.
pub(crate) fn both_ways<S>(shared: &Arc<Fair<Limiter>>, inner: S) -> Throttled<S> {
    let builder = Throttled::builder(inner).read_shared(Arc::clone(shared));
    builder.write_shared(Arc::clone(shared)).build().unwrap()
}

/// Runs a future in paused time.
pub(crate) fn paused(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(future);
}

/// Number of algorithms that [`kind`] knows.
pub(crate) const KINDS: usize = 8;

pub(crate) fn kind(number: usize, limit: u64, window: Duration) -> AnyAlgorithm {
    let quota = Quota::new(limit, window).unwrap();
    let ring = || CounterRing::builder(quota);
    match number {
        0 => ring().build().unwrap().into(),
        1 => ring().classic().build().unwrap().into(),
        2 => ring().even().build().unwrap().into(),
        3 => ring().cells(60).unpacked().build().unwrap().into(),
        4 => CounterRing::fixed_window(quota).unwrap().into(),
        5 => TimestampRing::new(quota).unwrap().into(),
        6 => Gcra::new(quota).unwrap().into(),
        _ => Gcra::token_bucket(quota, (limit / 50).max(1)).unwrap().into(),
    }
}

impl Algorithm for Spy {
    fn words(&self) -> usize {
        self.algorithm.words()
    }

    fn max_request(&self) -> u64 {
        self.algorithm.max_request()
    }

    fn bound(&self) -> u64 {
        self.algorithm.bound()
    }

    fn window(&self) -> Duration {
        self.algorithm.window()
    }

    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        self.counters.step::<W>();
        let decided = self.algorithm.decide(words, now, permits);
        if decided.is_some() {
            self.counters.admitted.fetch_add(permits, Ordering::Relaxed);
        }
        decided
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        self.algorithm.ready_at(words, now, permits)
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.algorithm.remaining(words, now)
    }

    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        self.counters.step::<W>();
        let exact = self.algorithm.refund(words, receipt, permits);
        if exact {
            self.counters.refunded.fetch_add(permits, Ordering::Relaxed);
        }
        exact
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        self.counters.step::<W>();
        self.counters.forced.fetch_add(permits, Ordering::Relaxed);
        self.algorithm.charge(words, now, permits)
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.algorithm.spent(words, now)
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        self.algorithm.idle_at(words, now)
    }
}
