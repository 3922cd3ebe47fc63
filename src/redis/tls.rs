//! TLS by rustls, for connections to one server.
//!
//! The settings are read and checked once, when the store is built. The client library would read the roots of the system
//! for each connection, and would panic in a process without a provider of cryptography. A cluster connects by the client
//! library, so it needs a provider that the process has installed.

use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;
use std::io;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisResult};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::ConfigError;

/// Whether addresses with TLS are accepted.
pub(super) const IS_BUILT_IN: bool = true;

/// The certificates of the builder, as PEM.
#[derive(Clone, Default)]
pub(super) struct Certificates {
    pub(super) roots: Option<Vec<u8>>,
    /// The chain of the client's certificate, and its key.
    pub(super) client: Option<(Vec<u8>, Vec<u8>)>,
}

impl Certificates {
    pub(super) const fn is_empty(&self) -> bool {
        self.roots.is_none() && self.client.is_none()
    }

    /// The certificates in the form of the client library, which connects to clusters.
    #[cfg(feature = "redis-cluster")]
    pub(super) fn for_cluster(&self) -> Option<::redis::TlsCertificates> {
        (!self.is_empty()).then(|| ::redis::TlsCertificates {
            client_tls: self
                .client
                .clone()
                .map(|(client_cert, client_key)| ::redis::ClientTlsConfig {
                    client_cert,
                    client_key,
                }),
            root_cert: self.roots.clone(),
        })
    }
}

/// Makes encrypted connections.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    pub(super) fn new(certificates: &Certificates) -> Result<Self, ConfigError> {
        let provider = match CryptoProvider::get_default() {
            Some(installed) => Arc::clone(installed),
            None => Arc::new(built_in()?),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ConfigError::new("tls_provider", error.to_string(), "TLS 1.2 and 1.3"))?
            .with_root_certificates(roots(certificates)?);
        let config = match &certificates.client {
            None => config.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = read_certificates("client_certificate", chain)?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|error| unreadable("client_certificate", &error, "a private key in PEM"))?;
                config
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| unreadable("client_certificate", &error, "a certificate and its key"))?
            }
        };
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Connects to a server. The task of the handle moves the bytes of the connection.
    pub(super) async fn connect(
        &self,
        host: &str,
        port: u16,
        login: &RedisConnectionInfo,
        config: &AsyncConnectionConfig,
    ) -> RedisResult<(MultiplexedConnection, AbortHandle)> {
        let stream = self.open(host, port).await?;
        let connecting = MultiplexedConnection::new_with_config(login, stream, config.clone());
        let (connection, driver) = connecting.await?;
        Ok((connection, tokio::spawn(driver).abort_handle()))
    }

    async fn open(&self, host: &str, port: u16) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host).map_err(io::Error::other)?.to_owned();
        self.open_any(&name, lookup_host((host, port)).await?).await
    }

    /// Connects to all addresses of a host at once, as the client library does without TLS. An attempt to reach a lost server takes
    /// all of the time, so attempts one after the other would never reach the next address.
    async fn open_any(
        &self,
        name: &ServerName<'static>,
        addresses: impl Iterator<Item = SocketAddr>,
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut attempts = JoinSet::new();
        for address in addresses {
            let (connector, name) = (self.0.clone(), name.clone());
            attempts.spawn(async move {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                connector.connect(name, stream).await
            });
        }
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        while let Some(attempt) = attempts.join_next().await {
            match attempt.unwrap_or_else(|panicked| Err(io::Error::other(panicked))) {
                Ok(stream) => return Ok(stream),
                // A refused certificate says more than an address that did not answer.
                Err(_) if last.kind() == io::ErrorKind::InvalidData => {}
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// An error about a certificate. It contains no part of the certificate.
fn unreadable(field: &'static str, error: &dyn core::fmt::Display, accepted: &'static str) -> ConfigError {
    ConfigError::new(field, format!("PEM with the error: {error}"), accepted)
}

fn read_certificates(field: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| unreadable(field, &error, "certificates in PEM"))?;
    if certificates.is_empty() {
        return Err(ConfigError::new(field, "no certificate", "certificates in PEM"));
    }
    Ok(certificates)
}

/// The roots that a server's certificate must lead to.
fn roots(certificates: &Certificates) -> Result<RootCertStore, ConfigError> {
    let mut store = RootCertStore::empty();
    if let Some(pem) = &certificates.roots {
        for certificate in read_certificates("tls_roots", pem)? {
            store
                .add(certificate)
                .map_err(|error| unreadable("tls_roots", &error, "certificates of authorities in PEM"))?;
        }
        return Ok(store);
    }
    // A file that cannot be read is left out. So are certificates that rustls does not accept.
    let system = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(system.certs);
    if store.is_empty() {
        let error = system.errors.first().map_or_else(
            || "none of the system".to_string(),
            |error| format!("none of the system ({error})"),
        );
        let accepted = "certificates of authorities: those of the system, or RedisStoreBuilder::tls_roots";
        return Err(ConfigError::new("tls_roots", error, accepted));
    }
    Ok(store)
}

const INSTALL: &str = "one that the process installs by redis::install_tls_provider or \
                       rustls::crypto::CryptoProvider::install_default, before the store is built";

/// Installs the built-in provider of cryptography, graviola, for the whole process, unless it has one.
///
/// Stores for clusters need it for addresses with `rediss://`, and so do stores that were given a `redis::Client`: these
/// connections are made by the client library. Other stores use the installed provider, and graviola without one.
///
/// An application that prefers another provider calls `rustls::crypto::CryptoProvider::install_default` before this.
///
/// # Errors
///
/// `tls_provider`, if graviola does not support this processor. It supports aarch64, and x86-64 from about 2015 on.
pub fn install_tls_provider() -> Result<(), ConfigError> {
    if CryptoProvider::get_default().is_none() {
        // An error means that another thread has installed one.
        let _ = built_in()?.install_default();
    }
    Ok(())
}

/// The provider of a process that has installed none.
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
fn built_in() -> Result<CryptoProvider, ConfigError> {
    // The provider panics without these.
    #[cfg(target_arch = "x86_64")]
    let needed = [
        ("aes", std::arch::is_x86_feature_detected!("aes")),
        ("pclmulqdq", std::arch::is_x86_feature_detected!("pclmulqdq")),
        ("ssse3", std::arch::is_x86_feature_detected!("ssse3")),
        ("bmi1", std::arch::is_x86_feature_detected!("bmi1")),
        ("bmi2", std::arch::is_x86_feature_detected!("bmi2")),
        ("adx", std::arch::is_x86_feature_detected!("adx")),
        ("avx", std::arch::is_x86_feature_detected!("avx")),
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
    ];
    #[cfg(target_arch = "aarch64")]
    let needed = [
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
        ("aes", std::arch::is_aarch64_feature_detected!("aes")),
        ("pmull", std::arch::is_aarch64_feature_detected!("pmull")),
        ("sha2", std::arch::is_aarch64_feature_detected!("sha2")),
    ];
    match needed.iter().find(|(_, is_there)| !is_there) {
        None => Ok(rustls_graviola::default_provider()),
        Some((feature, _)) => {
            let given = format!("none, and the processor lacks {feature} for the built-in one");
            Err(ConfigError::new("tls_provider", given, INSTALL))
        }
    }
}

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
fn built_in() -> Result<CryptoProvider, ConfigError> {
    Err(ConfigError::new("tls_provider", "none", INSTALL))
}

/// Checks that the process has installed a provider: connections that the client library makes use it.
pub(super) fn needs_installed_provider() -> Result<(), ConfigError> {
    match CryptoProvider::get_default() {
        Some(_) => Ok(()),
        None => Err(ConfigError::new("tls_provider", "none", INSTALL)),
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    /// The first address of a host accepts connections and never answers. The second one is connected to, too.
    #[tokio::test]
    async fn a_silent_address_delays_no_other() {
        // Some processors have no provider that is built in.
        let Ok(provider) = built_in() else { return };
        let config = ClientConfig::builder_with_provider(Arc::new(provider));
        let config = config
            .with_safe_default_protocol_versions()
            .expect("TLS 1.2 and 1.3");
        let config = config.with_root_certificates(RootCertStore::empty());
        let tls = Tls(TlsConnector::from(Arc::new(config.with_no_client_auth())));
        let mut addresses = Vec::new();
        let mut listeners = Vec::new();
        for _ in 0..2 {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
            addresses.push(listener.local_addr().expect("an address"));
            listeners.push(listener);
        }
        let name = ServerName::try_from("localhost").expect("a name");
        tokio::select! {
            opened = tls.open_any(&name, addresses.into_iter()) => panic!("no listener answers: {opened:?}"),
            accepted = timeout(Duration::from_secs(20), listeners[1].accept()) => {
                accepted.expect("both are connected to").expect("a connection");
            }
        }
    }
}
