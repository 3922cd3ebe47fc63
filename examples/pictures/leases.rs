//! Leases of two nodes over a store in memory: their permits, the death of a node, and a burst in the modes `Lease` and `Sync`.
//!
//! A node of the library renews its leases with jitter, so two runs differ. Here the example makes the calls of the nodes, at
//! fixed times and by the rules of the documentation, so each run draws the same picture.

use alloc::sync::Arc;
use core::error::Error;
use core::slice;
use core::time::Duration;

use ringgate::rules::Mode;
use ringgate::shared::{CounterRequest, CounterStore, Counting, LeaseRequest, MemoryStore, SharedRules};
use ringgate::{ManualClock, Nanos, Quota, Rule};
use tokio::runtime::{Builder, Runtime};

use crate::admitted::{self, END, HIGH, LANE, LEFT, RIGHT, TOP, x};
use crate::run::{self, WINDOW};
use crate::svg::{self, Anchor, Svg};

const LIMIT: u64 = 100;
/// The most permits of a lease, and the `pending` of the mode `Sync`.
const PERMITS: u64 = 30;
/// Milliseconds between two renewals. Those of the second node are half a period later.
const PERIOD: u64 = 250;
/// Milliseconds for which a lease may be spent without an answer.
const TERM: u64 = 1_000;
/// The time at which the second node dies, in the first four lanes.
const DEATH: u64 = 900;
/// The beginnings of the bursts in the last two lanes.
const BURSTS: [u64; 2] = [500, 2_500];
/// With less demand in a period, a node asks for no lease.
const WORTH_A_LEASE: u64 = 4;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// A node, which spends its permits by itself, and has the store decide when it has none.
#[derive(Default)]
struct Node {
    /// The last request about its lease.
    request: Option<LeaseRequest>,
    permits: u64,
    used: u64,
    /// The requests of this period.
    asked: u64,
    /// Twice the permits that a period has demanded lately.
    target: u64,
}

/// The state at one millisecond.
struct Frame {
    /// The permits that each node has left.
    left: [u64; 2],
    /// The permits that are charged in the window.
    charged: u64,
    /// The permits that are registered as leases.
    leased: u64,
    /// Those of them that the first node does not have.
    of_second: u64,
}

/// Two nodes over one store.
struct Scene {
    runtime: Runtime,
    clock: ManualClock,
    store: MemoryStore,
    counter: CounterRequest,
    is_lease: bool,
    nodes: [Node; 2],
    /// The times and permits of all charges.
    charges: Vec<(u64, u64)>,
    admitted: Vec<u64>,
}

impl Scene {
    fn new(mode: Mode) -> Fallible<Self> {
        let clock = ManualClock::new();
        Ok(Self {
            runtime: runtime()?,
            store: MemoryStore::with_clock(clock.clone()),
            clock,
            counter: CounterRequest::new("all", 1, Counting::Log, LIMIT, Duration::from_millis(WINDOW)),
            is_lease: matches!(mode, Mode::Lease { .. }),
            nodes: Default::default(),
            charges: Vec::new(),
            admitted: Vec::new(),
        })
    }

    /// Runs until the end. `requests` is the number of requests that a node gets at a millisecond, and the second node dies at
    /// `death`.
    fn run(&mut self, requests: impl Fn(usize, u64) -> u64, death: u64) -> Fallible<Vec<Frame>> {
        let mut frames = Vec::new();
        for at in 0..=END {
            self.clock.set(Nanos::from_duration(Duration::from_millis(at)));
            for (index, phase) in [0, PERIOD / 2].into_iter().enumerate() {
                let is_alive = index == 0 || at < death;
                if is_alive && at % PERIOD == phase {
                    self.renew(index, at)?;
                }
            }
            for index in 0..self.nodes.len() {
                for _ in 0..requests(index, at) {
                    self.request(index, at)?;
                }
            }
            frames.push(self.frame(at)?);
        }
        Ok(frames)
    }

    /// Charges the use of a node, and asks for twice the permits that a period demands, or in the mode `Sync` for the most.
    fn renew(&mut self, index: usize, at: u64) -> Fallible<()> {
        let node = &mut self.nodes[index];
        node.target = (node.target / 2).max(2 * node.asked);
        node.asked = 0;
        let wanted = match self.is_lease {
            true if node.target < WORTH_A_LEASE => 0,
            true => node.target.min(PERMITS),
            false => PERMITS,
        };
        let request = match &node.request {
            Some(last) => last.next(node.used, wanted.min(node.permits).max(node.used), wanted),
            None => {
                let mut first = LeaseRequest::first(
                    self.counter.clone(),
                    index as u128,
                    wanted,
                    Duration::from_millis(TERM),
                );
                first.is_registered = self.is_lease;
                first
            }
        };
        if request.charge > 0 {
            self.charges.push((at, request.charge));
        }
        let leases = self.store.leases().ok_or("the store has no leases")?;
        let grants = self.runtime.block_on(leases.renew(slice::from_ref(&request)));
        let grant = grants.into_iter().next().ok_or("the store has not answered")??;
        node.permits = grant.permits.ok_or("the store has forgotten a lease")?;
        node.used = 0;
        node.request = Some(request);
        Ok(())
    }

    /// Decides one request, by the permits of its node, and then by the store.
    fn request(&mut self, index: usize, at: u64) -> Fallible<()> {
        let node = &mut self.nodes[index];
        node.asked += 1;
        if node.used < node.permits {
            node.used += 1;
            self.admitted.push(at);
            return Ok(());
        }
        // The store does not know a budget of the mode `Sync`, so the node names its own.
        let reserve = if self.is_lease { 0 } else { node.permits };
        let request = self.counter.clone().with_reserve(reserve);
        let decided = self
            .runtime
            .block_on(self.store.decide(slice::from_ref(&request)))?;
        if decided.is_admitted {
            self.charges.push((at, 1));
            self.admitted.push(at);
        }
        Ok(())
    }

    fn frame(&self, at: u64) -> Fallible<Frame> {
        let in_window = self
            .charges
            .iter()
            .filter(|(charged_at, _)| charged_at + WINDOW > at);
        let charged = in_window.map(|(_, permits)| permits).sum();
        let seen = self
            .runtime
            .block_on(self.store.peek(slice::from_ref(&self.counter)))?;
        let taken = LIMIT - seen.statuses[0].remaining;
        let left = [0, 1].map(|index: usize| self.nodes[index].permits - self.nodes[index].used);
        // In the mode `Sync` the charged permits may exceed the limit, and none are leased.
        let leased = taken.saturating_sub(charged);
        Ok(Frame {
            left,
            charged,
            leased,
            of_second: leased.saturating_sub(self.nodes[0].permits),
        })
    }
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_time().build()
}

/// The most permits that two nodes may admit in a window, as the library states it.
fn bound(mode: Mode) -> Fallible<u64> {
    let runtime = runtime()?;
    let _entered = runtime.enter();
    let quota = Quota::new(LIMIT, Duration::from_millis(WINDOW))?;
    let rules = SharedRules::<()>::builder()
        .rule(Rule::new("all", quota).mode(mode))
        .term(Duration::from_millis(TERM))
        .build(Arc::new(MemoryStore::new()))?;
    let overshoot = rules.max_overshoot(2).find_map(|(_, most)| most);
    Ok(LIMIT + overshoot.ok_or("the bound is too large")?)
}

/// The requests at a millisecond, of so many in a second.
const fn evenly(per_second: u64, at: u64) -> u64 {
    (at + 1) * per_second / 1_000 - at * per_second / 1_000
}

/// One request at first, and bursts that one node, and then the other, gets more of than it has permits.
fn bursts(index: usize, at: u64) -> u64 {
    let length = [200, 2 * PERMITS][index];
    u64::from(at == 0 || BURSTS.iter().any(|&burst| (burst..burst + length).contains(&at)))
}

/// Draws the values of some frames as a curve above `floor`, in which `full` is as high as a lane.
fn draw_values(
    svg: &mut Svg,
    values: impl Iterator<Item = (u64, u64)>,
    end: u64,
    floor: f64,
    full: u64,
    colour: &str,
) {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut last = None;
    for (at, value) in values {
        if last.replace(value) != Some(value) {
            points.push((x(at), floor - HIGH * value as f64 / full as f64));
        }
    }
    svg.steps(&points, x(end), floor, colour);
}

pub(crate) fn draw() -> Fallible<String> {
    let lease = Mode::Lease { permits: PERMITS };
    let sync = Mode::Sync {
        period: Duration::from_millis(PERIOD),
        pending: PERMITS,
    };
    let mut scene = Scene::new(lease)?;
    let requests = |index: usize, at: u64| match (index, at < DEATH) {
        (0, true) => evenly(20, at),
        (0, false) => evenly(120, at),
        (_, true) => evenly(50, at),
        (_, false) => 0,
    };
    let frames = scene.run(requests, DEATH)?;
    let times = || (0..).zip(&frames);

    let floor = |lane: usize| TOP + LANE * lane as f64 + HIGH + 8.0;
    let beside = |svg: &mut Svg, lane: usize, name: &str, text: &str| {
        svg.text(LEFT - 10.0, floor(lane) - 4.0, Anchor::End, name);
        svg.text(RIGHT + 12.0, floor(lane) - 4.0, Anchor::Start, text);
    };
    let bottom = TOP + LANE * 6.0;
    let mut svg = Svg::new(
        760.0,
        bottom + 34.0,
        "The leases of two nodes, one of which dies, and a burst in the modes Lease and Sync",
    );
    svg.text(
        LEFT,
        16.0,
        Anchor::Start,
        "Limit 100 per second. Two nodes renew leases of up to 30 permits every 0.25 s.",
    );
    svg.text(
        LEFT,
        33.0,
        Anchor::Start,
        "Ticks: renewals. Green: leased. Orange: leased by the dead node. Dashes: the limit.",
    );
    admitted::draw_seconds(&mut svg, bottom);

    let renewals = |phase: u64, end: u64| (phase..end).step_by(PERIOD as usize).map(x);
    draw_values(
        &mut svg,
        times().map(|(at, frame)| (at, frame.left[0])),
        END,
        floor(0),
        PERMITS,
        svg::ADMITTED,
    );
    svg.ticks(renewals(0, END), floor(0) + 1.0, 8.0, svg::ADMITTED);
    beside(&mut svg, 0, "node A has left", "20/s, then 120/s");

    let before = times().take_while(|(at, _)| *at < DEATH);
    draw_values(
        &mut svg,
        before.map(|(at, frame)| (at, frame.left[1])),
        DEATH,
        floor(1),
        PERMITS,
        svg::ADMITTED,
    );
    let withheld = || times().filter(|(at, frame)| *at >= DEATH && frame.of_second > 0);
    let free_at = withheld().last().map_or(DEATH, |(at, _)| at + 1);
    draw_values(
        &mut svg,
        withheld().map(|(at, frame)| (at, frame.of_second)),
        free_at,
        floor(1),
        PERMITS,
        svg::OVER,
    );
    svg.ticks(renewals(PERIOD / 2, DEATH), floor(1) + 1.0, 8.0, svg::ADMITTED);
    svg.text(
        (x(DEATH) + x(free_at)) / 2.0,
        floor(1) - 4.0,
        Anchor::Middle,
        "withheld: a term and a window",
    );
    beside(&mut svg, 1, "node B has left", "50/s, dies at 0.9 s");

    let taken = times().map(|(at, frame)| (at, frame.charged + frame.leased));
    draw_values(&mut svg, taken, END, floor(2), LIMIT, svg::LIMIT);
    draw_values(
        &mut svg,
        times().map(|(at, frame)| (at, frame.charged)),
        END,
        floor(2),
        LIMIT,
        svg::ADMITTED,
    );
    svg.dashes(LEFT, floor(2) - HIGH, RIGHT, floor(2) - HIGH, svg::LIMIT);
    beside(&mut svg, 2, "the store", "charged, leased");

    let beside_most = |svg: &mut Svg, lane: usize, name: &str, admitted: &[u64], bound: u64| {
        admitted::draw_curve(svg, admitted, floor(lane), LIMIT);
        beside(
            svg,
            lane,
            name,
            &format!("{}, at most {bound}", run::most(admitted)),
        );
    };
    beside_most(&mut svg, 3, "admitted in 1 s", &scene.admitted, bound(lease)?);
    for (lane, name, mode) in [(4, "a burst, Lease", lease), (5, "a burst, Sync", sync)] {
        let mut scene = Scene::new(mode)?;
        scene.run(bursts, u64::MAX)?;
        beside_most(&mut svg, lane, name, &scene.admitted, bound(mode)?);
    }
    svg.dashes(x(DEATH), TOP, x(DEATH), TOP + LANE * 4.0, svg::OVER);
    svg.dashes(x(free_at), TOP, x(free_at), TOP + LANE * 4.0, svg::LIMIT);
    Ok(svg.finish())
}
