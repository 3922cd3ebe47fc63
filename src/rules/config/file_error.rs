use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::format::Format;
use super::place::Place;
use crate::error::ConfigError;

/// A rules file cannot be used: where in it, which rule, what was given, and what is allowed.
///
/// # Examples
///
/// ```
/// use ringgate::{Extractors, Format, RuleSetBuilder};
///
/// let text = "\
/// [[rules]]
/// name = 'user'
/// quota = '2/fortnight'
/// ";
/// let error = RuleSetBuilder::from_text(text, Format::Toml, &Extractors::<str>::new()).unwrap_err();
/// assert_eq!((error.line(), error.column(), error.rule()), (Some(3), Some(9), Some("user")));
/// assert!(error.to_string().starts_with(
///     "line 3, column 9: rule \"user\": quota is \"2/fortnight\", but allowed is a limit, "
/// ));
/// ```
#[derive(Debug)]
pub struct FileError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    file: Option<PathBuf>,
    place: Option<Place>,
    rule: Option<String>,
    problem: FileProblem,
}

/// What is wrong with a rules file.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileProblem {
    /// It cannot be read.
    Unreadable(io::Error),
    /// It is not written as its format asks.
    Syntax {
        /// The format.
        format: Format,
        /// What its parser says.
        message: String,
    },
    /// A value is wrong, or missing, or too much.
    Value(ConfigError),
}

impl FileError {
    fn new(place: Option<Place>, problem: FileProblem) -> Self {
        Self(Box::new(Inner {
            file: None,
            place,
            rule: None,
            problem,
        }))
    }

    pub(super) fn unreadable(error: io::Error) -> Self {
        Self::new(None, FileProblem::Unreadable(error))
    }

    pub(super) fn syntax(place: Place, format: Format, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(Some(place), FileProblem::Syntax { format, message })
    }

    pub(super) fn value(place: Place, error: ConfigError) -> Self {
        Self::new(Some(place), FileProblem::Value(error))
    }

    pub(super) fn format(error: ConfigError) -> Self {
        Self::new(None, FileProblem::Value(error))
    }

    pub(super) fn in_file(mut self, file: &Path) -> Self {
        self.0.file = Some(file.to_path_buf());
        self
    }

    pub(super) fn in_rule(mut self, rule: impl Into<String>) -> Self {
        self.0.rule = Some(rule.into());
        self
    }

    /// Without a place, for what was not read from a text.
    pub(super) fn nowhere(mut self) -> Self {
        self.0.place = None;
        self
    }

    /// The file; `None` when the rules were read from a text.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The line of what is wrong, from 1 on; `None` when it is the file as a whole.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        Some(self.0.place?.line)
    }

    /// The column of what is wrong, from 1 on, in characters.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        Some(self.0.place?.column)
    }

    /// The name of the rule at fault, when it is in a rule that has one.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        self.0.rule.as_deref()
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &FileProblem {
        &self.0.problem
    }
}

/// One line: the place, the rule, and what is wrong.
impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.file, self.0.place) {
            (Some(file), Some(Place { line, column })) => write!(f, "{}:{line}:{column}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, Some(Place { line, column })) => write!(f, "line {line}, column {column}: ")?,
            (None, None) => {}
        }
        if let Some(rule) = &self.0.rule {
            write!(f, "rule {rule:?}: ")?;
        }
        match &self.0.problem {
            FileProblem::Unreadable(error) => write!(f, "cannot be read: {error}"),
            FileProblem::Syntax { format, message } => write!(f, "not {format}: {message}"),
            FileProblem::Value(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FileError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.0.problem {
            FileProblem::Unreadable(error) => Some(error),
            FileProblem::Syntax { .. } => None,
            FileProblem::Value(error) => Some(error),
        }
    }
}
