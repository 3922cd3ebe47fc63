//! Requests in flight over a real server: by the script at given times, and by nodes that vanish.

use alloc::sync::Arc;
use core::slice::from_ref;
use core::time::Duration;

use ringgate::Rule;
use ringgate::redis::RedisStore;
use ringgate::shared::{Admitted, Charges, OnError, SharedRules};
use tokio::time::{Instant, sleep};

use crate::rules::{Request, by_user};
use crate::scripts::{FAR_AHEAD, ScriptRequest, decide_script, refund_script};
use crate::server::Server;

const SECOND: u64 = 1_000_000;
const TERM: Duration = Duration::from_millis(400);

fn slot(number: u64) -> ScriptRequest {
    ScriptRequest::slot("slots", 2, 10 * SECOND, number)
}

/// The free slots at a time.
fn free_at(client: &mut redis::Connection, now: u64) -> u64 {
    decide_script().decide(client, now, "peek", from_ref(&slot(9))).1[0].remaining
}

#[test]
fn a_slot_ends_a_term_after_its_last_renewal() {
    let Some(server) = Server::start() else { return };
    let (decide, refund, mut client) = (decide_script(), refund_script(), server.client());
    let start = FAR_AHEAD;
    for number in [1, 2] {
        assert!(decide.decide(&mut client, start, "charge", &[slot(number)]).0);
    }
    let (admitted, denied) = decide.decide(&mut client, start, "charge", &[slot(3)]);
    assert_eq!((admitted, denied[0].remaining, denied[0].wait), (false, 0, -1));
    decide.decide(&mut client, start + 9 * SECOND, "owe", &[slot(1)]);
    assert_eq!(free_at(&mut client, start + 10 * SECOND - 1), 0);
    assert_eq!(free_at(&mut client, start + 10 * SECOND), 1);
    assert_eq!(free_at(&mut client, start + 19 * SECOND - 1), 1);
    assert_eq!(free_at(&mut client, start + 19 * SECOND), 2);
    // A slot that has ended is released already, and frees no other.
    assert!(
        decide
            .decide(&mut client, start + 19 * SECOND, "charge", &[slot(3)])
            .0
    );
    for _ in 0..2 {
        assert_eq!(refund.refund(&mut client, start + 19 * SECOND, &[slot(1)]), [1]);
        assert_eq!(free_at(&mut client, start + 19 * SECOND), 1);
    }
    assert_eq!(refund.refund(&mut client, start + 19 * SECOND, &[slot(3)]), [1]);
    let left: u64 = redis::cmd("DBSIZE").query(&mut client).expect("an answer");
    assert_eq!(left, 0);
}

/// The clock goes back by an hour. The slots of nodes that vanished end a term after that, and no slot ends early.
#[test]
fn slots_ahead_of_the_clock_end_a_term_from_now() {
    let Some(server) = Server::start() else { return };
    let (decide, mut client) = (decide_script(), server.client());
    let early = FAR_AHEAD - 3600 * SECOND;
    for number in [1, 2] {
        assert!(decide.decide(&mut client, FAR_AHEAD, "charge", &[slot(number)]).0);
    }
    assert!(!decide.decide(&mut client, early, "charge", &[slot(3)]).0);
    assert_eq!(free_at(&mut client, early + 10 * SECOND - 1), 0);
    assert_eq!(free_at(&mut client, early + 10 * SECOND), 2);
}

/// The documented memory of a slot, in a key with few slots and in one with many.
#[test]
fn a_slot_takes_35_to_140_bytes() {
    let Some(server) = Server::start() else { return };
    let (decide, mut client) = (decide_script(), server.client());
    for slots in [10, 2_000] {
        for number in 0..slots {
            let slot = ScriptRequest::slot("many", slots, 10 * SECOND, (1 << 52) + number);
            assert!(decide.decide(&mut client, FAR_AHEAD, "charge", from_ref(&slot)).0);
        }
        let mut usage = redis::cmd("MEMORY");
        usage.arg("USAGE").arg("many").arg("SAMPLES").arg(0);
        let bytes: u64 = usage.query(&mut client).expect("an answer");
        assert!(
            (35 * slots..=140 * slots).contains(&bytes),
            "{bytes} bytes for {slots} slots"
        );
    }
}

async fn node(server: &Server, limit: u64) -> (Arc<RedisStore>, SharedRules<Request>) {
    let store = server.store().await;
    let rule = Rule::in_flight("exports", limit)
        .by(&by_user())
        .on_error(OnError::Deny);
    let rules = SharedRules::builder().rule(rule).term(TERM).build(store.clone());
    (store, rules.expect("rules"))
}

/// Waits until the store has this number of free slots, and returns the time.
async fn until_free(rules: &SharedRules<Request>, slots: u64) -> Duration {
    let start = Instant::now();
    loop {
        let statuses = rules.peek(&Request::of("alice", 1)).await.expect("an answer");
        if statuses[0].remaining() == slots {
            return start.elapsed();
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{statuses:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_slots_of_a_node_end_with_it() {
    let Some(server) = Server::start() else { return };
    let (_, survivor) = node(&server, 3).await;
    let alice = Request::of("alice", 1);
    let held = survivor.check(&alice).await.expect("a slot");
    // A node in a runtime of its own, which ends like a process that is killed.
    let url = server.url();
    let lost: Vec<Admitted<Charges<Request>>> = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let store = Arc::new(RedisStore::builder(&url).build().expect("a store"));
            store.ready(Duration::from_secs(60)).await.expect("a connection");
            let rule = Rule::in_flight("exports", 3)
                .by(&by_user())
                .on_error(OnError::Deny);
            let rules = SharedRules::builder()
                .rule(rule)
                .term(TERM)
                .build(store)
                .expect("rules");
            vec![
                rules.check(&alice).await.expect("a slot"),
                rules.check(&alice).await.expect("a slot"),
            ]
        })
    })
    .join()
    .expect("no panic");
    assert!(survivor.check(&alice).await.is_err());
    until_free(&survivor, 2).await;
    // The slot of the other node is still held, after many terms.
    sleep(4 * TERM).await;
    until_free(&survivor, 2).await;
    drop(lost);
    drop(held);
    until_free(&survivor, 3).await;
    // Nothing is left in the server.
    let mut client = server.client();
    let keys: Vec<String> = redis::cmd("KEYS")
        .arg("*exports*")
        .query(&mut client)
        .expect("names");
    assert_eq!(keys, Vec::<String>::new());
}

/// A server that has lost its data learns of the slots again, and counts requests that are still in flight.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgot_the_slots_learns_of_them_again() {
    let Some(server) = Server::start() else { return };
    let (store, rules) = node(&server, 2).await;
    let alice = Request::of("alice", 1);
    let held = [
        rules.check(&alice).await.expect("a slot"),
        rules.check(&alice).await.expect("a slot"),
    ];
    let mut client = server.client();
    let _: () = redis::cmd("FLUSHALL").query(&mut client).expect("an answer");
    until_free(&rules, 0).await;
    assert!(rules.check(&alice).await.is_err());
    drop(held);
    until_free(&rules, 2).await;
    assert!(store.health().connected);
}
