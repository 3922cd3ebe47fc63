use std::io;

use crate::wait::WaitError;

/// Converts the error of a limiter to the error that readers and writers return.
pub(super) fn to_io_error(error: WaitError) -> io::Error {
    let kind = match error {
        WaitError::QueueFull { .. } => io::ErrorKind::ResourceBusy,
        WaitError::Never | WaitError::TooLate { .. } => io::ErrorKind::QuotaExceeded,
        WaitError::Unavailable => io::ErrorKind::HostUnreachable,
    };
    io::Error::new(kind, error)
}
