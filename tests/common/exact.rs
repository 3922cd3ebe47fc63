//! The exact reference: every algorithm by its definition, counted from the list of all charges.

use crate::common::{share, unit};

/// The way in which charges count. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counting {
    /// The last `summed` cells of `width` count, up to the current one. With `shares`, each of `cells` cells has its share of
    /// the limit. A charge publishes the beginning of its tick.
    Cells {
        cells: u64,
        summed: u64,
        width: u64,
        tick: u64,
        shares: bool,
    },
    /// Whole units count in the cell of their last permit.
    Units { cells: u64, unit: u64, width: u64 },
    /// "The oldest of L": a charge counts for one window, in units of time. It is recorded at the reading, rounded up, or at
    /// the newest recorded time if that is later. A request is decided at the reading, rounded down, or at one unit before the
    /// newest recorded time, which may have been rounded up by one unit.
    Times { window: u64, unit: u64 },
    /// A bucket of `burst` permits, whose refill is counted in halves of a nanosecond.
    Bucket { window: u64, burst: u64 },
}

/// A limit, and the way in which charges count against it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Definition {
    pub(crate) limit: u64,
    pub(crate) counting: Counting,
}

/// A charge: the time of its decision, and the times at which the bucket was full before and after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: u64,
    full: [u128; 2],
}

/// All charges of one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Charges {
    /// The recorded time and the permits of each, in the order of time.
    list: Vec<(u64, u64)>,
    newest: u64,
    /// The time at which the bucket is full again, in halves of a nanosecond.
    full_at: u128,
    /// The last charge of the bucket, unless it was refunded.
    last: Option<Mark>,
    /// The permits of the unit that was not full after the charges before the list, and the cell of the last one of these.
    before: (u64, u64),
}

impl Definition {
    /// A log of so many slots.
    pub(crate) fn log(slots: u64, window: u64) -> Self {
        let unit = unit(slots);
        Self {
            limit: slots,
            counting: Counting::Times { window, unit },
        }
    }

    pub(crate) const fn bucket(limit: u64, window: u64, burst: u64) -> Self {
        let counting = Counting::Bucket { window, burst };
        Self { limit, counting }
    }

    /// The definition with a lower limit. The burst of a bucket is in proportion, but at least one permit, and no longer than the
    /// bound of the bucket leaves beside the refill of a window.
    pub(crate) fn lowered(self, limit: u64) -> Self {
        let counting = match self.counting {
            Counting::Bucket { window, burst } => {
                let [window, burst, own] = [window, burst, self.limit].map(u128::from);
                let slow = (2 * window).div_ceil(u128::from(limit));
                let others = ((burst + own - 1) * self.time_of_a_permit() - 2 * window) / slow;
                let share = burst * u128::from(limit) / own;
                Counting::Bucket {
                    window: window as u64,
                    burst: share.min(others + 1).max(1) as u64,
                }
            }
            counting => counting,
        };
        Self { limit, counting }
    }

    fn time_of_a_permit(self) -> u128 {
        match self.counting {
            Counting::Bucket { window, .. } => (2 * u128::from(window)).div_ceil(self.limit.into()),
            _ => 0,
        }
    }

    /// The time by which a charge or a decision with this reading counts.
    fn used(self, charges: &Charges, now: u64) -> u64 {
        match self.counting {
            Counting::Cells { .. } | Counting::Units { .. } => now.max(charges.newest),
            Counting::Times { unit, .. } => {
                (now / unit).max((charges.newest / unit).saturating_sub(1)) * unit
            }
            Counting::Bucket { .. } => now,
        }
    }

    pub(crate) fn spent(self, charges: &Charges, now: u64) -> u64 {
        let used = self.used(charges, now);
        match self.counting {
            Counting::Cells { summed, width, .. } => {
                let cell = used / width;
                charges.sum(|at| at / width <= cell && at / width + summed > cell)
            }
            Counting::Units { cells, unit, width } => {
                let now = used / width;
                let (mut full, mut part) = (0, charges.before);
                for &(at, permits) in &charges.list {
                    let units;
                    (units, part) = add_to_units(part, at / width, permits, cells, unit);
                    full += if at / width + cells >= now { units } else { 0 };
                }
                let (rest, last) = part;
                unit * full + if last + cells >= now { rest } else { 0 }
            }
            Counting::Times { window, unit } => {
                charges.sum(|at| at / unit + window.div_ceil(unit) > used / unit)
            }
            Counting::Bucket { .. } => {
                let ahead = charges.full_at.saturating_sub(2 * u128::from(now));
                u64::try_from(ahead.div_ceil(self.time_of_a_permit())).expect("a small debt")
            }
        }
    }

    pub(crate) fn remaining(self, charges: &Charges, now: u64) -> u64 {
        match self.counting {
            Counting::Cells {
                cells,
                width,
                shares: true,
                ..
            } => {
                let cell = self.used(charges, now) / width;
                let share =
                    share(self.limit, cells, cell).saturating_sub(charges.sum(|at| at / width == cell));
                share.min(self.limit.saturating_sub(self.spent(charges, now)))
            }
            Counting::Bucket { burst, .. } => {
                let ahead = charges.full_at.saturating_sub(2 * u128::from(now));
                let permit = self.time_of_a_permit();
                ((u128::from(burst) * permit).saturating_sub(ahead) / permit) as u64
            }
            _ => self.limit.saturating_sub(self.spent(charges, now)),
        }
    }

    /// The most permits that one request can ever get.
    pub(crate) const fn max_request(self) -> u64 {
        match self.counting {
            Counting::Cells {
                cells, shares: true, ..
            } => self.limit.div_ceil(cells),
            Counting::Bucket { burst, .. } => burst,
            _ => self.limit,
        }
    }

    /// The times after `now` at which an answer may change, of all algorithms but buckets.
    fn edges(self, charges: &Charges, now: u64) -> Vec<u64> {
        match self.counting {
            Counting::Cells {
                cells, summed, width, ..
            } => {
                let cell = self.used(charges, now) / width;
                (1..=summed + cells).map(|later| (cell + later) * width).collect()
            }
            Counting::Units { cells, width, .. } => {
                let cell = self.used(charges, now) / width;
                (1..=cells + 1).map(|later| (cell + later) * width).collect()
            }
            Counting::Times { window, unit } => {
                let end = |&(at, _): &(u64, u64)| (at / unit + window.div_ceil(unit)) * unit;
                charges.list.iter().map(end).filter(|&end| end > now).collect()
            }
            Counting::Bucket { .. } => Vec::new(),
        }
    }

    /// The first time from `now` on at which `permits` would be admitted. `None` if they never would be.
    pub(crate) fn ready_at(self, charges: &Charges, now: u64, permits: u64) -> Option<u64> {
        if permits == 0 {
            return Some(now);
        }
        if permits > self.max_request() {
            return None;
        }
        if let Counting::Bucket { burst, .. } = self.counting {
            let after =
                charges.full_at.max(2 * u128::from(now)) + u128::from(permits) * self.time_of_a_permit();
            let ready = after.saturating_sub(u128::from(burst) * self.time_of_a_permit());
            return Some(now.max(ready.div_ceil(2) as u64));
        }
        let mut times = core::iter::once(now).chain(self.edges(charges, now));
        times.find(|&at| permits <= self.remaining(charges, at))
    }

    /// The first time from `now` on at which no charge counts.
    fn idle_at(self, charges: &Charges, now: u64) -> Option<u64> {
        if let Counting::Bucket { .. } = self.counting {
            return Some(now.max(charges.full_at.div_ceil(2) as u64));
        }
        let mut times = core::iter::once(now).chain(self.edges(charges, now));
        times.find(|&at| self.spent(charges, at) == 0)
    }
}

/// Adds the permits of a charge to the unit that is not full: its permits, and the cell of the last one. Returns the units that
/// became full, and the unit that is not full then.
fn add_to_units(
    (rest, last): (u64, u64),
    cell: u64,
    permits: u64,
    cells: u64,
    unit: u64,
) -> (u64, (u64, u64)) {
    // The unit is given up when no permit of it counts.
    let rest = permits + if last + cells >= cell { rest } else { 0 };
    (rest / unit, (rest % unit, cell))
}

impl Charges {
    /// Removes the first charges, whose units do not count any more.
    fn forget_units(&mut self, cells: u64, unit: u64, width: u64) {
        let newest = self.newest / width;
        let counts = |&(at, _): &(u64, u64)| at / width + cells >= newest;
        let first = self.list.iter().position(counts).unwrap_or(self.list.len());
        for (at, permits) in self.list.drain(..first) {
            (_, self.before) = add_to_units(self.before, at / width, permits, cells, unit);
        }
    }

    fn sum(&self, counts: impl Fn(u64) -> bool) -> u64 {
        let counted = self.list.iter().filter(|&&(at, _)| counts(at));
        counted.map(|&(_, permits)| permits).sum()
    }

    /// Charges the permits by this definition.
    pub(crate) fn charge(&mut self, definition: Definition, now: u64, permits: u64) -> Mark {
        let before = self.full_at.max(2 * u128::from(now));
        let after = before + u128::from(permits) * definition.time_of_a_permit();
        let mark = Mark {
            at: now.max(definition.used(self, now)),
            full: [before, after],
        };
        if permits == 0 {
            return mark;
        }
        let (recorded, newest) = match definition.counting {
            Counting::Cells { tick, .. } => (mark.at, mark.at / tick * tick),
            Counting::Times { unit, .. } => {
                let rounded = now.checked_next_multiple_of(unit).unwrap_or(u64::MAX);
                [rounded.max(self.newest); 2].into()
            }
            Counting::Units { .. } | Counting::Bucket { .. } => (mark.at, mark.at),
        };
        self.newest = self.newest.max(newest);
        self.full_at = after;
        self.last = Some(mark);
        if !matches!(definition.counting, Counting::Bucket { .. }) {
            self.list.push((recorded, permits));
        }
        mark
    }

    /// Removes `back` of the `permits` of a charge, if the algorithm can.
    pub(crate) fn refund(&mut self, definitions: &[Definition], mark: Mark, permits: u64, back: u64) -> bool {
        if back == 0 {
            return true;
        }
        let counts = |definition: &Definition| match definition.counting {
            Counting::Cells { summed, width, .. } => mark.at / width + summed > self.newest / width,
            Counting::Units { cells, width, .. } => mark.at / width + cells >= self.newest / width,
            Counting::Times { .. } => false,
            Counting::Bucket { .. } => self.last == Some(mark),
        };
        if !definitions.iter().any(counts) {
            return false;
        }
        self.full_at -= (mark.full[1] - mark.full[0]) / u128::from(permits) * u128::from(back);
        self.last = None;
        let mut left = back;
        for charge in self.list.iter_mut().filter(|charge| charge.0 == mark.at) {
            let one = left.min(charge.1);
            charge.1 -= one;
            left -= one;
        }
        self.list.retain(|&(_, permits)| permits > 0);
        true
    }
}

/// A state of one or several windows, by its definition.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    own: Vec<Definition>,
    /// By the limit of the decisions and queries from now on.
    current: Vec<Definition>,
    charges: Charges,
    /// Whether a denial may enter a cell, as in a wide ring. If the clock steps back, the entered cell remains the current
    /// one.
    denial_enters: bool,
}

impl Exact {
    pub(crate) fn new(own: Vec<Definition>, denial_enters: bool) -> Self {
        Self {
            current: own.clone(),
            own,
            charges: Charges::default(),
            denial_enters,
        }
    }

    /// Sets the limit of the decisions and queries from now on. `None` is the limiter's own.
    pub(crate) fn set_limit(&mut self, limit: Option<u64>) {
        let by = |own: &Definition| limit.map_or(*own, |limit| own.lowered(limit));
        self.current = self.own.iter().map(by).collect();
    }

    /// The mark of the charge, if the request is admitted.
    pub(crate) fn decide(&mut self, now: u64, permits: u64) -> Option<Mark> {
        if permits > 0 && permits > self.remaining(now) {
            self.deny(now);
            return None;
        }
        Some(self.charge(now, permits))
    }

    /// Enters the cell of a denied request, if the ring does.
    pub(crate) fn deny(&mut self, now: u64) {
        if let Counting::Cells { tick, .. } = self.current[0].counting
            && self.denial_enters
        {
            self.charges.newest = self.charges.newest.max(now / tick * tick);
        }
    }

    pub(crate) fn charge(&mut self, now: u64, permits: u64) -> Mark {
        let mark = self.charges.charge(self.current[0], now, permits);
        if permits == 0 {
            return Mark { at: now, ..mark };
        }
        // Only charges that a later decision counts.
        if let Counting::Units { cells, unit, width } = self.own[0].counting {
            self.charges.forget_units(cells, unit, width);
        }
        let (newest, current) = (self.charges.newest, &self.current);
        self.charges.list.retain(|&(at, _)| {
            current.iter().any(|definition| match definition.counting {
                Counting::Cells { summed, width, .. } => at / width + summed > newest / width,
                Counting::Times { window, unit } => at / unit + window.div_ceil(unit) + 1 > newest / unit,
                Counting::Units { .. } | Counting::Bucket { .. } => true,
            })
        });
        mark
    }

    pub(crate) fn refund(&mut self, mark: Mark, permits: u64, back: u64) -> bool {
        self.charges.refund(&self.current, mark, permits, back)
    }

    pub(crate) fn remaining(&self, now: u64) -> u64 {
        let each = self
            .current
            .iter()
            .map(|definition| definition.remaining(&self.charges, now));
        each.min().expect("one window")
    }

    /// The most permits that are spent in any window.
    pub(crate) fn spent(&self, now: u64) -> u64 {
        let each = self
            .current
            .iter()
            .map(|definition| definition.spent(&self.charges, now));
        each.max().expect("one window")
    }

    pub(crate) fn ready_at(&self, now: u64, permits: u64) -> Option<u64> {
        let later = |time, definition: &Definition| definition.ready_at(&self.charges, time, permits);
        let mut ready = now;
        loop {
            let next = self.current.iter().try_fold(ready, later)?;
            if next == ready {
                return Some(ready);
            }
            ready = next;
        }
    }

    pub(crate) fn idle_at(&self, now: u64) -> Option<u64> {
        let mut each = self
            .current
            .iter()
            .map(|definition| definition.idle_at(&self.charges, now));
        each.try_fold(now, |latest, idle| Some(latest.max(idle?)))
    }

    /// The limit of the first window.
    pub(crate) fn limit(&self) -> u64 {
        self.current[0].limit
    }

    pub(crate) fn is_log(&self) -> bool {
        matches!(self.own[0].counting, Counting::Times { .. })
    }
}
