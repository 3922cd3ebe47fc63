#![doc = include_str!("config.md")]

use alloc::string::String;
use std::path::Path;
use std::{fs, io};

use serde::de::{Deserializer, Error as _};

use super::builder::RuleSetBuilder;

mod any;
mod extractors;
mod file_error;
mod format;
mod json;
mod modes;
mod node;
mod place;
mod reader;
mod reload;
#[cfg(all(test, not(miri)))]
mod schema;
mod toml;
mod words;
mod yaml;

pub use extractors::{AnyExtractor, Extractors};
pub use file_error::{FileError, FileProblem};
pub use format::Format;
pub use reload::ReloadError;

impl<R: ?Sized> RuleSetBuilder<R> {
    /// Reads the rules of a file, whose ending says its [format](Format).
    ///
    /// The fields are those of the example, and all others an error. A rule needs a `name`, and one of `quota` and
    /// `quotas` (written as [`Quota`](crate::Quota) is read); all else may be left out.
    ///
    /// ```toml
    /// [[rules]]
    /// name = "uploads"
    /// was = "upload"                   # its name before a reload, to keep its counts
    /// quota = "100/60s"                # or several: quotas = ["10/s", "100/60s"]
    /// algorithm = "counter"            # or "classic", "even", "fixed", "log", "gcra"
    /// cells = 5                        # of a counter, classic or even rule
    /// # burst = 20                     # of a gcra rule
    /// key = "user"                     # a Key; all requests together when nothing is said
    /// cost = "bytes"                   # a Cost; one permit when nothing is said
    /// when = "is upload"               # a Condition; every request when nothing is said
    /// capacity = 100000                # how many keys there is room for; 65536 when nothing is said
    /// on_full = "share"                # or "deny", "admit", "forget"
    /// on_error = "share"               # or "local", "deny", "admit": of rules that many machines share
    /// mode = "strict"                  # or "local", { lease = { permits = 100 } },
    ///                                  # { sync = { period = "100ms", pending = 50 } }: of such rules as well
    /// # enforce = "10%"                # of the keys; or of none: shadow = true
    /// allow = ["backup"]               # keys that this rule never limits
    /// deny = ["mallory"]               # keys that it always refuses, where it is enforced
    ///
    /// [rules.tiers]
    /// by = "plan"                      # a TierOf
    /// limits = { free = 10, paid = 1000 }
    /// ```
    ///
    /// `shadow = true` and `enforce` exclude each other; tiers are for a rule with one quota, and not for a log; `cells` for
    /// counter, classic and even, `burst` for gcra; `capacity`, `enforce`, `allow` and `deny` need a `key`. For one
    /// endpoint only, name a [`Condition`](crate::Condition) in `when`; for limits by endpoint in one rule, let a
    /// [`TierOf`](crate::TierOf) answer the endpoint; for each user on each endpoint, register a [`Key`](crate::Key) of
    /// both. A file with `rules = []` is right, and limits nothing.
    ///
    /// In JSON and YAML the same: a map with `rules`, a list of maps. The file `schema/rules.schema.json` of the
    /// package is the JSON Schema of it, for editors; a file may say where it is in a field `$schema`.
    ///
    /// The rules are checked as by [`build_with`](Self::build_with), which takes the memory of their tables
    /// for a moment.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not of its format, says what no rule has or can have, or when no rule set
    /// can be built of it: with the place of the value at fault.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::hash::Hash;
    /// use ringgate::{Extractors, Key, RuleSetBuilder};
    ///
    /// struct Request {
    ///     user: &'static str,
    ///     endpoint: &'static str,
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let extractors = Extractors::new()
    ///     .key(Key::new("user", |request: &Request, key| request.user.hash(key)))?
    ///     .key(Key::new("endpoint", |request: &Request, key| request.endpoint.hash(key)))?;
    /// let rules = RuleSetBuilder::from_file("examples/rules.toml", &extractors)?;
    /// assert_eq!(rules.rules().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_file(path: impl AsRef<Path>, extractors: &Extractors<R>) -> Result<Self, FileError> {
        let path = path.as_ref();
        Self::from_read(path, fs::read_to_string(path), extractors)
    }

    /// The rules of a file that was read, or could not be.
    pub(super) fn from_read(
        path: &Path,
        read: io::Result<String>,
        extractors: &Extractors<R>,
    ) -> Result<Self, FileError> {
        let rules = || {
            let format = Format::of(path).map_err(FileError::format)?;
            Self::from_text(&read.map_err(FileError::unreadable)?, format, extractors)
        };
        rules().map_err(|error| error.in_file(path))
    }

    /// Reads the rules of a text, with the fields of [`from_file`](Self::from_file).
    ///
    /// # Errors
    ///
    /// As [`from_file`](Self::from_file), without a file.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::{Extractors, Format, RuleSetBuilder};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let text = r#"{"rules": [{"name": "all", "quota": "100/60s"}]}"#;
    /// let rules = RuleSetBuilder::from_text(text, Format::Json, &Extractors::<str>::new())?;
    /// assert_eq!(rules.rules()[0].name(), "all");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_text(text: &str, format: Format, extractors: &Extractors<R>) -> Result<Self, FileError> {
        // Some editors begin a file with it, and no format has a use for it.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = match format {
            Format::Toml => toml::parse(text),
            Format::Json => json::parse(text),
            Format::Yaml => yaml::parse(text),
        };
        reader::read(&root?, extractors)
    }

    /// Reads rules that are a part of something else, with the fields of [`from_file`](Self::from_file): the
    /// configuration of a whole program, or what came over the network.
    ///
    /// The deserializer must be of a format that describes itself, as JSON does.
    ///
    /// # Errors
    ///
    /// As [`from_file`](Self::from_file), with the name of the rule at fault, and without a place (which a
    /// deserializer does not tell).
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::{Extractors, RuleSetBuilder};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let program = serde_json::json!({
    ///     "port": 8080,
    ///     "limits": { "rules": [{ "name": "all", "quota": "100/60s" }] },
    /// });
    /// let rules = RuleSetBuilder::from_deserializer(&program["limits"], &Extractors::<str>::new())?;
    /// assert_eq!(rules.rules()[0].name(), "all");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_deserializer<'de, D: Deserializer<'de>>(
        deserializer: D,
        extractors: &Extractors<R>,
    ) -> Result<Self, D::Error> {
        let root = any::read(deserializer)?;
        reader::read(&root, extractors).map_err(|error| D::Error::custom(error.nowhere()))
    }
}
