use core::fmt;

use crate::sync::{AtomicU64, Ordering};
use crate::time::{HORIZON, Nanos};

/// The word in which a denied caller publishes its denial for later callers: every request for at least so many permits is denied
/// until a time. [The protocol](super) shows that a denial by the word is right. Every atomic operation on the word is in this
/// module.
pub(super) struct PublishedDenial {
    word: AtomicU64,
    /// Nanoseconds in a unit of `until`.
    unit: u64,
}

/// The word that a caller stored in [`PublishedDenial::begin`].
#[derive(Clone, Copy)]
#[must_use = "without `publish` the limiter stays open"]
pub(super) struct Closing(DenialWord);

/// The word, as a value. From the lowest bit:
///
/// | bits | field | meaning |
/// |---|---|---|
/// | 14 | version | number of callers that have begun to close the limiter; wraps |
/// | 1 | provisional | a caller reads the stripes and the ring, to close the limiter |
/// | 1 | firm | `permits` and `until` are valid |
/// | 6 | permits | requests for this many permits or more are denied |
/// | 42 | until | the denials end at the beginning of this unit of time |
///
/// The limiter is open if neither `provisional` nor `firm` is set.
///
/// The version wraps. If 16,384 callers begin while an earlier caller reads the stripes, and the last of them has not
/// published, the earlier caller can close the limiter.
#[derive(Clone, Copy, PartialEq, Eq)]
struct DenialWord(u64);

impl DenialWord {
    const VERSION: u64 = (1 << 14) - 1;
    const PROVISIONAL: u64 = 1 << 14;
    const FIRM: u64 = 1 << 15;
    const PERMITS_SHIFT: u32 = 16;
    const UNTIL_SHIFT: u32 = 22;

    /// The largest number of permits that the word can represent.
    const MAX_PERMITS: u64 = (1 << (Self::UNTIL_SHIFT - Self::PERMITS_SHIFT)) - 1;
    /// The last unit that the word can represent.
    const LAST_UNTIL: u64 = u64::MAX >> Self::UNTIL_SHIFT;

    const fn version(self) -> u64 {
        self.0 & Self::VERSION
    }

    const fn is_provisional(self) -> bool {
        self.0 & Self::PROVISIONAL != 0
    }

    const fn is_firm(self) -> bool {
        self.0 & Self::FIRM != 0
    }

    const fn permits(self) -> u64 {
        self.0 >> Self::PERMITS_SHIFT & Self::MAX_PERMITS
    }

    const fn until(self) -> u64 {
        self.0 >> Self::UNTIL_SHIFT
    }

    /// `{ v, .. }` → `{ v + 1, provisional }`.
    const fn provisional(self) -> Self {
        Self(((self.version() + 1) & Self::VERSION) | Self::PROVISIONAL)
    }

    /// `{ v, provisional }` → `{ v, firm, permits, until }`.
    const fn firm(self, permits: u64, until: u64) -> Self {
        Self(until << Self::UNTIL_SHIFT | permits << Self::PERMITS_SHIFT | Self::FIRM | self.version())
    }
}

impl PublishedDenial {
    /// Creates an open word for a limiter whose permits become free at multiples of `cell` nanoseconds.
    pub(super) fn new(cell: u64) -> Self {
        // `until` must be able to represent every time up to the horizon, so the unit is longer than a short cell. Permits can
        // then become free within a unit, and `publish` ends the denial at its beginning.
        let min_unit = HORIZON / DenialWord::LAST_UNTIL + 1;
        Self {
            word: AtomicU64::new(0),
            unit: cell.max(min_unit),
        }
    }

    /// Returns the time until which the word denies a request for `permits`. `None` if it does not deny the request.
    #[inline]
    pub(super) fn until(&self, permits: u64) -> Option<Nanos> {
        // Relaxed: the word is the whole state. Permits are freed before `reopen`, and a call after `reopen` loads the word
        // that `reopen` stored, or a later one.
        let word = DenialWord(self.word.load(Ordering::Relaxed));
        (word.is_firm() && permits >= word.permits()).then(|| Nanos::new(word.until() * self.unit))
    }

    /// Begins to close the limiter for requests of `permits`. Every load that [`publish`](Self::publish) relies on comes
    /// after this. Returns `None` if the word cannot represent `permits`.
    pub(super) fn begin(&self, permits: u64) -> Option<Closing> {
        if permits > DenialWord::MAX_PERMITS {
            return None;
        }
        // Relaxed: the compare-exchange below validates it.
        let mut seen = DenialWord(self.word.load(Ordering::Relaxed));
        loop {
            let provisional = seen.provisional();
            // Acquire: pairs with the Release in `reopen`. If `reopen` came first, the loads after this observe the
            // permits that were freed before it.
            // Relaxed on failure: the next compare-exchange validates the value.
            // Claim: striped 6, a search to close comes after the beginning.
            match self
                .word
                .compare_exchange(seen.0, provisional.0, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Some(Closing(provisional)),
                Err(newer) => seen = DenialWord(newer),
            }
        }
    }

    /// Closes the limiter until the time `until`, unless another caller has begun since, or permits were freed.
    pub(super) fn publish(&self, Closing(provisional): Closing, permits: u64, until: Nanos) {
        let until = until.get() / self.unit;
        if until > DenialWord::LAST_UNTIL {
            return;
        }
        // Relaxed, both: the word publishes no other memory, and a failure leaves the limiter open.
        let _ = self.word.compare_exchange(
            provisional.0,
            provisional.firm(permits, until).0,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// Opens the limiter, after permits were freed. It writes even if the limiter is open, because a caller that has not
    /// observed the free permits may be about to close it.
    pub(super) fn reopen(&self) {
        // Release: pairs with the Acquire in `begin`. A caller that begins after this observes the free permits.
        // Claim: striped 6, a thread that begins to close sees the claims that have ended.
        self.word.fetch_and(DenialWord::VERSION, Ordering::Release);
    }
}

impl fmt::Debug for PublishedDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: a snapshot for debugging.
        let word = DenialWord(self.word.load(Ordering::Relaxed));
        f.debug_struct("PublishedDenial")
            .field("provisional", &word.is_provisional())
            .field("firm", &word.is_firm())
            .field("permits", &word.permits())
            .field("until", &(word.until() * self.unit))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{DenialWord, PublishedDenial};
    use crate::time::{HORIZON, Nanos};

    #[test]
    fn fields_do_not_overlap() {
        for version in [0, 1, DenialWord::VERSION] {
            for permits in [1, DenialWord::MAX_PERMITS] {
                for until in [0, 1, DenialWord::LAST_UNTIL] {
                    let provisional = DenialWord(version).provisional();
                    assert!(provisional.is_provisional() && !provisional.is_firm());
                    assert_eq!(provisional.version(), (version + 1) % (DenialWord::VERSION + 1));
                    let firm = provisional.firm(permits, until);
                    assert!(firm.is_firm() && !firm.is_provisional());
                    assert_eq!((firm.permits(), firm.until()), (permits, until));
                    assert_eq!(firm.version(), provisional.version());
                }
            }
        }
    }

    #[test]
    fn a_unit_is_a_cell_or_lasts_as_long_as_the_limiter() {
        assert_eq!(PublishedDenial::new(200_000).unit, 200_000);
        for cell in [1, 1_000] {
            let denial = PublishedDenial::new(cell);
            assert!(HORIZON / denial.unit <= DenialWord::LAST_UNTIL);
            let closing = denial.begin(1).expect("one permit");
            denial.publish(closing, 1, Nanos::MAX);
            assert_eq!(denial.until(1), None);
        }
    }

    #[test]
    fn a_later_begin_or_the_end_of_a_claim_reopens_the_limiter() {
        let denial = PublishedDenial::new(1_000_000);
        let until = Nanos::new(7_000_000);
        let begin = |permits| denial.begin(permits).expect("few permits");
        let first = begin(5);
        let second = begin(3);
        denial.publish(first, 5, until);
        assert_eq!(denial.until(5), None);
        denial.publish(second, 3, until);
        assert_eq!(
            (denial.until(2), denial.until(3), denial.until(9)),
            (None, Some(until), Some(until))
        );
        denial.reopen();
        assert_eq!(denial.until(9), None);
        let third = begin(1);
        denial.reopen();
        denial.publish(third, 1, until);
        assert_eq!(denial.until(9), None);
        assert!(denial.begin(DenialWord::MAX_PERMITS + 1).is_none());
    }
}
