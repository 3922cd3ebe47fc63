//! Connections by TLS, to servers whose certificates are right, wrong and expired.

use core::time::Duration;

use ringgate::redis::{RedisStore, RedisStoreBuilder};
use ringgate::shared::{DecidedBy, OnError, SharedLimiter, StoreErrorKind};

use crate::certificates::{Certificates, EXPIRED, VALID};
use crate::server::{PATIENCE, patient, ready, until};

impl Certificates {
    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("a file")
    }

    /// A store that trusts our authority.
    fn store(&self, host: &str, port: u16) -> RedisStoreBuilder {
        patient(RedisStore::builder(&format!("rediss://{host}:{port}"))).tls_roots(self.read("ours.pem"))
    }
}

/// The reason why there is no connection.
async fn reason(builder: RedisStoreBuilder) -> String {
    let store = builder.build().expect("a store");
    until("an attempt has failed", || store.health().last_error.is_some()).await;
    let error = store
        .ready(Duration::from_millis(1))
        .await
        .expect_err("no connection");
    assert_eq!(error.kind(), StoreErrorKind::Down);
    assert_eq!(store.health().connections, 0);
    error.to_string()
}

async fn decides(builder: RedisStoreBuilder) {
    let store = ready(builder).await;
    let limiter = SharedLimiter::builder("tls", "2/60s".parse().expect("a quota"));
    let limiter = limiter.on_error(OnError::Deny).build(store).expect("a limiter");
    for remaining in [true, true, false] {
        let answer = limiter.check("key").await;
        assert_eq!(answer.is_ok(), remaining);
        let decided_by = answer.map_or_else(|denied| denied.decided_by(), |admitted| admitted.decided_by());
        assert_eq!(decided_by, DecidedBy::Store);
    }
}

#[tokio::test]
async fn a_right_certificate() {
    let Some(certificates) = Certificates::new() else {
        return;
    };
    for resp3 in [false, true] {
        let Some((_server, port)) = certificates.serve("no", &[]) else {
            return;
        };
        let store = certificates.store("localhost", port);
        decides(if resp3 { store.resp3() } else { store }).await;
        // By the name of an address, too.
        ready(certificates.store("127.0.0.1", port)).await;
    }
}

#[tokio::test]
async fn wrong_certificates() {
    let Some(certificates) = Certificates::new() else {
        return;
    };
    let Some((_server, port)) = certificates.serve("no", &[]) else {
        return;
    };
    let other = certificates
        .store("localhost", port)
        .tls_roots(certificates.read("other.pem"));
    let error = reason(other).await;
    assert!(error.contains("UnknownIssuer"), "{error}");
    // The system trusts no authority of a test.
    let system = patient(RedisStore::builder(&format!("rediss://localhost:{port}"))).build();
    if let Ok(store) = system {
        until("an attempt has failed", || store.health().last_error.is_some()).await;
        let error = store.health().last_error.expect("an error").to_string();
        assert!(error.contains("UnknownIssuer"), "{error}");
    }
    // An address without TLS at a port with TLS.
    let plain = RedisStore::builder(&format!("redis://localhost:{port}"));
    reason(plain).await;

    certificates.issue("ours", "server", "DNS:elsewhere", VALID);
    let Some((_server, port)) = certificates.serve("no", &[]) else {
        return;
    };
    let error = reason(certificates.store("localhost", port)).await;
    assert!(error.contains("not valid for name"), "{error}");
}

/// A connection outlives the certificate. A new one is not made until the certificate is renewed, and meanwhile `OnError`
/// decides.
#[tokio::test(flavor = "multi_thread")]
async fn an_expired_certificate() {
    let Some(certificates) = Certificates::new() else {
        return;
    };
    let Some((mut server, port)) = certificates.serve("no", &[]) else {
        return;
    };
    let store = ready(certificates.store("localhost", port)).await;
    let limiter = SharedLimiter::builder("tls", "2/60s".parse().expect("a quota"));
    let limiter = limiter
        .on_error(OnError::Deny)
        .build(store.clone())
        .expect("a limiter");
    assert!(limiter.check("key").await.is_ok());

    certificates.issue("ours", "server", "DNS:localhost", EXPIRED);
    server.restart();
    let expired = || {
        let last = store.health().last_error;
        last.is_some_and(|error| error.to_string().contains("certificate expired"))
    };
    until("the certificate is not accepted", expired).await;
    assert!(!store.health().connected);
    let denied = limiter.check("key").await.expect_err("no connection");
    assert_eq!(denied.decided_by(), DecidedBy::Fallback);

    certificates.issue("ours", "server", "DNS:localhost", VALID);
    server.restart();
    store.ready(PATIENCE).await.expect("a connection");
    let admitted = limiter.check("key").await.expect("the server has forgotten one");
    assert_eq!(admitted.decided_by(), DecidedBy::Store);
}

#[tokio::test]
async fn certificates_of_clients() {
    let Some(certificates) = Certificates::new() else {
        return;
    };
    let Some((_server, port)) = certificates.serve("yes", &[]) else {
        return;
    };
    let error = reason(certificates.store("localhost", port)).await;
    assert!(error.contains("CertificateRequired"), "{error}");
    let with = |name: &str| {
        let (chain, key) = (format!("{name}.pem"), format!("{name}.key"));
        certificates
            .store("localhost", port)
            .client_certificate(certificates.read(&chain), certificates.read(&key))
    };
    certificates.issue("ours", "client", "DNS:client", VALID);
    decides(with("client")).await;
    certificates.issue("other", "stranger", "DNS:client", VALID);
    let error = reason(with("stranger")).await;
    assert!(
        error.contains("UnknownCA") || error.contains("DecryptError"),
        "{error}"
    );
    certificates.issue("ours", "expired", "DNS:client", EXPIRED);
    let error = reason(with("expired")).await;
    assert!(error.contains("CertificateExpired"), "{error}");
}

/// Nothing of a certificate or a key stands in an error.
#[tokio::test]
async fn unreadable_certificates_are_named() {
    let Some(certificates) = Certificates::new() else {
        return;
    };
    certificates.issue("ours", "client", "DNS:client", VALID);
    let (chain, key) = (certificates.read("client.pem"), certificates.read("client.key"));
    let builder = || certificates.store("localhost", 1);
    let broken = b"-----BEGIN CERTIFICATE-----\n???\n-----END CERTIFICATE-----\n".to_vec();
    let wrong = [
        (builder().tls_roots(""), "tls_roots"),
        (builder().tls_roots(broken.clone()), "tls_roots"),
        (
            builder().client_certificate("", key.clone()),
            "client_certificate",
        ),
        (
            builder().client_certificate(chain.clone(), ""),
            "client_certificate",
        ),
        (
            builder().client_certificate(key.clone(), chain.clone()),
            "client_certificate",
        ),
        (
            builder().client_certificate(chain.clone(), certificates.read("server.key")),
            "client_certificate",
        ),
        (
            RedisStore::builder("redis://localhost:1").tls_roots(chain.clone()),
            "url",
        ),
        (RedisStore::builder("rediss://localhost:1/#insecure"), "url"),
    ];
    let secret = String::from_utf8(key.clone()).expect("a text");
    let secret = secret.lines().nth(1).expect("a line");
    for (builder, field) in wrong {
        let shown = format!("{builder:?}");
        let error = builder.build().expect_err(field);
        assert_eq!(error.field, field, "{error}");
        let shown = format!("{shown} {error} {error:?}");
        assert!(!shown.contains(secret), "{shown}");
    }
}

/// Connections that the client library makes need a provider that the process has installed.
#[cfg(any(feature = "redis-client", feature = "redis-cluster"))]
#[tokio::test]
async fn a_missing_provider_is_named() {
    #[cfg(feature = "redis-cluster")]
    {
        let error = RedisStore::cluster(&["rediss://localhost:1"]).build();
        assert_eq!(error.expect_err("no provider").field, "tls_provider");
    }
    #[cfg(feature = "redis-client")]
    {
        let client = redis::Client::open("rediss://localhost:1").expect("an address");
        let error = RedisStore::client(&client).build();
        assert_eq!(error.expect_err("no provider").field, "tls_provider");
    }
}
