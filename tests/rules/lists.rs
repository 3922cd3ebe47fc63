//! Lists of keys in code: each entry is read by the key, and an entry that no request could match is an error.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::*;

type Set<R> = RuleSet<R, ManualClock>;

fn build<R: ?Sized>(rule: Rule<R>) -> Result<Set<R>, String> {
    let builder = RuleSetBuilder::new().rule(rule);
    builder
        .build_with(ManualClock::new(), [1, 2, 3, 4])
        .map_err(|error| error.to_string())
}

/// Admissions of two equal requests: none if the key is denied, one if it is limited, both if it is allowed.
fn admitted<R>(rules: &Set<R>, request: &R) -> usize {
    (0..2).filter(|_| rules.check(request).is_ok()).count()
}

fn by_client() -> Rule<IpAddr> {
    let key = Key::address("client", |address: &IpAddr| Some(*address));
    Rule::new("client", quota("1/h")).by(&key)
}

#[test]
fn addresses_of_any_type_are_denied() {
    let v4 = Ipv4Addr::new(192, 0, 2, 1);
    let v6: Ipv6Addr = "2001:db8::1".parse().expect("an address");
    let mapped = v4.to_ipv6_mapped();
    for (rule, request) in [
        (by_client().deny("192.0.2.1"), IpAddr::V4(v4)),
        (by_client().deny(String::from("192.0.2.1")), IpAddr::V4(v4)),
        (by_client().deny(v4), IpAddr::V6(mapped)),
        (by_client().deny(IpAddr::V4(v4)), IpAddr::V4(v4)),
        (by_client().deny(mapped), IpAddr::V4(v4)),
        (by_client().deny(IpAddr::V6(v6)), IpAddr::V6(v6)),
        (by_client().deny("2001:DB8:0:0::1"), IpAddr::V6(v6)),
        (by_client().deny("2001:db8::/64"), IpAddr::V6(v6)),
    ] {
        assert_eq!(admitted(&build(rule).expect("a rule"), &request), 0, "{request}");
    }
    // An address on the other list stands for itself, and not for the rest of its /64.
    for (address, expected) in [("2001:db8::1", 2), ("2001:db8::2", 1)] {
        let request: IpAddr = address.parse().expect("an address");
        let found = admitted(&build(by_client().allow(v6)).expect("a rule"), &request);
        assert_eq!(found, expected, "{request}");
    }
}

#[test]
fn numbers_are_parsed_by_the_key() {
    let key = Key::value("id", |id: &u64| Some(*id));
    let rule = || Rule::new("id", quota("1/h")).by(&key);
    for rule in [
        rule().deny(7),
        rule().deny(7_u8),
        rule().deny(7_i64),
        rule().deny("7"),
        rule().deny("007"),
    ] {
        assert_eq!(admitted(&build(rule).expect("a rule"), &7), 0);
    }
    for rule in [
        rule().deny(-7),
        rule().deny("x"),
        rule().deny(""),
        rule().deny(7.5),
        rule().deny(u128::MAX),
    ] {
        let error = build(rule).expect_err("no value of the key");
        assert!(error.contains("invalid deny"), "{error}");
    }
}

#[test]
fn texts_are_compared_with_the_key() {
    let key = Key::text("user", |user: &&'static str| Some(*user));
    let rules = build(
        Rule::new("user", quota("1/h"))
            .by(&key)
            .allow("backup")
            .deny(String::from("mallory")),
    );
    let rules = rules.expect("rules");
    let found = ["backup", "mallory", "alice"].map(|user| admitted(&rules, &user));
    assert_eq!(found, [2, 0, 1]);
}

/// The function of such a key may hash anything: an option, a tuple, a number of another width.
#[test]
fn a_key_that_does_not_know_its_values_has_no_lists() {
    let keys: [Key<Option<u64>>; 4] = [
        Key::new("option", |id: &Option<u64>, key| id.hash(key)),
        Key::new("tuple", |id: &Option<u64>, key| (id, "route").hash(key)),
        Key::optional("id", OnMissingKey::Skip, |id: &Option<u64>, key| {
            id.inspect(|id| id.hash(key)).is_some()
        }),
        {
            let id = Key::value("id", |id: &Option<u64>| *id);
            id.and(&Key::text("route", |_: &Option<u64>| Some("route")))
        },
    ];
    for key in keys {
        let rule = || Rule::new("id", quota("1/h")).by(&key);
        for (field, rule) in [
            ("allow", rule().allow(7)),
            ("deny", rule().deny(7_u64)),
            ("deny", rule().deny("7")),
        ] {
            let error = build(rule).expect_err("no value of the key");
            assert!(error.contains(&format!("invalid {field}: \"7\"")), "{error}");
            assert!(error.contains("`parse_list_entry`"), "{error}");
        }
        assert!(build(rule()).is_ok());
    }
    let parsed = Key::new("id", |id: &u64, key| id.hash(key)).parse_list_entry(|text, key| {
        let id: u64 = text.parse().map_err(|error| format!("{error}"))?;
        id.hash(key);
        Ok(())
    });
    let rules = build(Rule::new("id", quota("1/h")).by(&parsed).deny(7)).expect("rules");
    assert_eq!(admitted(&rules, &7), 0);
}

/// A list may be given before the key, and a block has the list of its rule.
#[test]
fn a_list_is_read_by_the_last_key() {
    let address = Key::address("client", |address: &IpAddr| Some(*address));
    let text = Key::text("text", |_: &IpAddr| Some("192.0.2.1"));
    let rule = Rule::new("client", quota("1/h"))
        .by(&text)
        .deny("192.0.2.1")
        .by(&address);
    let request = IpAddr::from([192, 0, 2, 1]);
    assert_eq!(admitted(&build(rule).expect("a rule"), &request), 0);
}

#[test]
fn a_pair_of_keys_treats_each_missing_part_as_its_key_does() {
    type Pair = (Option<u64>, Option<u64>);
    let one = |on_missing| Key::value("one", |pair: &Pair| pair.0).on_missing(on_missing);
    let two = |on_missing| Key::value("two", |pair: &Pair| pair.1).on_missing(on_missing);
    let twice = |key: &Key<Pair>, pair: Pair| {
        let rules = build(Rule::new("pair", quota("1/h")).by(key)).expect("a rule");
        admitted(&rules, &pair)
    };
    use OnMissingKey::{Deny, Fail, Share, Skip};
    for (first, second, pair, expected) in [
        (Share, Share, (Some(1), Some(2)), 1),
        (Share, Share, (None, Some(2)), 1),
        (Share, Share, (None, None), 1),
        (Share, Skip, (Some(1), None), 2),
        (Share, Skip, (None, Some(2)), 1),
        (Skip, Deny, (None, Some(2)), 2),
        (Skip, Deny, (Some(1), None), 0),
        (Skip, Deny, (None, None), 0),
        (Skip, Fail, (None, None), 0),
        (Fail, Skip, (None, None), 0),
    ] {
        let key = one(first).and(&two(second));
        assert_eq!(key.name(), "one and two");
        assert_eq!(twice(&key, pair), expected, "{first:?} and {second:?}: {pair:?}");
        assert_eq!(twice(&key.on_missing(Deny), (None, None)), 0);
    }
    // Requests that lack one part are told apart by the other.
    let rules = build(Rule::new("pair", quota("1/h")).by(&one(Share).and(&two(Share)))).expect("a rule");
    for pair in [
        (None, Some(1)),
        (None, Some(2)),
        (Some(1), None),
        (Some(2), None),
        (None, None),
        (Some(1), Some(2)),
        (Some(2), Some(1)),
    ] {
        assert_eq!(admitted(&rules, &pair), 1, "{pair:?}");
    }
}
