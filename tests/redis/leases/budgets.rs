//! The mode `Sync`: nodes spend budgets without the server and charge them later. Each node but one may exceed the
//! limit by its pending permits, and no window holds more than that.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::shared::{OnError, SharedLimiter};

use crate::rules::quota;
use crate::scenes;
use crate::server::Server;

#[test]
fn ten_windows_of_four_processes() {
    scenes::windows(true, true, 10);
}

#[test]
fn clocks_are_hours_apart() {
    scenes::clocks_are_hours_apart(true);
}

#[test]
fn nodes_die_and_freeze() {
    scenes::nodes_die_and_freeze(true);
}

#[test]
fn nodes_wake_with_leases() {
    scenes::nodes_wake_with_leases(true);
}

#[test]
fn nothing_is_left_behind() {
    scenes::nothing_is_left_behind(true);
}

/// More requests at once than the budget covers in the rounds that a request waits for: every permit of the limit is
/// admitted, and no request is denied while permits are free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_denied_while_permits_are_free() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    // The pending permits, the tasks, and the permits that each of them takes.
    let mut worst = 0;
    for (round, (pending, tasks, permits)) in [
        (20, 200, 1),
        (20, 210, 1),
        (1, 200, 1),
        (7, 200, 1),
        (199, 200, 1),
        (20, 40, 5),
        (20, 8, 25),
        (20, 2, 100),
    ]
    .into_iter()
    .cycle()
    .take(24)
    .enumerate()
    {
        let limiter = SharedLimiter::builder(format!("budget-{round}"), quota("200/h"))
            .sync(Duration::from_millis(100), pending)
            .on_error(OnError::Deny);
        let limiter = Arc::new(limiter.build(store.clone()).expect("a limiter"));
        let asked = (0..tasks).map(|_| {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move { limiter.check_n("key", permits).await.is_ok() })
        });
        let asked: Vec<_> = asked.collect();
        let mut admitted = 0;
        for task in asked {
            admitted += permits * u64::from(task.await.expect("no panic"));
        }
        worst = worst.max(200 - admitted);
        assert_eq!(admitted, 200, "pending {pending}, {tasks} tasks of {permits}");
        limiter.flush().await.expect("an answer");
        let left = limiter.peek("key").await.expect("an answer")[0].remaining();
        assert_eq!(left, 0, "pending {pending}, {tasks} tasks of {permits}");
    }
    println!("permits that were free when a request was denied: {worst}");
}
