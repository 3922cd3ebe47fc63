//! The script that renews leases, in a real server with times that the test passes.
//!
//! Nodes send random reports. Copies of reports arrive late, the server decides requests in between, and its clock goes back.
//! No window has more admissions than the limit. While the clock does not go back, the charged and the registered permits
//! together do not exceed the limit.

use ringgate::shared::Counting;

use crate::oracle::most_in_a_window;
use crate::random::Random;
use crate::scripts::{FAR_AHEAD, ScriptRequest, Scripts};

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
fn charged(scripts: &mut Scripts, part: &ScriptRequest, now: u64) -> u64 {
    let key = &part.key;
    match part.counting {
        Counting::Log => scripts.ask(&format!("ZCOUNT {key} ({} +inf", now - WINDOW)),
        Counting::Cells(cells) => since(scripts, key, now / part.window - cells),
        _ => 0,
    }
}

/// Returns the registered permits.
fn registered(scripts: &mut Scripts, part: &ScriptRequest, now: u64) -> u64 {
    since(scripts, &format!("{}:leases", part.key), now + 1)
}

/// The sum of the fields of a hash whose names are this number or a higher one.
fn since(scripts: &mut Scripts, key: &str, first: u64) -> u64 {
    let fields: Vec<(String, u64)> = scripts.ask(&format!("HGETALL {key}"));
    let counted = fields
        .iter()
        .filter(|(field, _)| field.parse::<u64>().is_ok_and(|field| field >= first));
    counted.map(|(_, permits)| permits).sum()
}

#[test]
fn charged_and_leased_permits_never_exceed_the_limit() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let mut random = Random::new(1);
    let mut draw = |end| random.below(end);
    let (mut granted, mut most) = (0, 0);
    for history in 0..40 {
        let part = match history % 2 {
            0 => ScriptRequest::log(&format!("log-{history}"), LIMIT, WINDOW),
            _ => ScriptRequest::cells(&format!("cells-{history}"), LIMIT, 4, WINDOW / 4),
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
                    let asked = part.clone().of(1 + draw(3));
                    if scripts.charge(now, &asked).0 {
                        uses.push((time, asked.permits));
                    }
                }
                1 => {
                    // A copy that arrives late. Its answer is lost.
                    if let Some(copy) = node.copies.pop() {
                        let asked = part.clone().of(copy.charge);
                        scripts.renew(now, &asked, (node.name, copy.arguments));
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
                    let asked = part.clone().of(report.charge);
                    let grant = scripts.renew(now, &asked, (node.name, report.arguments));
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
            let charged = charged(&mut scripts, &part, now);
            let registered = registered(&mut scripts, &part, now);
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
fn granting(scripts: &mut Scripts, part: &ScriptRequest) -> u64 {
    let now = FAR_AHEAD;
    // The server notes the time of the first request. It grants no lease within a term and a window after it.
    assert_eq!(scripts.renew(now, part, (1, [1, 1, 0, 1, TERM])), None);
    now + TERM + WINDOW
}

fn parts(name: &str) -> [ScriptRequest; 3] {
    [
        ScriptRequest::log(&format!("log-{name}"), LIMIT, WINDOW).of(0),
        ScriptRequest::cells(&format!("cells-{name}"), LIMIT, 4, WINDOW / 4).of(0),
        ScriptRequest::gcra(&format!("gcra-{name}"), LIMIT, LIMIT, WINDOW).of(0),
    ]
}

/// The time after a request at which the permits of its lease have ended.
const ENDED: u64 = (TERM + WINDOW) * 17 / 16 + 1;

/// Permits that have ended, and were granted to others, do not return when the clock goes back into the term of their lease.
#[test]
fn a_lease_that_has_ended_is_not_revived() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    for part in parts("ends") {
        let begin = granting(&mut scripts, &part);
        let budget = scripts.renew(begin, &part, (2, [1, 1, 0, 20, TERM]));
        let budget = budget.expect("it begins");
        assert!(budget > 0);
        let all = part.clone().of(LIMIT);
        assert!(!scripts.charge(begin + TERM + WINDOW - 1, &all).0);
        assert!(scripts.charge(begin + ENDED, &all).0);
        let now = begin + TERM / 2;
        let grant = scripts.renew(now, &part, (2, [2, 0, budget, 0, TERM]));
        assert_eq!(grant, None, "its permits may have been granted to others");
        assert_eq!(registered(&mut scripts, &part, now), 0);
    }
}

/// After the clock has gone back, registered permits are kept for the rest of their time. Their leases have ended, and
/// remove no registered permits.
#[test]
fn permits_that_are_ahead_end_together() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    for part in parts("ahead") {
        let begin = granting(&mut scripts, &part) + 10 * WINDOW;
        let mut budgets = 0;
        for (lease, now) in [(2, begin), (3, begin + 20)] {
            let grant = scripts.renew(now, &part, (lease, [1, 1, 0, 8, TERM]));
            budgets += grant.expect("it begins");
        }
        let early = begin - 5 * WINDOW;
        assert_eq!(scripts.renew(early, &part, (2, [2, 0, 8, 0, TERM])), None);
        let all = part.clone().of(LIMIT);
        for (after, admitted) in [(1, false), (TERM + WINDOW - 1, false), (ENDED, true)] {
            let now = early + after;
            assert_eq!(
                registered(&mut scripts, &part, now) == budgets,
                !admitted,
                "{after} later"
            );
            assert_eq!(scripts.peek(now, &all).0, admitted);
        }
    }
}

/// A copy of the first report that arrives after the lease has ended begins it once more: the grant is registered.
#[test]
fn a_lease_that_begins_again_is_registered() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    for part in parts("begins") {
        let mut now = granting(&mut scripts, &part);
        let report = (3, [1, 1, 0, 20, TERM]);
        scripts.renew(now, &part, report).expect("it begins");
        now += ENDED;
        let budget = scripts.renew(now, &part, report);
        let budget = budget.expect("it begins once more");
        assert!(budget > 0);
        assert_eq!(registered(&mut scripts, &part, now), budget);
    }
}
