use core::fmt;
use std::path::Path;

use super::extractors::Extractors;
use super::file_error::FileError;
use crate::clock::Clock;
use crate::rules::{LiveRules, Reloaded, ReplaceError, RuleSetBuilder};

/// Rules could not be reloaded from their file. Those from before hold.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReloadError {
    /// The file cannot be used.
    File(FileError),
    /// The rules could not be replaced.
    Replace(ReplaceError),
}

impl<R: ?Sized, C: Clock + Clone> LiveRules<R, C> {
    /// Puts the rules of a file in force, with what was counted by those from before: as
    /// [`store`](Self::store), for a timer or a signal handler's thread to call.
    ///
    /// # Errors
    ///
    /// When the file is wrong, or as [`store`](Self::store). Nothing has changed then.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use ringgate::{Extractors, LiveRules, Reloaded, RuleSetBuilder};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let extractors = Extractors::<str>::new();
    /// # #[cfg(feature = "quanta")]
    /// let live = LiveRules::new(RuleSetBuilder::from_file("rules.toml", &extractors)?.build()?);
    /// # #[cfg(not(feature = "quanta"))]
    /// # let live = LiveRules::new(
    /// #     RuleSetBuilder::from_file("rules.toml", &extractors)?.build_with(ringgate::ManualClock::new(), [1, 2, 3, 4])?,
    /// # );
    ///
    /// // Later, when somebody asks for it:
    /// match live.reload("rules.toml", &extractors) {
    ///     // The old rules hold beside the new ones until `finish` says `Done`: call it again a moment later.
    ///     Ok(Reloaded::Pending(_)) => println!("pending"),
    ///     Ok(_) => {}
    ///     // The old rules still hold.
    ///     Err(error) => eprintln!("{error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn reload(
        &self,
        path: impl AsRef<Path>,
        extractors: &Extractors<R>,
    ) -> Result<Reloaded, ReloadError> {
        let rules = RuleSetBuilder::from_file(path, extractors).map_err(ReloadError::File)?;
        self.store(&rules).map_err(ReloadError::Replace)
    }
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Replace(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ReloadError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::File(error) => Some(error),
            Self::Replace(error) => Some(error),
        }
    }
}
