use std::path::Path;

use super::extractors::Extractors;
use crate::clock::Clock;
use crate::rules::live::{LiveRules, ReloadError, Reloaded};
use crate::rules::set::builder::RuleSetBuilder;

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
        self.store(&rules)
    }
}
