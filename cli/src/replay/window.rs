//! A sliding sum and its maximum.

use alloc::collections::VecDeque;

/// The sum of permits in a window: those at s count at t if t - W < s <= t.
#[derive(Debug)]
pub(crate) struct Window {
    length: i64,
    /// The permits of each time.
    counted: VecDeque<(i64, u128)>,
    sum: u128,
    most: u128,
}

impl Window {
    /// A window of this length in nanoseconds.
    pub(crate) const fn new(length: i64) -> Self {
        Self {
            length,
            counted: VecDeque::new(),
            sum: 0,
            most: 0,
        }
    }

    /// Resets the sum and the maximum.
    pub(crate) fn clear(&mut self) {
        self.counted.clear();
        (self.sum, self.most) = (0, 0);
    }

    /// Adds permits at a time that is not before the last one.
    #[inline]
    pub(crate) fn push(&mut self, time: i64, permits: u64) {
        while self.leave(time).is_some() {}
        match self.counted.back_mut() {
            Some((last, of_it)) if *last == time => *of_it += u128::from(permits),
            _ => self.counted.push_back((time, u128::from(permits))),
        }
        self.sum += u128::from(permits);
        self.most = self.most.max(self.sum);
    }

    /// Removes the earliest permits if they have expired at `time`, and returns when they did.
    #[inline]
    pub(crate) fn leave(&mut self, time: i64) -> Option<i64> {
        let &(first, permits) = self.counted.front()?;
        let end = first.saturating_add(self.length);
        if end > time {
            return None;
        }
        self.counted.pop_front();
        self.sum -= permits;
        Some(end)
    }

    /// The present sum.
    pub(crate) fn sum(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// The maximum of the sum.
    pub(crate) fn most(&self) -> u64 {
        u64::try_from(self.most).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::Window;

    #[test]
    fn windows_are_half_open() {
        let mut window = Window::new(10);
        for (time, permits, sum, most) in [
            (0, 1, 1, 1),
            (0, 1, 2, 2),
            (9, 5, 7, 7),
            (10, 1, 6, 7),
            (19, 1, 2, 7),
            (29, u64::MAX, u64::MAX, u64::MAX),
            (30, u64::MAX, u64::MAX, u64::MAX),
            (40, 3, 3, u64::MAX),
        ] {
            window.push(time, permits);
            assert_eq!((window.sum(), window.most()), (sum, most), "{time}");
        }
        window.clear();
        window.push(0, 1);
        assert_eq!((window.sum(), window.most()), (1, 1));
    }
}
