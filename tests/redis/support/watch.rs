//! Nodes in separate processes that continuously make requests with one key, and the results: by their calls, and by
//! the counts of the server.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use crate::node::{Orders, time};
use crate::nodes::{Node, Turn, most_in_a_window};
use crate::server::Server;
use crate::shim::Clocks;

/// The permits that the server counts now in the windows of these names, in logs and in cells.
const COUNTED: &str = "
    local time = redis.call('TIME')
    local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
    local counted = 0
    for _, name in ipairs(redis.call('KEYS', ARGV[1])) do
        local window = string.match(name, ':log:(%d+)$')
        if window then
            local since = string.format('(%.0f', now - window)
            counted = counted + redis.call('ZCOUNT', name, since, '+inf')
        end
        local cells, width = string.match(name, ':cells:(%d+)x(%d+)$')
        if cells then
            local tick = math.floor(now / width)
            local fields = redis.call('HGETALL', name)
            for at = 1, #fields, 2 do
                local cell = tonumber(fields[at])
                if cell and cell >= tick - cells then
                    counted = counted + tonumber(fields[at + 1])
                end
            end
        end
    end
    return counted";

/// The permits that the server counts for all rules of this name, or of all names (`*`).
pub(crate) fn counted(client: &mut redis::Connection, rule: &str) -> u64 {
    redis::cmd("EVAL")
        .arg(COUNTED)
        .arg(0)
        .arg(format!("*:{rule}:*"))
        .query(client)
        .expect("a number")
}

/// The number of nodes.
pub(crate) const NODES: usize = 4;

/// Reads the server's counts repeatedly.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<u64>,
}

impl Watch {
    pub(crate) fn new(server: &Server) -> Self {
        let (stop, mut client) = (Arc::new(AtomicBool::new(false)), server.client());
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut most = 0;
            while !stopped.load(Ordering::Relaxed) {
                most = most.max(counted(&mut client, "*"));
                std::thread::sleep(Duration::from_millis(2));
            }
            most
        });
        Self { stop, thread }
    }

    /// The highest count so far.
    pub(crate) fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) turns: Vec<Vec<Turn>>,
    /// The most admissions in a window, by the calls.
    pub(crate) most: u64,
    /// The most that the server has counted in a window.
    pub(crate) counted: u64,
    /// From when to when, by the server.
    pub(crate) span: (u64, u64),
    /// The counts that [`Node::stop`] returns, of the nodes that could be asked.
    pub(crate) local: Vec<[u64; 4]>,
}

/// Starts nodes, and says what came of what they were told and what has happened to them.
pub(crate) fn hammer(
    server: &Server,
    orders: &[Orders; NODES],
    clocks: &[Clocks; NODES],
    meanwhile: impl FnOnce(&mut Vec<Node>, &mut Vec<Turn>),
) -> Outcome {
    let mut nodes: Vec<Node> = orders
        .iter()
        .zip(clocks)
        .map(|(orders, clocks)| Node::start(orders, clocks))
        .collect();
    let mut clock = server.client();
    let watch = Watch::new(server);
    let began = time(&mut clock);
    let mut ended = Vec::new();
    meanwhile(&mut nodes, &mut ended);
    let span = (began, time(&mut clock));
    let local = nodes.iter_mut().map(Node::stop).collect();
    let counted = watch.end();
    let mut turns: Vec<Vec<Turn>> = nodes.iter().map(Node::turns).collect();
    turns.push(ended);
    let all: Vec<Turn> = turns.iter().flatten().copied().collect();
    Outcome {
        most: most_in_a_window(&all, window(&orders[0])),
        turns,
        counted,
        span,
        local,
    }
}

/// The window of the quota, in microseconds.
pub(crate) fn window(orders: &Orders) -> u64 {
    let quota: ringgate::Quota = orders.quota.parse().expect("a quota");
    u64::try_from(quota.window().as_micros()).expect("a window")
}

pub(crate) fn limit(orders: &Orders) -> u64 {
    let quota: ringgate::Quota = orders.quota.parse().expect("a quota");
    quota.limit()
}

impl Outcome {
    /// The permits that were admitted in each window of the span from this time on, one after the other; of those in which all nodes
    /// wanted more than they got, all the time, and got their answers soon: in every tenth of it each of them was
    /// refused something, and no turn took longer than a twentieth. (What a busy machine does not let nodes ask for,
    /// or learn, is no fault of theirs.)
    pub(crate) fn used(&self, from: u64, window: u64) -> Vec<u64> {
        let windows = (0..).map(|number| from + number * window);
        let windows = windows.take_while(|begin| begin + window <= self.span.1);
        let calm = |begin: u64| {
            self.turns[..NODES].iter().all(|turns| {
                let within = |it: &&Turn| it.after >= begin && it.before < begin + window;
                let mut asked = [false; 10];
                turns.iter().filter(within).all(|it| {
                    let tenth = it.before.max(begin) - begin;
                    let tenth = usize::try_from(tenth * 10 / window).expect("a tenth");
                    asked[tenth] |= it.refused;
                    (it.after - it.before) * 20 <= window
                }) && asked == [true; 10]
            })
        };
        let used = |begin: u64| {
            let all = self.turns.iter().flatten();
            let within = all.filter(|it| {
                let middle = u64::midpoint(it.before, it.after);
                (begin..begin + window).contains(&middle)
            });
            within.map(|it| it.admitted).sum()
        };
        windows.filter(|&begin| calm(begin)).map(used).collect()
    }

    pub(crate) fn admitted(&self) -> u64 {
        self.turns.iter().flatten().map(|turn| turn.admitted).sum()
    }

    /// The permits that nodes have admitted by themselves.
    pub(crate) fn here(&self) -> u64 {
        self.turns.iter().flatten().map(|turn| turn.here).sum()
    }

    /// Of all decisions that were made at once, the longest but one in a thousand, of the worst node.
    pub(crate) fn slow(&self) -> Duration {
        Duration::from_nanos(self.local.iter().map(|local| local[2]).max().unwrap_or(0))
    }
}
