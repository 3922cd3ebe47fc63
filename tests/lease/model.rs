use alloc::collections::BTreeMap;

/// A rule of the protocol that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// A charge needs room in the window, but not beside the holds.
    ChargesIgnoreHolds,
    /// A hold is granted beside other holds, but not beside the window.
    GrantsIgnoreTheWindow,
    /// The hold of a silent node is kept for W, and not for W after the last moment at which it may have spent.
    HoldsAreKeptForAWindow,
    /// A node may spend until D after the answer, and not after its question.
    DeadlineFromTheAnswer,
    /// A node may spend until it hears otherwise.
    NoDeadline,
    /// What could not be charged is spent anew.
    RefusedChargesAreForgotten,
    /// A charge counts from when it was sent.
    ChargesAreDatedBack,
    /// A node says that it needs less, and goes on with what it has until it is answered.
    ShrinksWithoutStopping,
    /// A charge that was not answered is taken to be made.
    LostChargesAreForgotten,
    /// A server that has forgotten all grants what it is asked for.
    GrantsAtOnceAfterAWipe,
}

pub(crate) const LIMIT: u64 = 60;
const WINDOW: u64 = 100;
/// How long a hold may be spent from after its node's last word: D.
const TERM: u64 = 30;
pub(crate) const WINDOWS: u64 = 30;
const NODES: usize = 4;

/// What a node asks: renew my hold, charge this, and give me so many.
#[derive(Clone, Copy, Debug)]
struct Question {
    node: u64,
    sequence: u64,
    /// When this copy was sent.
    sent: u64,
    charge: u64,
    /// No more than this may be uncharged from now on, until there is an answer.
    cap: u64,
    want: u64,
    /// Whether the node believes to be known.
    known: bool,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    node: u64,
    sequence: u64,
    /// When the copy was sent that this answers.
    sent: u64,
    /// `None`: nobody knows the node.
    hold: Option<u64>,
    charged: bool,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    permits: u64,
    sequence: u64,
    /// What the last charge became, to be said again.
    charged: bool,
    until: u64,
}

/// What the script does.
#[derive(Debug)]
struct Server {
    fault: Fault,
    born: u64,
    holds: BTreeMap<u64, Hold>,
    charges: Vec<(u64, u64)>,
}

impl Server {
    fn held(&self) -> u64 {
        self.holds.values().map(|hold| hold.permits).sum()
    }

    fn spent(&self, now: u64) -> u64 {
        let counted = self.charges.iter().filter(|charge| charge.0 + WINDOW > now);
        counted.map(|charge| charge.1).sum()
    }

    fn answer(&mut self, now: u64, asked: Question) -> Answer {
        self.holds.retain(|_, hold| hold.until > now);
        let mut answer = Answer {
            node: asked.node,
            sequence: asked.sequence,
            sent: asked.sent,
            hold: None,
            charged: false,
        };
        let wary = now < self.born + WINDOW + TERM && self.fault != Fault::GrantsAtOnceAfterAWipe;
        let mut hold = match self.holds.get(&asked.node) {
            Some(hold) => *hold,
            None if asked.known || wary => return answer,
            None => Hold {
                permits: 0,
                sequence: 0,
                charged: false,
                until: 0,
            },
        };
        let keep = if self.fault == Fault::HoldsAreKeptForAWindow {
            WINDOW
        } else {
            WINDOW + TERM
        };
        hold.until = now + keep;
        // A copy is answered as the first was, and changes nothing.
        if asked.sequence > hold.sequence {
            hold.sequence = asked.sequence;
            hold.permits = hold.permits.min(asked.cap);
            self.holds.insert(asked.node, hold);
            let held = if self.fault == Fault::ChargesIgnoreHolds {
                0
            } else {
                self.held()
            };
            hold.charged = self.spent(now) + held + asked.charge <= LIMIT;
            if hold.charged && asked.charge > 0 {
                let dated = if self.fault == Fault::ChargesAreDatedBack {
                    asked.sent.saturating_sub(60)
                } else {
                    now
                };
                self.charges.push((dated, asked.charge));
            }
            let spent = if self.fault == Fault::GrantsIgnoreTheWindow {
                0
            } else {
                self.spent(now)
            };
            let others = self.held() - hold.permits;
            let free = LIMIT.saturating_sub(spent + others);
            hold.permits = hold.permits.max(asked.want.min(free));
        }
        self.holds.insert(asked.node, hold);
        answer.hold = Some(hold.permits);
        answer.charged = hold.charged;
        answer
    }
}

/// A life of a node: after a crash it is another.
#[derive(Debug)]
struct Node {
    name: u64,
    /// What it may have uncharged.
    hold: u64,
    uncharged: u64,
    /// It may spend before this.
    deadline: u64,
    sequence: u64,
    asked: Option<Question>,
    known: bool,
    next: u64,
    /// Nothing comes through before this.
    cut_off: u64,
}

impl Node {
    fn new(name: u64, now: u64) -> Self {
        Self {
            name,
            hold: 0,
            uncharged: 0,
            deadline: 0,
            sequence: 0,
            asked: None,
            known: false,
            next: now,
            cut_off: 0,
        }
    }

    fn spends(&mut self, now: u64, fault: Fault) -> bool {
        let room = self.uncharged < self.hold && (now < self.deadline || fault == Fault::NoDeadline);
        self.uncharged += u64::from(room);
        room
    }

    /// The question that is open, once more, or a new one.
    fn asks(&mut self, now: u64, want: u64, fault: Fault) -> Question {
        if let Some(mut asked) = self.asked {
            if fault == Fault::LostChargesAreForgotten {
                self.uncharged -= asked.charge.min(self.uncharged);
                asked.charge = 0;
            }
            asked.sent = now;
            self.asked = Some(asked);
            return asked;
        }
        self.sequence += 1;
        // It keeps to it from here on.
        let cap = self.hold.min(want.max(self.uncharged));
        if fault != Fault::ShrinksWithoutStopping {
            self.hold = cap;
        }
        let asked = Question {
            node: self.name,
            sequence: self.sequence,
            sent: now,
            charge: self.uncharged,
            cap,
            want,
            known: self.known,
        };
        self.asked = Some(asked);
        asked
    }

    fn hears(&mut self, now: u64, answer: Answer, fault: Fault) {
        let Some(asked) = self.asked.filter(|asked| asked.sequence == answer.sequence) else {
            return;
        };
        self.asked = None;
        let Some(hold) = answer.hold else {
            // Whatever it had is gone; what it has spent of it was covered for as long as it counts.
            *self = Self::new(self.name + 1_000, self.next);
            return;
        };
        if answer.charged || fault == Fault::RefusedChargesAreForgotten {
            self.uncharged -= asked.charge.min(self.uncharged);
        }
        self.known = true;
        self.hold = hold;
        let from = if fault == Fault::DeadlineFromTheAnswer {
            now
        } else {
            answer.sent
        };
        self.deadline = self.deadline.max(from + TERM);
    }
}

enum Message {
    Question(Question),
    Answer(Answer),
}

/// Everything.
pub(crate) struct World {
    random: u64,
    fault: Fault,
    wipes: bool,
    server: Server,
    nodes: Vec<Node>,
    /// What is on its way, by when it arrives.
    mail: BTreeMap<(u64, u64), Message>,
    sent: u64,
    lives: u64,
    admissions: Vec<u64>,
}

impl World {
    pub(crate) fn new(seed: u64, fault: Fault, wipes: bool) -> Self {
        Self {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            fault,
            wipes,
            server: Server {
                fault,
                born: 0,
                holds: BTreeMap::new(),
                charges: Vec::new(),
            },
            nodes: (0..NODES as u64).map(|name| Node::new(name, 0)).collect(),
            mail: BTreeMap::new(),
            sent: 0,
            lives: NODES as u64,
            admissions: Vec::new(),
        }
    }

    /// A number below this one: xorshift.
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % bound
    }

    fn post(&mut self, now: u64, message: Message) {
        // Some are lost, some come late, most soon.
        let delay = match self.below(20) {
            0 | 1 => return,
            2 => 10 + self.below(2 * TERM),
            _ => self.below(4),
        };
        self.sent += 1;
        self.mail.insert((now + delay, self.sent), message);
    }

    pub(crate) fn run(&mut self) {
        let first = WINDOW + TERM;
        for now in first..first + WINDOW * WINDOWS {
            self.deliver(now);
            if self.wipes && self.below(3 * WINDOW) == 0 {
                self.server.holds.clear();
                self.server.charges.clear();
                self.server.born = now;
            }
            for at in 0..NODES {
                if self.below(4 * WINDOW) == 0 {
                    self.lives += 1;
                    self.nodes[at] = Node::new(self.lives * 1_000_000, now);
                }
                // In bursts, so that holds are empty and full by turns.
                if self.below(3 * WINDOW) == 0 {
                    self.nodes[at].cut_off = now + self.below(2 * WINDOW);
                }
                let busy = !(now / 50 + at as u64).is_multiple_of(3);
                for _ in 0..self.below(if busy { 4 } else { 1 }) {
                    let fault = self.fault;
                    if self.nodes[at].spends(now, fault) {
                        self.admissions.push(now);
                    }
                }
                if now >= self.nodes[at].next {
                    let want = if busy { 5 + self.below(20) } else { self.below(4) };
                    let fault = self.fault;
                    let asked = self.nodes[at].asks(now, want, fault);
                    self.nodes[at].next = now + 2 + self.below(8);
                    if now >= self.nodes[at].cut_off {
                        self.post(now, Message::Question(asked));
                    }
                }
            }
        }
    }

    fn deliver(&mut self, now: u64) {
        while let Some(entry) = self.mail.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Message::Question(asked) => {
                    let answer = self.server.answer(now, asked);
                    self.post(now, Message::Answer(answer));
                }
                Message::Answer(answer) => {
                    let at = self.nodes.iter().position(|node| node.name == answer.node);
                    let Some(at) = at else { continue };
                    let cut_off = self.nodes[at].cut_off;
                    if now >= cut_off {
                        self.nodes[at].hears(now, answer, self.fault);
                    } else if self.below(2) == 0 {
                        // Held up, and not lost.
                        self.sent += 1;
                        self.mail.insert((cut_off, self.sent), Message::Answer(answer));
                    }
                }
            }
        }
    }

    pub(crate) fn admitted(&self) -> u64 {
        self.admissions.len() as u64
    }

    /// In true time.
    pub(crate) fn most_in_a_window(&self) -> u64 {
        let mut oldest = 0;
        let within = self.admissions.iter().enumerate().map(|(at, &now)| {
            while self.admissions[oldest] + WINDOW <= now {
                oldest += 1;
            }
            at - oldest + 1
        });
        within.max().unwrap_or(0) as u64
    }
}
