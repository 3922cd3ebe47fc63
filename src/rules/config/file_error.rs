use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::{fmt, iter, mem};
use std::io;
use std::path::{Path, PathBuf};

use super::file_format::FileFormat;
use super::parse::position::Position;
use crate::error::ConfigError;

/// The error of a rules file that cannot be used: the position, the rule, the given value, and the expected values of its first mistake,
/// and all other mistakes.
///
/// # Examples
///
/// ```
/// use ringgate::rules::{Extractors, FileFormat, RuleSetBuilder};
///
/// let text = "\
/// [[rules]]
/// name = 'user'
/// quota = '2/fortnight'
/// ";
/// let error = RuleSetBuilder::from_text(text, FileFormat::Toml, &Extractors::<str>::new()).unwrap_err();
/// assert_eq!((error.position(), error.rule()), (Some((3, 9)), Some("user")));
/// assert!(error.to_string().starts_with(
///     "line 3, column 9: rule \"user\": invalid quota: \"2/fortnight\" (expected a limit, "
/// ));
/// ```
#[derive(Debug)]
pub struct FileError(Box<FileErrorParts>);

/// The parts of a [`FileError`], in a box, because an error should be small.
#[derive(Debug)]
struct FileErrorParts {
    file: Option<PathBuf>,
    position: Option<Position>,
    rule: Option<String>,
    problem: FileProblem,
    others: Vec<FileError>,
}

/// The kind of a [`FileError`].
#[derive(Debug)]
enum FileProblem {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The text is not of its format. The message is that of its parser.
    Syntax { format: FileFormat, message: String },
    /// A value is invalid, missing or superfluous.
    Value(ConfigError),
}

impl FileError {
    fn new(position: Option<Position>, problem: FileProblem) -> Self {
        Self(Box::new(FileErrorParts {
            file: None,
            position,
            rule: None,
            problem,
            others: Vec::new(),
        }))
    }

    pub(super) fn unreadable(error: io::Error) -> Self {
        Self::new(None, FileProblem::Unreadable(error))
    }

    pub(super) fn syntax(position: Position, format: FileFormat, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(Some(position), FileProblem::Syntax { format, message })
    }

    pub(super) fn value(position: Position, error: ConfigError) -> Self {
        Self::new(Some(position), FileProblem::Value(error))
    }

    pub(super) fn format(error: ConfigError) -> Self {
        Self::new(None, FileProblem::Value(error))
    }

    /// Returns the errors of a file as one, if there are any. Each error may stand for several.
    pub(super) fn all(errors: Vec<Self>) -> Result<(), Self> {
        let alone = errors.into_iter().flat_map(|mut error| {
            let others = mem::take(&mut error.0.others);
            iter::once(error).chain(others)
        });
        let mut alone: Vec<Self> = alone.collect();
        alone.sort_by_key(|error| error.0.position);
        let mut alone = alone.into_iter();
        match alone.next() {
            None => Ok(()),
            Some(mut first) => {
                first.0.others = alone.collect();
                Err(first)
            }
        }
    }

    /// Returns all values, or the errors of all that have one.
    pub(super) fn each<T>(read: impl Iterator<Item = Result<T, Self>>) -> Result<Vec<T>, Self> {
        let (mut values, mut errors) = (Vec::new(), Vec::new());
        for read in read {
            match read {
                Ok(value) => values.push(value),
                Err(error) => errors.push(error),
            }
        }
        Self::all(errors).map(|()| values)
    }

    /// Changes this error and the others.
    fn change(&mut self, change: impl Fn(&mut FileErrorParts)) {
        change(&mut self.0);
        self.0.others.iter_mut().for_each(|other| change(&mut other.0));
    }

    pub(super) fn in_file(mut self, file: &Path) -> Self {
        self.change(|error| error.file = Some(file.to_path_buf()));
        self
    }

    pub(super) fn in_rule(mut self, rule: &str) -> Self {
        self.change(|error| error.rule = Some(rule.into()));
        self
    }

    /// Returns the line of the error, and the column in characters, both counted from 1. `None` if the error concerns the file
    /// as a whole.
    #[must_use]
    pub fn position(&self) -> Option<(usize, usize)> {
        let position = self.0.position?;
        Some((position.line, position.column))
    }

    /// Returns the name of the rule that the error is in, if it has one.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        self.0.rule.as_deref()
    }

    /// Returns the other errors of the file, in the order of their positions. Each mistake in a rule is an error. An unreadable file, or a
    /// text that is not of its format, has no other error.
    #[must_use]
    pub fn others(&self) -> &[Self] {
        &self.0.others
    }
}

/// Writes a line for each error: the position, the rule, and the problem.
impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.file, self.0.position) {
            (Some(file), Some(Position { line, column })) => {
                write!(f, "{}:{line}:{column}: ", file.display())?
            }
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, Some(Position { line, column })) => write!(f, "line {line}, column {column}: ")?,
            (None, None) => {}
        }
        if let Some(rule) = &self.0.rule {
            write!(f, "rule {rule:?}: ")?;
        }
        match &self.0.problem {
            FileProblem::Unreadable(error) => write!(f, "cannot be read: {error}"),
            FileProblem::Syntax { format, message } => write!(f, "not {format}: {message}"),
            FileProblem::Value(error) => error.fmt(f),
        }?;
        self.0.others.iter().try_for_each(|other| write!(f, "\n{other}"))
    }
}

/// The source is an [`io::Error`] if the file cannot be read, and a [`ConfigError`] if a value is invalid, missing or
/// superfluous. There is none if the text is not of its format.
impl core::error::Error for FileError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.0.problem {
            FileProblem::Unreadable(error) => Some(error),
            FileProblem::Syntax { .. } => None,
            FileProblem::Value(error) => Some(error),
        }
    }
}
