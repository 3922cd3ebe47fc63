//! Tables of inputs as software writes them: headers of proxies, addresses and quotas.

use super::*;
use ringgate::keyed::ClientAddress;

/// The rows of a file of cases: an input, a tab, and the right result.
pub(crate) fn rows(file: &str) -> Vec<(String, String)> {
    let path = format!("{}/tests/cases/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a file of cases");
    let row = |line: &str| {
        let (input, expected) = line.rsplit_once('\t').expect("two columns");
        (input.to_owned(), expected.to_owned())
    };
    text.lines().map(row).collect()
}

fn client(clients: &ClientIp, header: &'static str, line: &str) -> Option<IpAddr> {
    let (parts, ()) = with(header, line, from("10.0.0.1")).into_parts();
    clients.find(&parts)
}

#[test]
fn forwarded_as_software_writes_it() {
    let clients = ClientIp::peer().forwarded(["10.0.0.0/8"]).expect("a network");
    for (line, expected) in rows("forwarded.tsv") {
        let expected = expected.parse().ok();
        assert_eq!(client(&clients, "forwarded", &line), expected, "{line}");
    }
}

#[test]
fn x_forwarded_for_as_software_writes_it() {
    let trusting = ClientIp::peer()
        .x_forwarded_for(["10.0.0.0/8"])
        .expect("a network");
    for (line, expected) in rows("x-forwarded-for.tsv") {
        let expected: Option<IpAddr> = expected.parse().ok();
        assert_eq!(client(&trusting, "x-forwarded-for", &line), expected, "{line}");
        let found = client(&ClientIp::one_proxy(), "x-forwarded-for", &line);
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn clients_of_transition_prefixes() {
    for (pair, expected) in rows("client-address.tsv") {
        let (one, other) = pair.split_once(' ').expect("two addresses");
        let client = |text: &str| ClientAddress::new(text.parse().expect("an address"));
        let is = if client(one) == client(other) {
            "equal"
        } else {
            "different"
        };
        assert_eq!(is, expected, "{pair}");
    }
    let link_local = "fe80::1".parse().expect("an address");
    let client = ClientAddress::with_prefixes(link_local, 8, 8).expect("prefixes");
    assert_eq!(client.address(), link_local, "any prefix");
}

#[test]
fn quotas_as_people_write_them() {
    for (text, expected) in [
        ("20r/s", "20/s"),
        ("300r/m", "300/min"),
        ("2/week", "2/7d"),
        ("500/Week", "500/7d"),
        ("0.25/s", "1/4s"),
        ("0.1/min", "1/10min"),
    ] {
        match text.parse::<Quota>() {
            // One meaning.
            Ok(quota) => assert_eq!(Ok(quota), expected.parse(), "{text}"),
            Err(error) => assert!(error.to_string().contains(expected), "{text}: {error}"),
        }
    }
}

/// The status and the detail of a rejection.
fn rejected(key: Key<Parts>, request: Request<()>) -> (u16, String) {
    let response = send(&mut layer([rule("c", "1/h").by(&key)]).layer(Hello), request);
    let status = response.status().as_u16();
    let body = problem(response);
    (status, body["detail"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn an_address_that_cannot_be_read_is_refused_with_its_own_message() {
    use ringgate::rules::OnMissingKey::{Deny, Fail, Share, Skip};
    let trusting = || {
        ClientIp::peer()
            .x_forwarded_for(["10.0.0.0/8"])
            .expect("a network")
    };
    let forwarded = || ClientIp::peer().forwarded(["10.0.0.0/8"]).expect("a network");
    for (clients, header, line) in [
        (trusting(), "x-forwarded-for", "unknown"),
        (trusting(), "x-forwarded-for", "203.0.113.7, 192.0.2"),
        (forwarded(), "forwarded", "for=unknown"),
        (forwarded(), "forwarded", "for=\"192.0.2.1"),
        (ClientIp::one_proxy(), "x-forwarded-for", "unix:"),
        (ClientIp::cloudflare(), "cf-connecting-ip", "localhost"),
    ] {
        for on_missing in [Fail, Deny, Share, Skip] {
            let key = HttpKey::client(clients.clone()).on_missing(on_missing);
            let (status, detail) = rejected(key, with(header, line, from("10.0.0.1")));
            assert_eq!(status, 400, "{line}: {on_missing:?}");
            assert!(
                detail.contains(&format!("the header `{header}` states no address")),
                "{detail}"
            );
            assert!(!detail.contains("into_make_service"), "{detail}");
            // The response does not reveal what other proxies wrote.
            assert!(!detail.contains(line), "{detail}");
        }
        // The client of a pair of keys is refused, too, whatever the pair does without a key.
        let pair = HttpKey::client(clients).and(&HttpKey::path()).on_missing(Skip);
        let (status, detail) = rejected(pair, with(header, line, from("10.0.0.1")));
        assert_eq!(status, 400, "{line}");
        assert!(detail.contains(header), "{detail}");
    }
}

#[test]
fn a_header_that_is_missing_is_named() {
    for (clients, header) in [
        (ClientIp::one_proxy(), "x-forwarded-for"),
        (ClientIp::cloudflare(), "cf-connecting-ip"),
        (
            ClientIp::header(HeaderName::from_static("x-real-ip")),
            "x-real-ip",
        ),
    ] {
        let (status, detail) = rejected(HttpKey::client(clients), from("10.0.0.1"));
        assert_eq!(status, 500);
        assert!(detail.contains(&format!("no header `{header}`")), "{detail}");
        assert!(!detail.contains("into_make_service"), "{detail}");
    }
}
