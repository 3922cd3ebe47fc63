//! Servers whose lines are words in a fixed order, a row for each.

use memchr::memchr;

use crate::input::format::columns::Part::{Address, AddressBeforePort, Path, PathOfRequest, Whole, Word};
use crate::input::format::columns::{REQUEST, Standard};
use crate::input::format::words::{Layout, SPACED, Split, by_spaces, split, words_of};
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
    split: split_haproxy,
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
    split: split_proxy_manager,
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

fn split_haproxy<'l>(line: &'l [u8], values: &mut Vec<&'l [u8]>) -> Result<Split, Unreadable> {
    // The words before the captured headers, and those of them by which a line is an HTTP log, up to the status. Those behind
    // them may have been cut.
    const WORDS: usize = 12;
    const NEEDED: usize = 6;
    let mut rest = line;
    while values.len() < WORDS {
        let Some(end) = memchr(b' ', rest).filter(|&end| end > 0) else {
            if values.len() < NEEDED {
                let at = line.len() - rest.len();
                return Err(Unreadable::at(at, "line ends within an HTTP log of HAProxy"));
            }
            // The last word was cut.
            rest = b"";
            break;
        };
        values.push(&rest[..end]);
        rest = &rest[end + 1..];
    }
    let inner = values[1]
        .strip_prefix(b"[")
        .and_then(|date| date.strip_suffix(b"]"));
    let no_date = || Unreadable::at(values[0].len() + 1, "no time in brackets after the client");
    values[1] = inner.ok_or_else(no_date)?;
    // A log of TCP has three timers.
    if values[4].iter().filter(|&&byte| byte == b'/').count() != 4 {
        return Err(Unreadable::line("no five timers of an HTTP log of HAProxy"));
    }
    // Captured headers are in braces; quotation marks in them are escaped. HAProxy cuts a line, so that the request or its
    // last quotation mark may be missing.
    let quote = memchr(b'"', rest);
    if !rest.is_empty() {
        values.push(rest[..quote.unwrap_or(rest.len())].trim_ascii());
    }
    values.extend(quote.map(|quote| {
        let request = &rest[quote + 1..];
        &request[..memchr::memrchr(b'"', request).unwrap_or(request.len())]
    }));
    Ok(Split::Whole)
}

fn split_proxy_manager<'l>(line: &'l [u8], values: &mut Vec<&'l [u8]>) -> Result<Split, Unreadable> {
    // The words from the status to the target, which precede the client.
    const BEFORE: usize = 6;
    let mut places = Vec::new();
    // A word that is cut is left out.
    split(line, &mut places);
    let words: Vec<&[u8]> = words_of(line, &places).collect();
    let is_bracketed = |word: usize| places[word].0 > 0 && line[places[word].0 - 1] == b'[';
    // The client of a request chooses the words in quotation marks, and no words in brackets.
    let mut client =
        (0..words.len()).filter(|&word| is_bracketed(word) && words[word].starts_with(b"Client "));
    let client = client.next().filter(|client| *client > BEFORE && is_bracketed(0));
    let client =
        client.ok_or_else(|| Unreadable::line("no [time] and [Client ..] of Nginx Proxy Manager"))?;
    let status = client - BEFORE;
    if words[status + 1] != b"-" {
        let what = "no \"-\" after the status of Nginx Proxy Manager";
        return Err(Unreadable::line(what));
    }
    // The status of several upstream servers has spaces.
    let upstream = match status {
        0..=2 => b"-",
        _ => &line[places[2].0..places[status - 1].1],
    };
    values.extend([
        words[0],
        if status > 1 { words[1] } else { b"-" },
        upstream,
        words[status],
    ]);
    values.extend(&words[status + 2..client]);
    let behind = || client + 1..words.len();
    let named = |name: &[u8]| {
        let mut named = (client..words.len()).filter(|&word| is_bracketed(word));
        named
            .find_map(|word| words[word].strip_prefix(name))
            .unwrap_or(b"-")
    };
    values.extend([named(b"Client "), named(b"Length "), named(b"Sent-to ")]);
    values.extend(
        behind()
            .filter(|&word| !is_bracketed(word))
            .map(|word| words[word])
            .take(2),
    );
    Ok(Split::Whole)
}

#[cfg(test)]
mod tests {
    use super::{ALB, ELB, ENVOY, HAPROXY, ISTIO, NLB, PROXY_MANAGER, S3};
    use crate::input::format::WantedFields;
    use crate::input::format::words::tests::{fields, wanted};
    use crate::input::format::words::{self, Layout, WordFormat};

    const OF_ALB: &str = r#"https 2015-05-17T10:05:03.186641Z app/web/50dc6c495c0c9188 198.51.100.9:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/a?b=1 HTTP/1.1" "curl/8.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/web/73e2d6bc24d8a067 "Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:us-east-2:123456789012:certificate/12345678" 1 2015-05-17T10:05:02.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_1234"#;
    const OF_ELB: &str = r#"2015-05-17T10:05:03.186641Z web 198.51.100.9:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 57 "GET http://www.example.com:80/a HTTP/1.1" "curl/8.0" - -"#;
    const OF_NLB: &str = "tls 2.0 2015-05-17T10:05:03.186641 net/lb/c6e77e28c25b2234 g3d4b5e8bb8464cd 198.51.100.9:51341 10.0.0.1:443 5 2 98 57 - arn:aws:acm:us-east-2:1:certificate/2a - ECDHE-RSA-AES128-SHA tlsv12 - www.example.com - - - 2015-05-17T10:05:00";
    const OF_S3: &str = r#"79a59df900b949e5 mybucket [17/May/2015:10:05:03.186641 +0000] 198.51.100.9 arn:aws:iam::123456789012:user/ann 3E57427F3EXAMPLE REST.GET.OBJECT a/b.txt "GET /a?x=1 HTTP/1.1" 200 - 57 113 7 5 "-" "curl/8.0" - s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/XV/VLi31234= SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader www.example.com TLSV1.2 - -"#;
    const OF_ENVOY: &str = r#"[2015-05-17T10:05:03.186641Z] "GET /a?x HTTP/2" 200 - 154 57 226 100 "198.51.100.9" "curl/8.0" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "www.example.com" "tcp://10.0.2.1:80""#;
    const OF_ISTIO: &str = r#"[2015-05-17T10:05:03.186641Z] "GET /a?y HTTP/1.1" 200 - via_upstream - "-" 0 57 12 11 "198.51.100.9" "curl/8.0" "id" "www.example.com" "10.0.0.5:80" outbound|80||x 10.0.0.9:1 10.0.0.5:80 192.0.2.9:2 - default"#;
    const OF_HAPROXY: &str = r#"198.51.100.9:33317 [17/May/2015:10:05:03.186641] http-in static/srv1 10/0/30/69/109 200 57 - - ---- 1/1/1/1/0 0/0 {1wt.eu|a b} {} "GET /a?b=1 HTTP/1.1""#;
    const OF_MANAGER: &str = r#"[17/May/2015:10:05:03.186641 +0000] 200 - GET https www.example.com "/a?b" [Client 198.51.100.9] [Length 57] [Gzip -] "curl/8.0" "-""#;

    const AT: i64 = 1_431_857_103_186_641_000;

    /// The usual values of a line; an empty one is missing.
    const USUAL: [(&str, &str); 7] = [
        ("client", "198.51.100.9"),
        ("method", "GET"),
        ("path", "/a"),
        ("status", "200"),
        ("size", "57"),
        ("agent", "curl/8.0"),
        ("vhost", "www.example.com"),
    ];

    #[track_caller]
    fn assert_values(layout: &'static Layout, line: &str, expected: &[(&str, &str)]) {
        words::tests::assert_values(|wanted| WordFormat::new(layout, wanted), line, AT, expected);
    }

    type Fields = &'static [(&'static str, &'static str)];

    /// A layout, a line, the fields that it lacks, its own values, and changes that make another line of it.
    type Case = (
        &'static Layout,
        &'static str,
        &'static [&'static str],
        Fields,
        Fields,
    );

    #[test]
    fn lines_have_their_fields_and_their_neighbours_are_refused() {
        let changed = |line: &str, from: &str, to: &str| {
            assert!(line.contains(from), "{from}: {line}");
            line.replace(from, to)
        };
        // The fields that a layout lacks, values of its own, and changes that make another line of a line.
        let lines: [Case; 8] = [
            (
                &ALB,
                OF_ALB,
                &[],
                &[
                    ("type", "https"),
                    ("redirect_url", ""),
                    ("request", "GET https://www.example.com:443/a?b=1 HTTP/1.1"),
                ],
                &[
                    ("198.51.100.9:2817", "198.51.100.9"),
                    ("198.51.100.9:", "www.example.com:"),
                    ("https 2", "2"),
                    (" app/", "\n"),
                ],
            ),
            (
                &ELB,
                OF_ELB,
                &["vhost"],
                &[("ssl_cipher", "")],
                &[
                    ("- -", "- - - -"),
                    ("198.51.100.9:2817", "x"),
                    ("GET ", "GET"),
                    ("Z web", "X web"),
                ],
            ),
            (
                &NLB,
                OF_NLB,
                &["method", "path", "status", "agent"],
                &[("protocol", "tlsv12"), ("incoming_tls_alert", "")],
                &[
                    ("198.51.100.9:51341", "198.51.100.9"),
                    ("tls 2.0", "tcp 2.0"),
                    ("tls 2.0 ", "2.0 "),
                    ("net/lb/", "\n"),
                ],
            ),
            (
                &S3,
                OF_S3,
                &[],
                &[
                    ("user", "arn:aws:iam::123456789012:user/ann"),
                    ("referer", ""),
                    ("bucket", "mybucket"),
                ],
                &[
                    ("198.51.100.9", "www.example.com"),
                    ("REST.GET.OBJECT", "GET"),
                    ("[17/May", "[37/May"),
                    ("79a59df900b949e5 ", ""),
                ],
            ),
            (
                &ENVOY,
                OF_ENVOY,
                &[],
                &[("protocol", "HTTP/2"), ("response_flags", "")],
                // Which of several addresses is the client depends on the proxies.
                &[
                    ("198.51.100.9", "203.0.113.7, 198.51.100.9"),
                    ("198.51.100.9", "unknown\" \"x"),
                    (" 200 - ", " 200 - via_upstream - \"-\" "),
                    ("[2015", "[x015"),
                ],
            ),
            (
                &ISTIO,
                OF_ISTIO,
                &[],
                &[("route_name", "default"), ("response_flags", "")],
                &[
                    ("198.51.100.9", "203.0.113.7,10.0.0.1"),
                    (" via_upstream - \"-\"", ""),
                    ("[2015", "[x015"),
                    (" 200 ", " 2000 "),
                    ("GET /a?y HTTP/1.1\" 200", "- - -\" 0"),
                ],
            ),
            (
                &HAPROXY,
                OF_HAPROXY,
                &["agent", "vhost"],
                &[
                    ("frontend", "http-in"),
                    ("headers", "{1wt.eu|a b} {}"),
                    ("captured_request_cookie", "-"),
                ],
                &[
                    ("198.51.100.9:33317", "198.51.100.9"),
                    ("198.51.100.9", "www.example.com"),
                    ("[17/May", "[37/May"),
                    ("10/0/30/69/109", "0/0/5007"),
                    ("static/srv1 ", "\n"),
                ],
            ),
            (
                &PROXY_MANAGER,
                OF_MANAGER,
                &[],
                &[("upstream_status", ""), ("referer", "")],
                &[
                    ("Client", "Klient"),
                    ("198.51.100.9", "www.example.com"),
                    ("[17/May", "[37/May"),
                    (" - GET", " GET"),
                    (" [Client", "\n"),
                ],
            ),
        ];
        for (layout, line, lacking, own, changes) in lines {
            let has = |(name, _): &&(&str, &str)| !lacking.contains(name);
            let expected: Vec<(&str, &str)> = USUAL.iter().filter(has).chain(own).copied().collect();
            assert_values(layout, line, &expected);
            for (from, to) in changes {
                // A line break stands for the end of a line that was cut.
                let other = changed(line, from, to);
                let other = other.split('\n').next().unwrap_or_default();
                let mut format = WordFormat::new(layout, &wanted(&["client"])).expect("a client");
                format.strict = true;
                fields(&mut format, other, 1).expect_err(other);
            }
            for name in lacking.iter().chain(&["nowhere"]) {
                let error = WordFormat::new(layout, &wanted(&[*name])).expect_err(name);
                assert!(error.to_string().contains("client"), "{error}");
            }
        }
    }

    #[test]
    fn variants_of_lines_are_read() {
        let client = |address: &'static str| [("client", address), ("path", "/a"), ("status", "200")];
        // Operations of S3 itself have no address.
        assert_values(&S3, &OF_S3.replace("198.51.100.9", "-"), &client(""));
        let tcp = OF_ISTIO.replace("GET /a?y HTTP/1.1\" 200", "- - -\" 0");
        let mut format = WordFormat::new(&ISTIO, &WantedFields::default()).expect("no fields");
        assert_eq!(fields(&mut format, &tcp, 0), Err("no request".into()));
        // The target and the agent do not become a client.
        let forged = OF_MANAGER
            .replace("/a?b", "/a?b [Client 192.0.2.1] ")
            .replace("curl/8.0", "[Client 192.0.2.1]");
        assert_values(&PROXY_MANAGER, &forged, &client("198.51.100.9"));
        let proxied = r#"- 502, 200 200 - GET https www.example.com "/a?b" [Client 2001:db8::1] [Length 61] [Gzip -] [Sent-to 10.0.0.2] "UA" "ref""#;
        let line = format!("{} {proxied}", &OF_MANAGER[..35]);
        let own = [
            ("upstream_status", "502, 200"),
            ("sent_to", "10.0.0.2"),
            ("referer", "ref"),
            ("size", "61"),
        ];
        assert_values(
            &PROXY_MANAGER,
            &line,
            &[&client("2001:db8::1")[..], &own].concat(),
        );
        // The client of a socket, and the port of an IPv6 address without brackets. `option httpslog` appends words.
        for (address, client) in [("unix:1", "unix:"), ("2001:db8::1:33317", "2001:db8::1")] {
            let line =
                OF_HAPROXY.replace("198.51.100.9:33317", address) + " 0/0000000000000000/0/0/0 -/TLSv1.3/-";
            assert_values(
                &HAPROXY,
                &line,
                &[("client", client), ("path", "/a"), ("status", "200")],
            );
        }
        assert_values(
            &HAPROXY,
            &OF_HAPROXY.replace(" 200 ", " 2000 "),
            &[("status", "2000")],
        );
    }
}
