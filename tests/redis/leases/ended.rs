//! Many nodes begin a lease and end without returning it. These leases cost the server no work and no memory.

use core::slice::from_ref;
use core::time::Duration;
use std::time::Instant;

use ringgate::redis::RedisStore;
use ringgate::shared::{CounterRequest, CounterStore, Counting, LeaseRequest};

use crate::dropped::age;
use crate::scripts::{FAR_AHEAD, ScriptRequest, Scripts};
use crate::server::{PATIENCE, Server, ask, patient, until};

const SECOND: u64 = 1_000_000;
const TERM: u64 = 2 * SECOND;

/// Returns the commands that the server calls for a decision and a renewal, and the fields and bytes of the leases.
fn work(scripts: &mut Scripts, part: &ScriptRequest, now: u64, lease: u64) -> (Vec<String>, u64, u64) {
    let _: () = scripts.ask("CONFIG RESETSTAT");
    assert!(scripts.charge(now, part).0);
    let none = part.clone().of(0);
    let grant = scripts.renew(now, &none, (lease, [now, 1, 4, 4, TERM]));
    assert_eq!(grant, Some(4));
    let stats: String = scripts.ask("INFO commandstats");
    let mut calls: Vec<String> = stats
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_")?.split(',').next())
        .map(str::to_owned)
        .collect();
    calls.sort();
    let leases = format!("{}:leases", part.key);
    let fields = scripts.ask(&format!("HLEN {leases}"));
    (calls, fields, scripts.ask(&format!("MEMORY USAGE {leases}")))
}

/// A decision and a renewal run the same commands on a bounded number of fields, however many leases have ended.
#[test]
fn work_does_not_depend_on_ended_leases() {
    for (kind, steps) in [("log", [10, 100, 1_000]), ("cells", [1_000, 10_000, 100_000])] {
        let Some(mut scripts) = Scripts::start() else {
            return;
        };
        let limit = 1_000_000_000;
        let part = match kind {
            "log" => ScriptRequest::log("log", limit, 3600 * SECOND),
            _ => ScriptRequest::cells("cells", limit, 5, 720 * SECOND),
        };
        let none = part.clone().of(0);
        let mut now = FAR_AHEAD;
        assert_eq!(scripts.renew(now, &none, (1, [1, 1, 0, 1, TERM])), None);
        now += 3700 * SECOND;
        // The first lease of a counter makes its hash.
        work(&mut scripts, &part, now, 1);
        now += SECOND;
        let (calls, ..) = work(&mut scripts, &part, now, 1);
        let mut ended = 0;
        for count in steps {
            while ended < count {
                ended += 1;
                // The permits of each lease stay registered. A hundred thousand leases end within a window.
                now += 36_000;
                let grant = scripts.renew(now, &none, (10 + ended, [1, 1, 0, 4, TERM]));
                assert_eq!(grant, Some(4));
            }
            now += SECOND;
            work(&mut scripts, &part, now, 1);
            now += SECOND;
            let (now_calls, fields, bytes) = work(&mut scripts, &part, now, 1);
            println!("{kind}, {count} ended leases: {now_calls:?}, {fields} fields, {bytes} bytes");
            assert_eq!(now_calls, calls, "{count} ended leases");
            // One field for each sixteenth of the time that a lease is kept, and two more.
            assert!(fields <= 20, "{fields} fields");
            assert!(bytes <= 1_500, "{bytes} bytes");
        }
    }
}

/// The key of a lease expires with its term, and all other keys expire with the window after it. A thousand restarts leave
/// as much as ten, and nothing after the window.
#[tokio::test(flavor = "multi_thread")]
async fn restarts_leave_no_memory_behind() {
    let Some(server) = Server::start() else { return };
    age(&server, "restarts");
    let store = patient(RedisStore::builder(&server.url()).prefix("restarts"));
    let store = store.build().expect("a store");
    store.ready(PATIENCE).await.expect("a connection");
    let leases = store.leases().expect("leases");
    let (window, term) = (Duration::from_secs(20), Duration::from_millis(100));
    let mut client = server.client();
    let mut memory = || {
        let keys: Vec<String> = ask(&mut client, "KEYS *");
        let bytes = keys
            .iter()
            .map(|key| ask::<Option<u64>>(&mut client, &format!("MEMORY USAGE {key}")).unwrap_or(0));
        (bytes.sum::<u64>(), keys)
    };
    let mut lease_id = 0;
    let mut after = Vec::new();
    for (key, count) in [(1, 10), (2, 1_000)] {
        let counter = CounterRequest::new("rule", key, Counting::Cells(5), 1_000_000, window);
        for _ in 0..count {
            lease_id += 1;
            let first = LeaseRequest::first(counter.clone(), lease_id, 4, term);
            let began = Instant::now();
            for request in [first.clone(), first.next(1, 4, 4)] {
                let answer = leases.renew(from_ref(&request)).await.pop();
                let grant = answer.expect("one answer").expect("the server answers");
                // On a busy machine, the second request may come after the term, and is then rejected.
                let granted = grant.permits.is_some_and(|granted| granted > 0);
                assert!(granted || began.elapsed() >= term, "{grant:?}");
            }
        }
        until("the terms are over", || {
            !memory().1.iter().any(|key| key.contains(":lease:"))
        })
        .await;
        let (bytes, keys) = memory();
        println!("after {count} restarts: {bytes} bytes in {} keys", keys.len());
        after.push((bytes, keys.len()));
    }
    // The counter and its registered permits, of either key, and the note of the era.
    assert_eq!(after.iter().map(|&(_, keys)| keys).collect::<Vec<_>>(), [3, 5]);
    let (ten, thousand) = (after[0].0, after[1].0 - after[0].0);
    // A field for each cell of the counter and of the registered permits.
    assert!(thousand <= ten + 24 * 32, "{thousand} bytes and {ten}");
    // All of them expire: the note of the era within days, the others with the window.
    for key in memory().1 {
        let left: i64 = server.ask(&format!("PTTL {key}"));
        let most = match key.ends_with(":era") {
            true => Duration::from_secs(49 * 3600),
            false => 2 * (window + term),
        };
        let most = i64::try_from(most.as_millis()).expect("a time");
        assert!((0..=most).contains(&left), "{key}: {left} ms");
    }
}
