//! The fields of a line in the common or combined format.

/// A field of a line; those of the combined format, and the virtual host, may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommonField {
    Host,
    Client,
    Ident,
    User,
    Request,
    Method,
    Target,
    Path,
    Protocol,
    Status,
    Size,
    Referer,
    Agent,
}

impl CommonField {
    /// The fields with their names: the tool's own, and nginx's.
    const NAMES: [(&str, &str, Self); 13] = [
        ("client", "remote_addr", Self::Client),
        ("vhost", "server_name", Self::Host),
        ("ident", "ident", Self::Ident),
        ("user", "remote_user", Self::User),
        ("request", "request", Self::Request),
        ("method", "request_method", Self::Method),
        ("target", "request_uri", Self::Target),
        ("path", "uri", Self::Path),
        ("protocol", "server_protocol", Self::Protocol),
        ("status", "status", Self::Status),
        ("size", "body_bytes_sent", Self::Size),
        ("referer", "http_referer", Self::Referer),
        ("agent", "http_user_agent", Self::Agent),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut known = Self::NAMES.iter();
        known
            .find(|(ours, nginx, _)| *ours == name || *nginx == name)
            .map(|known| known.2)
    }

    /// All names, for an error.
    pub(crate) fn names() -> String {
        Self::NAMES.map(|(name, _, _)| name).join(", ")
    }
}
