use alloc::string::String;
use core::fmt;

/// The parts of a denied request that its event has. [`DenialEvents::emit_with`](super::DenialEvents::emit_with) passes empty parts
/// to the caller's function, which sets some of them.
#[derive(Default)]
#[non_exhaustive]
pub struct EventParts {
    /// The field `key`, such as a user or a token.
    pub key: Option<String>,
    /// The field `client`, such as an address.
    pub client: Option<String>,
    /// The field `path`, such as the path of a URI or the name of a route.
    pub path: Option<String>,
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
