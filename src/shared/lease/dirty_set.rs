use alloc::boxed::Box;

use crate::sync::{AtomicU64, Ordering};

/// The leases that the flusher looks at before their period is over: a bit for each.
#[derive(Debug)]
pub(super) struct DirtySet(Box<[AtomicU64]>);

impl DirtySet {
    pub(super) fn new(leases: usize) -> Self {
        Self((0..leases.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn insert(&self, at: usize) {
        // Release: pairs with the Acquire in `drain`; a thread that finds the bit also sees the use or shortage that
        // was noted before it.
        self.0[at / 64].fetch_or(1 << (at % 64), Ordering::Release);
    }

    /// Removes every lease, and calls `each` with its position. Begins with the word of 64 leases that contains position `from`.
    pub(super) fn drain(&self, from: usize, mut each: impl FnMut(usize)) {
        let (before, first) = self.0.split_at((from / 64).min(self.0.len()));
        let words = first.iter().zip(before.len()..).chain(before.iter().zip(0..));
        for (bits, word) in words {
            // Relaxed: a bit that this load misses was set later; the thread that sets it wakes the flusher, or can wait.
            if bits.load(Ordering::Relaxed) == 0 {
                continue;
            }
            // Acquire: pairs with the Release in `insert`.
            let mut dirty = bits.swap(0, Ordering::Acquire);
            while dirty != 0 {
                each(64 * word + dirty.trailing_zeros() as usize);
                dirty &= dirty - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn each_is_drained_once_from_a_position_on() {
        let set = DirtySet::new(300);
        for from in [0, 63, 64, 200, 299, 300, 1000] {
            for at in [3, 64, 70, 199, 299] {
                set.insert(at);
            }
            let mut drained = Vec::new();
            set.drain(from, |at| drained.push(at));
            let word = if from >= 320 { 0 } else { from / 64 };
            let split = drained.iter().position(|at| at / 64 >= word);
            assert_eq!(split.unwrap_or(0), 0, "{from}: {drained:?}");
            drained.sort_unstable();
            assert_eq!(drained, [3, 64, 70, 199, 299]);
            set.drain(from, |at| panic!("{at} again"));
        }
    }
}
