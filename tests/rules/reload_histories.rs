//! Histories of requests and reloads: no window holds more than the highest bound of the rules in force in it.

use super::*;
use proptest::prelude::*;

const WINDOW: Duration = Duration::from_secs(10);

/// A version of a rule, in force for some time.
#[derive(Clone, Debug)]
struct Version {
    limit: u64,
    algorithm: RuleAlgorithm,
    cells: u64,
    capacity: u64,
    /// Whether the rule has a condition, which every request meets.
    is_conditional: bool,
}

impl Version {
    fn rule(&self, name: &'static str, window: Duration, key: Option<&Key<Request>>) -> Rule<Request> {
        let quota = Quota::new(self.limit, window).expect("a quota");
        let mut rule = Rule::new(name, quota).algorithm(self.algorithm);
        if !matches!(
            self.algorithm,
            RuleAlgorithm::SlidingWindow | RuleAlgorithm::Log | RuleAlgorithm::Gcra | RuleAlgorithm::Fixed
        ) {
            rule = rule.cells(self.cells);
        }
        if self.is_conditional {
            rule = rule.when(&Condition::new("any", |_: &Request| true));
        }
        match key {
            Some(key) => rule.by(key).capacity(self.capacity).on_full(OnFull::Share),
            None => rule,
        }
    }

    fn bound(&self) -> u64 {
        match self.algorithm {
            RuleAlgorithm::SlidingWindow | RuleAlgorithm::Counter | RuleAlgorithm::Log => self.limit,
            RuleAlgorithm::Even => self.limit + self.limit.div_ceil(self.cells),
            RuleAlgorithm::Classic | RuleAlgorithm::Fixed | RuleAlgorithm::Gcra => 2 * self.limit,
            other => unreachable!("no bound for {other:?}"),
        }
    }
}

/// Algorithms whose bounds are equal multiples of the limit. A rule with a looser bound may admit more in a window
/// than counts at its end, so a stricter successor would be charged only a part.
fn families() -> impl Strategy<Value = Vec<RuleAlgorithm>> {
    use RuleAlgorithm::{Classic, Counter, Even, Fixed, Gcra, Log, SlidingWindow};
    select(vec![
        vec![SlidingWindow, SlidingWindow, Counter, Counter, Log],
        vec![Classic],
        vec![Even],
        vec![Fixed],
        vec![Gcra],
    ])
}

fn version(family: Vec<RuleAlgorithm>) -> impl Strategy<Value = Version> {
    (
        select(vec![3, 10, 12, 30, 60, 200]),
        select(family),
        select(vec![1, 5, 10]),
        select(vec![1, 20, 300]),
        any::<bool>(),
    )
        .prop_map(|(limit, algorithm, cells, capacity, is_conditional)| Version {
            limit,
            algorithm,
            cells,
            capacity,
            is_conditional,
        })
}

#[derive(Clone, Debug)]
enum Op {
    /// Requests of a user, by the rules in force or by the held ones.
    Ask(u64, u64, bool),
    Wait(u64),
    /// A reload: the rule for each user, and the rule for all users.
    Reload(Version, Version),
    Hold,
    LetGo,
}

/// The first rules, for each user and for all users, and the following operations.
fn histories() -> impl Strategy<Value = (Version, Version, Vec<Op>)> {
    (families(), families())
        .prop_flat_map(|(each, all)| (version(each.clone()), version(all.clone()), ops(each, all)))
}

fn ops(each: Vec<RuleAlgorithm>, all: Vec<RuleAlgorithm>) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (select(vec![0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]), 1..80_u64, any::<bool>())
            .prop_map(|(id, calls, held)| Op::Ask(id, calls, held)),
        3 => select(vec![1, 500, 1_000, 2_000, 3_700, 8_000, 12_000]).prop_map(Op::Wait),
        3 => (version(each), version(all)).prop_map(|(each, all)| Op::Reload(each, all)),
        1 => Just(Op::Hold),
        1 => Just(Op::LetGo),
    ];
    prop::collection::vec(op, 1..60)
}

/// One rule: its versions with the times at which they were in force, and the admissions with their times and keys.
#[derive(Default)]
struct Past {
    versions: Vec<(u64, u64, u64)>,
    admitted: Vec<(u64, u64)>,
}

impl Past {
    /// The versions in force now.
    fn end_but(&mut self, kept: usize, now: u64) {
        let ended = self.versions.len() - kept;
        for version in &mut self.versions[..ended] {
            version.1 = version.1.min(now);
        }
    }

    fn begin(&mut self, version: &Version, now: u64) {
        self.versions.push((now, u64::MAX / 2, version.bound()));
    }

    /// A window that exceeds the bounds of all versions in it: its end, its permits, and the bound.
    fn broken(&self) -> Option<(u64, u64, u64)> {
        let window = WINDOW.as_nanos() as u64;
        self.admitted.iter().enumerate().find_map(|(index, &(end, key))| {
            let until_here = self.admitted[..=index].iter();
            let held = until_here.filter(|it| it.1 == key && it.0 + window > end).count() as u64;
            let in_force = self
                .versions
                .iter()
                .filter(|it| it.0 <= end && it.1 + window > end);
            let bound = in_force.map(|it| it.2).max().expect("some version is in force");
            (held > bound).then_some((end, held, bound))
        })
    }
}

struct History {
    live: Live,
    clock: ManualClock,
    key: Key<Request>,
    held: Option<LoadedRules<Request, ManualClock>>,
    /// The number of the newest versions that were pending when rules began to be held.
    open: usize,
    each: Past,
    all: Past,
}

impl History {
    fn new(each: &Version, all: &Version) -> Self {
        let key = by_user();
        let (live, clock) = live([
            each.rule("each", WINDOW, Some(&key)),
            all.rule("all", WINDOW, None),
        ]);
        let mut history = Self {
            live,
            clock,
            key,
            held: None,
            open: 1,
            each: Past::default(),
            all: Past::default(),
        };
        let now = history.now();
        history.each.begin(each, now);
        history.all.begin(all, now);
        history
    }

    fn now(&self) -> u64 {
        self.clock.now().get()
    }

    fn run(&mut self, op: &Op) {
        let now = self.now();
        match op {
            Op::Wait(wait) => self.clock.advance(millis(*wait)),
            Op::Hold => {
                self.held.get_or_insert_with(|| self.live.load());
            }
            Op::LetGo => {
                self.held = None;
                assert_eq!(self.live.finish(), Reloaded::Done);
                self.open = 1;
                self.each.end_but(1, now);
                self.all.end_but(1, now);
            }
            Op::Reload(each, all) => {
                let rules = [
                    each.rule("each", WINDOW, Some(&self.key)),
                    all.rule("all", WINDOW, None),
                ];
                let reloaded = self.live.store(&set(rules)).expect("rules");
                assert!(self.held.is_some() || reloaded == Reloaded::Done);
                self.open = if self.held.is_some() { self.open + 1 } else { 1 };
                self.each.begin(each, now);
                self.all.begin(all, now);
                self.each.end_but(self.open, now);
                self.all.end_but(self.open, now);
            }
            Op::Ask(id, calls, held) => {
                for _ in 0..*calls {
                    let admitted = match &self.held {
                        Some(rules) if *held => rules.check(&user(*id)).is_ok(),
                        _ => self.live.load().check(&user(*id)).is_ok(),
                    };
                    if !admitted {
                        break;
                    }
                    self.each.admitted.push((now, *id));
                    self.all.admitted.push((now, 0));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn no_window_holds_more_than_the_most_generous_rule_in_it((each, all, ops) in histories()) {
        let mut history = History::new(&each, &all);
        for op in &ops {
            history.run(op);
        }
        prop_assert_eq!(history.each.broken(), None, "each");
        prop_assert_eq!(history.all.broken(), None, "all");
    }

    /// The permits that still count and the permits that the new rule admits are together at most its limit, unless
    /// the former exceed it alone. For rules whose bound is the limit.
    #[test]
    fn a_changed_window_begins_with_the_permits_spent(
        reloads in prop::collection::vec((
            select(vec![3_u64, 10, 12, 30, 60]),
            select(vec![1, 2, 5, 10, 30]),
            select(vec![RuleAlgorithm::SlidingWindow, RuleAlgorithm::Counter, RuleAlgorithm::Log]),
            prop::collection::vec((1..40_u64, select(vec![0, 100, 900, 3_000, 7_000])), 1..20),
        ), 1..8),
        keyed in any::<bool>(),
    ) {
        let key = by_user();
        let (live, clock) = live::<AnyKind>([]);
        let mut kept = None;
        for (limit, window, algorithm, asks) in reloads {
            let before = live.load().peek(&user(1)).next().map_or(0, |peek| peek.spent());
            let version = Version { limit, algorithm, cells: 5, capacity: 100, is_conditional: false };
            let rule = version.rule("a", secs(window), keyed.then_some(&key));
            prop_assert_eq!(live.store(&set([rule])).expect("valid rules"), Reloaded::Done);
            if kept.replace((window, algorithm)) == Some((window, algorithm)) {
                // The state is reused, so the permits expire as before.
                continue;
            }
            let (start, mut admitted) = (clock.now(), 0);
            let after = live.load().peek(&user(1)).next().expect("a rule").spent();
            prop_assert!(after >= before.min(limit), "{} before, {} after", before, after);
            for (calls, wait) in asks {
                if clock.now() >= start.saturating_add(secs(window)) {
                    break;
                }
                admitted += admissions(&live, &user(1), calls);
                clock.advance(millis(wait));
            }
            prop_assert!(before + admitted <= limit.max(before), "{} and {} of {}", before, admitted, limit);
        }
    }
}
