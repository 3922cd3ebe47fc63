//! Random histories, decided by the scripts in a real server and by a simple reference.

use core::slice::from_ref;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use ringgate::shared::Counting;

use crate::oracle::most_in_a_window;
use crate::scripts::{FAR_AHEAD, Script, ScriptRequest, decide_script, refund_script};
use crate::server::Server;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Advances the time by this much.
    Wait(u64),
    /// Requests this number of permits, under this limit.
    Take(u64, u64),
    /// Refunds the admission with this index, counted from the newest, if it was not refunded.
    GiveBack(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => prop_oneof![Just(0), Just(1), 2..40_u64, 40..400_u64].prop_map(Op::Wait),
        6 => (1..5_u64, prop_oneof![6 => Just(8), 1 => 3..12_u64]).prop_map(|(permits, limit)| Op::Take(permits, limit)),
        1 => (0..4_usize).prop_map(Op::GiveBack),
    ]
}

/// An admission: its time, permits and receipt, and whether it was refunded.
#[derive(Clone, Copy, Debug)]
struct Taken {
    at: u64,
    permits: u64,
    receipt: (u64, u64),
    given: bool,
}

/// The reference: it sums all charges for each decision.
struct Plain {
    asked: ScriptRequest,
    taken: Vec<Taken>,
}

const WINDOW: u64 = 100;

impl Plain {
    /// The time at which a charge of this time expires.
    fn leaves(&self, at: u64) -> u64 {
        match self.asked.counting {
            Counting::Cells(cells) => (at / self.asked.window + cells + 1) * self.asked.window,
            _ => at + self.asked.window,
        }
    }

    fn spent(&self, now: u64) -> u64 {
        let counted = self
            .taken
            .iter()
            .filter(|taken| !taken.given && self.leaves(taken.at) > now);
        counted.map(|taken| taken.permits).sum()
    }

    /// The first time from now on at which this number of permits has room.
    fn ready(&self, now: u64, permits: u64, limit: u64) -> Option<u64> {
        let moments = self.taken.iter().map(|taken| self.leaves(taken.at));
        let moments = moments.filter(|&at| at > now).chain([now]);
        moments.filter(|&at| self.spent(at) + permits <= limit).min()
    }
}

fn follows(
    decide: &Script,
    refund: &Script,
    client: &mut redis::Connection,
    asked: ScriptRequest,
    ops: &[Op],
) {
    let _: () = redis::cmd("FLUSHALL").query(client).expect("an answer");
    let mut now = FAR_AHEAD + 12_345;
    let mut plain = Plain {
        asked,
        taken: Vec::new(),
    };
    for &op in ops {
        match op {
            Op::Wait(microseconds) => now += microseconds,
            Op::Take(permits, limit) => {
                let asked = ScriptRequest {
                    permits,
                    limit,
                    ..plain.asked.clone()
                };
                let looked = decide.decide(client, now, "peek", from_ref(&asked));
                let (admitted, found) = decide.decide(client, now, "charge", from_ref(&asked));
                let spent = plain.spent(now);
                assert_eq!(admitted, spent + permits <= limit, "{op:?} with {spent} spent");
                assert_eq!(admitted, looked.0);
                let left = limit.saturating_sub(spent);
                assert_eq!(looked.1[0].remaining, left);
                assert_eq!(found[0].remaining, if admitted { left - permits } else { left });
                // The retry time is right to the microsecond: the request is admitted then, and not earlier.
                let wait = plain
                    .ready(now, permits, limit)
                    .and_then(|at| i64::try_from(at - now).ok());
                assert_eq!(found[0].wait, wait.unwrap_or(-1), "{op:?}");
                if admitted {
                    plain.taken.push(Taken {
                        at: now,
                        permits,
                        receipt: found[0].receipt,
                        given: false,
                    });
                }
            }
            Op::GiveBack(ago) => {
                let Some(at) = plain.taken.len().checked_sub(ago + 1) else {
                    continue;
                };
                let taken = &mut plain.taken[at];
                if taken.given {
                    continue;
                }
                let asked = ScriptRequest {
                    permits: taken.permits,
                    receipt: taken.receipt,
                    ..plain.asked.clone()
                };
                let given = refund.refund(client, now, from_ref(&asked))[0];
                assert!(
                    given == taken.permits || given == 0,
                    "{given} of {}",
                    taken.permits
                );
                taken.given = given > 0;
                let counted = plain.leaves(plain.taken[at].at) > now;
                assert!(!counted || given > 0, "what counts can be given back");
            }
        }
    }
    // If the limit did not change, no window holds more than it.
    if ops
        .iter()
        .all(|op| !matches!(op, Op::Take(_, limit) if *limit > 8))
    {
        let used = plain.taken.iter().filter(|taken| !taken.given);
        let mut stamps: Vec<_> = used.map(|taken| (taken.at, taken.permits)).collect();
        assert!(most_in_a_window(&mut stamps, WINDOW) <= 8);
    }
}

#[test]
fn scripts_decide_as_a_plain_limiter_does() {
    let Some(server) = Server::start() else { return };
    let (decide, refund) = (decide_script(), refund_script());
    let client = core::cell::RefCell::new(server.client());
    let kinds = [
        ScriptRequest::log("log", 8, WINDOW),
        ScriptRequest::cells("four", 8, 4, WINDOW / 4),
        ScriptRequest::cells("one", 8, 1, WINDOW),
    ];
    let mut runner = TestRunner::new(Config::with_cases(64));
    runner
        .run(&proptest::collection::vec(op(), 1..60), |ops| {
            for asked in &kinds {
                follows(&decide, &refund, &mut client.borrow_mut(), asked.clone(), &ops);
            }
            Ok(())
        })
        .expect("every history");
}

/// The memory is bounded for any requests: a log has no more members than its limit, and a hash no more fields than
/// cells.
#[test]
fn the_stored_data_is_bounded() {
    let Some(server) = Server::start() else { return };
    let (decide, mut client) = (decide_script(), server.client());
    let origin = FAR_AHEAD;
    for asked in [
        ScriptRequest::log("log", 8, WINDOW),
        ScriptRequest::cells("cells", 8, 4, WINDOW / 4),
    ] {
        for step in 0..3000 {
            decide.decide(&mut client, origin + step * 7, "charge", from_ref(&asked));
            let (command, most) = match asked.counting {
                Counting::Log => ("ZCARD", 8),
                _ => ("HLEN", 5),
            };
            let stored: u64 = redis::cmd(command)
                .arg(&asked.key)
                .query(&mut client)
                .expect("a size");
            assert!(stored <= most, "{stored} in {}", asked.key);
        }
    }
}
