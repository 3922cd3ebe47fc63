//! Servers that are connected to by TLS.

use std::process::Output;

use crate::certificates::{Certificates, EXPIRED};
use crate::server::free_port;
use crate::servers::order;
use crate::tool::{Report, stderr, stdout, tool};

/// Checks a server, and accepts the certificates of one authority.
fn check(certificates: &Certificates, authority: &str, port: u16) -> Output {
    let mut tool = tool(&format!(
        "check --json --timeout 20000 rediss://user:secret@localhost:{port}"
    ));
    tool.env("SSL_CERT_FILE", certificates.path(authority));
    tool.output().expect("the tool runs")
}

#[test]
fn a_server_and_a_cluster() {
    let Some(certificates) = Certificates::new() else {
        return;
    };
    for (cluster, check_of_cluster) in [("no", None), ("yes", Some("problem"))] {
        let cluster_port = free_port().to_string();
        let arguments = ["--cluster-enabled", cluster, "--cluster-port", &cluster_port];
        let Some((server, port)) = certificates.serve("no", &arguments) else {
            return;
        };
        order(&server, "ACL SETUSER user on >secret ~* +@all");
        let report = Report::by(&check(&certificates, "ours.pem", port));
        assert_eq!(report.all["server"], format!("rediss://user@localhost:{port}"));
        assert_eq!(report.level("rights"), "ok", "{report:?}");
        // The node of the cluster has no slots.
        assert_eq!(
            report.of("cluster").map(|_| report.level("cluster")),
            check_of_cluster
        );
        if check_of_cluster.is_none() {
            assert_eq!(report.level("scripts"), "ok", "{report:?}");
        }
    }
}

/// A certificate that is not accepted is an error that names the reason.
#[test]
fn wrong_certificates() {
    let Some(certificates) = Certificates::new() else {
        return;
    };
    let refused = |authority: &str, reason: &str| {
        let Some((_server, port)) = certificates.serve("no", &[]) else {
            return;
        };
        let output = check(&certificates, authority, port);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
        let error = stderr(&output);
        assert!(
            error.contains(reason) && !error.contains("secret"),
            "{authority}: {error}"
        );
    };
    refused("other.pem", "UnknownIssuer");
    certificates.issue("ours", "server", "DNS:localhost", EXPIRED);
    refused("ours.pem", "certificate expired");
}
