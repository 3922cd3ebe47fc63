//! Servers whose lines are words in a fixed order, a row for each.

use std::sync::LazyLock;

use memchr::{memchr, memrchr};
use regex::bytes::Regex;

use crate::input::format::columns::Part::{Address, AddressBeforePort, Path, PathOfRequest, Whole, Word};
use crate::input::format::columns::{REQUEST, Standard};
use crate::input::format::words::{Layout, SPACED, Split, by_spaces};
use crate::input::row::Unreadable;

/// The values of AWS load balancers behind the request.
const BALANCER: &[Standard] = &[
    ("status", "elb_status_code", Whole),
    ("size", "sent_bytes", Whole),
    ("agent", "user_agent", Whole),
    ("vhost", "domain_name", Whole),
];

/// The values of Envoy and Istio behind the request.
const PROXY: &[Standard] = &[
    ("status", "response_code", Whole),
    ("size", "bytes_sent", Whole),
    ("agent", "user_agent", Whole),
    ("vhost", "authority", Whole),
];

/// The Application Load Balancer. The time is that of the response; `request_creation_time` is that of the request.
pub(crate) const ALB: Layout = Layout {
    title: "an access log of an AWS Application Load Balancer",
    names: "type time elb client:port target:port request_processing_time target_processing_time \
            response_processing_time elb_status_code target_status_code received_bytes sent_bytes request user_agent \
            ssl_cipher ssl_protocol target_group_arn trace_id domain_name chosen_cert_arn matched_rule_priority \
            request_creation_time actions_executed redirect_url error_reason target:port_list \
            target_status_code_list classification classification_reason conn_trace_id",
    standard: &[&[("client", "client:port", AddressBeforePort)], REQUEST, BALANCER],
    least: 16,
    is: |words| {
        matches!(words[0], b"http" | b"https" | b"h2" | b"grpcs" | b"ws" | b"wss") && is_request(words[12])
    },
    by_client: true,
    ..SPACED
};

/// The Classic Load Balancer.
pub(crate) const ELB: Layout = Layout {
    title: "an access log of an AWS Classic Load Balancer",
    names: "time elb client:port backend:port request_processing_time backend_processing_time \
            response_processing_time elb_status_code backend_status_code received_bytes sent_bytes request user_agent \
            ssl_cipher ssl_protocol",
    standard: &[&[("client", "client:port", AddressBeforePort)], REQUEST, BALANCER],
    least: 12,
    most: 15,
    is: |words| words[0].ends_with(b"Z") && is_request(words[11]),
    by_client: true,
    ..SPACED
};

/// The Network Load Balancer, whose lines are connections of TLS.
pub(crate) const NLB: Layout = Layout {
    title: "an access log of an AWS Network Load Balancer",
    names: "type version time elb listener client:port destination:port connection_time tls_handshake_time \
            received_bytes sent_bytes incoming_tls_alert chosen_cert_arn chosen_cert_serial tls_cipher \
            tls_protocol_version tls_named_group domain_name alpn_fe_protocol alpn_be_protocol \
            alpn_client_preference_list tls_connection_creation_time",
    standard: &[&[
        ("client", "client:port", AddressBeforePort),
        ("protocol", "tls_protocol_version", Whole),
        ("size", "sent_bytes", Whole),
        ("vhost", "domain_name", Whole),
    ]],
    least: 17,
    is: |words| words[0] == b"tls" && matches!(words[1], [_, b'.', _]),
    by_client: true,
    ..SPACED
};

pub(crate) const S3: Layout = Layout {
    title: "an access log of AWS S3",
    names: "bucket_owner bucket time remote_ip requester request_id operation key request_uri http_status error_code \
            bytes_sent object_size total_time turn_around_time referer user_agent version_id host_id \
            signature_version cipher_suite authentication_type host_header tls_version access_point_arn acl_required",
    standard: &[&[
        ("client", "remote_ip", Address),
        ("user", "requester", Whole),
        ("request", "request_uri", Whole),
        ("method", "request_uri", Word(0)),
        ("target", "request_uri", Word(1)),
        ("path", "request_uri", PathOfRequest),
        ("protocol", "request_uri", Word(2)),
        ("status", "http_status", Whole),
        ("size", "bytes_sent", Whole),
        ("agent", "user_agent", Whole),
        ("vhost", "host_header", Whole),
    ]],
    least: 17,
    is: |words| {
        let kind = words[6].split(|&byte| byte == b'.').next();
        matches!(kind, Some(b"REST" | b"SOAP" | b"WEBSITE" | b"BATCH" | b"S3"))
    },
    ..SPACED
};

/// Envoy's default text format. The client is the one address of `X-Forwarded-For`; the format has no other.
pub(crate) const ENVOY: Layout = Layout {
    title: "an access log of Envoy in its default format",
    names: "start_time request response_code response_flags bytes_received bytes_sent duration upstream_service_time \
            x_forwarded_for user_agent x_request_id authority upstream_host",
    standard: &[&[("client", "x_forwarded_for", Address)], REQUEST, PROXY],
    time: "start_time",
    least: 13,
    most: 13,
    is: |words| is_proxy(words) && words[1].split(|&byte| byte == b' ').count() == 3,
    ..SPACED
};

/// Istio's default text format, which is that of Envoy with further values. The last name is that of the client, which is one
/// of two values.
pub(crate) const ISTIO: Layout = Layout {
    title: "an access log of Istio in its default format",
    names: "start_time request response_code response_flags response_code_details connection_termination_details \
            upstream_transport_failure_reason bytes_received bytes_sent duration upstream_service_time \
            x_forwarded_for user_agent x_request_id authority upstream_host upstream_cluster upstream_local_address \
            downstream_local_address downstream_remote_address requested_server_name route_name client",
    standard: &[&[("client", "client", Address)], REQUEST, PROXY],
    time: "start_time",
    split: |line, values| {
        // A word that is cut is left out.
        by_spaces(line, values)?;
        // Istio before 1.9 writes one of the two details.
        if values.len() == 21 {
            values.insert(4, b"-");
        }
        if values.len() != 22 {
            let count = values.len();
            let what = format!("line has {count} words (expected 21 or 22, as in an access log of Istio)");
            return Err(Unreadable::line(what));
        }
        if !is_proxy(values) || !is_request(values[1]) {
            return Err(Unreadable::line("not the words of an access log of Istio"));
        }
        if values[1] == b"- - -" && values[2] == b"0" {
            // A connection of TCP.
            return Ok(Split::Other);
        }
        // Without a proxy before it, the client is the other end of the connection.
        let (forwarded, remote) = (values[11], values[19]);
        values.push(if matches!(forwarded, b"-" | b"") {
            remote
        } else {
            forwarded
        });
        Ok(Split::Whole)
    },
    ..SPACED
};

/// HTTP logs of HAProxy, as `option httplog` and `option httpslog` write them, behind a header of syslog or without one.
pub(crate) const HAPROXY: Layout = Layout {
    title: "an HTTP log of HAProxy",
    names: "client:port accept_date frontend backend/server timers status bytes_read captured_request_cookie \
            captured_response_cookie termination_state connections queues headers request",
    standard: &[
        &[("client", "client:port", AddressBeforePort)],
        REQUEST,
        &[("size", "bytes_read", Whole)],
    ],
    time: "accept_date",
    split: |line, values| {
        let rest = by_groups(&OF_HAPROXY, line, values)?;
        // Captured headers, in which quotation marks are escaped, and the request, whose last quotation mark may be missing.
        if values.len() == 12 && !rest.is_empty() {
            let (headers, request) = rest.split_at(memchr(b'"', rest).unwrap_or(rest.len()));
            values.push(headers.trim_ascii());
            let end = |request: &[u8]| memrchr(b'"', request).unwrap_or(request.len());
            values.extend(request.get(1..).map(|request| &request[..end(request)]));
        }
        Ok(Split::Whole)
    },
    dash_is_missing: false,
    ..SPACED
};

/// Nginx Proxy Manager: lines of proxied hosts, and shorter lines of hosts that answer themselves, in one file.
pub(crate) const PROXY_MANAGER: Layout = Layout {
    title: "an access log of Nginx Proxy Manager",
    names: "time cache_status upstream_status status method scheme host request_uri client_ip length sent_to user_agent \
            referer",
    standard: &[&[
        ("client", "client_ip", Address),
        ("target", "request_uri", Whole),
        ("path", "request_uri", Path),
        ("size", "length", Whole),
        ("agent", "user_agent", Whole),
        ("vhost", "host", Whole),
    ]],
    split: |line, values| by_groups(&OF_PROXY_MANAGER, line, values).map(|_| Split::Whole),
    ..SPACED
};

/// Whether a word is a request, or the marks of a missing one.
fn is_request(word: &[u8]) -> bool {
    word.split(|&byte| byte == b' ').count() >= 3
}

/// Whether words begin with a time and have a status third.
fn is_proxy(words: &[&[u8]]) -> bool {
    words[0].first().is_some_and(u8::is_ascii_digit)
        && (1..=3).contains(&words[2].len())
        && words[2].iter().all(u8::is_ascii_digit)
}

/// The words before the captured headers. A log of TCP has three timers. HAProxy cuts a line, so the words behind the status may
/// be missing, and a last word without a space behind it is left out.
static OF_HAPROXY: LazyLock<Regex> = LazyLock::new(|| {
    let line = r"(?s-u)^([^ ]+) \[([^ \]]*)\] ([^ ]+) ([^ ]+) ([^ /]*(?:/[^ /]*){4}) ([^ ]+) (?:([^ ]+) (?:([^ ]+) (?:([^ ]+) (?:([^ ]+) (?:([^ ]+) (?:([^ ]+) )?)?)?)?)?)?";
    Regex::new(line).expect("a valid expression")
});

/// Hosts that answer themselves have no status of a cache and of upstream servers, of which there may be several. The client of a
/// request chooses text in quotation marks only.
static OF_PROXY_MANAGER: LazyLock<Regex> = LazyLock::new(|| {
    let line = r#"(?s-u)^\[([^\]]*)\](?: ([^ ]+)(?: (.*?))??)?? ([^ ]+) - ([^ ]+) ([^ ]+) ([^ ]+) "([^"]*)" \[Client ([^\]]*)\](?: \[Length ([^\]]*)\])?(?: \[Gzip [^\]]*\])?(?: \[Sent-to ([^\]]*)\])?(?: "([^"]*)")?(?: "([^"]*)")?"#;
    Regex::new(line).expect("a valid expression")
});

/// Takes the groups of an expression as the words of a line. Returns the rest of the line.
fn by_groups<'l>(
    expression: &Regex,
    line: &'l [u8],
    values: &mut Vec<&'l [u8]>,
) -> Result<&'l [u8], Unreadable> {
    let Some(found) = expression.captures(line) else {
        return Err(Unreadable::line("no line of the format"));
    };
    let groups: Vec<_> = found.iter().skip(1).collect();
    let last = groups
        .iter()
        .rposition(Option::is_some)
        .map_or(0, |last| last + 1);
    values.extend(
        groups[..last]
            .iter()
            .map(|group| group.map_or(&b"-"[..], |group| group.as_bytes())),
    );
    Ok(&line[found[0].len()..])
}
