//! Clients by their address.

use super::*;
use ringgate::keyed::ClientAddress;

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn addresses_of_one_network_are_one_key() {
    let client = |text| ClientAddress::new(address(text)).address().to_string();
    assert_eq!(client("2001:db8:1:2:ffff:ffff:ffff:ffff"), "2001:db8:1:2::");
    assert_eq!(client("2001:db8:1:3::1"), "2001:db8:1:3::");
    // An IPv4 address is one client, also where it is written as an IPv6 one.
    assert_eq!(client("192.0.2.1"), "192.0.2.1");
    assert_eq!(client("::ffff:192.0.2.1"), "192.0.2.1");
    assert_eq!(client("::ffff:192.0.2.2"), "192.0.2.2");
    // An address that only looks like a mapped one is an IPv6 address.
    assert_eq!(client("::fffe:192.0.2.1"), "::");
}

#[test]
fn the_prefix_can_be_chosen() {
    let client = |text, prefix| {
        let client = ClientAddress::with_prefixes(address(text), 32, prefix);
        client.expect("1 to 128 bits").address().to_string()
    };
    let all = "2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff";
    assert_eq!(client(all, 128), all);
    assert_eq!(client(all, 127), "2001:db8:aaaa:bbbb:cccc:dddd:eeee:fffe");
    assert_eq!(client(all, 64), "2001:db8:aaaa:bbbb::");
    assert_eq!(client(all, 56), "2001:db8:aaaa:bb00::");
    assert_eq!(client(all, 48), "2001:db8:aaaa::");
    assert_eq!(client("ffff::", 1), "8000::");
    assert_eq!(client("7fff::", 1), "::");
    // Of IPv4 addresses, all bits.
    for prefix in [1, 24, 128] {
        assert_eq!(client("192.0.2.1", prefix), "192.0.2.1");
        assert_eq!(client("::ffff:192.0.2.1", prefix), "192.0.2.1");
    }
}

#[test]
fn a_prefix_is_1_to_128_bits() {
    for text in ["2001:db8::1", "192.0.2.1"] {
        for prefix in [0, 129, 255] {
            let error = ClientAddress::with_prefixes(address(text), 32, prefix).expect_err("out of range");
            assert_eq!(error.field, "prefix");
            assert_eq!(
                error.to_string(),
                format!("invalid prefix: {prefix} (expected 1 to 128 bits of an IPv6 address)")
            );
        }
    }
}

#[test]
fn many_addresses_of_a_client_share_its_limit() {
    let it = subjects(quota("3/s")).swap_remove(0).algorithm;
    let table = KeyedRateLimiter::builder(it).capacity(100);
    let limiter = table.build_with(ManualClock::new(), AnyKey::with_seeds([4, 3, 2, 1]));
    let limiter = limiter.expect("a table");
    for addresses in [
        "2001:db8::1 2001:db8::2 2001:db8::ffff:3 2001:db8::4:0:0:4 2001:db8::5",
        "10.0.0.1 ::ffff:10.0.0.1 10.0.0.1 ::ffff:10.0.0.1 10.0.0.1",
    ] {
        let clients = addresses.split(' ').map(|text| ClientAddress::new(address(text)));
        assert_eq!(clients.filter(|client| limiter.check(client).is_ok()).count(), 3);
    }
    assert_eq!(limiter.len(), 2);
}
