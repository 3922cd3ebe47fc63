#![doc = include_str!("format.md")]

use alloc::string::String;
use std::path::Path;
use std::{fs, io};

use super::set::builder::RuleSetBuilder;

mod block_field;
pub(crate) mod extractors;
mod fields;
pub(crate) mod file_error;
pub(crate) mod file_format;
mod keywords;
mod kind;
mod mode_field;
mod parse;
mod prefix_field;
mod reader;
pub(crate) mod reload;
pub(crate) mod resolver;
#[cfg(all(test, not(miri)))]
mod schema;

use extractors::Extractors;
use file_error::FileError;
use file_format::FileFormat;

impl<R: ?Sized> RuleSetBuilder<R> {
    /// Reads rules from a file. The extension of the file determines the [format](FileFormat).
    ///
    /// A rule needs a `name`, and one of `quota` and `quotas` (written as for [`Quota`](crate::Quota)), `calendar` and
    /// `in_flight`. All other fields are optional. A field that is not named here is an error. A quota of bytes may have a unit,
    /// such as `50MiB/s`.
    ///
    /// ```toml
    /// [[rules]]
    /// name = "uploads"
    /// renamed_from = "upload"          # the name before a reload, to keep the counts
    /// quota = "100/60s"                # or several: quotas = ["10/s", "100/60s"]
    /// algorithm = "sliding-window"     # the default; or "counter", "classic", "even", "fixed", "log", "gcra"
    /// # cells = 60                     # of a sliding window, counter, classic or even rule
    /// # burst = 20                     # of a gcra rule
    /// key = "user"                     # a Key; by default all requests count together
    /// # prefix = { ipv4 = 24, ipv6 = 56 }  # of a key of addresses: the leading bits that identify a client
    /// cost = "bytes"                   # a Cost; by default one permit
    /// when = "is upload"               # a Condition; by default every request
    /// capacity = 100000                # keys that the table can hold; by default 65536
    /// on_full = "share"                # or "deny", "admit", "forget"
    /// on_error = "share"               # of a shared rule; or "local", "deny", "admit"
    /// mode = "strict"                  # of a shared rule; or "local", { lease = { permits = 100 } },
    ///                                  # { sync = { period = "100ms", pending = 50 } }
    /// # enforce = "10%"                # of the keys; or of none: shadow = true
    /// allow = ["backup"]               # keys that this rule never limits; of addresses also networks: "10.0.0.0/8"
    /// deny = ["mallory"]               # keys that this rule always denies, where it is enforced
    ///
    /// [rules.tiers]
    /// by = "plan"                      # a TierOf
    /// limits = { free = 10, paid = 1000 }
    ///
    /// [rules.block]                    # a Block of keys that violate the rule too often
    /// after = "10/min"                 # violations in a window
    /// for = "10min"
    /// factor = 2                       # optional: each block lasts longer by this factor
    /// ceiling = "1d"                   # with a factor: the longest block
    /// forgive_after = "1d"             # with a factor: the time after which blocks begin at the first duration again
    /// extend = false                   # whether a retry extends the block; by default not
    /// ```
    ///
    /// `shadow = true` and `enforce` exclude each other. A rule with tiers has one quota and is not a log. `cells` is for
    /// sliding window, counter, classic and even rules, `burst` for gcra rules. `capacity`, `enforce`, `allow`, `deny` and
    /// `block` need a `key`. A
    /// file with `rules = []` is valid and limits nothing.
    ///
    /// The entries of `allow` and `deny` are read by the key: see [`Key`](crate::Key#lists-of-keys). An entry that is no value of the key is
    /// an error. A list for a key that does not know its values is an error, too.
    ///
    /// `prefix` is for keys of addresses, such as those of [`Key::address`](crate::Key::address). `ipv4` is 1 to 32 bits, `ipv6` is 1 to
    /// 128. If one of them is not given, the key keeps its own. Two rules with different prefixes of one key count separately.
    ///
    /// `in_flight = 20` instead of a quota limits the [requests in flight](crate::Rule::in_flight), 1 to 1,048,575. Its `on_full` is
    /// `"deny"`, the default, or `"admit"`.
    ///
    /// `calendar = "50_000/month from the 5th"` instead of a quota limits each [calendar](crate::Rule::calendar) day, week, month or
    /// year (feature `calendar`), in UTC or the zone of `time_zone = "Europe/Berlin"`. The limits of its tiers are numbers, for the
    /// same periods.
    ///
    /// `algorithm`, `cells` and `burst` are for rules with `quota` or `quotas`, and `cost` is for these and for rules with
    /// `calendar`.
    ///
    /// To limit one endpoint, name a [`Condition`](super::Condition) in `when`. To limit several endpoints in one rule, let a
    /// [`TierOf`](super::TierOf) return the endpoint. To limit each user on each endpoint, use a [`Key`](crate::Key)
    /// of both. A file cannot set the limit of each request: that takes a function, [`Rule::limit_by`](crate::Rule::limit_by).
    ///
    /// JSON and YAML files have the same structure: a map with `rules`, a list of maps. Editors can check a file against
    /// `schema/rules.schema.json` of the package. The field `$schema` gives its location.
    ///
    /// The rules are checked as by [`build_with`](Self::build_with), which temporarily allocates their tables.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not of its format, has an unknown field or an invalid value, or when no rule set can
    /// be built of it. The error has the position of the value. It has every mistake of the file: the first one, and the
    /// [`others`](FileError::others).
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::Key;
    /// use ringgate::rules::{Extractors, RuleSetBuilder};
    ///
    /// struct Request {
    ///     user: &'static str,
    ///     endpoint: &'static str,
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let extractors = Extractors::new()
    ///     .key(Key::text("user", |request: &Request| Some(request.user)))?
    ///     .key(Key::text("endpoint", |request: &Request| Some(request.endpoint)))?;
    /// let rules = RuleSetBuilder::from_file("examples/rules.toml", &extractors)?;
    /// assert_eq!(rules.rules().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_file(path: impl AsRef<Path>, extractors: &Extractors<R>) -> Result<Self, FileError> {
        let path = path.as_ref();
        Self::from_read(path, fs::read_to_string(path), extractors)
    }

    /// The rules of a file, from the result of reading it.
    pub(super) fn from_read(
        path: &Path,
        read: io::Result<String>,
        extractors: &Extractors<R>,
    ) -> Result<Self, FileError> {
        let rules = || {
            let format = FileFormat::of(path).map_err(FileError::format)?;
            Self::from_text(&read.map_err(FileError::unreadable)?, format, extractors)
        };
        rules().map_err(|error| error.in_file(path))
    }

    /// Reads rules from a text, with the fields of [`from_file`](Self::from_file). Rules that are a part of another
    /// configuration are read from the text of that part.
    ///
    /// # Errors
    ///
    /// When the text is not of the format, has an unknown field or an invalid value, or when no rule set can be built of it.
    /// The error has the position of the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::rules::{Extractors, FileFormat, RuleSetBuilder};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let program = serde_json::json!({
    ///     "port": 8080,
    ///     "limits": { "rules": [{ "name": "all", "quota": "100/60s" }] },
    /// });
    /// let text = program["limits"].to_string();
    /// let rules = RuleSetBuilder::from_text(&text, FileFormat::Json, &Extractors::<str>::new())?;
    /// assert_eq!(rules.rules()[0].name(), "all");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_text(text: &str, format: FileFormat, extractors: &Extractors<R>) -> Result<Self, FileError> {
        // Some editors begin a file with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        reader::read(&parse::parse(text, format)?, extractors)
    }
}
