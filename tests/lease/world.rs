use alloc::collections::BTreeMap;

use super::fault::Fault;
use super::node::{Decider, Node, Receipt};
use super::server::{Answer, LIMIT, Mode, Question, Server, Times};

/// How long a history is.
pub(crate) const LENGTH: u64 = 3000;

/// The nodes, and the faults beside those of messages and nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) fault: Fault,
    /// The mode of each node.
    pub(crate) modes: &'static [Mode],
    pub(crate) times: Times,
    /// A node has the server decide once in so many times.
    pub(crate) asks: u64,
    /// Whether there are requests of others that the server decides.
    pub(crate) others: bool,
    /// Whether the server comes back with nothing, now and then.
    pub(crate) wipes: bool,
    /// Whether its clock goes back.
    pub(crate) steps: bool,
    /// Whether nodes crash.
    pub(crate) crashes: bool,
}

enum Message {
    Question(Question),
    Answer(Answer),
}

/// An admission.
#[derive(Clone, Copy, Debug)]
struct Admission {
    at: u64,
    permits: u64,
}

/// Everything.
pub(crate) struct World {
    random: u64,
    setup: Setup,
    server: Server,
    nodes: Vec<Node>,
    /// Since when each is there.
    born: Vec<u64>,
    /// The messages on their way, by the time at which they arrive.
    mail: BTreeMap<(u64, u64), Message>,
    sent: u64,
    leases: u64,
    admissions: Vec<Admission>,
    /// The admissions that may be refunded, with their node.
    receipts: Vec<(usize, usize, Receipt)>,
    /// From when to when there was a node that may have a budget that the server does not keep free.
    unregistered: Vec<(u64, u64)>,
    /// When the server has forgotten all.
    wiped: Vec<u64>,
}

impl World {
    pub(crate) fn new(seed: u64, setup: Setup) -> Self {
        let mut world = Self {
            random: (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            setup,
            server: Server::new(setup.fault, setup.times),
            nodes: Vec::new(),
            born: vec![0; setup.modes.len()],
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

    /// A number below this one: xorshift.
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % bound
    }

    /// Once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn node(&mut self, mode: Mode, now: u64) -> Node {
        self.leases += 1;
        let pace = 14 + self.below(5);
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
        // Some are lost, some come late, a few when all is over, most soon.
        let delay = match self.below(60) {
            0..6 => return,
            6..9 => 10 + self.below(2 * term),
            9 => self.below(3 * (window + term)),
            _ => self.below(4),
        };
        self.sent += 1;
        self.mail.insert((now + delay, self.sent), message);
    }

    pub(crate) fn run(&mut self) {
        let Times { window, term } = self.setup.times;
        // Later than its clock ever goes back.
        let first = 4 * LENGTH + window + term;
        let last = first + LENGTH;
        self.born.fill(first);
        for now in first..last {
            if self.setup.steps && self.once_in(150) {
                let most = if self.once_in(2) { 10 } else { 2 * (window + term) };
                let back = self.below(most);
                self.server.step_back(back);
            }
            self.deliver(now);
            if self.setup.wipes && self.once_in(300) {
                self.server.wipe(now);
                self.wiped.push(now);
            }
            if self.setup.others && self.once_in(4) {
                let permits = 1 + self.below(3);
                if self.server.decides(now, 0, permits) {
                    self.admissions.push(Admission { at: now, permits });
                }
            }
            for at in 0..self.nodes.len() {
                if self.setup.crashes && self.once_in(400) {
                    self.ends(at, now);
                }
                self.steps(at, now);
            }
            self.give_back();
        }
        for at in 0..self.nodes.len() {
            self.ends(at, last);
        }
    }

    /// A node crashes, and another takes its place.
    fn ends(&mut self, at: usize, now: u64) {
        let mode = self.nodes[at].mode();
        if mode != Mode::Lease {
            self.unregistered.push((self.born[at], now));
        }
        self.born[at] = now;
        let name = self.nodes[at].lease_id();
        self.nodes[at] = self.node(mode, now);
        if self.setup.fault == Fault::LivesHaveOneName {
            self.nodes[at].begins(name);
        }
        self.receipts.retain(|receipt| receipt.0 != at);
    }

    /// The actions of a node in one moment.
    fn steps(&mut self, at: usize, now: u64) {
        if self.nodes[at].asleep > now {
            return;
        }
        // In bursts, so that budgets are empty and full by turns.
        if self.once_in(300) {
            self.nodes[at].cut_off = now + self.below(200);
        }
        let busy = !(now / 50 + at as u64).is_multiple_of(3);
        for _ in 0..self.below(if busy { 4 } else { 2 }) {
            self.decides(at, now);
        }
        let waiting = core::mem::take(&mut self.nodes[at].deciders);
        let (awake, asleep): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|it| it.wakes <= now);
        self.nodes[at].deciders = asleep;
        for decider in awake {
            self.uses(at, now, decider);
        }
        if now >= self.nodes[at].next {
            let want = if busy { 5 + self.below(20) } else { self.below(4) };
            let cap = if self.once_in(3) { LIMIT } else { want };
            let asked = self.nodes[at].asks(now, want, cap);
            self.nodes[at].next = now + 2 + self.below(8);
            if now >= self.nodes[at].cut_off {
                self.post(now, Message::Question(asked));
            }
        }
        if self.nodes[at].is_idle(now) && self.once_in(20) {
            self.leases += 1;
            self.nodes[at].begins(self.leases);
        }
        if self.once_in(400) {
            let Times { window, term } = self.setup.times;
            let until = now + 1 + self.below(3 * (window + term));
            self.nodes[at].sleeps(now, until);
        }
    }

    /// A request: looks whether the term is over, and exchanges, at once or when it has slept.
    fn decides(&mut self, at: usize, now: u64) {
        let permits = match self.below(6) {
            0 => 3,
            1 => 2,
            _ => 1,
        };
        // Now and then a request without a budget goes to the server.
        if self.once_in(self.setup.asks) && !self.setup.wipes && now >= self.nodes[at].cut_off {
            // As much as it may be granted while the request is on its way.
            let own = match self.nodes[at].mode() {
                Mode::Lease => 0,
                Mode::Sync { pending } => pending.min(LIMIT),
            };
            if self.server.decides(now, own, permits) {
                self.admissions.push(Admission { at: now, permits });
            }
            return;
        }
        if !self.nodes[at].has_time(now) {
            return;
        }
        let Times { window, term } = self.setup.times;
        let wakes = match self.below(20) {
            0 => now + self.below(term),
            1 => now + self.below(2 * (window + term)),
            _ => now,
        };
        let read = (!self.once_in(3)).then(|| self.nodes[at].lease());
        self.nodes[at].deciders.push(Decider { permits, wakes, read });
    }

    fn uses(&mut self, at: usize, now: u64, decider: Decider) {
        if let Some((stamp, receipt)) = self.nodes[at].uses(now, decider) {
            let permits = decider.permits;
            if self.once_in(6) {
                self.receipts.push((at, self.admissions.len(), receipt));
            }
            self.admissions.push(Admission { at: stamp, permits });
        }
    }

    /// Some of what was used is given back, some time later.
    fn give_back(&mut self) {
        if self.receipts.is_empty() || !self.once_in(6) {
            return;
        }
        let which = self.below(self.receipts.len() as u64) as usize;
        let (at, admission, receipt) = self.receipts.swap_remove(which);
        if self.nodes[at].gives_back(receipt) {
            self.admissions[admission].permits = 0;
        }
    }

    fn deliver(&mut self, now: u64) {
        while let Some(entry) = self.mail.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Message::Question(asked) => {
                    let answer = self.server.answers(now, asked);
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
                        // Held up, and not always lost.
                        if asleep > now || self.once_in(2) {
                            self.sent += 1;
                            self.mail
                                .insert((asleep.max(cut_off), self.sent), Message::Answer(answer));
                        }
                    } else if self.nodes[at].hears(now, answer) {
                        self.leases += 1;
                        let lease_id = self.leases;
                        self.nodes[at].begins(lease_id);
                    }
                }
            }
        }
    }

    pub(crate) fn admitted(&self) -> u64 {
        self.admissions.iter().map(|admission| admission.permits).sum()
    }

    /// The most in any window, in true time; and by how much any holds more than it may: L, and what each node but
    /// one may have that the server does not keep free (those without such a budget count as one); and with such budgets,
    /// as much again for each time that the server has forgotten all.
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
            let alive =
                |lease_id: &&(u64, u64)| lease_id.0 <= admission.at && lease_id.1 + window > admission.at;
            let nodes = self.unregistered.iter().filter(alive).count() as u64 + u64::from(others);
            // A server that has forgotten the budgets grants new ones. The old ones end within a term.
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

/// The permits that windows have held.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Worst {
    pub(crate) most: u64,
    /// Beyond what is allowed.
    pub(crate) over: u64,
}
