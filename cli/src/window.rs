//! What is in the last window, and the most that ever was.

use alloc::collections::VecDeque;

/// A sliding sum of permits: those at s count at t when t - W < s <= t.
#[derive(Debug)]
pub(crate) struct Window {
    length: i64,
    /// Those of one time together.
    counted: VecDeque<(i64, u128)>,
    sum: u128,
    most: u128,
}

impl Window {
    /// Of so many nanoseconds.
    pub(crate) const fn new(length: i64) -> Self {
        Self {
            length,
            counted: VecDeque::new(),
            sum: 0,
            most: 0,
        }
    }

    /// As when it was new.
    pub(crate) fn clear(&mut self) {
        self.counted.clear();
        (self.sum, self.most) = (0, 0);
    }

    /// Takes permits at a time that is not before the last one.
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

    /// Lets go of the earliest that no longer counts at `time`, and says when that was so first.
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

    /// What counts.
    pub(crate) fn sum(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// The most that ever counted at once.
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
