//! Statistics about the keys of one quota.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use crate::replay::batch::RequestOfKey;
use crate::replay::window::Window;

/// Statistics about one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeySummary {
    pub(crate) rank: Rank,
    pub(crate) first_denied: Option<i64>,
    pub(crate) last_denied: Option<i64>,
}

/// The order of the top keys: by denials, then by the peak, then by requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) denied: u64,
    /// The most permits that were requested in one window.
    pub(crate) peak_demand: u64,
    pub(crate) requests: u64,
    pub(crate) key: Reverse<u64>,
}

/// Statistics about all keys.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) keys: u64,
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    /// The most permits that were admitted to a key in one window.
    pub(crate) worst: u64,
    /// The most permits that a key requested in two windows.
    pub(crate) demand_in_two: u64,
    /// The largest cost that can be admitted.
    cap: u64,
    /// The largest cost of a request.
    pub(crate) largest: u64,
    /// The requests that cost more than `cap`.
    pub(crate) above: u64,
    /// The keys that rank highest so far. The lowest of them is at the top of the heap.
    top: BinaryHeap<Reverse<KeySummary>>,
    present: KeySummary,
    demand: Window,
    in_two: Window,
    charged: Window,
}

/// The largest number of top keys, of one rule and of the report.
pub(crate) const MAX_KEYS: usize = 50;

impl Survey {
    /// A survey for a window in nanoseconds, of an algorithm that admits requests up to the cost `cap`.
    pub(crate) fn new(window: i64, cap: u64) -> Self {
        Self {
            cap,
            largest: 0,
            above: 0,
            keys: 0,
            admitted: 0,
            denied: 0,
            worst: 0,
            demand_in_two: 0,
            top: BinaryHeap::new(),
            present: KeySummary::default(),
            demand: Window::new(window),
            in_two: Window::new(window.saturating_mul(2)),
            charged: Window::new(window),
        }
    }

    /// The highest-ranking keys, in descending order.
    pub(crate) fn top(self) -> impl Iterator<Item = KeySummary> {
        self.top.into_sorted_vec().into_iter().map(|Reverse(found)| found)
    }

    /// Adds a request of the present key, in order of time.
    #[inline]
    pub(crate) fn request(&mut self, request: RequestOfKey) {
        self.present.rank.requests += 1;
        self.largest = self.largest.max(request.permits);
        self.above += u64::from(request.permits > self.cap);
        self.demand.push(request.time, request.permits);
        self.in_two.push(request.time, request.permits);
        if request.denied {
            self.present.rank.denied += 1;
            self.present.first_denied.get_or_insert(request.time);
            self.present.last_denied = Some(request.time);
        }
        if request.admitted {
            self.admitted += 1;
            self.charged.push(request.time, request.permits);
        }
    }

    /// Ends the present key. Returns the most permits that it requested in two windows.
    pub(crate) fn end(&mut self, key: u64) -> u64 {
        let mut found = core::mem::take(&mut self.present);
        (found.rank.peak_demand, found.rank.key) = (self.demand.most(), Reverse(key));
        self.keys += 1;
        self.denied += found.rank.denied;
        self.worst = self.worst.max(self.charged.most());
        let in_two = self.in_two.most();
        self.demand_in_two = self.demand_in_two.max(in_two);
        for window in [&mut self.demand, &mut self.in_two, &mut self.charged] {
            window.clear();
        }
        self.top.push(Reverse(found));
        if self.top.len() > MAX_KEYS {
            self.top.pop();
        }
        in_two
    }
}
