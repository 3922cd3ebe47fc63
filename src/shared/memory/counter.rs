//! One counter of a store in memory: the permits of its window, and its leases.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use super::bucket::TokenBucket;
use super::leases::Leases;
use super::slots::Slots;
use super::violations::KeyViolations;
use crate::shared::lease::nanos;
use crate::shared::store::{CounterRequest, CounterStatus, Counting, LeaseGrant, LeaseRequest};

/// A counter. Times are in nanoseconds of the store's clock.
#[derive(Debug)]
pub(super) struct Counter {
    /// The width of a cell, or 1 for a log: an entry of a log is a cell of one nanosecond.
    width: u64,
    /// The time for which a cell counts after it has begun.
    span: u64,
    /// The permits of each cell, by the cell's number, oldest first.
    cells: VecDeque<(u64, u64)>,
    charged: u64,
    /// The token bucket that replaces the cells.
    bucket: Option<TokenBucket>,
    /// The slots in flight that replace the cells. They have no leases.
    slots: Option<Slots>,
    /// The violations that replace the cells. They have no leases.
    violations: Option<Box<KeyViolations>>,
    leases: Leases,
    /// Grows with each reset, so that permits from before one are not refunded after it.
    era: u64,
    /// The newest reading. An older one counts as this one, so a clock that goes back only makes the counter stricter.
    latest: u64,
}

impl Counter {
    /// An empty counter. `first` is below 2^32, and differs from that of each earlier counter of the store, which may have had the
    /// same name. So no receipt of an earlier counter is one of this counter.
    pub(super) fn new(request: &CounterRequest, first: u64) -> Self {
        // A counter has fewer than 2^32 resets and changes.
        let first = first << 32;
        let window = nanos(request.window());
        let mut counter = Self {
            width: 1,
            span: window,
            cells: VecDeque::new(),
            charged: 0,
            bucket: None,
            slots: None,
            violations: None,
            leases: Leases::default(),
            era: first,
            latest: 0,
        };
        match request.counting() {
            Counting::Log => {}
            Counting::Cells(cells) => {
                counter.width = window.div_ceil(cells.max(1)).max(1);
                counter.span = counter.width.saturating_mul(cells.saturating_add(1));
            }
            Counting::Gcra(_) => counter.bucket = Some(TokenBucket::new(first)),
            Counting::Slots => counter.slots = Some(Slots::default()),
            Counting::Violations => {
                let violations = request.block().map(|block| Box::new(KeyViolations::new(block)));
                counter.violations = violations;
            }
        }
        counter
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
        if let Some(slots) = &mut self.slots {
            slots.advance(self.latest);
        }
        self.leases.advance(self.latest);
    }

    /// Whether nothing counts at `now`.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        let now = self.latest.max(now);
        let last = self.cells.back();
        last.is_none_or(|&(cell, _)| self.end_of(cell) <= now)
            && self.bucket.is_none_or(|bucket| bucket.is_expired(now))
            && self.slots.as_ref().is_none_or(|slots| slots.is_expired(now))
            && self
                .violations
                .as_ref()
                .is_none_or(|violations| violations.is_expired(now))
            && self.leases.is_expired(now)
    }

    /// The permits that are left beside everything charged and registered.
    fn free(&self, request: &CounterRequest, now: u64) -> u64 {
        let free = match (&self.bucket, &self.slots) {
            (Some(bucket), _) => bucket.free(request, self.latest.max(now)),
            (None, Some(slots)) => request.limit().saturating_sub(slots.held()),
            (None, None) => request.limit().saturating_sub(self.charged),
        };
        free.saturating_sub(self.leases.held())
    }

    /// The status of a request, which is not charged yet.
    pub(super) fn status(&self, request: &CounterRequest, now: u64) -> CounterStatus {
        if let Some(violations) = &self.violations {
            return match violations.blocked_for(self.latest.max(now)) {
                Some(left) => CounterStatus::without_room(0, Some(left)),
                None => CounterStatus::with_room(request.limit()),
            };
        }
        let remaining = self.free(request, now);
        if request.permits() <= remaining {
            return CounterStatus::with_room(remaining);
        }
        // No time frees a slot.
        let is_possible = self.slots.is_none() && request.permits() <= request.capacity();
        let after = is_possible.then(|| self.wait(request, request.permits(), now));
        CounterStatus::without_room(remaining, after)
    }

    /// The time until there is room for this number of permits.
    fn wait(&self, request: &CounterRequest, permits: u64, now: u64) -> Duration {
        let now = self.latest.max(now);
        let needed = permits + self.leases.held();
        if let Some(bucket) = &self.bucket
            && let Some(wait) = bucket.wait(request, needed, now)
        {
            return wait;
        }
        let mut leaving = (self.charged + needed).saturating_sub(request.limit());
        for &(cell, permits) in &self.cells {
            leaving = leaving.saturating_sub(permits);
            if leaving == 0 {
                return Duration::from_nanos(self.end_of(cell) - now);
            }
        }
        // Only leases are in the way. They end by themselves, and may be given back at any time.
        let last = self.leases.held_until().unwrap_or(now).max(now);
        Duration::from_nanos(last - now).max(request.window())
    }

    /// Charges permits, whether there is room or not, and returns a receipt.
    pub(super) fn charge(&mut self, request: &CounterRequest, now: u64) -> (u64, u64) {
        self.charge_permits(request, request.permits(), now)
    }

    /// Counts a denied request as a violation, or as a retry if the key is blocked, and returns the status afterwards.
    pub(super) fn violate(&mut self, request: &CounterRequest, now: u64) -> CounterStatus {
        let now = self.latest.max(now);
        let began = match (&mut self.violations, request.block()) {
            (Some(violations), Some(block)) => violations.violate(block, now),
            _ => false,
        };
        self.status(request, now).with_receipt(u64::from(began), 0)
    }

    fn charge_permits(&mut self, request: &CounterRequest, permits: u64, now: u64) -> (u64, u64) {
        let now = self.latest.max(now);
        if let Some(bucket) = &mut self.bucket {
            return bucket.charge(request, permits, now);
        }
        if let Some(slots) = &mut self.slots {
            slots.renew(request.slot(), now.saturating_add(nanos(request.window())));
            return (0, 0);
        }
        if self.violations.is_some() {
            return (0, 0);
        }
        let cell = now / self.width;
        self.charged += permits;
        match self.cells.back_mut() {
            Some((last, charged)) if *last == cell => *charged += permits,
            _ => self.cells.push_back((cell, permits)),
        }
        (cell, self.era)
    }

    /// Takes permits out of a cell or the bucket, and returns how many: all of them, or none if the cell has left the window
    /// or the bucket was charged since.
    pub(super) fn refund(&mut self, request: &CounterRequest, receipt: (u64, u64)) -> u64 {
        if let Some(bucket) = &mut self.bucket {
            return bucket.refund(request, receipt);
        }
        if let Some(slots) = &mut self.slots {
            // A slot that has ended is released already.
            slots.release(request.slot());
            return request.permits();
        }
        if self.violations.is_some() {
            return request.permits();
        }
        let (permits, (cell, era)) = (request.permits(), receipt);
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
        if let Some(bucket) = &mut self.bucket {
            bucket.reset();
        }
        if let Some(slots) = &mut self.slots {
            slots.reset();
        }
        if let Some(violations) = &mut self.violations {
            violations.reset();
        }
        self.era += 1;
    }

    /// Answers a lease request, by the rules of [`LeaseStore`](crate::shared::LeaseStore).
    pub(super) fn renew(&mut self, request: &LeaseRequest, now: u64) -> LeaseGrant {
        let now = self.latest.max(now);
        let known = self.leases.take(request.lease_id, now);
        if known.is_none() && !request.is_new {
            return LeaseGrant::unknown();
        }
        let mut lease = known.unwrap_or_default();
        // The permits of this lease are already its part of the limit, so they are left out.
        let counter = &request.counter.clone().with_permits(1);
        if request.sequence > lease.sequence {
            if request.charge > 0 {
                // Whether there is room or not: the permits were spent under the lease.
                self.charge_permits(counter, request.charge, now);
            }
            let covered = lease.granted.min(request.cap).saturating_sub(request.charge);
            let some = match request.is_registered {
                // A registered lease gets at most half, so that others find room.
                true => self.free(counter, now).div_ceil(2),
                false => self.free(counter, now),
            };
            lease.granted = covered.max(request.wanted.min(some));
            lease.sequence = request.sequence;
        }
        let left = self.free(counter, now).saturating_sub(lease.granted);
        let held = if request.is_registered { lease.granted } else { 0 };
        let times = (nanos(request.term), nanos(request.counter.window()));
        self.leases.insert(request.lease_id, lease, held, now, times);
        let grant = LeaseGrant::of(lease.granted);
        match left {
            0 => grant.with_remaining(0, self.wait(counter, 1, now)),
            left => grant.with_remaining(left, Duration::ZERO),
        }
    }
}
