use core::fmt;
use std::path::Path;

use super::extractors::Extractors;
use super::file_error::FileError;
use crate::clock::Clock;
use crate::rules::live::{LiveRules, Reloaded, ReplaceError};
use crate::rules::set::builder::RuleSetBuilder;

/// The error of a reload from a file. The rules have not changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReloadError {
    /// The file cannot be read, or is invalid.
    File(FileError),
    /// The rules could not be replaced.
    Replace(ReplaceError),
}

impl<R: ?Sized, C: Clock + Clone> LiveRules<R, C> {
    /// Replaces the rules by those of a file, as [`store`](Self::store) does. Call it from a timer, or from a thread that handles a
    /// signal.
    ///
    /// # Errors
    ///
    /// When the file is invalid, or 64 or more old states are still enforced. The rules have not changed then.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use ringgate::LiveRules;
    /// use ringgate::rules::{Extractors, Reloaded, RuleSetBuilder};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let extractors = Extractors::<str>::new();
    /// let live = LiveRules::new(RuleSetBuilder::from_file("rules.toml", &extractors)?.build()?);
    ///
    /// // Later, on a signal:
    /// match live.reload("rules.toml", &extractors) {
    ///     // The old and the new states are both enforced until `finish` returns `Done`. Call it a moment later.
    ///     Ok(Reloaded::Pending(_)) => println!("pending"),
    ///     Ok(_) => {}
    ///     // The old rules are still in force.
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
