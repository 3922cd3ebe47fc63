//! Constructors of tables of keys with the default clock and random seeds.

use core::time::Duration;
use std::io::Read;

use super::builder::KeyedBuilder;
use super::keys::AnyKey;
use super::limiter::KeyedRateLimiter;
use crate::algorithm::{Reclaim, SlidingWindow};
use crate::clock::QuantaClock;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::saved::RestoreError;

impl KeyedRateLimiter<SlidingWindow> {
    /// Creates a limiter of `limit` permits in any second for each of `capacity` keys.
    ///
    /// # Errors
    ///
    /// - `limit`: 0 or more than [`Quota::MAX_LIMIT`], or more than the cells of the window can count.
    /// - `capacity`: 0 or more than 2^32, or more than there is memory for.
    pub fn per_second(limit: u64, capacity: u64) -> Result<Self, ConfigError> {
        Self::new(SlidingWindow::new(Quota::per_second(limit)?)?, capacity)
    }

    /// Creates a limiter of `limit` permits in any minute for each of `capacity` keys.
    ///
    /// # Errors
    ///
    /// - `limit`: 0 or more than [`Quota::MAX_LIMIT`].
    /// - `capacity`: 0 or more than 2^32, or more than there is memory for.
    pub fn per_minute(limit: u64, capacity: u64) -> Result<Self, ConfigError> {
        Self::new(SlidingWindow::new(Quota::per_minute(limit)?)?, capacity)
    }
}

impl<A: Reclaim> KeyedBuilder<A> {
    /// Builds the limiter with its own clock and random seeds.
    ///
    /// The first clock of a process calibrates the processor's counter, for up to 200 ms.
    ///
    /// # Errors
    ///
    /// `capacity`, `limit`, `windows` or `algorithm`: invalid, as listed at [`build_with`](Self::build_with).
    pub fn build(self) -> Result<KeyedRateLimiter<A>, ConfigError> {
        self.build_with(QuantaClock::new(), AnyKey::random())
    }

    /// Builds the limiter with its own clock and the seeds of the file, and charges each key the permits that
    /// [`KeyedRateLimiter::save`] has written.
    ///
    /// `elapsed` is the time since the save, as far as the caller is certain of it. [`Duration::ZERO`] is always safe. The
    /// documentation of [`saved`](crate::saved) says what is promised. The capacity may be another one than before.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the file cannot be read, is torn, has another version, or is of another algorithm, quota, list of
    /// tiers or kind of keys; or if the limiter is invalid, as listed at [`build_with`](Self::build_with). To begin with a
    /// fresh limiter instead, build it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::fs::{self, File};
    /// use std::io;
    /// use core::time::Duration;
    /// use ringgate::{KeyedRateLimiter, Quota, SlidingWindow};
    ///
    /// fn limiter(path: &str) -> Result<KeyedRateLimiter, Box<dyn core::error::Error>> {
    ///     let builder = KeyedRateLimiter::builder(SlidingWindow::new(Quota::per_minute(5)?)?);
    ///     match File::open(path) {
    ///         Ok(file) => {
    ///             // Zero if the clock of the machine was set back since.
    ///             let elapsed = file.metadata()?.modified()?.elapsed().unwrap_or(Duration::ZERO);
    ///             Ok(builder.restore(file, elapsed)?)
    ///         }
    ///         Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(builder.build()?),
    ///         Err(error) => Err(error.into()),
    ///     }
    /// }
    ///
    /// fn save(limiter: &KeyedRateLimiter, path: &str) -> io::Result<()> {
    ///     // A crash leaves the file of the last save as it is.
    ///     let new = format!("{path}.new");
    ///     let file = File::create(&new)?;
    ///     limiter.save(&file)?;
    ///     file.sync_all()?;
    ///     fs::rename(new, path)
    /// }
    ///
    /// # let folder = std::env::temp_dir().join(format!("ringgate-{}", std::process::id()));
    /// # fs::create_dir_all(&folder)?;
    /// # let path = folder.join("limits");
    /// # let path = path.to_str().expect("a name of characters");
    /// let before = limiter(path)?;
    /// assert!(before.check_n("alice", 5).is_ok());
    /// save(&before, path)?;
    /// let after = limiter(path)?;
    /// assert!(after.check("alice").is_err());
    /// # fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn restore(self, from: impl Read, elapsed: Duration) -> Result<KeyedRateLimiter<A>, RestoreError> {
        self.restore_with(QuantaClock::new(), AnyKey::with_seeds([0; 4]), from, elapsed)
    }
}

impl<A: Reclaim> KeyedRateLimiter<A> {
    /// Creates a limiter for `capacity` keys (1 to 2^32), with its own clock and random seeds.
    ///
    /// Further keys take over the entries of idle keys. If there are none, [`OnFull::Share`](super::OnFull::Share) applies.
    ///
    /// # Errors
    ///
    /// `capacity` or `algorithm`: invalid, as listed at [`KeyedBuilder::build_with`].
    pub fn new(algorithm: A, capacity: u64) -> Result<Self, ConfigError> {
        Self::builder(algorithm).capacity(capacity).build()
    }
}
