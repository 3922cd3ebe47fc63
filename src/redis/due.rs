use alloc::boxed::Box;

use crate::sync::{AtomicU64, Ordering};

/// Which accounts are not to wait for their period: a bit for each.
#[derive(Debug)]
pub(super) struct Due(Box<[AtomicU64]>);

impl Due {
    pub(super) fn new(accounts: usize) -> Self {
        Self((0..accounts.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Notes one.
    pub(super) fn note(&self, at: usize) {
        // Release: pairs with the Acquire in `drain`; who finds the bit finds what was spent or missed before.
        self.0[at / 64].fetch_or(1 << (at % 64), Ordering::Release);
    }

    /// Hands over all that were noted, and forgets them.
    pub(super) fn drain(&self, mut each: impl FnMut(usize)) {
        for (word, bits) in self.0.iter().enumerate() {
            // Relaxed: one that is missed was noted after; whoever notes it wakes us, or can wait.
            if bits.load(Ordering::Relaxed) == 0 {
                continue;
            }
            // Acquire: pairs with the Release in `note`.
            let mut noted = bits.swap(0, Ordering::Acquire);
            while noted != 0 {
                each(64 * word + noted.trailing_zeros() as usize);
                noted &= noted - 1;
            }
        }
    }
}
