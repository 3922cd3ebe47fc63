use alloc::boxed::Box;
use alloc::string::String;
use core::error::Error;
use core::fmt;
use std::io;

use super::header::{MAX_DESCRIPTION, VERSION};

/// The error of a restore. Nothing was restored.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::keyed::AnyKey;
/// use ringgate::saved::RestoreError;
/// use ringgate::{CounterRing, KeyedRateLimiter, ManualClock, Quota};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let table = |quota: &str| -> Result<_, ringgate::ConfigError> {
///     Ok(KeyedRateLimiter::builder(CounterRing::new(quota.parse()?)?))
/// };
/// let keys = || AnyKey::with_seeds([1, 2, 3, 4]);
/// let mut file = Vec::new();
/// table("5/min")?.build_with(ManualClock::new(), keys())?.save(&mut file)?;
///
/// let restore = |file: &[u8], quota| -> Result<_, Box<dyn core::error::Error>> {
///     Ok(table(quota)?.restore_with(ManualClock::new(), keys(), file, Duration::ZERO))
/// };
/// assert!(restore(&file, "5/min")?.is_ok());
/// assert!(matches!(restore(&file, "6/min")?, Err(RestoreError::Mismatch { .. })));
/// assert!(matches!(restore(&file[..20], "5/min")?, Err(RestoreError::Truncated { bytes: 20 })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// The file could not be read.
    Read(io::Error),
    /// The file does not begin as a saved state does.
    Format,
    /// The file has another version of the format.
    Version(u32),
    /// The description of the limiter in the file is longer than 16 MiB.
    Description(
        /// Its length in bytes.
        u32,
    ),
    /// The file ends too early.
    Truncated {
        /// The length of the file.
        bytes: u64,
    },
    /// The file was changed or is not complete.
    Checksum {
        /// The checksum in the file.
        found: u32,
        /// The checksum of the bytes before it.
        expected: u32,
    },
    /// The file has more bytes after its last checksum.
    Trailing,
    /// The file was saved with another algorithm, quota, list of rules, hash function or kind of keys.
    Mismatch {
        /// The part that differs.
        field: &'static str,
        /// The part as it is in the file.
        found: String,
        /// The part as it is in the limiter that is restored.
        expected: String,
    },
    /// The limiter itself is invalid: a [`ConfigError`](crate::ConfigError), or a
    /// [`RuleError`](crate::rules::RuleError).
    Invalid(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(_) => f.write_str("the saved state could not be read"),
            Self::Format => f.write_str("not a saved state (expected a file that begins with \"ringgate\")"),
            Self::Version(found) => {
                write!(
                    f,
                    "invalid version of a saved state: {found} (expected {VERSION})"
                )
            }
            Self::Description(length) => {
                write!(
                    f,
                    "invalid length of the description in a saved state: {length} bytes (expected at most {MAX_DESCRIPTION})"
                )
            }
            Self::Truncated { bytes } => {
                write!(f, "the saved state ends after {bytes} bytes (expected more)")
            }
            Self::Checksum { found, expected } => {
                write!(
                    f,
                    "invalid checksum of a saved state: {found:08x} (expected {expected:08x})"
                )
            }
            Self::Trailing => f.write_str("the saved state has more bytes after its end (expected none)"),
            Self::Mismatch {
                field,
                found,
                expected,
            } => write!(
                f,
                "the saved state has another {field}: {found} (expected {expected})"
            ),
            Self::Invalid(error) => error.fmt(f),
        }
    }
}

impl Error for RestoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Invalid(error) => error.source(),
            Self::Format
            | Self::Version(_)
            | Self::Description(_)
            | Self::Truncated { .. }
            | Self::Checksum { .. }
            | Self::Trailing
            | Self::Mismatch { .. } => None,
        }
    }
}
