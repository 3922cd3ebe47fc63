//! Brute-force models, which count from a list of all charges in plain nanoseconds.

use super::walk::{Kind, Ring};
use crate::common::{share, unit};

/// A counter ring of one window, as the list of its charges by cell.
///
/// This is the exact definition of the ring's decisions for any clock: the sum of the counted cells up to the current
/// one. The current cell is that of the caller's reading or of the newest published one.
#[derive(Clone, Debug)]
pub(crate) struct CellLog {
    ring: Ring,
    width: u64,
    /// The cell and the permits of each charge.
    charges: Vec<(u64, u64)>,
    newest: u64,
    /// Whether a denial may enter a cell, as in a wide ring. If the clock steps back, the entered cell remains the
    /// current one.
    denial_enters: bool,
}

impl CellLog {
    pub(crate) fn new(ring: Ring, words: usize) -> Self {
        Self {
            ring,
            width: ring.width(),
            charges: Vec::new(),
            newest: 0,
            denial_enters: words > 1,
        }
    }

    /// Sets the width of a cell, which is more than the ring's own if the ring has several windows.
    pub(crate) const fn with_width(mut self, width: u64) -> Self {
        self.width = width;
        self
    }

    /// Sets the limit of the decisions and queries from now on.
    pub(crate) const fn set_limit(&mut self, limit: u64) {
        self.ring.limit = limit;
    }

    /// Drops the charges that no later decision counts.
    pub(crate) fn prune(&mut self) {
        let oldest = (self.newest + 1).saturating_sub(self.summed());
        self.charges
            .retain(|&(cell, permits)| cell >= oldest && permits > 0);
    }

    fn summed(&self) -> u64 {
        self.ring.cells + u64::from(self.ring.kind == Kind::Strict)
    }

    pub(crate) fn present(&self, now: u64) -> u64 {
        (now / self.width).max(self.newest)
    }

    fn sum(&self, first: u64, last: u64) -> u64 {
        let counts = |&&(cell, _): &&(u64, u64)| first <= cell && cell <= last;
        self.charges
            .iter()
            .filter(counts)
            .map(|&(_, permits)| permits)
            .sum()
    }

    fn spent_in(&self, cell: u64) -> u64 {
        self.sum((cell + 1).saturating_sub(self.summed()), cell)
    }

    fn room_in(&self, cell: u64) -> u64 {
        let room = self.ring.limit.saturating_sub(self.spent_in(cell));
        if self.ring.kind != Kind::Even {
            return room;
        }
        let share = share(self.ring.limit, self.ring.cells, cell);
        room.min(share.saturating_sub(self.sum(cell, cell)))
    }

    /// The time of the decision, if the request is admitted.
    pub(crate) fn decide(&mut self, now: u64, permits: u64) -> Option<u64> {
        if permits == 0 {
            return Some(now);
        }
        let cell = self.present(now);
        let admitted = permits <= self.room_in(cell);
        if admitted {
            self.charges.push((cell, permits));
        }
        if admitted {
            self.newest = cell;
        } else {
            self.deny(now);
        }
        admitted.then(|| now.max(cell * self.width))
    }

    /// Enters the cell of a denied request, if the ring does.
    pub(crate) fn deny(&mut self, now: u64) {
        if self.denial_enters {
            self.newest = self.present(now);
        }
    }

    pub(crate) fn charge(&mut self, now: u64, permits: u64) {
        if permits == 0 {
            return;
        }
        self.newest = self.present(now);
        self.charges.push((self.newest, permits));
    }

    /// Removes `permits` that were charged to `cell`.
    pub(crate) fn refund(&mut self, cell: u64, mut permits: u64) -> bool {
        if permits == 0 {
            return true;
        }
        if cell + self.summed() <= self.newest {
            return false;
        }
        for charge in self.charges.iter_mut().filter(|charge| charge.0 == cell) {
            let back = permits.min(charge.1);
            charge.1 -= back;
            permits -= back;
        }
        assert_eq!(
            permits, 0,
            "a receipt is handed back once, for no more than it took"
        );
        true
    }

    pub(crate) fn remaining(&self, now: u64) -> u64 {
        self.room_in(self.present(now))
    }

    pub(crate) fn spent(&self, now: u64) -> u64 {
        self.spent_in(self.present(now))
    }

    pub(crate) fn ready_at(&self, now: u64, permits: u64) -> Option<u64> {
        self.first_at(now, |cell| permits <= self.room_in(cell))
    }

    pub(crate) fn idle_at(&self, now: u64) -> Option<u64> {
        self.first_at(now, |cell| self.spent_in(cell) == 0)
    }

    fn first_at(&self, now: u64, wanted: impl Fn(u64) -> bool) -> Option<u64> {
        let present = self.present(now);
        (present..=present + self.summed() + self.ring.cells)
            .find(|&cell| wanted(cell))
            .map(|cell| if cell == present { now } else { cell * self.width })
    }
}

/// "The oldest of L" as an unbounded list of times, in the units of the ring.
///
/// A charge is recorded at the reading, rounded up, or at the newest recorded time if that is later. A request is decided
/// at the reading, rounded down, or at one unit before the newest recorded time, which may have been rounded up by one unit.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    limit: u64,
    window: u64,
    unit: u64,
    times: Vec<u64>,
    newest: Option<u64>,
}

impl Queue {
    pub(crate) fn new(limit: u64, window: u64) -> Self {
        let unit = unit(limit);
        Self {
            limit,
            window: window.div_ceil(unit),
            unit,
            times: Vec::new(),
            newest: None,
        }
    }

    /// Sets the limit of the decisions and queries from now on.
    pub(crate) const fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Drops the times that no later decision counts.
    pub(crate) fn prune(&mut self) {
        let oldest = self.asked(0).saturating_sub(self.window);
        self.times.retain(|&time| time > oldest);
    }

    fn asked(&self, now: u64) -> u64 {
        let one_before = |newest: u64| newest.saturating_sub(1);
        (now / self.unit).max(self.newest.map_or(0, one_before))
    }

    fn recorded(&self, now: u64) -> u64 {
        now.div_ceil(self.unit).max(self.newest.unwrap_or(0))
    }

    pub(crate) fn spent(&self, now: u64) -> u64 {
        let asked = self.asked(now);
        self.times
            .iter()
            .filter(|&&time| time + self.window > asked)
            .count() as u64
    }

    pub(crate) fn remaining(&self, now: u64) -> u64 {
        self.limit.saturating_sub(self.spent(now))
    }

    pub(crate) const fn can_admit(&self, permits: u64) -> bool {
        permits <= self.limit
    }

    pub(crate) fn decide(&mut self, now: u64, permits: u64) -> bool {
        let admitted = permits == 0 || permits <= self.remaining(now);
        if admitted {
            self.charge(now, permits);
        }
        admitted
    }

    pub(crate) fn charge(&mut self, now: u64, permits: u64) {
        if permits == 0 {
            return;
        }
        let time = self.recorded(now);
        self.newest = Some(time);
        self.times.extend((0..permits).map(|_| time));
    }

    pub(crate) fn ready_at(&self, now: u64, permits: u64) -> u64 {
        if permits <= self.remaining(now) {
            return now;
        }
        let newest_first = self.times.iter().rev();
        let kept = usize::try_from(self.limit - permits).expect("a small limit");
        let oldest = newest_first
            .skip(kept)
            .max()
            .expect("it is refused for some time");
        (oldest + self.window) * self.unit
    }
}

/// A bucket whose level is refilled as time passes, in halves of a nanosecond.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    permit: i128,
    full: i128,
    level: i128,
    then: u64,
}

impl Bucket {
    pub(crate) fn new(limit: u64, window: u64, burst: u64) -> Self {
        let permit = (i128::from(window) * 2 + i128::from(limit) - 1) / i128::from(limit);
        let full = permit * i128::from(burst);
        Self {
            permit,
            full,
            level: full,
            then: 0,
        }
    }

    /// Refills up to `now`, which is never earlier than in the call before.
    fn level(&self, now: u64) -> i128 {
        self.full.min(self.level + i128::from(now - self.then) * 2)
    }

    pub(crate) fn remaining(&self, now: u64) -> u64 {
        u64::try_from(self.level(now).max(0) / self.permit).expect("at most the burst")
    }

    pub(crate) fn decide(&mut self, now: u64, permits: u64) -> bool {
        let admitted = permits <= self.remaining(now);
        if admitted {
            self.charge(now, permits);
        }
        admitted
    }

    pub(crate) fn charge(&mut self, now: u64, permits: u64) {
        if permits == 0 {
            return;
        }
        self.level = self.level(now) - self.permit * i128::from(permits);
        self.then = now;
    }

    pub(crate) fn spent(&self, now: u64) -> u64 {
        let missing = self.full - self.level(now);
        u64::try_from((missing + self.permit - 1) / self.permit).expect("a small debt")
    }

    pub(crate) fn ready_at(&self, now: u64, permits: u64) -> u64 {
        let missing = self.permit * i128::from(permits) - self.level(now);
        now + u64::try_from((missing.max(0) + 1) / 2).expect("a wait of a few windows")
    }
}
