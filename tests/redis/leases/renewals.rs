//! The script that renews leases, in a real server with times that the test passes.
//!
//! Nodes send random reports. Copies of reports arrive late, the server decides requests in between, and its clock goes back.
//! No window has more admissions than the limit. While the clock does not go back, the charged and the registered permits
//! together do not exceed the limit.

use core::slice::from_ref;

use ringgate::shared::Counting;

use crate::oracle::most_in_a_window;
use crate::random::Random;
use crate::scripts::{FAR_AHEAD, ScriptRequest, decide_script, renew_script};
use crate::server::Server;

const LIMIT: u64 = 30;
const WINDOW: u64 = 100;
const TERM: u64 = 40;

/// A report: its charge, and the other arguments of the script.
#[derive(Clone, Copy, Debug)]
struct UsageReport {
    charge: u64,
    arguments: [u64; 5],
}

/// The lease of a node.
#[derive(Clone, Debug, Default)]
struct NodeLease {
    name: u64,
    budget: u64,
    used: u64,
    until: u64,
    sequence: u64,
    known: bool,
    unanswered: Option<UsageReport>,
    /// Reports that may arrive once more.
    copies: Vec<UsageReport>,
}

/// Returns the charged permits, as the script counts them.
fn charged(client: &mut redis::Connection, part: &ScriptRequest, now: u64) -> u64 {
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

/// Returns the registered permits.
fn registered(client: &mut redis::Connection, part: &ScriptRequest, now: u64) -> u64 {
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
    let (renew, decide, mut client) = (renew_script(), decide_script(), server.client());
    let mut random = Random::new(1);
    let mut draw = |end| random.below(end);
    let (mut granted, mut most) = (0, 0);
    for history in 0..40 {
        let part = match history % 2 {
            0 => ScriptRequest::log(&format!("log {history}"), LIMIT, WINDOW),
            _ => ScriptRequest::cells(&format!("cells {history}"), LIMIT, 4, WINDOW / 4),
        };
        let mut time = FAR_AHEAD + 1_000_000 * history;
        let (mut behind, mut leases) = (0, 0);
        let mut nodes: Vec<NodeLease> = vec![NodeLease::default(); 3];
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
                    // A request that the server decides.
                    let asked = ScriptRequest {
                        permits: 1 + draw(3),
                        ..part.clone()
                    };
                    if decide.decide(&mut client, now, "charge", from_ref(&asked)).0 {
                        uses.push((time, asked.permits));
                    }
                }
                1 => {
                    // A copy that arrives late. Its answer is lost.
                    if let Some(copy) = node.copies.pop() {
                        let asked = ScriptRequest {
                            permits: copy.charge,
                            ..part.clone()
                        };
                        renew.renew(&mut client, now, &asked, (node.name, copy.arguments));
                    }
                }
                2 if node.unanswered.is_none() && draw(10) == 0 => {
                    // The node crashes.
                    *node = NodeLease::default();
                }
                2..5 => {
                    if node.name == 0 {
                        leases += 1;
                        node.name = 1000 * history + leases;
                    }
                    let report = node.unanswered.unwrap_or_else(|| {
                        node.sequence += 1;
                        node.budget = node.budget.min(draw(LIMIT)).max(node.used);
                        let begins = u64::from(!node.known);
                        UsageReport {
                            charge: node.used,
                            arguments: [node.sequence, begins, node.budget, draw(20), TERM],
                        }
                    });
                    node.unanswered = Some(report);
                    node.copies.push(report);
                    let asked = ScriptRequest {
                        permits: report.charge,
                        ..part.clone()
                    };
                    let grant = renew.renew(&mut client, now, &asked, (node.name, report.arguments));
                    match grant {
                        // The answer is lost.
                        _ if draw(4) == 0 => {}
                        Some(budget) => {
                            node.used -= report.charge;
                            // A smaller budget is correct only if the lease had ended, and a copy of its first report has begun
                            // it once more.
                            assert!(budget >= node.used || time >= node.until || behind > 0);
                            (node.budget, node.known, node.unanswered) = (budget.max(node.used), true, None);
                            node.until = time + TERM;
                            granted += u64::from(budget > 0);
                        }
                        None => *node = NodeLease::default(),
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
            let (charged, registered) = (
                charged(&mut client, &part, now),
                registered(&mut client, &part, now),
            );
            // Permits that had left their window count again when the clock goes back.
            assert!(
                charged + registered <= LIMIT || behind > 0,
                "{charged} charged and {registered} registered, in history {history}"
            );
        }
        most = most.max(most_in_a_window(&mut uses, WINDOW));
        assert!(most <= LIMIT, "{most} used in history {history}");
    }
    println!("{granted} grants, worst window {most} of {LIMIT}");
    assert!(granted > 1000 && most * 10 >= LIMIT * 8, "{granted}, {most}");
}

/// Returns a time from which on the server grants leases.
fn granting(client: &mut redis::Connection, part: &ScriptRequest) -> u64 {
    let now = FAR_AHEAD;
    // The server notes the time of the first request. It grants no lease within a term and a window after it.
    assert_eq!(
        renew_script().renew(client, now, part, (1, [1, 1, 0, 1, TERM])),
        None
    );
    now + TERM + WINDOW
}

fn parts(name: &str) -> [ScriptRequest; 3] {
    let asked = |part: ScriptRequest| ScriptRequest { permits: 0, ..part };
    [
        asked(ScriptRequest::log(&format!("log {name}"), LIMIT, WINDOW)),
        asked(ScriptRequest::cells(
            &format!("cells {name}"),
            LIMIT,
            4,
            WINDOW / 4,
        )),
        asked(ScriptRequest::gcra(&format!("gcra {name}"), LIMIT, LIMIT, WINDOW)),
    ]
}

/// The time after a request at which the permits of its lease have ended.
const ENDED: u64 = (TERM + WINDOW) * 17 / 16 + 1;

/// Permits that have ended, and were granted to others, do not return when the clock goes back into the term of their lease.
#[test]
fn a_lease_that_has_ended_is_not_revived() {
    let Some(server) = Server::start() else { return };
    let (renew, decide, mut client) = (renew_script(), decide_script(), server.client());
    for part in parts("ends") {
        let begin = granting(&mut client, &part);
        let budget = renew.renew(&mut client, begin, &part, (2, [1, 1, 0, 20, TERM]));
        let budget = budget.expect("it begins");
        assert!(budget > 0);
        let all = ScriptRequest {
            permits: LIMIT,
            ..part.clone()
        };
        assert!(
            !decide
                .decide(&mut client, begin + TERM + WINDOW - 1, "charge", from_ref(&all))
                .0
        );
        assert!(
            decide
                .decide(&mut client, begin + ENDED, "charge", from_ref(&all))
                .0
        );
        let now = begin + TERM / 2;
        let grant = renew.renew(&mut client, now, &part, (2, [2, 0, budget, 0, TERM]));
        assert_eq!(grant, None, "its permits may have been granted to others");
        assert_eq!(registered(&mut client, &part, now), 0);
    }
}

/// After the clock has gone back, registered permits are kept for the rest of their time. Their leases have ended, and
/// remove no registered permits.
#[test]
fn permits_that_are_ahead_end_together() {
    let Some(server) = Server::start() else { return };
    let (renew, decide, mut client) = (renew_script(), decide_script(), server.client());
    for part in parts("ahead") {
        let begin = granting(&mut client, &part) + 10 * WINDOW;
        let mut budgets = 0;
        for (lease, now) in [(2, begin), (3, begin + 20)] {
            let grant = renew.renew(&mut client, now, &part, (lease, [1, 1, 0, 8, TERM]));
            budgets += grant.expect("it begins");
        }
        let early = begin - 5 * WINDOW;
        assert_eq!(
            renew.renew(&mut client, early, &part, (2, [2, 0, 8, 0, TERM])),
            None
        );
        let all = ScriptRequest {
            permits: LIMIT,
            ..part.clone()
        };
        for (after, admitted) in [(1, false), (TERM + WINDOW - 1, false), (ENDED, true)] {
            let now = early + after;
            assert_eq!(
                registered(&mut client, &part, now) == budgets,
                !admitted,
                "{after} later"
            );
            assert_eq!(
                decide.decide(&mut client, now, "peek", from_ref(&all)).0,
                admitted
            );
        }
    }
}

/// A copy of the first report that arrives after the lease has ended begins it once more: the grant is registered.
#[test]
fn a_lease_that_begins_again_is_registered() {
    let Some(server) = Server::start() else { return };
    let (renew, mut client) = (renew_script(), server.client());
    for part in parts("begins") {
        let mut now = granting(&mut client, &part);
        let report = (3, [1, 1, 0, 20, TERM]);
        renew.renew(&mut client, now, &part, report).expect("it begins");
        now += ENDED;
        let budget = renew.renew(&mut client, now, &part, report);
        let budget = budget.expect("it begins once more");
        assert!(budget > 0);
        assert_eq!(registered(&mut client, &part, now), budget);
    }
}
