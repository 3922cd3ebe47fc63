use core::future::Future;

use super::call_error::CallError;
use crate::shared::store::StoreError;

/// A server, or a group of servers, that a [`Supervisor`](super::Supervisor) keeps a connection to.
pub trait Server: Send + Sync + 'static {
    /// The kind of the server in events of `tracing`, such as `Redis`.
    const NAME: &'static str;

    /// A connection that many calls share. Dropping it closes it.
    type Connection: Send + Sync + 'static;

    /// The prefix of all names that the store has in the server. Events have it as their field `prefix`.
    fn prefix(&self) -> &str;

    /// Makes a connection, and checks that the server accepts calls of this user.
    ///
    /// The supervisor drops the future after its [`connect_timeout`](super::SupervisorSettings::connect_timeout).
    ///
    /// # Errors
    ///
    /// When no connection is made. After an [unexpected reply](crate::shared::StoreErrorKind::UnexpectedReply), which no wait
    /// mends, the next attempt is made a second later.
    fn connect(&self) -> impl Future<Output = Result<Connected<Self::Connection>, StoreError>> + Send;

    /// Makes a call that changes nothing, which tests an idle connection.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    fn ping(&self, connection: &Self::Connection) -> impl Future<Output = Result<(), CallError>> + Send;
}

/// A connection, and the role of the server at its other end.
#[derive(Clone, Copy, Debug)]
pub struct Connected<C> {
    /// The connection.
    pub connection: C,
    /// The role of the server when the connection was made.
    pub role: ServerRole,
}

/// The role of a server that accepts calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRole {
    /// The server accepts writes.
    Primary,
    /// The server accepts no writes now. The connection is kept, because the server may become the primary.
    Replica,
    /// The server does not tell its role to this user. The text says which right is missing, for
    /// [`Health::role_error`](super::Health::role_error).
    Unknown(&'static str),
}
