//! Faults of nodes in separate processes, in either mode. In every case no window exceeds the bound of the mode.

use core::time::Duration;

use ringgate::shared::SharedLimiter;

use crate::node::{Orders, time};
use crate::nodes::{Node, Turn};
use crate::proxy::{Proxy, Route};
use crate::server::Server;
use crate::shim::{Clocks, Shim, ahead};
use crate::watch::{NODES, Outcome, Watch, counted, hammer, limit, window};

/// So many per window that nodes decide by themselves.
pub(crate) fn orders(server: &Server, sync: bool, log: bool) -> Orders {
    Orders {
        url: server.url(),
        server: server.url(),
        patient: true,
        quota: "2000/500ms".to_owned(),
        log,
        permits: if sync { 50 } else { 500 },
        sync,
        term: Duration::from_millis(300),
        period: Duration::from_millis(10),
        callers: 2,
    }
}

/// The permits by which this number of nodes may exceed the limit in a window.
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
         {} of them by nodes themselves, whose decisions took up to {:?} except one in a thousand; used of calm \
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

/// The nodes also use the limit, in the median of the windows that can be checked.
fn is_used(orders: &Orders, outcome: &Outcome, part: u64) {
    // After leases were granted for a while.
    let term = u64::try_from(orders.term.as_micros()).expect("a term");
    let mut used = outcome.used(outcome.span.0 + 2 * window(orders) + term, window(orders));
    used.sort_unstable();
    match used.get(used.len() / 2) {
        Some(&middle) if used.len() >= 2 => assert!(middle * 100 >= limit(orders) * part, "{used:?}"),
        _ => println!("not judged: the machine is too busy for windows in which all nodes ask all the time"),
    }
}

fn same(orders: &Orders) -> [Orders; NODES] {
    core::array::from_fn(|_| orders.clone())
}

fn go(nodes: &mut [Node]) {
    nodes.iter_mut().for_each(Node::go);
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

/// Without faults: all nodes request more than the limit, for this number of windows and the time until leases are
/// granted.
pub(crate) fn windows(sync: bool, log: bool, windows: u32) {
    let Some(server) = Server::start() else { return };
    let orders = orders(&server, sync, log);
    let outcome = hammer(&server, &same(&orders), &NORMAL, |nodes, _| {
        go(nodes);
        wait(windows + 2);
    });
    judge("windows", &orders, NODES as u64, &outcome);
    // One of 21 cells is always expired, and still counts.
    is_used(&orders, &outcome, if log { 90 } else { 85 });
}

/// Wall clocks differ by hours, and monotonic clocks start at other times. For two nodes a library changes the
/// clocks, and for two nodes the system. One of the latter counts suspensions, too.
pub(crate) fn clocks_are_hours_apart(sync: bool) {
    const HOUR: i64 = 3_600_000_000_000;

    let Some(server) = Server::start() else { return };
    let Some(shim) = Shim::build() else { return };
    for (node, (wall, monotonic)) in [(5, 0), (-7, 3), (11, 100), (-1, 700)].into_iter().enumerate() {
        shim.shift(node, wall * HOUR, monotonic * HOUR);
    }
    let orders = orders(&server, sync, true);
    let clocks = core::array::from_fn(|node| match node {
        2 => ahead(30 * 3600).unwrap_or_else(|| shim.clocks(2)),
        3 => ahead(700 * 3600).unwrap_or_else(|| shim.clocks(3)),
        _ => shim.clocks(node),
    });
    let outcome = hammer(&server, &same(&orders), &clocks, |nodes, _| {
        go(nodes);
        wait(6);
    });
    judge("clocks are hours apart", &orders, NODES as u64, &outcome);
    is_used(&orders, &outcome, 90);
}

/// One node is killed, and another replaces it. All nodes stop at times: for less than a term, and for longer than a
/// lease is kept.
pub(crate) fn nodes_die_and_freeze(sync: bool) {
    let Some(server) = Server::start() else { return };
    let orders = orders(&server, sync, true);
    let outcome = hammer(&server, &same(&orders), &NORMAL, |nodes, ended| {
        go(nodes);
        wait(3);
        nodes[0].kill();
        ended.extend(nodes[0].turns());
        nodes[0] = Node::start(&orders, &NORMAL[0]);
        nodes[0].go();
        wait(1);
        for part in [1, 3, 5, 12] {
            nodes.iter().for_each(|node| node.signal("-STOP"));
            std::thread::sleep(orders.term * part / 4);
            nodes.iter().for_each(|node| node.signal("-CONT"));
            std::thread::sleep(Duration::from_millis(50));
        }
        wait(1);
    });
    // The node that replaced the other counts, too.
    judge("nodes die and freeze", &orders, NODES as u64 + 1, &outcome);
}

/// Nodes stop with nearly all of their leases unspent, for longer than the leases are kept, and other nodes get these
/// permits. Then the stopped nodes continue, without a connection to the store. For one of them the monotonic clock
/// has stopped, too, as when a machine is suspended.
pub(crate) fn nodes_wake_with_leases(sync: bool) {
    let Some(server) = Server::start() else { return };
    let Some(shim) = Shim::build() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let proxy = runtime.block_on(Proxy::before(server.port()));
    let straight = orders(&server, sync, true);
    let by_proxy = Orders {
        url: proxy.url(),
        patient: false,
        ..straight.clone()
    };
    let clocks = core::array::from_fn(|node| {
        shim.shift(node, 0, 0);
        shim.clocks(node)
    });
    let all = [by_proxy.clone(), by_proxy, straight.clone(), straight.clone()];
    let outcome = hammer(&server, &all, &clocks, |nodes, _| {
        // Until leases are granted, and the demand of the nodes is known.
        nodes[..2].iter_mut().for_each(Node::go_quietly);
        std::thread::sleep(Duration::from_millis(2300));
        nodes[..2].iter().for_each(|node| node.signal("-STOP"));
        proxy.go(Route::Swallow);
        nodes[2..].iter_mut().for_each(Node::go);
        // Other nodes get the permits that were leased, and spend them.
        let slept = straight.term + Duration::from_millis(1100);
        std::thread::sleep(slept);
        shim.shift(0, 0, -i64::try_from(slept.as_nanos()).expect("not long"));
        nodes[..2].iter().for_each(|node| node.signal("-CONT"));
        wait(1);
        proxy.go(Route::Pass);
        wait(1);
    });
    judge("nodes wake with leases", &straight, NODES as u64, &outcome);
}

/// After an orderly end no permit is uncharged and no lease is left. The server has counted exactly the admitted
/// permits, and all others are free for other requests.
pub(crate) fn nothing_is_left_behind(sync: bool) {
    let Some(server) = Server::start() else { return };
    let mut client = server.client();
    let orders = Orders {
        quota: "1000000/2s".to_owned(),
        callers: 1,
        ..orders(&server, sync, false)
    };
    let mut nodes: Vec<Node> = (0..NODES).map(|_| Node::start(&orders, &NORMAL[0])).collect();
    // Until the server has run long enough to grant leases.
    std::thread::sleep(Duration::from_millis(3400));
    let (began, watch) = (time(&mut client), Watch::new(&server));
    go(&mut nodes);
    wait(1);
    for node in &mut nodes {
        node.stop();
        assert_eq!(node.flush(), [1, 0, 0]);
    }
    // Released permits remain released while the nodes run without requests.
    std::thread::sleep(5 * orders.period);
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
            .cells(20)
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
