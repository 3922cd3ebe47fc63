//! Further inputs of the kinds of `cases`, as software writes them.

use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, StatusCode};
use ringgate::Quota;
use ringgate::http::{ClientIp, HttpKey, ServerLimit};
use ringgate::keyed::ClientAddress;

use super::*;

#[test]
fn clients_behind_proxies() {
    let forwarded = ClientIp::peer().forwarded(["10.0.0.0/8"]).expect("a network");
    let listed = ClientIp::peer()
        .x_forwarded_for(["10.0.0.0/8"])
        .expect("a network");
    for (clients, name, line, expected) in [
        (&forwarded, "forwarded", "by=unix:;for=192.0.2.7", "192.0.2.7"),
        (
            &forwarded,
            "forwarded",
            "proto=https;host=[2001:db8::1]:8443;for=2001:db9::7",
            "2001:db9::7",
        ),
        (
            &forwarded,
            "forwarded",
            "for=_hidden, for=\"[2001:db9::7]:4711\"",
            "2001:db9::7",
        ),
        (&forwarded, "forwarded", "for=[::ffff:192.0.2.7]:80", "192.0.2.7"),
        (
            &forwarded,
            "forwarded",
            "for=\"192.0.2.7:80\";by=\"10.0.0.3:443\"",
            "192.0.2.7",
        ),
        (&listed, "x-forwarded-for", "192.0.2.9:0", "192.0.2.9"),
        (&listed, "x-forwarded-for", "\"2001:db9::9\"", "2001:db9::9"),
        (&listed, "x-forwarded-for", "::ffff:c000:209", "192.0.2.9"),
        (
            &listed,
            "x-forwarded-for",
            "198.51.100.1:9,\t192.0.2.9:65535 , 10.0.0.4:1",
            "192.0.2.9",
        ),
    ] {
        let (parts, ()) = with(name, line, from("10.0.0.1")).into_parts();
        assert_eq!(clients.find(&parts), expected.parse().ok(), "{line}");
    }
}

#[test]
fn waits_of_servers() {
    for (value, expected) in [
        ("0.2", 1),
        ("  4  ", 4),
        ("1, 120, 60", 120),
        ("7s", 7),
        ("2.01", 3),
        ("3,7.5", 8),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_str(value).expect("a value"));
        let limit = ServerLimit::from_headers(&headers, SystemTime::now());
        let wait = limit.wait(StatusCode::TOO_MANY_REQUESTS).expect("a wait");
        assert_eq!(wait, Duration::from_secs(expected), "{value}");
    }
}

#[test]
fn clients_of_embedded_addresses() {
    for (one, other, equal) in [
        ("2002:c000:201::1", "64:ff9b::192.0.2.1", true),
        ("::ffff:0:192.0.2.1", "2002:c000:201:9::7", true),
        ("64:ff9b::192.0.2.1", "64:ff9b::192.0.2.2", false),
        ("fe80::1", "fe80:0:0:1::1", false),
        ("64:ff9b:1::192.0.2.1", "::ffff:192.0.2.1", true),
    ] {
        let client = |text: &str| ClientAddress::new(text.parse().expect("an address"));
        assert_eq!(client(one) == client(other), equal, "{one} {other}");
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

/// Two requests of one client whose key is written in two ways have one budget.
#[test]
fn one_key_has_one_budget() {
    for (key, one, other) in [
        (
            HttpKey::host(),
            ("host", "Example.com:443"),
            ("host", "example.COM"),
        ),
        (
            HttpKey::host(),
            ("host", "EXAMPLE.com."),
            ("host", "EXAMPLE.com."),
        ),
        (
            HttpKey::bearer(),
            ("authorization", "Bearer  abc"),
            ("authorization", "bearer abc"),
        ),
        (
            HttpKey::bearer(),
            ("authorization", "BEARER abc "),
            ("authorization", "bearer abc"),
        ),
    ] {
        let request = |(name, value)| with(name, value, Request::new(()));
        assert_eq!(
            statuses(&key, [request(one), request(other)])[1],
            429,
            "{one:?} {other:?}"
        );
    }
}
