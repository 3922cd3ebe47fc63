use crate::shared::store::StoreError;

/// The state of the connection, as an error indicates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Nothing: the error concerns its call alone.
    None,
    /// The connection works, but the server cannot serve calls now.
    ServerFault,
    /// The connection may be broken. Several such errors in a row end it.
    Suspect,
    /// The connection has ended.
    Lost,
}

/// The error of a call, and what it says about the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The error, as callers of the store get it.
    pub error: StoreError,
    /// The state of the connection, as the error indicates it.
    pub class: ErrorClass,
}

impl From<CallError> for StoreError {
    fn from(failed: CallError) -> Self {
        failed.error
    }
}
