//! Lists and prefixes of files: entries that the key reads, and entries that no request could match.

use core::hash::Hash;
use core::net::IpAddr;

use ringgate::rules::{Extractors, FileError, FileFormat, RuleSetBuilder};
use ringgate::{Key, ManualClock, RuleSet};

/// A request that has one key of each kind.
#[derive(Default)]
struct Request {
    number: u64,
    client: Option<IpAddr>,
}

fn parse(text: &str) -> Result<RuleSetBuilder<Request>, FileError> {
    let make = || {
        Extractors::new()
            .key(Key::text("user", |_: &Request| Some("alice")))?
            .key(Key::value("number", |request: &Request| Some(request.number)))?
            .key(Key::new("hash", |request: &Request, key| {
                request.number.hash(key)
            }))?
            .key(Key::address("client", |request: &Request| request.client))
    };
    RuleSetBuilder::from_text(text, FileFormat::Toml, &make().expect("names of their own"))
}

fn read(text: &str) -> RuleSetBuilder<Request> {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn rules(fields: &str) -> RuleSet<Request, ManualClock> {
    let text = format!("[[rules]]\nname = 'a'\nquota = '1/h'\n{fields}");
    let rules = read(&text);
    rules.build_with(ManualClock::new(), [1, 2, 3, 4]).expect("rules")
}

fn error(fields: &str) -> String {
    let text = format!("[[rules]]\nname = 'a'\nquota = '1/h'\n{fields}");
    parse(&text).expect_err("an invalid field").to_string()
}

fn from(address: &str) -> Request {
    Request {
        client: Some(address.parse::<IpAddr>().expect("an address")),
        ..Request::default()
    }
}

/// Admissions of two equal requests: none if the key is denied, one if it is limited, both if it is allowed.
fn admitted(rules: &RuleSet<Request, ManualClock>, request: &Request) -> usize {
    (0..2).filter(|_| rules.check(request).is_ok()).count()
}

/// The cases of a table, one a line: the fields of a rule, and the expectation.
fn lines(cases: &str) -> impl Iterator<Item = (String, &str)> {
    cases.trim().lines().map(|line| {
        let (fields, expected) = line.split_once(" => ").expect(line);
        (fields.replace("; ", "\n"), expected)
    })
}

/// Each line: the fields of a rule, and a part of the error.
fn refuses(cases: &str) {
    for (fields, message) in lines(cases) {
        let error = error(&fields);
        assert!(error.contains(message), "{fields}: {error}");
    }
}

#[test]
fn an_entry_that_no_request_matches_is_an_error() {
    refuses(
        r#"
key = 'hash'; allow = ['7'] => invalid allow: "7" (expected a value of the key "hash": this key does not say
key = 'hash'; deny = ['7'] => invalid deny: "7" (expected a value of the key "hash": this key does not say
key = 'number'; allow = ['seven'] => invalid allow: "seven" (expected a value of the key "number": invalid digit
key = 'number'; deny = ['-7'] => invalid deny: "-7"
key = 'number'; deny = ['7.0'] => invalid deny: "7.0"
key = 'number'; deny = [' 7'] => invalid deny: " 7"
key = 'client'; deny = ['localhost'] => invalid deny: "localhost"
key = 'client'; allow = ['10.0.0.0/33'] => invalid allow: "10.0.0.0/33"
key = 'client'; allow = ['10.0.0.0/255.0.0.0'] => invalid allow: "10.0.0.0/255.0.0.0"
key = 'client'; allow = ['10.*'] => invalid allow: "10.*"
key = 'client'; allow = ['192.0.2.1:80'] => invalid allow: "192.0.2.1:80"
key = 'client'; allow = ['10.1.2.3/8'] => which has bits after its prefix (expected 10.0.0.0/8)
key = 'client'; allow = ['2001:db8::1/64'] => which has bits after its prefix (expected 2001:db8::/64)
key = 'client'; allow = ['10.0.0.0/+8'] => invalid allow: "10.0.0.0/+8"
"#,
    );
}

/// Requests of the addresses have none, one or two admissions. `allow` comes before `deny`.
#[test]
fn networks_and_addresses_of_lists() {
    for (list, requests) in lines(
        r#"
allow = ['10.0.0.0/8'] => 10.1.2.3 2, 10.255.255.255 2, 11.0.0.0 1, 9.255.255.255 1, ::ffff:10.1.2.4 2
allow = ['2001:db8::1'] => 2001:db8::1 2, 2001:db8::dead 1
allow = ['2001:db8::/64'] => 2001:db8::1 2, 2001:db8::dead 2, 2001:db8:0:1::1 1
allow = ['2001:db8::/96'] => 2001:db8::ffff:1 2, 2001:db8::1:0:1 1
allow = ['::1', '127.0.0.0/8'] => ::1 2, 127.8.9.10 2, ::2 1
allow = ['0.0.0.0/0'] => 192.0.2.1 2, 2001:db8::1 1
allow = ['::/0'] => 192.0.2.1 1, ::ffff:192.0.2.2 1, 2001:db8::1 2
allow = ['::ffff:192.0.2.0/120'] => 192.0.2.9 2, 192.0.3.9 1
allow = ['10.0.0.0/8', '10.1.0.0/16', '10.9.9.9', '192.0.2.1/32'] => 10.200.0.1 2, 10.1.7.7 2, 192.0.2.1 2, 192.0.2.2 1
allow = ['192.0.2.0/24'] => 64:ff9b::c000:201 2, 64:ff9b::c633:6401 1
deny = ['2001:db8::1'] => 2001:db8::1 0, 2001:db8::dead 0, 2001:db8:0:1::1 1
deny = ['2001:db8::1/128'] => 2001:db8::1 0, 2001:db8::dead 1
deny = ['2001:db8::/32'] => 2001:db8:ffff::1 0, 2001:db9::1 1
deny = ['::ffff:192.0.2.1'] => 192.0.2.1 0, ::ffff:192.0.2.1 0, 192.0.2.2 1
deny = ['192.0.2.1'] => 64:ff9b::c000:201 0, ::ffff:0:192.0.2.1 0, 192.0.2.2 1
deny = ['64:ff9b::c000:201'] => 192.0.2.1 0, 64:ff9b::c000:202 1
deny = ['fe80::1'] => fe80::1 0, fe80::2 1
prefix = { ipv4 = 24 }; deny = ['192.0.2.1'] => 192.0.2.77 0, 192.0.3.1 1
prefix = { ipv4 = 24 }; deny = ['192.0.2.1/32'] => 192.0.2.1 0, 192.0.2.77 1
prefix = { ipv4 = 24 }; allow = ['192.0.2.1'] => 192.0.2.1 2, 192.0.2.77 1
allow = ['10.0.0.0/8']; deny = ['10.0.0.1'] => 10.0.0.1 2
"#,
    ) {
        for request in requests.split(", ") {
            let (address, expected) = request.split_once(' ').expect(request);
            let rules = rules(&format!("key = 'client'\n{list}"));
            let found = admitted(&rules, &from(address)).to_string();
            assert_eq!(found, expected, "{list}: {address}");
        }
    }
}

#[test]
fn a_prefix_identifies_clients() {
    let cases: &[(&str, [&str; 2], usize)] = &[
        ("", ["192.0.2.1", "192.0.2.2"], 2),
        ("prefix = { ipv4 = 24 }", ["192.0.2.1", "192.0.2.2"], 1),
        ("prefix = { ipv4 = 24 }", ["192.0.2.1", "192.0.3.1"], 2),
        (
            "prefix = { ipv4 = 24 }",
            ["::ffff:192.0.2.1", "64:ff9b::192.0.2.2"],
            1,
        ),
        ("prefix = { ipv4 = 32 }", ["192.0.2.1", "192.0.2.2"], 2),
        (
            "prefix = { ipv6 = 48 }",
            ["2001:db8:0:1::1", "2001:db8:0:2::1"],
            1,
        ),
        ("prefix = { ipv6 = 128 }", ["2001:db8::1", "2001:db8::2"], 2),
        (
            "prefix = { ipv4 = 8, ipv6 = 32 }",
            ["2001:db8:1::1", "2001:db8:2::1"],
            1,
        ),
    ];
    for (prefix, addresses, expected) in cases {
        let rules = rules(&format!("key = 'client'\n{prefix}"));
        let clients = addresses
            .iter()
            .filter(|address| rules.check(&from(address)).is_ok());
        assert_eq!(clients.count(), *expected, "{prefix}: {addresses:?}");
    }
}

#[test]
fn rules_with_different_prefixes_count_separately() {
    let text = "
        [[rules]]
        name = 'client'
        quota = '1/h'
        key = 'client'

        [[rules]]
        name = 'network'
        quota = '2/h'
        key = 'client'
        prefix = { ipv4 = 24, ipv6 = 64 }

        [[rules]]
        name = 'network, too'
        quota = '9/h'
        key = 'client'
        prefix = { ipv4 = 24 }
    ";
    let builder = read(text);
    let names: Vec<_> = builder.rules().iter().map(|rule| rule.view().key).collect();
    assert_eq!(
        names,
        [Some("client"), Some("client/24/64"), Some("client/24/64")]
    );
    let rules = builder
        .build_with(ManualClock::new(), [1, 2, 3, 4])
        .expect("rules");
    let admitted = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.3.1"];
    let admitted = admitted.map(|address| rules.check(&from(address)).is_ok());
    assert_eq!(admitted, [true, false, true, false, true]);
}

#[test]
fn an_invalid_prefix_is_an_error() {
    refuses(
        r#"
prefix = { ipv4 = 24 } => invalid prefix: given for a rule without a key (expected a rule with a key)
key = 'user'; prefix = { ipv4 = 24 } => invalid prefix: given for a key that is no address (expected a key of addresses)
key = 'client'; prefix = 24 => invalid prefix: 24 (expected a map with ipv4, ipv6 or both)
key = 'client'; prefix = {} => (expected a map with ipv4, ipv6 or both)
key = 'client'; prefix = { v4 = 24 } => invalid field: "v4" (expected ipv4 or ipv6)
key = 'client'; prefix = { ipv4 = 0 } => invalid ipv4: 0 (expected 1 to 32 bits of an IPv4 address)
key = 'client'; prefix = { ipv4 = 33 } => invalid ipv4: 33 (expected 1 to 32 bits of an IPv4 address)
key = 'client'; prefix = { ipv6 = 129 } => invalid ipv6: 129 (expected 1 to 128 bits of an IPv6 address)
key = 'client'; prefix = { ipv4 = 256, ipv6 = 300 } => invalid ipv4: 256 (expected 1 to 32 bits of an IPv4 address)
key = 'client'; prefix = { ipv6 = '64' } => invalid ipv6: "64"
"#,
    );
}
