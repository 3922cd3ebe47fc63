use alloc::collections::BTreeMap;

use super::fault::Fault;
use super::node::{Decider, Node, Receipt};
use super::server::{Answer, LIMIT, Mode, Report, Server, Times};
use crate::random::Random;

/// The length of a history, in ticks.
pub(crate) const LENGTH: u64 = 3000;

/// The nodes, and the faults that occur beside those of messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) fault: Fault,
    /// The mode of each node.
    pub(crate) modes: &'static [Mode],
    pub(crate) times: Times,
    /// A node sends every n-th request to the server.
    pub(crate) every_nth: u64,
    /// Whether the server also decides requests of other clients.
    pub(crate) others: bool,
    /// Whether the server sometimes restarts without its state.
    pub(crate) wipes: bool,
    /// Whether the server's clock goes back.
    pub(crate) steps: bool,
    /// Whether nodes crash.
    pub(crate) crashes: bool,
}

enum Message {
    Report(Report),
    Answer(Answer),
}

/// An admission.
#[derive(Clone, Copy, Debug)]
struct Admission {
    at: u64,
    permits: u64,
}

/// The whole simulation.
pub(crate) struct World {
    random: Random,
    setup: Setup,
    server: Server,
    nodes: Vec<Node>,
    /// The time at which each node started.
    started: Vec<u64>,
    /// The pending messages, by the time at which they arrive.
    mail: BTreeMap<(u64, u64), Message>,
    sent: u64,
    leases: u64,
    admissions: Vec<Admission>,
    /// The admissions that may be refunded, with their nodes.
    receipts: Vec<(usize, usize, Receipt)>,
    /// The times between which each node may have had a budget that the server does not reserve.
    unregistered: Vec<(u64, u64)>,
    /// The times at which the server lost its state.
    wiped: Vec<u64>,
}

impl World {
    pub(crate) fn new(seed: u64, setup: Setup) -> Self {
        let mut world = Self {
            random: Random::new(seed),
            setup,
            server: Server::new(setup.fault, setup.times),
            nodes: Vec::new(),
            started: vec![0; setup.modes.len()],
            mail: BTreeMap::new(),
            sent: 0,
            leases: 0,
            admissions: Vec::new(),
            receipts: Vec::new(),
            unregistered: Vec::new(),
            wiped: Vec::new(),
        };
        for &mode in setup.modes {
            let node = world.node(mode, 0);
            world.nodes.push(node);
        }
        world
    }

    fn node(&mut self, mode: Mode, now: u64) -> Node {
        self.leases += 1;
        let pace = 14 + self.random.below(5);
        Node::new(
            self.setup.fault,
            self.setup.times.term,
            mode,
            self.leases,
            pace,
            now,
        )
    }

    fn post(&mut self, now: u64, message: Message) {
        let Times { window, term } = self.setup.times;
        // Most messages arrive soon. Some are lost, some arrive late, and few arrive after the end of the history.
        let delay = match self.random.below(60) {
            0..6 => return,
            6..9 => 10 + self.random.below(2 * term),
            9 => self.random.below(3 * (window + term)),
            _ => self.random.below(4),
        };
        self.sent += 1;
        self.mail.insert((now + delay, self.sent), message);
    }

    pub(crate) fn run(&mut self) {
        let Times { window, term } = self.setup.times;
        // The start is later than the sum of all steps by which the clock goes back.
        let first = 4 * LENGTH + window + term;
        let last = first + LENGTH;
        self.started.fill(first);
        for now in first..last {
            if self.setup.steps && self.random.one_in(150) {
                let most = if self.random.one_in(2) {
                    10
                } else {
                    2 * (window + term)
                };
                let back = self.random.below(most);
                self.server.step_back(back);
            }
            self.deliver(now);
            if self.setup.wipes && self.random.one_in(300) {
                self.server.wipe(now);
                self.wiped.push(now);
            }
            if self.setup.others && self.random.one_in(4) {
                let permits = 1 + self.random.below(3);
                if self.server.decide(now, 0, permits) {
                    self.admissions.push(Admission { at: now, permits });
                }
            }
            for at in 0..self.nodes.len() {
                if self.setup.crashes && self.random.one_in(400) {
                    self.crash(at, now);
                }
                self.step(at, now);
            }
            self.refund();
        }
        for at in 0..self.nodes.len() {
            self.crash(at, last);
        }
    }

    /// A node crashes, and a new node replaces it.
    fn crash(&mut self, at: usize, now: u64) {
        let mode = self.nodes[at].mode();
        if mode != Mode::Lease {
            self.unregistered.push((self.started[at], now));
        }
        self.started[at] = now;
        let lease_id = self.nodes[at].lease_id();
        self.nodes[at] = self.node(mode, now);
        if self.setup.fault == Fault::LeaseIdsAreReused {
            self.nodes[at].begin_lease(lease_id);
        }
        self.receipts.retain(|receipt| receipt.0 != at);
    }

    /// The actions of a node in one tick.
    fn step(&mut self, at: usize, now: u64) {
        if self.nodes[at].asleep > now {
            return;
        }
        // Requests come in bursts, so that budgets are full and empty in turn.
        if self.random.one_in(300) {
            self.nodes[at].cut_off = now + self.random.below(200);
        }
        let busy = !(now / 50 + at as u64).is_multiple_of(3);
        for _ in 0..self.random.below(if busy { 4 } else { 2 }) {
            self.request(at, now);
        }
        let waiting = core::mem::take(&mut self.nodes[at].deciders);
        let (awake, asleep): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|it| it.wakes <= now);
        self.nodes[at].deciders = asleep;
        for decider in awake {
            self.spend(at, now, decider);
        }
        if now >= self.nodes[at].next {
            let want = if busy {
                5 + self.random.below(20)
            } else {
                self.random.below(4)
            };
            let cap = if self.random.one_in(3) { LIMIT } else { want };
            let report = self.nodes[at].report(now, want, cap);
            self.nodes[at].next = now + 2 + self.random.below(8);
            if now >= self.nodes[at].cut_off {
                self.post(now, Message::Report(report));
            }
        }
        if self.nodes[at].is_idle(now) && self.random.one_in(20) {
            self.leases += 1;
            self.nodes[at].begin_lease(self.leases);
        }
        if self.random.one_in(400) {
            let Times { window, term } = self.setup.times;
            let until = now + 1 + self.random.below(3 * (window + term));
            self.nodes[at].suspend(now, until);
        }
    }

    /// Makes a request to a node. Its decider checks the term, and makes the exchange at once or after a delay.
    fn request(&mut self, at: usize, now: u64) {
        let permits = match self.random.below(6) {
            0 => 3,
            1 => 2,
            _ => 1,
        };
        // Some requests go to the server instead of using a budget.
        if self.random.one_in(self.setup.every_nth) && !self.setup.wipes && now >= self.nodes[at].cut_off {
            // The node may be granted this many permits while the request is on its way.
            let own = match self.nodes[at].mode() {
                Mode::Lease => 0,
                Mode::Sync { pending } => pending.min(LIMIT),
            };
            if self.server.decide(now, own, permits) {
                self.admissions.push(Admission { at: now, permits });
            }
            return;
        }
        if !self.nodes[at].is_in_term(now) {
            return;
        }
        let Times { window, term } = self.setup.times;
        let wakes = match self.random.below(20) {
            0 => now + self.random.below(term),
            1 => now + self.random.below(2 * (window + term)),
            _ => now,
        };
        let read = (!self.random.one_in(3)).then(|| self.nodes[at].lease());
        self.nodes[at].deciders.push(Decider { permits, wakes, read });
    }

    fn spend(&mut self, at: usize, now: u64, decider: Decider) {
        if let Some((stamp, receipt)) = self.nodes[at].spend(now, decider) {
            let permits = decider.permits;
            if self.random.one_in(6) {
                self.receipts.push((at, self.admissions.len(), receipt));
            }
            self.admissions.push(Admission { at: stamp, permits });
        }
    }

    /// Refunds some admissions.
    fn refund(&mut self) {
        if self.receipts.is_empty() || !self.random.one_in(6) {
            return;
        }
        let which = self.random.index(self.receipts.len());
        let (at, admission, receipt) = self.receipts.swap_remove(which);
        if self.nodes[at].refund(receipt) {
            self.admissions[admission].permits = 0;
        }
    }

    fn deliver(&mut self, now: u64) {
        while let Some(entry) = self.mail.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Message::Report(report) => {
                    let answer = self.server.answer(now, report);
                    self.post(now, Message::Answer(answer));
                }
                Message::Answer(answer) => {
                    let at = self
                        .nodes
                        .iter()
                        .position(|node| node.lease_id() == answer.lease_id);
                    let Some(at) = at else { continue };
                    let (asleep, cut_off) = (self.nodes[at].asleep, self.nodes[at].cut_off);
                    if now < asleep.max(cut_off) {
                        // A suspended node gets the message later. A node that is cut off may lose it.
                        if asleep > now || self.random.one_in(2) {
                            self.sent += 1;
                            self.mail
                                .insert((asleep.max(cut_off), self.sent), Message::Answer(answer));
                        }
                    } else if self.nodes[at].apply(now, answer) {
                        self.leases += 1;
                        let lease_id = self.leases;
                        self.nodes[at].begin_lease(lease_id);
                    }
                }
            }
        }
    }

    pub(crate) fn admitted(&self) -> u64 {
        self.admissions.iter().map(|admission| admission.permits).sum()
    }

    /// Returns the most permits in any window of true time, and the most by which a window exceeds its allowance.
    ///
    /// The allowance is L, and the unreserved budget of each node except one. All nodes without such a budget count as one
    /// node. The allowance is doubled while a loss of the server's state is within a window and a term.
    pub(crate) fn worst(&self) -> Worst {
        let mut admissions = self.admissions.clone();
        admissions.sort_unstable_by_key(|admission| admission.at);
        let Times { window, term } = self.setup.times;
        let mut worst = Worst::default();
        let (mut within, mut oldest) = (0, 0);
        let pending = self.setup.modes.iter().map(|mode| match mode {
            Mode::Lease => 0,
            Mode::Sync { pending } => (*pending).min(LIMIT),
        });
        let pending = pending.max().unwrap_or(0);
        let others = self.setup.others || self.setup.modes.contains(&Mode::Lease);
        for admission in &admissions {
            within += admission.permits;
            while admissions[oldest].at + window <= admission.at {
                within -= admissions[oldest].permits;
                oldest += 1;
            }
            let alive = |times: &&(u64, u64)| times.0 <= admission.at && times.1 + window > admission.at;
            let nodes = self.unregistered.iter().filter(alive).count() as u64 + u64::from(others);
            // A server that has lost its state grants new budgets. The old budgets end within a term.
            let wiped = |at: &&u64| **at <= admission.at && **at + window + term > admission.at;
            let eras = match pending {
                0 => 1,
                _ => 1 + self.wiped.iter().filter(wiped).count() as u64,
            };
            let allowed = eras * (LIMIT + (nodes - 1) * pending);
            worst.most = worst.most.max(within);
            worst.over = worst.over.max(within.saturating_sub(allowed));
        }
        worst
    }
}

/// The worst windows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Worst {
    pub(crate) most: u64,
    /// The permits above the allowance.
    pub(crate) over: u64,
}
