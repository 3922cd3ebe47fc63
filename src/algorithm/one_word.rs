use core::sync::atomic::Ordering;

use super::attempt::Attempt;
use crate::sync::Words;

/// The word of an algorithm whose state is one word. No other code of such an algorithm accesses it.
#[derive(Clone, Copy)]
pub(super) struct OneWord<W>(pub(super) W);

impl<W: Words> OneWord<W> {
    #[inline(always)]
    pub(super) fn read(self) -> u64 {
        // Relaxed: the word is the whole state, so it publishes no other memory.
        self.0.load(0, Ordering::Relaxed)
    }

    /// Replaces the word that was read as `seen`. Returns false if another thread has changed it.
    #[inline(always)]
    pub(super) fn replace(self, seen: u64, new: u64) -> bool {
        // Relaxed: as in `read`. The exchange itself validates the word that was decided about.
        // Claim: unit_ring concurrency, the exchange expects the word that was decided about.
        // Claim: gcra proof, the exchange expects the word that was decided about.
        // Claim: calendar proof, the exchange expects the word that was decided about.
        // Claim: violations 1, the exchange expects the word that was read.
        self.0.exchange(0, seen, new, Ordering::Relaxed).is_ok()
    }

    /// Ends an attempt that has read the word `seen`: an admission replaces it by the first value of `admitted`, and returns the
    /// second.
    #[inline(always)]
    pub(super) fn finish<T>(self, seen: u64, admitted: Option<(u64, T)>) -> Attempt<T> {
        match admitted {
            None => Attempt::Denied,
            Some((new, admitted)) if self.replace(seen, new) => Attempt::Admitted(admitted),
            Some(_) => Attempt::Retry,
        }
    }

    /// Replaces the word by the first value that `next` returns for it, and returns the second. If `next` returns `None`, the
    /// word stays. This is repeated until no other thread has changed the word meanwhile.
    #[inline]
    pub(super) fn update<T>(self, next: impl Fn(u64) -> Option<(u64, T)>) -> Option<T> {
        loop {
            let seen = self.read();
            let (new, result) = next(seen)?;
            // Claim: in_flight 2, a release is repeated until it succeeds.
            if self.replace(seen, new) {
                return Some(result);
            }
        }
    }
}
