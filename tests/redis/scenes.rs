//! What nodes in processes of their own go through, in either mode: whatever happens, no window holds more than the
//! mode's bound.

use core::time::Duration;

use ringgate::redis::SharedLimiter;

use crate::node::{Orders, time};
use crate::nodes::{Node, Turn};
use crate::server::Server;
use crate::shim::{Clocks, Shim, ahead};
use crate::watch::{NODES, Outcome, Watch, counted, hammer, limit, window};

/// Many a window, so that nodes decide by themselves.
pub(crate) fn orders(server: &Server, sync: bool, log: bool) -> Orders {
    Orders {
        url: server.url(),
        quota: "2000/500ms".to_owned(),
        log,
        permits: if sync { 50 } else { 500 },
        sync,
        term: Duration::from_millis(300),
        period: Duration::from_millis(10),
        callers: 2,
    }
}

/// How much more than the limit so many nodes may admit in a window.
fn beyond(orders: &Orders, nodes: u64) -> u64 {
    match orders.sync {
        true => (nodes - 1) * orders.permits.min(limit(orders)),
        false => 0,
    }
}

fn judge(what: &str, orders: &Orders, nodes: u64, outcome: &Outcome) {
    let window = window(orders);
    let used = outcome.used(outcome.span.0 + window, window);
    let mode = if orders.sync { "sync" } else { "lease" };
    let (limit, most) = (limit(orders), outcome.most);
    println!(
        "{what} ({mode}, {}): L = {limit}, worst window {most}, of {} allowed, the server's own counts {}; {} admitted, \
         {} of them by nodes themselves, whose decisions took up to {:?} but for one in a thousand; used of calm \
         windows: {used:?}",
        if orders.log { "log" } else { "cells" },
        limit + beyond(orders, nodes),
        outcome.counted,
        outcome.admitted(),
        outcome.here(),
        outcome.slow(),
    );
    assert!(most <= limit + beyond(orders, nodes), "{what}: {most}");
    assert!(outcome.counted <= limit + beyond(orders, nodes), "{what}");
    assert!(outcome.here() > 0, "{what}: nodes decide");
}

/// The limit is used, too: of the windows that can be judged, in the middle one.
fn is_used(orders: &Orders, outcome: &Outcome, part: u64) {
    // When holds were granted for a while.
    let term = u64::try_from(orders.term.as_micros()).expect("a term");
    let mut used = outcome.used(outcome.span.0 + 2 * window(orders) + term, window(orders));
    used.sort_unstable();
    match used.get(used.len() / 2) {
        Some(&middle) if used.len() >= 2 => assert!(middle * 100 >= limit(orders) * part, "{used:?}"),
        _ => println!("not judged: the machine is too busy for windows in which all nodes ask all the time"),
    }
}

const NORMAL: [Clocks; NODES] = [const {
    Clocks {
        words: Vec::new(),
        variables: Vec::new(),
    }
}; NODES];

fn wait(windows: u32) {
    std::thread::sleep(windows * Duration::from_millis(500));
}

/// Nothing happens, but that all ask for more than there is, for so many windows and as long as it takes until holds are
/// granted.
pub(crate) fn windows(sync: bool, log: bool, windows: u32) {
    let Some(server) = Server::start() else { return };
    let orders = orders(&server, sync, log);
    let outcome = hammer(&server, &orders, &NORMAL, |_, _| wait(windows + 2));
    judge("windows", &orders, NODES as u64, &outcome);
    // Of cells, one of 21 is always over, and counts on.
    is_used(&orders, &outcome, if log { 90 } else { 85 });
}

/// Wall clocks are hours apart, and monotonic clocks begin at other times.
pub(crate) fn clocks_are_hours_apart(sync: bool) {
    let Some(server) = Server::start() else { return };
    let Some(shim) = Shim::build() else { return };
    const HOUR: i64 = 3_600_000_000_000;
    for (node, (wall, monotonic)) in [(5, 0), (-7, 0), (0, 3), (11, 100)].into_iter().enumerate() {
        shim.shift(node, wall * HOUR, monotonic * HOUR);
    }
    let orders = orders(&server, sync, true);
    let clocks = core::array::from_fn(|node| shim.clocks(node));
    let outcome = hammer(&server, &orders, &clocks, |_, _| wait(6));
    judge("clocks are hours apart", &orders, NODES as u64, &outcome);
    is_used(&orders, &outcome, 90);
}

/// The same of the clocks that the system itself shifts, of which one counts suspensions, too.
pub(crate) fn clocks_begin_hours_ago(sync: bool) {
    let Some(server) = Server::start() else { return };
    let ahead = [1, 5, 30, 700].map(|hours| ahead(hours * 3600));
    let [Some(first), Some(second), Some(third), Some(fourth)] = ahead else {
        return;
    };
    let orders = orders(&server, sync, true);
    let clocks = [first, second, third, fourth];
    let outcome = hammer(&server, &orders, &clocks, |_, _| wait(6));
    judge("clocks begin hours ago", &orders, NODES as u64, &outcome);
    is_used(&orders, &outcome, 90);
}

/// One is killed in the middle, and another takes its place; one stands still for longer than its term, and one until its
/// hold was given to others. Each goes on under load.
pub(crate) fn nodes_die_and_freeze(sync: bool) {
    let Some(server) = Server::start() else { return };
    let orders = orders(&server, sync, true);
    let outcome = hammer(&server, &orders, &NORMAL, |nodes, ended| {
        wait(3);
        nodes[1].signal("-STOP");
        nodes[2].signal("-STOP");
        nodes[0].kill();
        ended.extend(nodes[0].turns());
        nodes[0] = Node::start(&orders, &NORMAL[0]);
        nodes[0].go();
        std::thread::sleep(orders.term + orders.term / 4);
        nodes[1].signal("-CONT");
        std::thread::sleep(orders.term + Duration::from_millis(500));
        nodes[2].signal("-CONT");
        wait(2);
        // At once, and over and over.
        for round in 0..6 {
            for node in &*nodes {
                node.signal("-STOP");
            }
            std::thread::sleep(orders.term / 2 * round + Duration::from_millis(1));
            for node in &*nodes {
                node.signal("-CONT");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        wait(2);
    });
    // The one that took the other's place counts as well.
    judge("nodes die and freeze", &orders, NODES as u64 + 1, &outcome);
}

/// A machine is suspended: its processes stand still, and so does the monotonic clock of most systems, but not the time.
pub(crate) fn machines_are_suspended(sync: bool) {
    let Some(server) = Server::start() else { return };
    let Some(shim) = Shim::build() else { return };
    for node in 0..NODES {
        shim.shift(node, 0, 0);
    }
    let orders = orders(&server, sync, true);
    let clocks = core::array::from_fn(|node| shim.clocks(node));
    let outcome = hammer(&server, &orders, &clocks, |nodes, _| {
        wait(3);
        let mut slept = [Duration::ZERO; NODES];
        for pair in [[0, 1], [2, 3], [0, 2]] {
            for node in pair {
                nodes[node].signal("-STOP");
            }
            let length = orders.term + Duration::from_millis(510);
            std::thread::sleep(length);
            for node in pair {
                slept[node] += length;
                let behind = i64::try_from(slept[node].as_nanos()).expect("not long");
                shim.shift(node, 0, -behind);
                nodes[node].signal("-CONT");
            }
        }
        wait(1);
    });
    judge("machines are suspended", &orders, NODES as u64, &outcome);
}

/// An orderly end leaves nothing uncharged and no hold: the server has counted what was admitted, to the last, and all
/// that is left can be had by somebody else.
pub(crate) fn nothing_is_left_behind(sync: bool) {
    let Some(server) = Server::start() else { return };
    let mut client = server.client();
    let orders = Orders {
        quota: "24000/2s".to_owned(),
        callers: 1,
        ..orders(&server, sync, true)
    };
    let mut nodes: Vec<Node> = (0..NODES).map(|_| Node::start(&orders, &NORMAL[0])).collect();
    // Until the server is old enough to have forgotten nothing.
    std::thread::sleep(Duration::from_millis(3400));
    let (began, watch) = (time(&mut client), Watch::new(&server));
    for node in &mut nodes {
        node.go();
    }
    wait(1);
    for node in &mut nodes {
        node.stop();
        assert_eq!(node.flush(), [1, 0, 0]);
    }
    let turns: Vec<Turn> = nodes.iter().flat_map(Node::turns).collect();
    let admitted: u64 = turns.iter().map(|turn| turn.admitted).sum();
    let here: u64 = turns.iter().map(|turn| turn.here).sum();
    let charged = counted(&mut client, "*");
    println!("an orderly end: {admitted} admitted, {here} of them by nodes themselves, {charged} charged");
    assert!(here > 0);
    assert!(watch.end() <= limit(&orders) + beyond(&orders, NODES as u64));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let passes = runtime.expect("a runtime").block_on(async {
        let strict = SharedLimiter::builder("nodes", orders.quota.parse().expect("a quota"))
            .log()
            .build(server.store().await)
            .expect("a limiter");
        strict
            .check_n("key", limit(&orders).saturating_sub(charged))
            .await
            .is_ok()
    });
    if time(&mut client) < began + window(&orders) {
        assert_eq!(charged, admitted);
        assert!(passes, "nothing is held");
    } else {
        println!("not judged: the machine is too busy to do that within a window");
    }
}
