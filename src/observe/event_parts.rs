use alloc::string::{String, ToString};
use core::fmt;

/// The parts of a denied request that its event shall have: the key, the client and the path.
///
/// [`DenialEvents::emit_with`](super::DenialEvents::emit_with) passes one to the caller, which sets any of them.
#[derive(Default)]
pub struct EventParts {
    pub(super) key: Option<String>,
    pub(super) client: Option<String>,
    pub(super) path: Option<String>,
}

impl EventParts {
    /// Sets the field `key`, such as a user or a token.
    pub fn key(&mut self, key: impl fmt::Display) -> &mut Self {
        self.key = Some(key.to_string());
        self
    }

    /// Sets the field `client`, such as an address.
    pub fn client(&mut self, client: impl fmt::Display) -> &mut Self {
        self.client = Some(client.to_string());
        self
    }

    /// Sets the field `path`, such as the path of a URI or the name of a route.
    pub fn path(&mut self, path: impl fmt::Display) -> &mut Self {
        self.path = Some(path.to_string());
        self
    }
}

/// Shows which parts are set, and not their values.
impl fmt::Debug for EventParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventParts")
            .field("key", &self.key.is_some())
            .field("client", &self.client.is_some())
            .field("path", &self.path.is_some())
            .finish()
    }
}
