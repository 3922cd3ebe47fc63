//! Futures over a real server that are dropped at every await, and the promises of the store in Redis.

use alloc::sync::Arc;

use ringgate::redis::RedisStore;
use ringgate::shared::conformance;

use crate::cut::{CALLS, Cut, LIMIT, MODES, PATIENCE, drop_one, limiter};
use crate::server::{Server, patient};

/// As if the server had run for longer than a window, so that it registers leases.
pub(crate) fn age(server: &Server, prefix: &str) {
    let info: String = server.ask("INFO server");
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
    let run = run.expect("the number of the run");
    let mut client = server.client();
    let mut set = redis::cmd("SET");
    set.arg(format!("{prefix}:era")).arg(format!("{run} 1 1"));
    let set: String = set.query(&mut client).expect("an answer");
    assert_eq!(set, "OK");
}

#[tokio::test]
async fn keeps_every_promise() {
    let Some(server) = Server::start() else { return };
    age(&server, "kit");
    let store = patient(RedisStore::builder(&server.url()).prefix("kit"));
    let store = store.build().expect("a store");
    store.ready(PATIENCE).await.expect("a connection");
    let checked = conformance::check(&store, tokio::time::sleep).await;
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

/// Every call over a real server, and the wait for its connection.
#[tokio::test]
async fn every_call_to_a_server_may_be_dropped_at_every_await() {
    let Some(server) = Server::start() else { return };
    let mut number = 0;
    for mode in MODES {
        for call in CALLS {
            for when_woken in [false, true] {
                for polls in 0.. {
                    number += 1;
                    let prefix = format!("dropped{number}");
                    age(&server, &prefix);
                    let store = patient(RedisStore::builder(&server.url()));
                    let store = store.prefix(prefix).build().expect("a store");
                    let cut = Cut { polls, when_woken };
                    // Dropping the wait for a connection ends no connection.
                    let _ = cut.off(store.ready(PATIENCE)).await;
                    store.ready(PATIENCE).await.expect("a connection");
                    let store = Arc::new(store);
                    let limiter = limiter(store.clone(), mode);
                    let (ready, least, most) = drop_one(&limiter, mode, call, cut).await;
                    let left = limiter.peek("key").await.expect("an answer")[0].remaining;
                    let charged = LIMIT - left;
                    assert!(
                        (least..=most).contains(&charged),
                        "{mode:?} {call:?} {cut:?}: {charged} charged, {least} to {most} admitted"
                    );
                    assert_eq!(store.health().in_flight, 0);
                    if ready {
                        assert!(polls < 100, "{call:?} has {polls} await points");
                        break;
                    }
                }
            }
        }
    }
}
