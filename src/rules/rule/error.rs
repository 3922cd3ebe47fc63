use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::error::ConfigError;
use crate::rules::rule::AnyRule;

/// The error of a rule set that cannot be built: the name of a rule and its error, and all other errors of the rules.
///
/// # Examples
///
/// ```
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::{ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::<str>::new().rule(Rule::new("all", "10/s".parse()?).cells(0));
/// let error = rules.build_with(ManualClock::new(), [1, 2, 3, 4]).unwrap_err();
/// assert_eq!(error.to_string(), r#"rule "all": invalid cells: 0 (expected 1 to 4096)"#);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleError {
    /// The name of the rule.
    pub rule: String,
    /// The field, the value that was given, and the values that are accepted.
    pub error: ConfigError,
    /// The other errors of the set, in the order of the rules.
    pub others: Vec<Self>,
}

impl RuleError {
    pub(crate) fn new<R: ?Sized>(rule: &AnyRule<R>, error: ConfigError) -> Self {
        Self {
            rule: rule.name.to_string(),
            error,
            others: Vec::new(),
        }
    }

    /// Joins these errors, and the others of each, into one.
    pub(crate) fn all(errors: impl Iterator<Item = Self>) -> Result<(), Self> {
        let mut errors = errors.flat_map(|mut error| {
            let others = core::mem::take(&mut error.others);
            core::iter::once(error).chain(others)
        });
        match errors.next() {
            None => Ok(()),
            Some(first) => Err(Self {
                others: errors.collect(),
                ..first
            }),
        }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {:?}: {}", self.rule, self.error)?;
        self.others.iter().try_for_each(|other| write!(f, "; {other}"))
    }
}

impl core::error::Error for RuleError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}
