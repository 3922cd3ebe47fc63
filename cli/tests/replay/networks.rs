//! Networks in lists, and prefixes, decide in a replay as they do in the library.

use core::net::IpAddr;

use ringgate::rules::{Extractors, FileFormat, RuleSetBuilder};
use ringgate::{Key, ManualClock};

use crate::tool::{by_rules, on_file, rules, stderr};

/// Addresses of every kind: each makes four requests.
const ADDRESSES: [&str; 22] = [
    "10.0.0.1",
    "10.0.1.1",
    "10.200.3.4",
    "192.0.2.1",
    "192.0.2.200",
    "192.0.3.1",
    "::ffff:192.0.2.1",
    "::ffff:10.9.9.9",
    "64:ff9b::192.0.2.1",
    "64:ff9b::192.0.3.77",
    "::ffff:0:192.0.2.200",
    "2002:c000:201::1",
    "2001:db8::1",
    "2001:db8::2",
    "2001:db8:0:0:ffff::1",
    "2001:db8:0:1::1",
    "2001:db8:0:1ff::1",
    "2001:db8:1::1",
    "fe80::1",
    "fe80::2",
    "::1",
    "fd00::1",
];

/// The fields of a rule beside its name, quota and key.
const FIELDS: [&str; 28] = [
    "",
    "allow = ['10.0.0.0/8']",
    "allow = ['10.0.0.0/24', '192.0.2.0/25']",
    "allow = ['10.0.0.1']",
    "allow = ['::ffff:10.0.0.1']",
    "allow = ['2001:db8::/64']",
    "allow = ['2001:db8::/32']",
    "allow = ['2001:db8::1']",
    "allow = ['2001:db8::1/128', 'fe80::/10']",
    "allow = ['0.0.0.0/0']",
    "allow = ['::/0']",
    "allow = ['64:ff9b::/96']",
    "deny = ['10.0.0.0/8']",
    "deny = ['192.0.2.1']",
    "deny = ['2001:db8::1']",
    "deny = ['2001:db8::1/128']",
    "deny = ['2001:db8::/48', '::1']",
    "deny = ['0.0.0.0/0']",
    "allow = ['10.0.0.0/16'], deny = ['10.0.0.0/8']",
    "prefix = { ipv4 = 24 }",
    "prefix = { ipv4 = 8, ipv6 = 32 }",
    "prefix = { ipv6 = 48 }",
    "prefix = { ipv6 = 56 }",
    "prefix = { ipv6 = 128 }",
    // These change nothing.
    "prefix = { ipv6 = 64 }",
    "prefix = { ipv4 = 32, ipv6 = 64 }",
    "prefix = { ipv4 = 24, ipv6 = 56 }, deny = ['192.0.2.77', '2001:db8:0:180::']",
    "prefix = { ipv4 = 24 }, allow = ['192.0.2.200', '10.0.0.0/8']",
];

/// A file with one rule for each of these fields.
fn file(fields: &[&str]) -> String {
    let mut text = String::new();
    for (number, fields) in fields.iter().enumerate() {
        let lines = fields.replace("], ", "]\n").replace("}, ", "}\n");
        text += &format!("[[rules]]\nname = 'r{number}'\nquota = '5/h'\nkey = 'client'\n{lines}\n");
    }
    text
}

fn log(clients: &[&str]) -> String {
    let clients = clients.iter().cycle().take(4 * clients.len()).enumerate();
    let line = |(number, client): (usize, &&str)| {
        let second = number % 60;
        format!("{client} - - [10/Oct/2025:13:55:{second:02} +0000] \"GET / HTTP/1.1\" 200 5\n")
    };
    clients.map(line).collect()
}

/// The requests that the library denies.
fn denied(text: &str, clients: &[&str]) -> u64 {
    let client = Key::address("client", |client: &IpAddr| Some(*client));
    let extractors = Extractors::new().key(client).expect("a key");
    let rules = RuleSetBuilder::from_text(text, FileFormat::Toml, &extractors).expect("rules");
    let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4]).expect("rules");
    let clients = clients.iter().cycle().take(4 * clients.len());
    let requests = clients.map(|client| client.parse().expect("an address"));
    requests.filter(|client| rules.check(client).is_err()).count() as u64
}

#[test]
fn networks_and_prefixes_decide_as_in_the_library() {
    let log = log(&ADDRESSES);
    let mut different = alloc::collections::BTreeSet::new();
    let alone = FIELDS.iter().map(|&fields| vec![fields]);
    let pairs = [
        vec![FIELDS[1], FIELDS[26]],
        vec![FIELDS[0], FIELDS[19]],
        vec![FIELDS[19], FIELDS[22], FIELDS[14]],
    ];
    for fields in alone.chain(pairs) {
        let text = file(&fields);
        let object = by_rules(&text, "", &log);
        let expected = denied(&text, &ADDRESSES);
        assert_eq!(object["requests"], 4 * ADDRESSES.len(), "{fields:?}");
        assert_eq!(object["denied"], expected, "{fields:?}");
        different.insert(expected);
    }
    assert!(different.len() > 8, "{different:?}");
}

/// Keys with names of hosts and of users have lists of texts, beside those of addresses.
#[test]
fn texts_are_in_lists_beside_networks() {
    let clients = ["a.example.com", "b.example.com", "10.0.0.1", "10.0.0.2"];
    let log = log(&clients);
    for (fields, expected) in [
        ("", 8),
        ("allow = ['a.example.com', '10.0.0.0/8']", 2),
        ("deny = ['a.example.com', '10.0.0.2']", 12),
        ("prefix = { ipv4 = 24 }, allow = ['b.example.com']", 8),
        ("prefix = { ipv4 = 24 }", 10),
    ] {
        let object = by_rules(&file(&[fields]).replace("5/h", "2/h"), "", &log);
        assert_eq!(object["denied"], expected, "{fields}");
    }
    // Values of several fields may have spaces around the commas, as the names of the fields may.
    for text in ["10.0.0.1,/", "10.0.0.1, /", " 10.0.0.1 , / ", "a.example.com, /"] {
        let rules = file(&[&format!("deny = ['{text}']")]).replace("'client'", "'client, path'");
        assert_eq!(by_rules(&rules, "", &log)["denied"], 4, "{text}");
    }
}

/// The report names a client as its rule counts it.
#[test]
fn reports_name_the_networks_of_prefixes() {
    for (fields, client, expected) in [
        ("prefix = { ipv4 = 24 }", "192.0.2.77", "192.0.2.0/24"),
        ("prefix = { ipv4 = 24 }", "::ffff:192.0.2.77", "192.0.2.0/24"),
        ("prefix = { ipv6 = 48 }", "2001:db8:1:2::3", "2001:db8:1::/48"),
        ("prefix = { ipv6 = 128 }", "2001:db8:1:2::3", "2001:db8:1:2::3"),
        ("prefix = { ipv6 = 48 }", "192.0.2.77", "192.0.2.77"),
        ("allow = ['10.0.0.0/8']", "2001:db8:1:2::3", "2001:db8:1:2::/64"),
    ] {
        let object = by_rules(&file(&[fields]), "", log(&[client, client, "198.51.100.7"]));
        assert_eq!(object["keys"][0]["key"], expected, "{fields} {client}");
    }
}

#[test]
fn entries_that_match_nothing_are_errors() {
    // The key of several fields has no network in its lists, and no prefix.
    let several = "client,path";
    for (key, fields, expected) in [
        ("client", "allow = ['10.0.0.1/8']", "bits after its prefix"),
        ("client", "deny = ['2001:db8::1/64']", "bits after its prefix"),
        ("client", "deny = ['10.0.0.0/33']", "invalid address"),
        ("client", "allow = ['::/129']", "invalid address"),
        ("client", "deny = ['192.0.2.1 ']", "invalid address"),
        ("client", "deny = [' 10.0.0.0/8']", "invalid address"),
        ("client", "prefix = { ipv4 = 33 }", "1 to 32 bits"),
        ("client", "prefix = { ipv6 = 0 }", "1 to 128 bits"),
        ("client", "prefix = { }", "ipv4, ipv6 or both"),
        (several, "deny = ['10.0.0.0/8,/']", "only a key of one field has"),
        (several, "prefix = { ipv4 = 24 }", "a key of addresses"),
    ] {
        let rules = rules(&file(&[fields]).replace("'client'", &format!("'{key}'")));
        let output = on_file(
            &format!("--json --rules {}", rules.path().display()),
            log(&ADDRESSES),
        );
        let said = stderr(&output);
        assert!(
            !output.status.success() && said.contains(expected),
            "{fields}: {said}"
        );
    }
}
