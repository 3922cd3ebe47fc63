//! One counter of a store in memory: the permits of its window, and its leases.

use alloc::boxed::Box;
use core::time::Duration;

use super::bucket::TokenBucket;
use super::cells::Cells;
use super::leases::Leases;
use super::slots::Slots;
use super::violations::KeyViolations;
use crate::shared::lease::nanos;
use crate::shared::store::{CounterRequest, CounterStatus, Counting, LeaseGrant, LeaseRequest};

/// A counter. Times are in nanoseconds of the store's clock.
#[derive(Debug)]
pub(super) struct Counter {
    count: Count,
    leases: Leases,
    /// The newest reading. An older one counts as this one, so a clock that goes back only makes the counter stricter.
    latest: u64,
}

/// A count, in the form of its [`Counting`]. Only cells and buckets have leases.
#[derive(Debug)]
enum Count {
    /// Cells, or the entries of a log.
    Cells(Cells),
    Bucket(TokenBucket),
    Slots(Slots),
    Violations(Box<KeyViolations>),
}

impl Counter {
    /// An empty counter. `first` is below 2^32, and differs from that of each earlier counter of the store, which may have had the
    /// same name. So no receipt of an earlier counter is one of this counter.
    pub(super) fn new(request: &CounterRequest, first: u64) -> Self {
        // A counter has fewer than 2^32 resets and changes.
        let first = first << 32;
        let window = nanos(request.window());
        let log = || Count::Cells(Cells::new(1, window, first));
        let count = match request.counting() {
            Counting::Log => log(),
            Counting::Cells(cells) => {
                let width = window.div_ceil(cells.max(1)).max(1);
                let span = width.saturating_mul(cells.saturating_add(1));
                Count::Cells(Cells::new(width, span, first))
            }
            Counting::Gcra(_) => Count::Bucket(TokenBucket::new(first)),
            Counting::Slots => Count::Slots(Slots::default()),
            Counting::Violations => match request.block() {
                Some(block) => Count::Violations(Box::new(KeyViolations::new(block))),
                // Only a foreign caller asks about violations without a block.
                None => log(),
            },
        };
        Self {
            count,
            leases: Leases::default(),
            latest: 0,
        }
    }

    /// Removes what no longer counts at `now`.
    pub(super) fn advance(&mut self, now: u64) {
        self.latest = self.latest.max(now);
        match &mut self.count {
            Count::Cells(cells) => cells.advance(self.latest),
            Count::Slots(slots) => slots.advance(self.latest),
            Count::Bucket(_) | Count::Violations(_) => {}
        }
        self.leases.advance(self.latest);
    }

    /// Whether nothing counts at `now`.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        let now = self.latest.max(now);
        let is_count_expired = match &self.count {
            Count::Cells(cells) => cells.is_expired(now),
            Count::Bucket(bucket) => bucket.is_expired(now),
            Count::Slots(slots) => slots.is_expired(now),
            Count::Violations(violations) => violations.is_expired(now),
        };
        is_count_expired && self.leases.is_expired(now)
    }

    /// The permits that are left beside everything charged and registered.
    fn free(&self, request: &CounterRequest, now: u64) -> u64 {
        let free = match &self.count {
            Count::Cells(cells) => request.limit().saturating_sub(cells.charged()),
            Count::Bucket(bucket) => bucket.free(request, self.latest.max(now)),
            Count::Slots(slots) => request.limit().saturating_sub(slots.held()),
            Count::Violations(_) => request.limit(),
        };
        free.saturating_sub(self.leases.held())
    }

    /// The status of a request, which is not charged yet.
    pub(super) fn status(&self, request: &CounterRequest, now: u64) -> CounterStatus {
        let is_timed = match &self.count {
            Count::Violations(violations) => {
                return match violations.blocked_for(self.latest.max(now)) {
                    Some(left) => CounterStatus::without_room(0, Some(left)),
                    None => CounterStatus::with_room(request.limit()),
                };
            }
            // No time frees a slot.
            Count::Slots(_) => false,
            Count::Cells(_) | Count::Bucket(_) => true,
        };
        let remaining = self.free(request, now);
        if request.permits() <= remaining {
            return CounterStatus::with_room(remaining);
        }
        let is_possible = is_timed && request.permits() <= request.capacity();
        let after = is_possible.then(|| self.wait(request, request.permits(), now));
        CounterStatus::without_room(remaining, after)
    }

    /// The time until there is room for this number of permits.
    fn wait(&self, request: &CounterRequest, permits: u64, now: u64) -> Duration {
        let now = self.latest.max(now);
        let needed = permits + self.leases.held();
        let wait = match &self.count {
            Count::Cells(cells) => {
                let leaving = (cells.charged() + needed).saturating_sub(request.limit());
                cells.wait(leaving, now)
            }
            Count::Bucket(bucket) => bucket.wait(request, needed, now),
            Count::Slots(_) | Count::Violations(_) => None,
        };
        wait.unwrap_or_else(|| {
            // Only leases are in the way. They end by themselves, and may be given back at any time.
            let last = self.leases.held_until().unwrap_or(now).max(now);
            Duration::from_nanos(last - now).max(request.window())
        })
    }

    /// Charges permits, whether there is room or not, and returns a receipt.
    pub(super) fn charge(&mut self, request: &CounterRequest, now: u64) -> (u64, u64) {
        self.charge_permits(request, request.permits(), now)
    }

    /// Counts a denied request as a violation, or as a retry if the key is blocked, and returns the status afterwards.
    pub(super) fn violate(&mut self, request: &CounterRequest, now: u64) -> CounterStatus {
        let now = self.latest.max(now);
        let began = match (&mut self.count, request.block()) {
            (Count::Violations(violations), Some(block)) => violations.violate(block, now),
            (Count::Violations(_), None)
            | (Count::Cells(_) | Count::Bucket(_) | Count::Slots(_), Some(_) | None) => false,
        };
        self.status(request, now).with_receipt(u64::from(began), 0)
    }

    fn charge_permits(&mut self, request: &CounterRequest, permits: u64, now: u64) -> (u64, u64) {
        let now = self.latest.max(now);
        match &mut self.count {
            Count::Cells(cells) => cells.charge(permits, now),
            Count::Bucket(bucket) => bucket.charge(request, permits, now),
            Count::Slots(slots) => {
                slots.renew(request.slot(), now.saturating_add(nanos(request.window())));
                (0, 0)
            }
            Count::Violations(_) => (0, 0),
        }
    }

    /// Takes permits out of a cell or the bucket, and returns how many: all of them, or none if the cell has left the window
    /// or the bucket was charged since.
    pub(super) fn refund(&mut self, request: &CounterRequest, receipt: (u64, u64)) -> u64 {
        match &mut self.count {
            Count::Cells(cells) => cells.refund(request.permits(), receipt),
            Count::Bucket(bucket) => bucket.refund(request, receipt),
            Count::Slots(slots) => {
                // A slot that has ended is released already.
                slots.release(request.slot());
                request.permits()
            }
            Count::Violations(_) => request.permits(),
        }
    }

    /// Forgets the permits, but not the leases.
    pub(super) fn reset(&mut self) {
        match &mut self.count {
            Count::Cells(cells) => cells.reset(),
            Count::Bucket(bucket) => bucket.reset(),
            Count::Slots(slots) => slots.reset(),
            Count::Violations(violations) => violations.reset(),
        }
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
