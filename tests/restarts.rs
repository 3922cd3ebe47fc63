//! Random histories over saves and restores, compared with an exact log. Each process has a clock with an origin of its own,
//! so the cells of its rings begin at other times. The clock may also step back.
#![cfg(not(ringgate_loom))]
#![cfg(not(miri))] // Thousands of histories of one thread.
#![cfg(feature = "rules")]

extern crate alloc;

#[expect(dead_code, reason = "what only the tests of algorithms use")]
mod common;

#[path = "restarts/calendar.rs"]
mod calendar;
#[path = "restarts/keyed.rs"]
mod keyed;
#[path = "restarts/limiter.rs"]
mod limiter;
#[path = "restarts/line.rs"]
mod line;
#[path = "restarts/rules.rs"]
mod rules;

use alloc::collections::BTreeMap;
use core::hash::Hash;
use core::time::Duration;

use common::{Any, Log, Subject};
use line::Line;
use proptest::prelude::*;
use ringgate::algorithm::Reclaim;
use ringgate::rules::RuleSetBuilder;
use ringgate::{
    Algorithm, Clock, CounterRing, Gcra, Key, ManualClock, Nanos, Quota, Rule, RuleSet, TimestampRing,
    UnitRing,
};

/// The window of every limit of these tests, in nanoseconds. It is a multiple of no number of cells but 1, 2 and 5.
const WINDOW: u64 = 1_000_000_000;

/// A step of a history. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
enum Act {
    Take {
        key: u64,
        permits: u64,
    },
    Wait(u64),
    /// Saves the state, and restores it after `gap` in a process whose clock then shows `phase`. The caller is certain of
    /// `known` thousandths of the gap.
    Restart {
        gap: u64,
        known: u64,
        phase: u64,
    },
    /// The clock steps back.
    Back(u64),
}

/// Spans of time around the widths of cells and windows.
fn spans() -> impl Strategy<Value = u64> {
    let near = |time: u64| time - 2..time + 3;
    prop_oneof![
        Just(0),
        0..WINDOW / 100,
        0..WINDOW / 4,
        (1..6_u64, 0..3_u64).prop_map(|(cells, more)| cells * WINDOW / 5 + more),
        near(WINDOW),
        near(WINDOW / 2),
        0..2 * WINDOW,
    ]
}

fn restart() -> impl Strategy<Value = Act> {
    let known = prop_oneof![Just(0), Just(1_000), 0..=1_000_u64];
    (spans(), known, spans()).prop_map(|(gap, known, phase)| Act::Restart { gap, known, phase })
}

/// A history for limits of a few permits and the keys 0 to `keys`.
fn history(keys: u64) -> impl Strategy<Value = Vec<Act>> {
    history_with_steps(keys, 0)
}

/// A history in which the clock also steps back, by up to `most`.
fn history_with_steps(keys: u64, most: u64) -> impl Strategy<Value = Vec<Act>> {
    let take = (0..=keys, 1..5_u64).prop_map(|(key, permits)| Act::Take { key, permits });
    let act = prop_oneof![
        8 => take,
        3 => spans().prop_map(Act::Wait),
        2 => restart(),
        1 => (0..=most).prop_map(Act::Back),
    ];
    prop::collection::vec(act, 1..120)
}

/// Every algorithm of one window, with wide and narrow cells, in one word and in several.
fn subjects(limit: u64) -> Vec<Subject> {
    let quota = Quota::new(limit, Duration::from_nanos(WINDOW)).expect("a quota");
    let more = Quota::new(6 * limit, Duration::from_nanos(WINDOW)).expect("a quota");
    let ring = |cells| CounterRing::builder(quota).cells(cells);
    let built = |builder: ringgate::algorithm::CounterRingBuilder| builder.build().expect("a ring");
    vec![
        Subject::new("fixed window", CounterRing::fixed_window(quota).expect("a ring")),
        Subject::new("fixed window, unpacked", built(ring(1).classic().unpacked())),
        Subject::new("classic of 2", built(ring(2).classic())),
        Subject::new("classic of 3", built(ring(3).classic().unpacked())),
        Subject::new("classic of 5", built(ring(5).classic())),
        Subject::new("even of 1", built(ring(1).even())),
        Subject::new("even of 2", built(ring(2).even())),
        Subject::new("even of 3", built(ring(3).even().unpacked())),
        Subject::new("even of 7", built(ring(7).even())),
        Subject::new("strict of 1", built(ring(1))),
        Subject::new("strict of 2", built(ring(2))),
        Subject::new("strict of 3", built(ring(3).unpacked())),
        Subject::new("strict of 5", built(ring(5))),
        Subject::new("strict of 60", built(ring(60))),
        Subject::new("units", UnitRing::new(quota).expect("a ring")),
        Subject::new("units of several permits", UnitRing::new(more).expect("a ring")),
        Subject::new("log", TimestampRing::new(quota).expect("a ring")),
        Subject::new("bucket", Gcra::new(quota).expect("a bucket")),
        Subject::new("bucket of 1", Gcra::token_bucket(quota, 1).expect("a bucket")),
        Subject::new(
            "bucket of 3",
            Gcra::token_bucket(quota, 3.min(limit)).expect("a bucket"),
        ),
    ]
}

/// How many subjects there are.
const SUBJECTS: usize = 20;

#[derive(Clone, Copy, Debug)]
struct Admission {
    key: u64,
    at: Nanos,
    permits: u64,
}

/// The end of a history, and its admissions.
struct Followed<L> {
    /// By the readings that decided.
    read: Vec<Admission>,
    /// By the times of the receipts.
    receipts: Vec<Admission>,
    limiter: L,
    line: Line,
}

/// Follows a history. `take` returns the permits of an admission, and its time by the clock of the process. `restarted` saves the
/// state and restores it in the process that the line has begun, after the time that the caller knows.
fn follow<L>(
    mut limiter: L,
    mut line: Line,
    acts: &[Act],
    take: impl Fn(&L, u64, u64) -> Option<(u64, Nanos)>,
    mut restarted: impl FnMut(L, &Line, Duration) -> L,
) -> Followed<L> {
    let (mut read, mut receipts) = (Vec::new(), Vec::new());
    for &act in acts {
        match act {
            Act::Take { key, permits } => {
                if let Some((permits, at)) = take(&limiter, key, permits) {
                    let admitted = |at| Admission { key, at, permits };
                    read.push(admitted(line.now()));
                    receipts.push(admitted(line.time_of(at)));
                }
            }
            Act::Wait(time) => line.wait(time),
            Act::Back(time) => line.back(time),
            Act::Restart { gap, known, phase } => {
                // The clock of the former process stands still.
                line.restart(gap, phase);
                let elapsed = (line.pace)(gap) * known / 1_000;
                limiter = restarted(limiter, &line, Duration::from_nanos(elapsed));
            }
        }
    }
    Followed {
        read,
        receipts,
        limiter,
        line,
    }
}

/// The log of each key.
fn by_key(admissions: &[Admission]) -> BTreeMap<u64, Log> {
    let mut logs = BTreeMap::<u64, Log>::new();
    for &Admission { key, at, permits } in admissions {
        logs.entry(key).or_default().add(at, permits);
    }
    logs
}

/// The first window of a key that exceeds its bound: the key, the window, its permits and the bound.
fn broken(subject: &Subject, admissions: &[Admission]) -> Option<(u64, Duration, u64, u64)> {
    by_key(admissions).iter().find_map(|(&key, log)| {
        let (window, worst, bound) = subject.broken(log)?;
        Some((key, window, worst, bound))
    })
}

/// A line whose first process is a few windows old.
fn line() -> Line {
    Line::new(1_000_000_000_000, 7 * WINDOW + 123)
}

/// Follows a history of rules, which each process builds anew. A request is for one permit.
fn follow_rules(
    line: Line,
    acts: &[Act],
    build: impl Fn(&Line) -> RuleSetBuilder<u64>,
) -> Followed<RuleSet<u64, ManualClock>> {
    let rules = build(&line).build_with(line.clock.clone(), [1, 2, 3, 4]);
    follow(
        rules.expect("rules"),
        line,
        acts,
        |rules, key, _| rules.check(&key).ok().map(|_| (1, rules.clock().now())),
        |rules, line, elapsed| {
            let mut file = Vec::new();
            rules.save(&mut file).expect("memory");
            let restored = build(line).restore_with(line.clock.clone(), &*file, elapsed);
            restored.expect("the same rules")
        },
    )
}

/// The width of a cell, or two units of a log, in nanoseconds.
fn cell_of(subject: &Subject) -> u64 {
    let cell = match &subject.algorithm {
        Any::Counter(ring) => ring.cell(),
        Any::Log(log) => log.span() - log.window(),
        _ => Duration::ZERO,
    };
    u64::try_from(cell.as_nanos()).expect("seconds")
}

fn span_of(subject: &Subject) -> u64 {
    u64::try_from(subject.algorithm.span().as_nanos()).expect("seconds")
}

/// The bound in an interval that is shorter than the window by a cell.
fn shorter_by_a_cell(subject: &Subject) -> Subject {
    let cell = Duration::from_nanos(cell_of(subject));
    let mut shorter = subject.clone();
    for (window, _) in &mut shorter.bounds {
        *window = window.saturating_sub(cell);
    }
    shorter.bounds.retain(|(window, _)| !window.is_zero());
    shorter
}

#[test]
fn every_subject_is_chosen() {
    assert_eq!(subjects(10).len(), SUBJECTS);
}
