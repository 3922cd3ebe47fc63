//! Access logs of AWS load balancers: of the Application Load Balancer, and of the Classic Load Balancer.

use crate::input::format::columns::{Part, Standard};
use crate::input::format::words::Layout;

const STANDARD: &[Standard] = &[
    ("client", "client:port", Part::AddressBeforePort),
    ("request", "request", Part::Whole),
    ("method", "request", Part::Word(0)),
    ("target", "request", Part::Word(1)),
    ("path", "request", Part::PathOfRequest),
    ("protocol", "request", Part::Word(2)),
    ("status", "elb_status_code", Part::Whole),
    ("size", "sent_bytes", Part::Whole),
    ("agent", "user_agent", Part::Whole),
    ("vhost", "domain_name", Part::Whole),
];

/// The Application Load Balancer. The time is that of the response; `request_creation_time` is that of the request.
pub(crate) const ALB: Layout = Layout {
    title: "an access log of an AWS Application Load Balancer",
    names: &[
        "type",
        "time",
        "elb",
        "client:port",
        "target:port",
        "request_processing_time",
        "target_processing_time",
        "response_processing_time",
        "elb_status_code",
        "target_status_code",
        "received_bytes",
        "sent_bytes",
        "request",
        "user_agent",
        "ssl_cipher",
        "ssl_protocol",
        "target_group_arn",
        "trace_id",
        "domain_name",
        "chosen_cert_arn",
        "matched_rule_priority",
        "request_creation_time",
        "actions_executed",
        "redirect_url",
        "error_reason",
        "target:port_list",
        "target_status_code_list",
        "classification",
        "classification_reason",
        "conn_trace_id",
    ],
    standard: STANDARD,
    times: &["time"],
    least: 16,
    most: usize::MAX,
    is: |words| {
        matches!(words[0], b"http" | b"https" | b"h2" | b"grpcs" | b"ws" | b"wss")
            && words[12].split(|&byte| byte == b' ').count() >= 3
    },
};

/// The Classic Load Balancer.
pub(crate) const ELB: Layout = Layout {
    title: "an access log of an AWS Classic Load Balancer",
    names: &[
        "time",
        "elb",
        "client:port",
        "backend:port",
        "request_processing_time",
        "backend_processing_time",
        "response_processing_time",
        "elb_status_code",
        "backend_status_code",
        "received_bytes",
        "sent_bytes",
        "request",
        "user_agent",
        "ssl_cipher",
        "ssl_protocol",
    ],
    standard: STANDARD,
    times: &["time"],
    least: 12,
    most: 15,
    is: |words| words[0].ends_with(b"Z") && words[11].split(|&byte| byte == b' ').count() >= 3,
};

#[cfg(test)]
mod tests {
    use super::{ALB, ELB};
    use crate::input::format::words::tests::check;

    #[test]
    fn lines_of_both_load_balancers_are_read() {
        let line = r#"https 2015-05-17T10:05:03.186641Z app/web/50dc6c495c0c9188 198.51.100.9:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/a?b=1 HTTP/1.1" "curl/8.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/web/73e2d6bc24d8a067 "Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:us-east-2:123456789012:certificate/12345678" 1 2015-05-17T10:05:02.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_1234"#;
        let expected = [
            ("client", Some("198.51.100.9")),
            ("method", Some("GET")),
            ("path", Some("/a")),
            ("status", Some("200")),
            ("size", Some("57")),
            ("agent", Some("curl/8.0")),
            ("vhost", Some("www.example.com")),
            ("type", Some("https")),
            ("redirect_url", None),
        ];
        let without_port = line.replace("198.51.100.9:2817", "198.51.100.9");
        let named = line.replace("198.51.100.9:2817", "www.example.com:2817");
        let neighbours = [
            &without_port,
            &named,
            &line["https ".len()..],
            "https 2015-05-17T10:05:03Z",
        ];
        check(ALB, (line, 1_431_857_103_186_641_000), &expected, &neighbours);

        let line = r#"2015-05-17T10:05:03.945958Z web 198.51.100.9:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://www.example.com:80/a HTTP/1.1" "curl/8.0" - -"#;
        let expected = [
            ("client", Some("198.51.100.9")),
            ("path", Some("/a")),
            ("ssl_cipher", None),
        ];
        // A TCP listener writes no request.
        let tcp = line.replace("GET http://www.example.com:80/a HTTP/1.1", "- - - ");
        let neighbours = [
            &format!("{line} - -"),
            "2015-05-17T10:05:03Z web 198.51.100.9:2817",
        ];
        check(ELB, (line, 1_431_857_103_945_958_000), &expected, &neighbours);
        assert!(tcp.contains("- - -"));
    }
}
