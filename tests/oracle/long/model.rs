//! The brute-force models of all algorithms as one type, with a limit that changes.

use ringgate::algorithm::Reclaim;
use ringgate::{Algorithm, Gcra};

use crate::reference::{CellLog, Queue};
use crate::subjects::{Ring, Several, nanos};

/// The exact state of one key. Each window of a ring has its own list.
#[derive(Clone, Debug)]
pub(crate) enum Model {
    Cells(Vec<(u64, CellLog)>),
    Times(u64, Queue),
    Full(FullAt),
}

/// The place of a charge in a [`Model`]: the cell in each window, or the bucket before and after the charge.
pub(crate) type Mark = [u64; 2];

/// A bucket as the time at which it is full again, in halves of a nanosecond.
#[derive(Clone, Debug)]
pub(crate) struct FullAt {
    bucket: Gcra,
    window: u64,
    limit: u64,
    burst: u64,
    full_at: u64,
    /// The last charge, unless it was refunded.
    last: Option<Mark>,
}

impl FullAt {
    fn permit(&self) -> u64 {
        (2 * self.window).div_ceil(self.limit)
    }

    fn most(&self) -> u64 {
        self.burst * self.permit()
    }
}

impl Model {
    pub(crate) fn of_ring(ring: Ring, words: usize) -> Self {
        Self::Cells(vec![(ring.limit, CellLog::new(ring, words))])
    }

    pub(crate) fn of_several(several: &Several, words: usize) -> Self {
        let rings = several.rings().into_iter().zip(several.widths());
        let logs = rings.map(|(ring, width)| (ring.limit, CellLog::new(ring, words).with_width(width)));
        Self::Cells(logs.collect())
    }

    pub(crate) fn of_log(limit: u64, window: u64) -> Self {
        Self::Times(limit, Queue::new(limit, window))
    }

    pub(crate) fn of_bucket(bucket: &Gcra, limit: u64) -> Self {
        Self::Full(FullAt {
            bucket: bucket.clone(),
            window: nanos(bucket.window()),
            limit,
            burst: bucket.burst(),
            full_at: 0,
            last: None,
        })
    }

    /// Sets the limit of the next decision and of the queries after it. `None` is the limiter's own.
    pub(crate) fn set_limit(&mut self, limit: Option<u64>) {
        match self {
            Self::Cells(logs) => {
                for (own, log) in logs {
                    log.set_limit(limit.unwrap_or(*own));
                }
            }
            Self::Times(own, queue) => queue.set_limit(limit.unwrap_or(*own)),
            Self::Full(it) => {
                let own = it.bucket.bound() + 1 - it.bucket.burst();
                it.limit = limit.unwrap_or(own);
                // The burst of a lower limit is rounded. Tests of limiters compare it with the exact proportion.
                it.burst = match it.bucket.with_limit(it.limit) {
                    _ if limit.is_none() => it.bucket.burst(),
                    lowered => lowered.expect("a lower limit").burst(),
                };
            }
        }
    }

    /// Where the charge is, if the request is admitted.
    pub(crate) fn decide(&mut self, now: u64, permits: u64) -> Option<Mark> {
        let admitted = self.admits(now, permits);
        match self {
            Self::Cells(logs) => {
                let mut mark = [0; 2];
                for ((_, log), cell) in logs.iter_mut().zip(&mut mark) {
                    *cell = log.present(now);
                    if admitted {
                        log.charge(now, permits);
                    } else {
                        log.deny(now);
                    }
                    log.prune();
                }
                admitted.then_some(mark)
            }
            Self::Times(_, queue) => {
                let admitted = queue.decide(now, permits);
                queue.prune();
                admitted.then_some([0; 2])
            }
            Self::Full(it) => {
                let before = it.full_at.max(2 * now);
                let mark = [before, before + permits * it.permit()];
                if admitted && permits > 0 {
                    it.full_at = mark[1];
                    it.last = Some(mark);
                }
                admitted.then_some(mark)
            }
        }
    }

    fn admits(&self, now: u64, permits: u64) -> bool {
        permits == 0 || permits <= self.remaining(now)
    }

    pub(crate) fn remaining(&self, now: u64) -> u64 {
        match self {
            Self::Cells(logs) => {
                let each = logs.iter().map(|(_, log)| log.remaining(now));
                each.min().expect("one window")
            }
            Self::Times(_, queue) => queue.remaining(now),
            Self::Full(it) => {
                let debt = it.full_at.saturating_sub(2 * now);
                it.most().saturating_sub(debt) / it.permit()
            }
        }
    }

    /// The first time from `now` on at which `permits` would be admitted. `None` if they never would be.
    pub(crate) fn ready_at(&self, now: u64, permits: u64) -> Option<u64> {
        match self {
            Self::Cells(logs) => {
                let later = |time, (_, log): &(u64, CellLog)| log.ready_at(time, permits);
                let mut ready = now;
                loop {
                    let next = logs.iter().try_fold(ready, later)?;
                    if next == ready {
                        return Some(ready);
                    }
                    ready = next;
                }
            }
            Self::Times(_, queue) => queue.can_admit(permits).then(|| queue.ready_at(now, permits)),
            Self::Full(it) => {
                let after = it.full_at.max(2 * now) + permits * it.permit();
                let ready = after.saturating_sub(it.most()).div_ceil(2);
                (permits <= it.burst).then_some(ready.max(now))
            }
        }
    }

    /// Removes `back` of the `permits` of a charge, if the algorithm can.
    pub(crate) fn refund(&mut self, mark: Mark, permits: u64, back: u64) -> bool {
        match self {
            _ if back == 0 => true,
            Self::Cells(logs) => {
                let each = logs.iter_mut().zip(mark);
                let removed = each.map(|((_, log), cell)| log.refund(cell, back));
                removed.fold(false, |any, one| any | one)
            }
            Self::Times(..) => false,
            Self::Full(it) if it.last == Some(mark) => {
                it.full_at -= (mark[1] - mark[0]) / permits * back;
                it.last = None;
                true
            }
            Self::Full(_) => false,
        }
    }
}
