//! Keys with a second key for the requests that lack the first.

use super::*;

#[derive(Clone, Copy)]
struct Request {
    user: Option<&'static str>,
    number: Option<u64>,
    address: Option<IpAddr>,
}

fn request(user: &'static str, address: &str) -> Request {
    Request {
        user: Some(user).filter(|user| !user.is_empty()),
        number: user.len().checked_sub(1).map(|less| less as u64),
        address: address.parse().ok(),
    }
}

fn user() -> Key<Request> {
    Key::text("user", |request: &Request| request.user)
}

fn number() -> Key<Request> {
    Key::value("number", |request: &Request| request.number)
}

fn client() -> Key<Request> {
    Key::address("client", |request: &Request| request.address)
}

fn rule(key: &Key<Request>) -> Rule<Request> {
    Rule::new("each", "2/h".parse().expect("a quota")).by(key)
}

fn set(rule: Rule<Request>) -> RuleSet<Request, ManualClock> {
    let rules = RuleSetBuilder::new().rule(rule);
    rules.build_with(ManualClock::new(), [1, 2, 3, 4]).expect("rules")
}

/// Of five requests of each of these, the admitted ones. The rule admits two of each key.
fn admitted<const N: usize>(rule: Rule<Request>, requests: [Request; N]) -> [usize; N] {
    let rules = set(rule);
    requests.map(|request| (0..5).filter(|_| rules.check(&request).is_ok()).count())
}

#[test]
fn a_request_is_counted_by_the_first_key_that_it_has() {
    let requests = || {
        [
            request("alice", "192.0.2.1"),
            request("bobby", "192.0.2.1"),
            request("alice", "192.0.2.2"),
            request("", "192.0.2.1"),
            request("", "192.0.2.2"),
            request("", "192.0.2.1"),
        ]
    };
    let found = admitted(rule(&user().or(&client())), requests());
    assert_eq!(found, [2, 2, 0, 2, 2, 0]);
    let found = admitted(rule(&client().or(&user())), requests());
    assert_eq!(found, [2, 0, 2, 0, 0, 0]);
    // Both users have five letters.
    let found = admitted(rule(&number().or(&client())), requests());
    assert_eq!(found, [2, 0, 0, 2, 2, 0]);
    let three = user().or(&number().or(&client()));
    assert_eq!(admitted(rule(&three), requests()), [2, 2, 0, 2, 2, 0]);
    assert_eq!(three.name(), "user or number or client");
    assert_eq!(user().or(&user()).name(), "user");
}

/// The value of one key is never that of the other, even if both feed the hasher equally.
#[test]
fn equal_values_of_the_two_keys_are_different_keys() {
    let first = Key::value("first", |request: &Request| {
        request.number.filter(|_| request.user == Some("a"))
    });
    let second = Key::value("second", |request: &Request| request.number);
    let requests = [request("a", ""), request("b", ""), request("c", "")];
    assert_eq!(admitted(rule(&first.or(&second)), requests), [2, 2, 0]);
}

#[test]
fn lists_have_entries_of_both_keys() {
    let requests = || {
        [
            request("alice", "192.0.2.1"),
            request("bobby", "10.1.2.3"),
            request("", "10.1.2.3"),
            request("", "192.0.2.1"),
            request("", "2001:db8::1"),
        ]
    };
    let client_or_user = || rule(&client().or(&user()));
    let number_or_client = || rule(&number().or(&client()));
    for (rule, expected) in [
        (client_or_user().deny("10.0.0.0/8"), [2, 0, 0, 0, 2]),
        (client_or_user().allow("10.0.0.0/8"), [2, 5, 5, 0, 2]),
        // Every request has an address, so the user is not asked for.
        (client_or_user().deny("alice"), [2, 2, 0, 0, 2]),
        (number_or_client().deny("4"), [0, 0, 2, 2, 2]),
        (number_or_client().deny("10.0.0.0/8"), [2, 0, 0, 2, 2]),
        (number_or_client().allow("4").deny("192.0.2.1"), [5, 5, 2, 0, 2]),
        (
            number_or_client().deny("2001:db8::/64").deny("4"),
            [0, 0, 2, 2, 0],
        ),
    ] {
        let text = format!("{rule:?}");
        assert_eq!(admitted(rule, requests()), expected, "{text}");
    }
    let nested = client().or(&number().or(&user()));
    let without = [request("alice", ""), request("bob", "")];
    assert_eq!(admitted(rule(&nested).deny("2"), without), [2, 0]);
    let texts = number().or(&user().or(&client()));
    let named = Request {
        number: None,
        ..request("alice", "192.0.2.1")
    };
    let unnamed = request("", "192.0.2.1");
    assert_eq!(admitted(rule(&texts).deny("alice"), [named, unnamed]), [0, 2]);
    // An entry that neither key can read is an error of the first.
    for entry in ["10.0.0.1/8", "10.0.0.0/33", "x"] {
        let rules = RuleSetBuilder::new().rule(rule(&client().or(&number())).deny(entry));
        let error = rules
            .build_with(ManualClock::new(), [1, 2, 3, 4])
            .expect_err("no value");
        assert!(error.to_string().contains("invalid"), "{error}");
        assert!(error.to_string().contains(entry), "{error}");
    }
}

#[test]
fn a_request_without_both_is_treated_as_the_second_says() {
    let neither = request("", "");
    for (key, expected) in [
        // An address is required, and a text is shared.
        (user().or(&client()), 0),
        (client().or(&user()), 2),
        (user().or(&client()).on_missing(OnMissingKey::Share), 2),
        (user().or(&client().on_missing(OnMissingKey::Skip)), 5),
        (client().or(&user().on_missing(OnMissingKey::Deny)), 0),
        (client().or(&user()).on_missing(OnMissingKey::Skip), 5),
    ] {
        let name = key.name().to_owned();
        assert_eq!(admitted(rule(&key), [neither]), [expected], "{name}");
    }
}

#[test]
fn prefixes_are_those_of_the_first_key() {
    let key = client().or(&user()).with_prefixes(24, 48).expect("prefixes");
    assert_eq!(key.name(), "client or user/24/48");
    let requests = [
        request("", "192.0.2.1"),
        request("", "192.0.2.2"),
        request("", "2001:db8:0:1::1"),
        request("", "2001:db8:0:2::1"),
        request("alice", ""),
    ];
    assert_eq!(admitted(rule(&key), requests), [2, 0, 2, 0, 2]);
    assert_eq!(admitted(rule(&key).deny("192.0.2.9"), requests), [0, 0, 2, 0, 2]);
    let error = user().or(&client()).with_prefixes(24, 48).expect_err("a text");
    assert_eq!(error.field, "prefix");
}
