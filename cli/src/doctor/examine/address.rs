//! Where a server is, without its password.

use core::fmt;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

/// The address of a server, and how to log in; the display form holds no password.
#[derive(Clone)]
pub(super) struct Address(ConnectionInfo);

impl Address {
    /// `None`: it is none.
    pub(super) fn of(url: &str) -> Option<Self> {
        url.into_connection_info().ok().map(Self)
    }

    /// Another server, for which the same user and password hold. Nodes of clusters know no databases.
    pub(super) fn elsewhere(&self, host: &str, port: u16) -> Self {
        let info = self.0.clone();
        let info = info.set_addr(ConnectionAddr::Tcp(host.to_owned(), port));
        Self(info)
    }

    pub(super) const fn info(&self) -> &ConnectionInfo {
        &self.0
    }

    /// Host and port, or a path.
    pub(super) fn place(&self) -> String {
        match self.0.addr() {
            ConnectionAddr::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            ConnectionAddr::Tcp(host, port) => format!("{host}:{port}"),
            ConnectionAddr::Unix(path) => path.display().to_string(),
            other => other.to_string(),
        }
    }

    /// The user that logs in.
    pub(super) fn user(&self) -> &str {
        self.0.redis_settings().username().unwrap_or("default")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unix = matches!(self.0.addr(), ConnectionAddr::Unix(_));
        f.write_str(if unix { "unix://" } else { "redis://" })?;
        let settings = self.0.redis_settings();
        if let Some(user) = settings.username()
            && !unix
        {
            write!(f, "{user}@")?;
        }
        f.write_str(&self.place())?;
        match settings.db() {
            0 => Ok(()),
            db if unix => write!(f, "?db={db}"),
            db => write!(f, "/{db}"),
        }
    }
}
