//! The client behind proxies, and headers that a client forges.

use super::*;
use proptest::prelude::*;

const X: &str = "x-forwarded-for";
const F: &str = "forwarded";

const TRUSTED: [&str; 3] = ["10.0.0.0/8", "192.168.1.1", "2001:db8::/32"];

fn x_forwarded_for() -> ClientIp {
    ClientIp::peer().x_forwarded_for(TRUSTED).expect("networks")
}

fn forwarded() -> ClientIp {
    ClientIp::peer().forwarded(TRUSTED).expect("networks")
}

fn find(clients: &ClientIp, header: &'static str, peer: &str, lines: &[&str]) -> String {
    let request = lines
        .iter()
        .fold(from(peer), |request, line| with(header, line, request));
    let (parts, ()) = request.into_parts();
    match clients.find(&parts) {
        Some(client) => client.to_string(),
        None => REFUSED.to_owned(),
    }
}

/// The client of a request that states something else than an address.
const REFUSED: &str = "refused";

/// Client by these `X-Forwarded-For` lines of a trusted proxy.
fn listed(lines: &[&str]) -> String {
    find(&x_forwarded_for(), "x-forwarded-for", "10.0.0.1", lines)
}

/// Client by these `Forwarded` lines of a trusted proxy.
fn noted(lines: &[&str]) -> String {
    find(&forwarded(), "forwarded", "10.0.0.1", lines)
}

/// A peer that is not trusted is the client, and only the chosen header is read.
#[test]
fn an_untrusted_peer_is_the_client() {
    let mapped = ClientIp::peer().x_forwarded_for(["::ffff:10.0.0.0/104"]);
    let mapped = mapped.expect("a network");
    let (x, f, peer) = (x_forwarded_for(), forwarded(), ClientIp::peer());
    for (clients, header, peer, line, client) in [
        (&x, X, "192.0.2.1", "203.0.113.7", "192.0.2.1"),
        (&f, F, "192.0.2.1", "for=203.0.113.7", "192.0.2.1"),
        // No proxy is trusted by default.
        (&peer, X, "192.0.2.1", "203.0.113.7", "192.0.2.1"),
        (&x, X, "::ffff:10.0.0.1", "192.0.2.1", "192.0.2.1"),
        (&x, F, "10.0.0.1", "for=203.0.113.7", "10.0.0.1"),
        (&f, X, "10.0.0.1", "203.0.113.7", "10.0.0.1"),
        // A network of mapped addresses is an IPv4 network.
        (&mapped, X, "10.9.9.9", "192.0.2.1", "192.0.2.1"),
        (&mapped, X, "11.0.0.1", "192.0.2.1", "11.0.0.1"),
    ] {
        let found = find(clients, header, peer, &[line]);
        assert_eq!(found, client, "{header} {peer} {line}");
    }
}

#[test]
fn a_request_whose_client_cannot_be_read_has_none() {
    let gaps = "unknown _hidden 192.0.2 192.0.2.1:x 192.0.2.1:123456 [::1 fe80::1% 192.0.2.1/32 \"192.0.2.1 2001:db8::g unix:";
    for gap in gaps.split(' ') {
        let last = format!("203.0.113.7, {gap}");
        assert_eq!(listed(&[&last]), REFUSED, "{gap}");
        assert_eq!(listed(&[&format!("{last}, 10.0.0.2")]), REFUSED, "{gap}");
        let lines = ["203.0.113.7", gap, "10.0.0.3, 10.0.0.2"];
        assert_eq!(listed(&lines), REFUSED, "{gap}");
        assert_eq!(listed(&[&format!("{gap}, 192.0.2.1")]), "192.0.2.1", "{gap}");
    }
    for gap in r#"for=unknown for=_hidden proto=https for="[::1" for="192.0.2.\1""#.split(' ') {
        let last = format!("for=203.0.113.7, {gap}");
        assert_eq!(noted(&[&last]), REFUSED, "{gap}");
        assert_eq!(noted(&[&format!("{last}, for=10.0.0.2")]), REFUSED, "{gap}");
    }
}

#[test]
fn a_malformed_line_is_one_invalid_element() {
    for line in [
        "for=\"203.0.113.7",
        "for=203.0.113.7, for=",
        "for=203.0.113.7, for",
        "for=203.0.113.7;for=203.0.113.8",
        "for=203.0.113.7 for=203.0.113.8",
        "for=203.0.113.7\"",
        "for=203.0.113.7;host=a\"b",
        "for=\"203.0.113.7\"x",
        "\"for\"=203.0.113.7",
        "for=203.0.113.7;proto=\"https\\\"",
        // A quotation mark of the client would close before the quoted text of the proxy.
        "for=\", for=192.0.2.1;host=\", for=203.0.113.7\"",
    ] {
        assert_eq!(noted(&[line]), REFUSED, "{line}");
        assert_eq!(noted(&[line, "for=192.0.2.1"]), "192.0.2.1", "{line}");
        assert_eq!(noted(&["for=192.0.2.1", line, "for=10.0.0.2"]), REFUSED, "{line}");
    }
}

/// Invalid bytes of a client do not hide the elements that a proxy appends.
#[test]
fn invalid_utf8_hides_no_later_element() {
    let (x, f) = (x_forwarded_for(), forwarded());
    let lines: [(&str, &ClientIp, &[u8]); 4] = [
        (X, &x, b"\xff, 192.0.2.1"),
        (X, &x, b"10.0.0.7\x80, \xc3\xa9,192.0.2.1"),
        (F, &f, b"for=\"\xff\", for=192.0.2.1"),
        (F, &f, b"for=_a;by=\"\xc3\xa9\", for=192.0.2.1"),
    ];
    for (header, clients, line) in lines {
        let mut request = from("10.0.0.1");
        let value = http::HeaderValue::from_bytes(line).expect("a value");
        request.headers_mut().append(header, value);
        let client = clients.find(&request.into_parts().0);
        assert_eq!(client, "192.0.2.1".parse().ok(), "{line:?}");
    }
}

#[test]
fn invalid_networks_are_errors() {
    for wrong in ["10.0.0.0/33", "ten", ""] {
        let error = ClientIp::peer().x_forwarded_for([wrong]).expect_err("no network");
        assert_eq!(error.field, "trusted");
        assert!(error.given.contains(wrong), "{error}");
    }
}

/// A hop as text and as an address, if it is one.
type Hop = (String, Option<IpAddr>);

fn hop() -> impl Strategy<Value = Hop> {
    let address = |text: &'static str| (text.to_owned(), Some(text.parse().expect("an address")));
    prop_oneof![
        Just(address("10.0.0.2")),
        Just(address("192.168.1.1")),
        Just(address("192.168.1.2")),
        Just(("::ffff:10.0.0.3".to_owned(), address("10.0.0.3").1)),
        Just(address("2001:db8::7")),
        Just(address("192.0.2.1")),
        Just(address("2001:db9::7")),
        Just(("unknown".to_owned(), None)),
    ]
}

/// Client by lines of hops, each formatted by `write`.
fn client_by(
    client: impl Fn(&[&str]) -> String,
    lines: &[Vec<Hop>],
    write: impl Fn(&Hop) -> String,
) -> String {
    let line = |hops: &Vec<Hop>| hops.iter().map(&write).collect::<Vec<_>>().join(", ");
    let lines: Vec<String> = lines.iter().map(line).collect();
    client(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Client by the documented definition, from right to left.
fn naive(peer: IpAddr, hops: &[Hop]) -> Option<IpAddr> {
    let trusted = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets()[0] == 10 || ip.octets() == [192, 168, 1, 1],
        IpAddr::V6(ip) => ip.segments()[..2] == [0x2001, 0xdb8],
    };
    let mut client = peer;
    for (_, hop) in hops.iter().rev() {
        if !trusted(&client) {
            break;
        }
        client = (*hop)?;
    }
    Some(client)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The client is the rightmost address that is not trusted, or else the leftmost. Addresses that the client sent are to its left.
    #[test]
    fn the_scan_equals_the_definition(lines in prop::collection::vec(prop::collection::vec(hop(), 1..5), 0..4)) {
        let hops: Vec<_> = lines.concat();
        let peer: IpAddr = "10.0.0.1".parse().expect("an address");
        let expected = naive(peer, &hops).map_or_else(|| REFUSED.to_owned(), |client| client.to_string());
        let plain = |(text, _): &Hop| text.clone();
        let quoted = |(text, ip): &Hop| match ip {
            Some(IpAddr::V6(ip)) => format!("proto=http;for=\"[{ip}]:1\""),
            _ => format!("for={text};host=\"a,b\""),
        };
        prop_assert_eq!(&client_by(listed, &lines, plain), &expected);
        prop_assert_eq!(&client_by(noted, &lines, quoted), &expected);
    }

    /// The client is the address that the proxy appended, or the request is refused, whatever stands to its left.
    #[test]
    fn a_client_cannot_choose_its_address(
        sent in prop_oneof!["[ -~]{0,40}", "[for=\",;0-9.\\\\: ]{0,40}"],
        quoted in "[ -!#-\\[\\]-~]{0,20}",
    ) {
        let line = format!("{sent}, 192.0.2.1");
        prop_assert_eq!(listed(&[&line]), "192.0.2.1");
        let line = format!("{sent}, for=192.0.2.1;host=\"{quoted}\"");
        let client = noted(&[&line]);
        prop_assert!(client == "192.0.2.1" || client == REFUSED, "{} of {}", client, line);
    }
}

/// Lists may have empty elements, which say nothing (RFC 9110, section 5.6.1.2).
#[test]
fn empty_elements_are_skipped() {
    for line in [
        "192.0.2.1,",
        "192.0.2.1, , 10.0.0.2",
        ",192.0.2.1,\t,10.0.0.2 ,",
        " , 192.0.2.1",
    ] {
        assert_eq!(listed(&[line]), "192.0.2.1", "{line:?}");
        let forwarded = line
            .replace("192.0.2.1", "for=192.0.2.1")
            .replace("10.0.0.2", "for=10.0.0.2");
        assert_eq!(noted(&[&forwarded]), "192.0.2.1", "{forwarded:?}");
    }
    for line in ["", " ", ",", " , ,"] {
        assert_eq!(listed(&[line]), "10.0.0.1", "{line:?}");
        assert_eq!(listed(&["192.0.2.1", line]), "192.0.2.1", "{line:?}");
        assert_eq!(noted(&[line]), "10.0.0.1", "{line:?}");
    }
    // A pair without an address is not empty.
    assert_eq!(noted(&["for=192.0.2.1, proto=https"]), REFUSED);
}

/// The client by one header line, of a peer that no preset trusts.
fn by_preset(clients: &ClientIp, header: &'static str, line: &str) -> Option<String> {
    let (parts, ()) = with(header, line, Request::new(())).into_parts();
    clients.find(&parts).map(|client| client.to_string())
}

#[test]
fn presets_read_their_header_and_no_other() {
    let real_ip = ClientIp::header(HeaderName::from_static("x-real-ip"));
    let presets = [
        (ClientIp::one_proxy(), X),
        (real_ip, "x-real-ip"),
        (ClientIp::cloudflare(), "cf-connecting-ip"),
        (ClientIp::cloudfront(), "cloudfront-viewer-address"),
    ];
    for (clients, header) in &presets {
        let by = |header, line: &str| by_preset(clients, header, line);
        let port = if *header == "cloudfront-viewer-address" {
            ":4711"
        } else {
            ""
        };
        for address in ["192.0.2.1", "2001:db8::7"] {
            // The client wrote what stands before.
            for before in ["", "203.0.113.7, "] {
                let client = by(header, &format!("{before}{address}{port}"));
                assert_eq!(client.as_deref(), Some(address), "{header}: {before:?}");
            }
        }
        for (_, other) in presets.iter().filter(|(_, other)| other != header) {
            assert_eq!(by(other, "192.0.2.1"), None, "{header} by {other}");
        }
        for invalid in [
            "",
            ",",
            "unknown",
            "203.0.113.7, unknown",
            "192.0.2",
            "203.0.113.7, [::1",
        ] {
            assert_eq!(by(header, invalid), None, "{header}: {invalid:?}");
        }
    }
    let mapped = by_preset(&ClientIp::cloudflare(), "cf-connecting-ip", "::ffff:192.0.2.1");
    assert_eq!(mapped.as_deref(), Some("192.0.2.1"));
    // Of several lines the last counts.
    let request = with("cf-connecting-ip", "203.0.113.7", Request::new(()));
    let (parts, ()) = with("cf-connecting-ip", "192.0.2.1", request).into_parts();
    assert_eq!(ClientIp::cloudflare().find(&parts), "192.0.2.1".parse().ok());
}

#[test]
fn a_preset_can_be_restricted_to_its_networks() {
    let clients = ClientIp::cloudflare().only_from(["173.245.48.0/20"]);
    let clients = clients.expect("a network");
    let by = |peer: &str| find(&clients, "cf-connecting-ip", peer, &["192.0.2.1"]);
    assert_eq!(by("173.245.48.9"), "192.0.2.1");
    assert_eq!(by("203.0.113.7"), "203.0.113.7");
    let without_peer = by_preset(&clients, "cf-connecting-ip", "192.0.2.1");
    assert_eq!(without_peer, None);
    let error = ClientIp::cloudflare()
        .only_from(["cloud"])
        .expect_err("no network");
    assert!(error.to_string().contains("trusted"), "{error}");
}

/// Axum's and tonic's extensions are found by default, after the layer's own.
#[test]
fn addresses_of_servers_are_found() {
    let address: core::net::SocketAddr = "192.0.2.1:5000".parse().expect("an address");
    let mut request = Request::new(());
    request
        .extensions_mut()
        .insert(axum::extract::ConnectInfo(address));
    let (mut parts, ()) = request.into_parts();
    assert_eq!(ClientIp::peer().find(&parts), Some(address.ip()));
    let own: IpAddr = "198.51.100.1".parse().expect("an address");
    parts.extensions.insert(ringgate::http::PeerAddress(own));
    assert_eq!(ClientIp::peer().find(&parts), Some(own));
}

/// All clients would share one budget without an error.
#[test]
fn requests_without_an_address_are_explained() {
    use ringgate::http::HttpKey;
    use std::sync::Mutex;

    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let record = Arc::clone(&told);
    let layer = layer([rule("client", "1/h").by(&HttpKey::peer())])
        .on_rejected(move |rejection| record.lock().expect("no panic").push(rejection.to_string()));
    let mut service = layer.clone().layer(Hello);
    for _ in 0..3 {
        let response = send(&mut service, Request::new(()));
        assert_eq!(response.status(), 500);
        assert_eq!(header(&response, "retry-after"), None);
        let body = problem(response);
        assert_eq!(body["title"], "Server gives requests no key for a rate limit");
        let detail = body["detail"].as_str().expect("a detail");
        assert!(detail.contains("into_make_service_with_connect_info"), "{detail}");
        assert_eq!(body["violated-policies"], serde_json::json!(["client"]));
    }
    assert_eq!(told.lock().expect("no panic").len(), 3);
    let rejected = send(&mut layer.rejection_response(Grpc).layer(Hello), Request::new(()));
    assert_eq!(header(&rejected, "grpc-status"), Some("13"));
    assert!(
        header(&rejected, "grpc-message")
            .expect("a message")
            .contains("PeerAddress")
    );
    // A request with an address is served.
    assert_eq!(send(&mut service, from("192.0.2.1")).status(), 200);
}
