//! Tables of inputs as software writes them: headers of proxies and of servers, addresses, and lists of files.

use core::net::IpAddr;
use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, StatusCode};
use ringgate::http::{ClientIp, HttpKey, ServerLimit};
use ringgate::keyed::ClientAddress;
use ringgate::rules::{Extractors, FileFormat};

use super::*;

/// The rows of a file of cases: an input, a tab, and the right result.
fn rows(file: &str) -> Vec<(String, String)> {
    let path = format!("{}/tests/cases/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a file of cases");
    let row = |line: &str| {
        let (input, expected) = line.split_once('\t').expect("two columns");
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
    let own = [
        ("for=2001:db9::7", "2001:db9::7"),
        ("for=[2001:db9::7]:4711;proto=https", "2001:db9::7"),
        ("for=\"2001:db9::7\"", "2001:db9::7"),
        ("For =\t\"[2001:db9::7]\" ; Proto = https", "2001:db9::7"),
        ("host=localhost:3000;for=192.0.2.7", "192.0.2.7"),
        ("by=[2001:db8::9]:443;for=192.0.2.7:_a", "192.0.2.7"),
        ("for=192.0.2.7;secure;path=/a?b=c&d", "192.0.2.7"),
        ("for=192.0.2.7;host=a b;proto=", "192.0.2.7"),
        ("for=::ffff:192.0.2.7", "192.0.2.7"),
        ("for=fe80::7%eth0", "fe80::7"),
        ("for=203.0.113.9:80, for=192.0.2.7:80", "192.0.2.7"),
        ("for=unknown, for=192.0.2.7", "192.0.2.7"),
        ("for=192.0.2.7;host=a:1, for=10.0.0.2:80;host=b:2", "192.0.2.7"),
        ("by=unix:;for=192.0.2.7", "192.0.2.7"),
        (
            "proto=https;host=[2001:db8::1]:8443;for=2001:db9::7",
            "2001:db9::7",
        ),
        ("for=_hidden, for=\"[2001:db9::7]:4711\"", "2001:db9::7"),
        ("for=[::ffff:192.0.2.7]:80", "192.0.2.7"),
        ("for=\"192.0.2.7:80\";by=\"10.0.0.3:443\"", "192.0.2.7"),
    ];
    for (line, expected) in own {
        let expected = expected.parse().ok();
        assert_eq!(client(&clients, "forwarded", line), expected, "{line}");
    }
}

#[test]
fn x_forwarded_for_as_software_writes_it() {
    let trusting = ClientIp::peer()
        .x_forwarded_for(["10.0.0.0/8"])
        .expect("a network");
    let own = [
        ("[::ffff:192.0.2.9]:12345", "192.0.2.9"),
        ("::FFFF:192.0.2.9", "192.0.2.9"),
        ("2001:db9::9:12345", "2001:db9::9"),
        ("2001:db9::9:443", "2001:db9::9:443"),
        ("1:2:3:4:5:6:7:8:443", "1:2:3:4:5:6:7:8"),
        ("\"[2001:db9::9]:4711\"", "2001:db9::9"),
        ("[fe80::1%25eth0]:80", "fe80::1"),
        ("fe80::1%eth0:12345", "fe80::1"),
        ("[192.0.2.9]", "192.0.2.9"),
        ("unknown, \"192.0.2.9:80\"", "192.0.2.9"),
        ("192.0.2.9:0", "192.0.2.9"),
        ("\"2001:db9::9\"", "2001:db9::9"),
        ("::ffff:c000:209", "192.0.2.9"),
    ];
    let own = own.map(|(line, expected)| (line.to_owned(), expected.to_owned()));
    for (line, expected) in rows("x-forwarded-for.tsv").into_iter().chain(own) {
        let expected: Option<IpAddr> = expected.parse().ok();
        assert_eq!(client(&trusting, "x-forwarded-for", &line), expected, "{line}");
        assert_eq!(
            client(&ClientIp::one_proxy(), "x-forwarded-for", &line),
            expected,
            "{line}"
        );
    }
}

#[test]
fn retry_after_as_servers_write_it() {
    let own = [
        ("0.2", 1),
        ("  4  ", 4),
        ("1, 120, 60", 120),
        ("7s", 7),
        ("2.01", 3),
        ("3,7.5", 8),
    ];
    let own = own.map(|(value, seconds)| (value.to_owned(), format!("{seconds} s")));
    for (value, expected) in rows("retry-after.tsv").into_iter().chain(own) {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_str(&value).expect("a value"));
        let limit = ServerLimit::from_headers(&headers, SystemTime::now());
        let wait = limit.wait(StatusCode::TOO_MANY_REQUESTS).expect("a wait");
        assert_eq!(format!("{} s", wait.as_secs_f64()), expected, "{value}");
    }
}

#[test]
fn clients_of_transition_prefixes() {
    let own = [
        ("64:ff9b::192.0.2.1 192.0.2.1", "equal"),
        ("64:ff9b::c000:201 ::ffff:192.0.2.1", "equal"),
        ("::ffff:0:192.0.2.1 192.0.2.1", "equal"),
        // The last 32 bits, or bits 48 to 63 and 72 to 87.
        ("64:ff9b:1::c000:201 192.0.2.1", "equal"),
        ("64:ff9b:1:7:8:9:c000:201 192.0.2.1", "equal"),
        ("64:ff9b:1::c000:201 64:ff9b:1::c633:6401", "different"),
        ("64:ff9b:1:c000:2:100:: 192.0.2.1", "equal"),
        ("64:ff9b:1:c000:2:100:: 64:ff9b:1:c000:2:200::", "different"),
        // It is not known where the address is.
        ("64:ff9b:1:7:c0:2:100:0 64:ff9b:1:7:c0:2:200:0", "different"),
        // 6to4 and Teredo.
        ("2002:c000:201::1 2002:c000:201:7::1", "equal"),
        ("2002:c000:201::1 192.0.2.1", "equal"),
        ("2002:c000:201::1 2002:c000:202::1", "different"),
        ("2001:0:c633:6401::3fff:fdfe 192.0.2.1", "equal"),
        (
            "2001:0:c633:6401::3fff:fdfe 2001:0:c633:6401::3fff:fdfd",
            "different",
        ),
        // Other networks of these blocks are masked.
        ("2001:db8::1 2001:db8::2", "equal"),
        ("64:ff9b:2::1 64:ff9b:2::2", "equal"),
        ("64:ff9b:0:0:0:1::1 64:ff9b:0:0:0:1::2", "equal"),
        ("::fffe:0:192.0.2.1 ::fffe:0:192.0.2.2", "equal"),
        ("fe80::1 fe80::1", "equal"),
        ("fe80::1:1 febf::1:1", "different"),
        ("fec0::1 fec0::2", "equal"),
        ("::1 ::2", "different"),
        ("2002:c000:201::1 64:ff9b::192.0.2.1", "equal"),
        ("::ffff:0:192.0.2.1 2002:c000:201:9::7", "equal"),
        ("64:ff9b::192.0.2.1 64:ff9b::192.0.2.2", "different"),
        ("fe80::1 fe80:0:0:1::1", "different"),
        ("64:ff9b:1::192.0.2.1 ::ffff:192.0.2.1", "equal"),
    ];
    let own = own.map(|(pair, expected)| (pair.to_owned(), expected.to_owned()));
    for (pair, expected) in rows("client-address.tsv").into_iter().chain(own) {
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
fn lists_of_a_file() {
    for (list, expected) in rows("allow.tsv") {
        let (address, expected) = match &*expected {
            "10.1.2.3 is never limited" => ("10.1.2.3", [200, 200]),
            "2001:db8::dead is limited, or the file is refused" => ("2001:db8::dead", [200, 429]),
            other => panic!("unknown result {other:?}"),
        };
        let text = format!("[[rules]]\nname=\"c\"\nquota=\"1/min\"\nkey=\"client\"\n{list}\n");
        let extractors = Extractors::new().key(HttpKey::peer().named("client"));
        let extractors = extractors.expect("a name of its own");
        let rules = RuleSetBuilder::from_text(&text, FileFormat::Toml, &extractors).expect("rules");
        let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4]).expect("rules");
        let mut service = RateLimitLayer::from(rules).layer(Hello);
        let statuses = [(); 2].map(|()| send(&mut service, from(address)).status().as_u16());
        assert_eq!(statuses, expected, "{list}");
    }
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

/// A rule with a list in code, and five requests of one address.
#[test]
fn lists_in_code() {
    let rule = |quota| rule("c", quota).by(&HttpKey::peer());
    let admitted = |rule: Rule<Parts>, peer: &str| {
        let mut service = layer([rule]).layer(Hello);
        let is_admitted = |_: &usize| send(&mut service, from(peer)).status() == 200;
        (0..5).filter(is_admitted).count()
    };
    let v6: IpAddr = "2001:db8::1".parse().expect("an address");
    let mapped: IpAddr = "::ffff:192.0.2.1".parse().expect("an address");
    assert_eq!(admitted(rule("3/min").deny("192.0.2.1"), "192.0.2.1"), 0);
    assert_eq!(admitted(rule("1/min").allow("192.0.2.1"), "192.0.2.1"), 5);
    assert_eq!(admitted(rule("3/min").deny(v6), "2001:db8::1"), 0);
    assert_eq!(admitted(rule("3/min").deny(mapped), "::ffff:192.0.2.1"), 0);
    assert_eq!(admitted(rule("3/min").deny(mapped), "192.0.2.1"), 0);
    assert_eq!(admitted(rule("3/min").deny("192.0.2.0/24"), "192.0.2.77"), 0);
    assert_eq!(admitted(rule("1/min").allow("2001:db8::/32"), "2001:db8:7::1"), 5);
    assert_eq!(admitted(rule("3/min").deny("192.0.2.1"), "192.0.2.2"), 3);
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
        (ClientIp::fly(), "fly-client-ip", "localhost"),
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
