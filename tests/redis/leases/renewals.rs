//! The script that settles leases, in a real server with a time that the test says: random questions, copies of them that
//! come when others were asked, strict requests in between, and a clock that goes back. Charged permits and held permits are
//! never more than the limit (while the clock does not go back), and what is used is never more in a window.

use core::slice::from_ref;

use ringgate::shared::Counting;

use crate::oracle::most_in_a_window;
use crate::scripts::{Asked, far_ahead, judge, settle};
use crate::server::Server;

const LIMIT: u64 = 30;
const WINDOW: u64 = 100;
const TERM: u64 = 40;

/// A question: what it charges, and what the script is told beside.
#[derive(Clone, Copy, Debug)]
struct UsageReport {
    charge: u64,
    told: [u64; 5],
}

/// A lease, as its node sees it.
#[derive(Clone, Debug, Default)]
struct Life {
    name: u64,
    budget: u64,
    used: u64,
    until: u64,
    sequence: u64,
    known: bool,
    open: Option<UsageReport>,
    /// Those that may come once more.
    copies: Vec<UsageReport>,
}

/// The permits that are charged, as the script counts them.
fn charged(client: &mut redis::Connection, part: &Asked, now: u64) -> u64 {
    if part.counting == Counting::Log {
        let count = redis::cmd("ZCOUNT")
            .arg(&part.key)
            .arg(format!("({}", now - WINDOW))
            .arg("+inf")
            .to_owned();
        return count.query(client).expect("a number");
    }
    let Counting::Cells(cells) = part.counting else {
        return 0;
    };
    let fields: Vec<(String, u64)> = redis::cmd("HGETALL").arg(&part.key).query(client).expect("cells");
    let since = now / part.window - cells;
    let counted = fields
        .iter()
        .filter(|(cell, _)| cell.parse::<u64>().is_ok_and(|cell| cell >= since));
    counted.map(|(_, spent)| spent).sum()
}

/// The permits that are held.
fn held(client: &mut redis::Connection, part: &Asked, now: u64) -> u64 {
    let name = format!("{}:leases", part.key);
    let fields: Vec<(String, u64)> = redis::cmd("HGETALL").arg(name).query(client).expect("permits");
    let current = fields
        .iter()
        .filter(|(field, _)| field.parse::<u64>().is_ok_and(|ends| ends > now));
    current.map(|(_, permits)| permits).sum()
}

#[test]
fn charged_and_leased_permits_never_exceed_the_limit() {
    let Some(server) = Server::start() else { return };
    let (settle, judge, mut client) = (settle(), judge(), server.client());
    let mut random = 1_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let (mut granted, mut most) = (0, 0);
    for history in 0..40 {
        let part = match history % 2 {
            0 => Asked::log(&format!("log {history}"), LIMIT, WINDOW),
            _ => Asked::cells(&format!("cells {history}"), LIMIT, 4, WINDOW / 4),
        };
        let mut time = far_ahead(&mut client) + 1_000_000 * history;
        let (mut behind, mut leases) = (0, 0);
        let mut nodes: Vec<Life> = vec![Life::default(); 3];
        let mut uses: Vec<(u64, u64)> = Vec::new();
        for _ in 0..250 {
            time += draw(12);
            if history % 4 > 1 && draw(60) == 0 {
                behind += draw(2 * WINDOW);
            }
            let now = time - behind;
            let at = usize::try_from(draw(3)).expect("one of three");
            let node = &mut nodes[at];
            match draw(9) {
                0 => {
                    // A strict request.
                    let asked = Asked {
                        permits: 1 + draw(3),
                        ..part.clone()
                    };
                    if judge.judge(&mut client, now, "charge", from_ref(&asked)).0 {
                        uses.push((time, asked.permits));
                    }
                }
                1 => {
                    // A copy that arrives late. Its answer is lost.
                    if let Some(copy) = node.copies.pop() {
                        let asked = Asked {
                            permits: copy.charge,
                            ..part.clone()
                        };
                        settle.settle(&mut client, now, &asked, (node.name, copy.told));
                    }
                }
                2 if node.open.is_none() && draw(10) == 0 => {
                    // It crashes.
                    *node = Life::default();
                }
                2..5 => {
                    if node.name == 0 {
                        leases += 1;
                        node.name = 1000 * history + leases;
                    }
                    let question = node.open.unwrap_or_else(|| {
                        node.sequence += 1;
                        node.budget = node.budget.min(draw(LIMIT)).max(node.used);
                        let begins = u64::from(!node.known);
                        UsageReport {
                            charge: node.used,
                            told: [node.sequence, begins, node.budget, draw(20), TERM],
                        }
                    });
                    node.open = Some(question);
                    node.copies.push(question);
                    let asked = Asked {
                        permits: question.charge,
                        ..part.clone()
                    };
                    let told = settle.settle(&mut client, now, &asked, (node.name, question.told));
                    match told {
                        // The answer is lost.
                        _ if draw(4) == 0 => {}
                        Some(budget) => {
                            node.used -= question.charge;
                            // Unless the lease has ended, and a copy of its first question has begun it once more.
                            assert!(budget >= node.used || time >= node.until || behind > 0);
                            (node.budget, node.known, node.open) = (budget.max(node.used), true, None);
                            node.until = time + TERM;
                            granted += u64::from(budget > 0);
                        }
                        None => *node = Life::default(),
                    }
                }
                _ => {
                    let permits = 1 + draw(4);
                    if time < node.until && node.used + permits <= node.budget {
                        node.used += permits;
                        uses.push((time, permits));
                    }
                }
            }
            let (charged, held) = (charged(&mut client, &part, now), held(&mut client, &part, now));
            // Permits that had left their window count again when the clock goes back.
            assert!(
                charged + held <= LIMIT || behind > 0,
                "{charged} charged and {held} held, in history {history}"
            );
        }
        most = most.max(most_in_a_window(&mut uses, WINDOW));
        assert!(most <= LIMIT, "{most} used in history {history}");
    }
    println!("{granted} grants, worst window {most} of {LIMIT}");
    assert!(granted > 1000 && most * 10 >= LIMIT * 8, "{granted}, {most}");
}

/// A server that grants leases, and the time.
fn granting(client: &mut redis::Connection, part: &Asked) -> u64 {
    let now = far_ahead(client);
    // It notes since when it forgets nothing.
    assert_eq!(settle().settle(client, now, part, (1, [1, 1, 0, 1, TERM])), None);
    now + TERM + WINDOW
}

fn parts(name: &str) -> [Asked; 3] {
    let asked = |part: Asked| Asked { permits: 0, ..part };
    [
        asked(Asked::log(&format!("log {name}"), LIMIT, WINDOW)),
        asked(Asked::cells(&format!("cells {name}"), LIMIT, 4, WINDOW / 4)),
        asked(Asked::gcra(&format!("gcra {name}"), LIMIT, LIMIT, WINDOW)),
    ]
}

/// The time after a request at which the permits of its lease have ended.
const ENDED: u64 = (TERM + WINDOW) * 17 / 16 + 1;

/// Permits that have ended, and were granted to others, do not return when the clock goes back into the term of their lease.
#[test]
fn a_lease_that_has_ended_is_not_revived() {
    let Some(server) = Server::start() else { return };
    let (settle, judge, mut client) = (settle(), judge(), server.client());
    for part in parts("ends") {
        let begin = granting(&mut client, &part);
        let budget = settle.settle(&mut client, begin, &part, (2, [1, 1, 0, 20, TERM]));
        let budget = budget.expect("it begins");
        assert!(budget > 0);
        let all = Asked {
            permits: LIMIT,
            ..part.clone()
        };
        assert!(
            !judge
                .judge(&mut client, begin + TERM + WINDOW - 1, "charge", from_ref(&all))
                .0
        );
        assert!(
            judge
                .judge(&mut client, begin + ENDED, "charge", from_ref(&all))
                .0
        );
        let now = begin + TERM / 2;
        let told = settle.settle(&mut client, now, &part, (2, [2, 0, budget, 0, TERM]));
        assert_eq!(told, None, "others have what it held");
        assert_eq!(held(&mut client, &part, now), 0);
    }
}

/// After the clock has gone back, registered permits are kept for as long as they would have been, and no longer. Their
/// leases have ended, and take nothing back.
#[test]
fn permits_that_are_ahead_end_together() {
    let Some(server) = Server::start() else { return };
    let (settle, judge, mut client) = (settle(), judge(), server.client());
    for part in parts("ahead") {
        let begin = granting(&mut client, &part) + 10 * WINDOW;
        let mut budgets = 0;
        for (lease, now) in [(2, begin), (3, begin + 20)] {
            let told = settle.settle(&mut client, now, &part, (lease, [1, 1, 0, 8, TERM]));
            budgets += told.expect("it begins");
        }
        let early = begin - 5 * WINDOW;
        assert_eq!(
            settle.settle(&mut client, early, &part, (2, [2, 0, 8, 0, TERM])),
            None
        );
        let all = Asked {
            permits: LIMIT,
            ..part.clone()
        };
        for (after, admitted) in [(1, false), (TERM + WINDOW - 1, false), (ENDED, true)] {
            let now = early + after;
            assert_eq!(
                held(&mut client, &part, now) == budgets,
                !admitted,
                "{after} later"
            );
            assert_eq!(judge.judge(&mut client, now, "peek", from_ref(&all)).0, admitted);
        }
    }
}

/// A copy of the first report that arrives after the lease has ended begins it once more: the grant is registered.
#[test]
fn a_lease_that_begins_again_is_registered() {
    let Some(server) = Server::start() else { return };
    let (settle, mut client) = (settle(), server.client());
    for part in parts("begins") {
        let mut now = granting(&mut client, &part);
        let question = (3, [1, 1, 0, 20, TERM]);
        settle
            .settle(&mut client, now, &part, question)
            .expect("it begins");
        now += ENDED;
        let budget = settle.settle(&mut client, now, &part, question);
        let budget = budget.expect("it begins once more");
        assert!(budget > 0);
        assert_eq!(held(&mut client, &part, now), budget);
    }
}
