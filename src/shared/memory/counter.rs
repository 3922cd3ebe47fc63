//! One counter of a store in memory: the permits of its window, and its leases.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::leases::Leases;
use crate::shared::lease::nanos;
use crate::shared::store::{CounterRequest, CounterStatus, Counting, LeaseGrant, LeaseRequest};

/// A counter. Times are in nanoseconds of the store's clock.
#[derive(Debug)]
pub(super) struct Counter {
    /// The width of a cell, or 1 for a log: an entry of a log is a cell of one nanosecond.
    width: u64,
    /// How long a cell counts after its begin.
    span: u64,
    /// The permits of each cell, by the cell's number, oldest first.
    cells: VecDeque<(u64, u64)>,
    charged: u64,
    leases: Leases,
    /// The number of resets, so that permits from before one are not refunded after it.
    era: u64,
    /// The newest reading. An older one counts as this one, so a clock that goes back only makes the counter stricter.
    latest: u64,
}

impl Counter {
    pub(super) fn new(request: &CounterRequest) -> Self {
        let window = nanos(request.window());
        let (width, span) = match request.counting() {
            Counting::Log => (1, window),
            Counting::Cells(cells) => {
                let width = window.div_ceil(cells.max(1)).max(1);
                (width, width.saturating_mul(cells.saturating_add(1)))
            }
        };
        Self {
            width,
            span,
            cells: VecDeque::new(),
            charged: 0,
            leases: Leases::default(),
            era: 0,
            latest: 0,
        }
    }

    /// The end of the time in which a cell counts.
    fn end_of(&self, cell: u64) -> u64 {
        cell.saturating_mul(self.width).saturating_add(self.span)
    }

    /// Removes what no longer counts at `now`.
    pub(super) fn advance(&mut self, now: u64) {
        self.latest = self.latest.max(now);
        while let Some(&(cell, permits)) = self.cells.front()
            && self.end_of(cell) <= self.latest
        {
            self.charged -= permits;
            self.cells.pop_front();
        }
        self.leases.advance(self.latest);
    }

    /// Whether nothing counts at `now`.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        let now = self.latest.max(now);
        let last = self.cells.back();
        last.is_none_or(|&(cell, _)| self.end_of(cell) <= now) && self.leases.is_expired(now)
    }

    /// The status of a request, which is not charged yet.
    pub(super) fn status(&self, request: &CounterRequest, now: u64) -> CounterStatus {
        let (limit, permits) = (request.limit(), request.permits());
        let taken = self.charged + self.leases.held() + request.reserve();
        let remaining = limit.saturating_sub(taken);
        if permits <= remaining {
            return CounterStatus::with_room(remaining);
        }
        let after = (permits <= limit).then(|| self.wait(taken + permits - limit, request.window(), now));
        CounterStatus::without_room(remaining, after)
    }

    /// The time until so many permits have left the window.
    fn wait(&self, mut leaving: u64, window: Duration, now: u64) -> Duration {
        let now = self.latest.max(now);
        for &(cell, permits) in &self.cells {
            leaving = leaving.saturating_sub(permits);
            if leaving == 0 {
                return Duration::from_nanos(self.end_of(cell) - now);
            }
        }
        // Only leases are in the way. They end by themselves, and may be given back at any time.
        let last = self.leases.held_until().unwrap_or(now).max(now);
        Duration::from_nanos(last - now).max(window)
    }

    /// Charges permits, whether there is room or not, and returns the cell and the era as a receipt.
    pub(super) fn charge(&mut self, request: &CounterRequest, now: u64) -> (u64, u64) {
        (self.charge_permits(request.permits(), now), self.era)
    }

    fn charge_permits(&mut self, permits: u64, now: u64) -> u64 {
        let cell = self.latest.max(now) / self.width;
        self.charged += permits;
        match self.cells.back_mut() {
            Some((last, charged)) if *last == cell => *charged += permits,
            _ => self.cells.push_back((cell, permits)),
        }
        cell
    }

    /// Takes permits out of a cell, and returns how many: all of them, or none if the cell has left the window.
    pub(super) fn refund(&mut self, permits: u64, (cell, era): (u64, u64)) -> u64 {
        match self.cells.iter_mut().find(|(number, _)| *number == cell) {
            Some((_, charged)) if *charged >= permits && era == self.era => {
                *charged -= permits;
                self.charged -= permits;
                permits
            }
            _ => 0,
        }
    }

    /// Forgets the permits, but not the leases.
    pub(super) fn reset(&mut self) {
        self.cells.clear();
        self.charged = 0;
        self.era += 1;
    }

    /// Answers a lease request, by the rules of [`LeaseStore`](crate::shared::LeaseStore).
    pub(super) fn renew(&mut self, request: &LeaseRequest, now: u64) -> LeaseGrant {
        let now = self.latest.max(now);
        let known = self.leases.take(request.lease_id(), now);
        if known.is_none() && !request.is_new() {
            return LeaseGrant::unknown();
        }
        let mut lease = known.unwrap_or_default();
        let limit = request.counter().limit();
        // Without its own permits, which are its part of the limit already.
        let free = |counter: &Self| limit.saturating_sub(counter.charged + counter.leases.held());
        if request.sequence() > lease.sequence {
            if request.charge() > 0 {
                // Whether there is room or not: the permits were spent under the lease.
                self.charge_permits(request.charge(), now);
            }
            let covered = lease.granted.min(request.cap()).saturating_sub(request.charge());
            let some = match request.is_registered() {
                // A registered lease gets at most half, so that others find room.
                true => free(self).div_ceil(2),
                false => free(self),
            };
            lease.granted = covered.max(request.wanted().min(some));
            lease.sequence = request.sequence();
        }
        let left = free(self).saturating_sub(lease.granted);
        let held = if request.is_registered() { lease.granted } else { 0 };
        let times = (nanos(request.term()), nanos(request.counter().window()));
        self.leases.insert(request.lease_id(), lease, held, now, times);
        let grant = LeaseGrant::of(lease.granted);
        match left {
            0 => grant.with_remaining(0, self.wait(1, request.counter().window(), now)),
            left => grant.with_remaining(left, Duration::ZERO),
        }
    }
}
