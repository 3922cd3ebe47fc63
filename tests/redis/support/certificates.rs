//! Certificates for servers that are connected to by TLS.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::server::{Server, free_port};
use crate::skipped::skipped;

/// Authorities and their certificates, made by `openssl`.
pub(crate) struct Certificates(TempDir);

const CONFIG: &str = "
[ca]
default_ca = own
[own]
database = index
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
";

/// The first and the last day of a certificate.
pub(crate) type Validity = (&'static str, &'static str);
pub(crate) const VALID: Validity = ("20200101000000Z", "20990101000000Z");
pub(crate) const EXPIRED: Validity = ("20200101000000Z", "20200201000000Z");

impl Certificates {
    /// Without `openssl`, reports that the test is skipped and returns `None`.
    pub(crate) fn new() -> Option<Self> {
        let version = Command::new("openssl")
            .arg("version")
            .stdout(Stdio::null())
            .status();
        if !version.is_ok_and(|status| status.success()) {
            skipped("openssl");
            return None;
        }
        let own = Self(tempfile::tempdir().expect("a folder"));
        own.write("config", CONFIG);
        own.write("index", "");
        for authority in ["ours", "other"] {
            own.openssl(&format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN={authority} \
                 -keyout {authority}.key -out {authority}.pem"
            ));
        }
        own.issue("ours", "server", "DNS:localhost,IP:127.0.0.1", VALID);
        Some(own)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    pub(crate) fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(self.0.path())
            .output()
            .expect("openssl runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments}: {errors}");
    }

    /// Makes `<name>.pem` and `<name>.key`, also over earlier ones.
    pub(crate) fn issue(&self, authority: &str, name: &str, names: &str, (from, to): Validity) {
        self.write("extensions", &format!("subjectAltName={names}"));
        self.openssl(&format!(
            "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} -keyout {name}.key \
             -out request"
        ));
        self.openssl(&format!(
            "ca -batch -notext -config config -cert {authority}.pem -keyfile {authority}.key -in request \
             -out {name}.pem -startdate {from} -enddate {to} -extfile extensions"
        ));
    }

    /// A server with the certificate `server`, and its port for TLS. `auth_clients` and `more` are settings of the server.
    pub(crate) fn serve(&self, auth_clients: &str, more: &[&str]) -> Option<(Server, u16)> {
        let port = free_port();
        let path = |name: &str| Path::display(&self.path(name)).to_string();
        let (certificate, key, roots) = (path("server.pem"), path("server.key"), path("ours.pem"));
        let port_text = port.to_string();
        let mut arguments = vec![
            "--tls-port",
            &port_text,
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &roots,
            "--tls-auth-clients",
            auth_clients,
        ];
        arguments.extend(more);
        Some((Server::with(&arguments)?, port))
    }
}
