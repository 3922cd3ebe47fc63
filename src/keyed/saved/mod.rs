//! Tables of keys that are saved, and restored in another process.

mod seeded_keys;
mod key_states;

pub(crate) use key_states::Charger;
pub use seeded_keys::SeededKeys;

use alloc::format;
use alloc::string::String;
use core::time::Duration;
use std::io::{self, Read, Write};

use super::builder::KeyedBuilder;
use super::limiter::KeyedRateLimiter;
use crate::algorithm::Reclaim;
use crate::clock::Clock;
use crate::saved::{Header, Reader, RestoreError, SavedWriter};
use crate::time::Nanos;

impl<A: Reclaim, C: Clock, K: SeededKeys> KeyedRateLimiter<A, C, K> {
    /// Writes the permits that count for each key, so that [`KeyedBuilder::restore`] can charge them in another process.
    /// Returns the number of keys that were written.
    ///
    /// The documentation of [`saved`](crate::saved) says what a restore promises, and what a crash between two saves gives
    /// back. **The file is as secret as the seeds**, which it contains.
    ///
    /// A file is torn if the process ends during the save, and a torn file is refused. So write to a new file, and rename it
    /// when the save has returned.
    ///
    /// # Errors
    ///
    /// When `to` cannot be written.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use ringgate::keyed::AnyKey;
    /// use ringgate::{CounterRing, KeyedRateLimiter, ManualClock, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let builder = KeyedRateLimiter::builder(CounterRing::new(Quota::per_minute(5)?)?);
    /// let keys = || AnyKey::with_seeds([1, 2, 3, 4]);
    /// let before = builder.clone().build_with(ManualClock::new(), keys())?;
    /// assert!(before.check_n("alice", 4).is_ok());
    /// let mut file = Vec::new();
    /// assert_eq!(before.save(&mut file)?, 1);
    ///
    /// // How long the restart took is not known, so no time is assumed.
    /// let after = builder.restore_with(ManualClock::new(), keys(), &*file, Duration::ZERO)?;
    /// assert!(after.check("alice").is_ok());
    /// assert!(after.check("alice").is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cost
    ///
    /// Reads every entry of the table twice, and writes 24 bytes for each key with permits that count. Allocates 64 KiB.
    ///
    /// # Concurrency
    ///
    /// Other threads may decide meanwhile. An admission that returned before the call is in the file if it still counts. One
    /// that comes later may be missing, so save for the last time after the last decision.
    pub fn save(&self, to: impl Write) -> io::Result<u64> {
        let mut to = SavedWriter::new(to, &self.header())?;
        let keys = self.states.save(&self.algorithm, self.clock.now(), &mut to)?;
        to.finish()?;
        Ok(keys)
    }

    fn header(&self) -> Header {
        Header::new(description(&self.algorithm, &self.lower_tiers), &self.keys)
    }
}

impl<A: Reclaim> KeyedBuilder<A> {
    /// Builds the limiter with the given clock and keys, and charges each key the permits that
    /// [`KeyedRateLimiter::save`] has written. The keys get the seeds of the file.
    ///
    /// See [`restore`](Self::restore).
    ///
    /// # Errors
    ///
    /// [`RestoreError`], in the cases of [`restore`](Self::restore).
    pub fn restore_with<C: Clock, K: SeededKeys>(
        self,
        clock: C,
        keys: K,
        from: impl Read,
        elapsed: Duration,
    ) -> Result<KeyedRateLimiter<A, C, K>, RestoreError> {
        let (mut from, header) = Reader::new(from)?;
        let keys = keys.reseeded(header.seeds);
        let limiter = self
            .build_with(clock, keys)
            .map_err(|error| RestoreError::Invalid(error.into()))?;
        header.compare("table", limiter.header())?;
        let now = limiter.clock.now();
        limiter
            .states
            .restore(&limiter.algorithm, now, elapsed, &mut from)?;
        from.finish()?;
        Ok(limiter)
    }
}

/// The properties that distinguish the algorithms of a table from others, as text.
fn description<A: Reclaim>(own: &A, lower_tiers: &[A]) -> String {
    let mut text = format!(
        "bound {} in {:?}, counted for {:?}, at most {} at once, {} words, {:#x} at the origin",
        own.bound(),
        own.window(),
        own.span(),
        own.max_request(),
        own.words(),
        own.advance(0, Nanos::ZERO).unwrap_or(0),
    );
    if let Some((cells, unit)) = own.cells_and_unit() {
        text += &format!(", {cells} cells in units of {unit}");
    }
    for tier in lower_tiers {
        text += &format!(", tier with bound {} in {:?}", tier.bound(), tier.span());
    }
    text
}

impl Header {
    pub(crate) fn new(of: String, keys: &impl SeededKeys) -> Self {
        Self {
            of,
            seeds: keys.seeds(),
            sample: keys.sample(),
        }
    }

    /// Compares the header of a saved state with that of the limiter that is to be restored. `field` names what `of` describes.
    pub(crate) fn compare(&self, field: &'static str, own: Self) -> Result<(), RestoreError> {
        let mismatch = |field, found: &str, expected: String| RestoreError::Mismatch {
            field,
            found: found.into(),
            expected,
        };
        if self.of != own.of {
            return Err(mismatch(field, &self.of, own.of));
        }
        if self.seeds != own.seeds {
            // The seeds are a secret, so the error does not show them.
            return Err(mismatch(
                "kind of keys",
                "with seeds",
                "keys with fixed seeds".into(),
            ));
        }
        if self.sample != own.sample {
            let found = format!("a sample of {:#x}", self.sample);
            return Err(mismatch("hash function", &found, format!("{:#x}", own.sample)));
        }
        Ok(())
    }
}
