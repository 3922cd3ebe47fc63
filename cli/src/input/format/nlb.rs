//! Access logs of the AWS Network Load Balancer, whose lines are connections of TLS.

use crate::input::format::columns::Part;
use crate::input::format::words::Layout;

pub(crate) const NLB: Layout = Layout {
    title: "an access log of an AWS Network Load Balancer",
    names: &[
        "type",
        "version",
        "time",
        "elb",
        "listener",
        "client:port",
        "destination:port",
        "connection_time",
        "tls_handshake_time",
        "received_bytes",
        "sent_bytes",
        "incoming_tls_alert",
        "chosen_cert_arn",
        "chosen_cert_serial",
        "tls_cipher",
        "tls_protocol_version",
        "tls_named_group",
        "domain_name",
        "alpn_fe_protocol",
        "alpn_be_protocol",
        "alpn_client_preference_list",
        "tls_connection_creation_time",
    ],
    standard: &[
        ("client", "client:port", Part::AddressBeforePort),
        ("protocol", "tls_protocol_version", Part::Whole),
        ("size", "sent_bytes", Part::Whole),
        ("vhost", "domain_name", Part::Whole),
    ],
    times: &["time"],
    least: 17,
    most: usize::MAX,
    is: |words| words[0] == b"tls" && matches!(words[1], [_, b'.', _]),
};

#[cfg(test)]
mod tests {
    use super::NLB;
    use crate::input::format::words::tests::check;

    #[test]
    fn lines_are_read() {
        let line = "tls 2.0 2015-05-17T10:05:03 net/lb/c6e77e28c25b2234 g3d4b5e8bb8464cd 198.51.100.9:51341 10.0.0.1:443 5 2 98 246 - arn:aws:acm:us-east-2:1:certificate/2a - ECDHE-RSA-AES128-SHA tlsv12 - www.example.com - - - 2015-05-17T10:05:00";
        let expected = [
            ("client", Some("198.51.100.9")),
            ("size", Some("246")),
            ("vhost", Some("www.example.com")),
            ("incoming_tls_alert", None),
        ];
        let without_port = line.replace("198.51.100.9:51341", "198.51.100.9");
        let other = line.replace("tls 2.0", "tcp 2.0");
        let neighbours = [&without_port, &other, &line[4..], "tls 2.0 2015-05-17T10:05:03"];
        check(NLB, (line, 1_431_857_103_000_000_000), &expected, &neighbours);
    }
}
