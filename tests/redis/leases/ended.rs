//! Leases that have ended leave no work and no memory behind: nodes that begin a lease and vanish, one after the other.

use core::slice::from_ref;
use core::time::Duration;

use ringgate::redis::RedisStore;
use ringgate::shared::{CounterRequest, CounterStore, Counting, LeaseRequest};

use crate::dropped::age;
use crate::scripts::{Asked, Script, far_ahead, judge, settle};
use crate::server::{PATIENCE, Server, patient, until};

const SECOND: u64 = 1_000_000;
const TERM: u64 = 2 * SECOND;

/// The work of the server for a decision and a renewal: the calls of each command, and the fields and bytes that it keeps.
fn work(
    server: &Server,
    scripts: &[Script; 2],
    part: &Asked,
    now: u64,
    lease: u64,
) -> (Vec<String>, u64, u64) {
    let [judge, settle] = scripts;
    let mut client = server.client();
    let _: () = redis::cmd("CONFIG")
        .arg("RESETSTAT")
        .query(&mut client)
        .expect("OK");
    assert!(judge.judge(&mut client, now, "charge", from_ref(part)).0);
    let none = Asked {
        permits: 0,
        ..part.clone()
    };
    let told = settle.settle(&mut client, now, &none, (lease, [now, 1, 4, 4, TERM]));
    assert_eq!(told, Some(4));
    let stats: String = redis::cmd("INFO")
        .arg("commandstats")
        .query(&mut client)
        .expect("the calls");
    let mut calls: Vec<String> = stats
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_")?.split(',').next())
        .map(str::to_owned)
        .collect();
    calls.sort();
    let leases = format!("{}:leases", part.key);
    let fields = redis::cmd("HLEN")
        .arg(&leases)
        .query(&mut client)
        .expect("a number");
    let bytes = redis::cmd("MEMORY").arg("USAGE").arg(&leases).query(&mut client);
    (calls, fields, bytes.expect("bytes"))
}

/// A decision and a renewal run the same commands on as many fields, whether no lease has ended or 100,000 have.
#[test]
fn work_does_not_depend_on_ended_leases() {
    for (kind, steps) in [("log", [10, 100, 1_000]), ("cells", [1_000, 10_000, 100_000])] {
        let Some(server) = Server::start() else { return };
        let scripts = [judge(), settle()];
        let mut client = server.client();
        let limit = 1_000_000_000;
        let part = match kind {
            "log" => Asked::log("log", limit, 3600 * SECOND),
            _ => Asked::cells("cells", limit, 5, 720 * SECOND),
        };
        let none = Asked {
            permits: 0,
            ..part.clone()
        };
        let mut now = far_ahead(&mut client);
        assert_eq!(
            scripts[1].settle(&mut client, now, &none, (1, [1, 1, 0, 1, TERM])),
            None
        );
        now += 3700 * SECOND;
        // The first lease of a counter makes its hash.
        work(&server, &scripts, &part, now, 1);
        now += SECOND;
        let (calls, ..) = work(&server, &scripts, &part, now, 1);
        let mut ended = 0;
        for lives in steps {
            while ended < lives {
                ended += 1;
                // Each takes its permits with it. A hundred thousand of them end within a window.
                now += 36_000;
                let told = scripts[1].settle(&mut client, now, &none, (10 + ended, [1, 1, 0, 4, TERM]));
                assert_eq!(told, Some(4));
            }
            now += SECOND;
            work(&server, &scripts, &part, now, 1);
            now += SECOND;
            let (now_calls, fields, bytes) = work(&server, &scripts, &part, now, 1);
            println!("{kind}, {lives} ended leases: {now_calls:?}, {fields} fields, {bytes} bytes");
            assert_eq!(now_calls, calls, "{lives} ended leases");
            // One field for each sixteenth of the time that a lease is kept, and two more.
            assert!(fields <= 20, "{fields} fields");
            assert!(bytes <= 1_500, "{bytes} bytes");
        }
    }
}

/// The keys of a lease expire with its term, and all others with the window after it: a thousand restarts leave what ten
/// leave, and then nothing.
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
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut client).expect("keys");
        let bytes = keys.iter().map(|key| {
            let bytes = redis::cmd("MEMORY")
                .arg("USAGE")
                .arg(key)
                .query::<Option<u64>>(&mut client);
            bytes.expect("bytes").unwrap_or(0)
        });
        (bytes.sum::<u64>(), keys)
    };
    let mut lease_id = 0;
    let mut after = Vec::new();
    for (key, lives) in [(1, 10), (2, 1_000)] {
        let counter = CounterRequest::new("rule", key, Counting::Cells(5), 1_000_000, window);
        for _ in 0..lives {
            lease_id += 1;
            let first = LeaseRequest::first(counter.clone(), lease_id, 4, term);
            for request in [first.clone(), first.next(1, 4, 4)] {
                let answer = leases.renew(from_ref(&request)).await.pop();
                let grant = answer.expect("one answer").expect("the server answers");
                assert!(grant.permits().is_some_and(|granted| granted > 0), "{grant:?}");
            }
        }
        until("the terms are over", || {
            !memory().1.iter().any(|key| key.contains(":lease:"))
        })
        .await;
        let (bytes, keys) = memory();
        println!("after {lives} restarts: {bytes} bytes in {} keys", keys.len());
        after.push((bytes, keys.len()));
    }
    // The counter and its registered permits, of either key, and the note of the era.
    assert_eq!(after.iter().map(|&(_, keys)| keys).collect::<Vec<_>>(), [3, 5]);
    let (ten, thousand) = (after[0].0, after[1].0 - after[0].0);
    // A field for each cell of the counter and of the registered permits.
    assert!(thousand <= ten + 24 * 32, "{thousand} bytes and {ten}");
    // All of them expire: the note of the era within days, the others with the window.
    for key in memory().1 {
        let left: i64 = redis::cmd("PTTL")
            .arg(&key)
            .query(&mut server.client())
            .expect("a time");
        let most = match key.ends_with(":era") {
            true => Duration::from_secs(49 * 3600),
            false => 2 * (window + term),
        };
        let most = i64::try_from(most.as_millis()).expect("a time");
        assert!((0..=most).contains(&left), "{key}: {left} ms");
    }
}
