//! Histories of requests compared with the definitions: decisions, violations, remaining permits and retry times.

use super::reference::{By, Enforced, Functions, Reference, Spec, Violation, nanos};
use super::*;
use proptest::prelude::*;
use proptest::sample::subsequence;

const NAMES: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
const WINDOWS: [&str; 5] = ["500ms", "1s", "2s", "10s", "60s"];

fn spec(name: &'static str) -> impl Strategy<Value = Spec> {
    use RuleAlgorithm::{Classic, Counter, Even, Fixed, Gcra, Log, SlidingWindow};
    // Counters are more frequent, so that some share a state.
    let algorithm = select(vec![
        Counter,
        Counter,
        Counter,
        Classic,
        Classic,
        Even,
        Fixed,
        Log,
        Gcra,
        SlidingWindow,
        SlidingWindow,
    ]);
    let windows = subsequence(WINDOWS.to_vec(), 1..=3);
    let shape = (algorithm, windows, prop::collection::vec(1..30_u64, 3));
    let about = (
        select(vec![By::Nothing, By::User, By::Address]),
        any::<bool>(),
        any::<bool>(),
        select(vec![None, None, Some(1), Some(2), Some(5)]),
    );
    let rest = (
        select(vec![None, None, None, Some([1, 2]), Some([3, 40]), Some([25, 7])]),
        select(vec![None, None, None, Some(1)]),
        select(vec![None, None, None, Some(2)]),
        select(vec![
            Enforced::All,
            Enforced::All,
            Enforced::All,
            Enforced::None,
            Enforced::Half,
        ]),
        select(vec![None, None, Some(1), Some(60)]),
        any::<bool>(),
    );
    (shape, about, rest).prop_map(move |(shape, about, rest)| {
        let (algorithm, windows, limits) = shape;
        let (by, costs, login_only, cells) = about;
        let (tiers, allow, deny, enforced, burst, limit_by) = rest;
        let quotas = windows.iter().zip(&limits);
        // A shadow rule may have several quotas only if they share a state.
        let in_one = matches!(algorithm, Counter | Classic | Fixed | SlidingWindow);
        let most = if in_one || enforced == Enforced::All { 3 } else { 1 };
        let quotas: Vec<_> = quotas
            .map(|(window, limit)| quota(&format!("{limit}/{window}")))
            .take(most)
            .collect();
        let ring = matches!(algorithm, Counter | Classic | Even);
        let keyed = by != By::Nothing;
        // With a list, a rule shares no state with another rule, so a sliding window with a key and one quota chooses its form.
        let chooses = algorithm == SlidingWindow && keyed && quotas.len() == 1;
        let counts_in_cells = matches!(algorithm, Counter | SlidingWindow) && !chooses;
        Spec {
            name,
            tiers: tiers.filter(|_| quotas.len() == 1 && algorithm != Log),
            limit_by: limit_by && quotas.len() == 1,
            quotas,
            algorithm,
            // Cells of several windows begin at whole steps of the clock. The default of 60 does not fit these windows.
            cells: cells
                .or(counts_in_cells.then_some(5))
                .filter(|_| ring || counts_in_cells),
            word: None,
            burst: burst.filter(|_| algorithm == Gcra),
            by,
            costs,
            login_only,
            allow: allow.or(chooses.then_some(3)).filter(|_| keyed),
            deny: deny.filter(|_| keyed),
            enforced: match enforced {
                Enforced::Half if !keyed => Enforced::All,
                _ => enforced,
            },
        }
    })
}

fn specs() -> impl Strategy<Value = Vec<Spec>> {
    (1..=NAMES.len()).prop_flat_map(|rules| NAMES[..rules].iter().map(|name| spec(name)).collect::<Vec<_>>())
}

fn request() -> impl Strategy<Value = Request> {
    let cost = select(vec![0, 1, 1, 1, 2, 3, 7, 31, u64::MAX]);
    let plan = select(vec![None, None, Some("free"), Some("pro"), Some("unknown")]);
    let limits = [0, 1, 2, 5, 6, 20, u64::MAX].map(Some);
    let limit = select([&[None; 2][..], &limits].concat());
    let users = (0..4_u64, 0..3_u64, cost, any::<bool>(), plan, limit);
    users.prop_map(|(id, address, cost, login, plan, limit)| {
        let request = user(id).address(address).cost(cost).plan(plan).limit(limit);
        Request { login, ..request }
    })
}

#[derive(Clone, Debug)]
enum Op {
    /// Repeats the request this many times.
    Ask(Request, usize),
    /// Reserves, and refunds at once.
    GiveBack(Request),
    /// Advances to the retry time of the last denial.
    Retry,
    Wait(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        5 => (request(), 1..6_usize).prop_map(|(request, times)| Op::Ask(request, times)),
        1 => request().prop_map(Op::GiveBack),
        2 => Just(Op::Retry),
        2 => select(vec![1, 1_000_000, 99_000_000, 100_000_000, 333_000_000, 400_000_000, 1_000_000_000,
            2_500_000_000, 13_000_000_000, 100_000_000_000]).prop_map(Op::Wait),
    ];
    prop::collection::vec(op, 1..40)
}

struct History {
    rules: ByHand,
    clock: ManualClock,
    reference: Reference,
    denied: Option<(Request, Option<Duration>, Nanos)>,
}

impl History {
    fn new(specs: Vec<Spec>) -> Self {
        let functions = Functions::new();
        let (rules, clock) = by_hand(specs.iter().map(|spec| spec.rule(&functions)));
        let mut specs = specs;
        for spec in specs
            .iter_mut()
            .filter(|spec| spec.algorithm == RuleAlgorithm::SlidingWindow)
        {
            let mut chosen = rules.algorithms().filter(|(rule, ..)| *rule == spec.name);
            spec.word = chosen
                .next()
                .and_then(|(_, _, algorithm)| algorithm.cells_and_unit())
                .filter(|_| spec.cells.is_none());
        }
        Self {
            rules,
            clock,
            reference: Reference::new(specs),
            denied: None,
        }
    }

    fn now(&self) -> u64 {
        self.clock.now().get()
    }

    /// The rules that are enforced for the request. The rule set itself selects the half of the keys for a
    /// percentage.
    fn enforced(&self, request: &Request) -> Vec<bool> {
        let of = |spec: &Spec| match spec.enforced {
            Enforced::All => true,
            Enforced::None => false,
            Enforced::Half => {
                let mut peeks = self.rules.peek(request);
                peeks
                    .find(|peek| peek.rule() == spec.name)
                    .is_none_or(|peek| peek.status().is_enforced)
            }
        };
        self.reference.specs.iter().map(of).collect()
    }

    /// Every quota reports the values of the definition.
    fn compare(&self, request: &Request) {
        let mut seen = 0;
        for peek in self.rules.peek(request) {
            let specs = &self.reference.specs;
            let rule = specs
                .iter()
                .position(|spec| spec.name == peek.rule())
                .expect("a rule");
            let spec = &specs[rule];
            let quota = spec
                .quotas
                .iter()
                .position(|quota| *quota == peek.status().quota)
                .expect("a quota");
            let now = self.now();
            assert!(spec.is_about(request));
            assert_eq!(peek.status().limit, spec.limit(quota, request));
            assert_eq!(peek.status().permits, spec.permits(request));
            let remaining = self.reference.remaining(rule, quota, request, now);
            assert_eq!(
                peek.remaining(),
                remaining,
                "{} {}",
                spec.name,
                peek.status().quota
            );
            let spent = self.reference.spent(rule, quota, request, now);
            // For all quotas of the state.
            assert!(
                peek.spent() >= spent,
                "{} {}: {} spent, not {spent}",
                spec.name,
                peek.status().quota,
                peek.spent()
            );
            let alone = matches!(
                spec.algorithm,
                RuleAlgorithm::Log | RuleAlgorithm::Gcra | RuleAlgorithm::Even
            );
            assert!(
                !alone || peek.spent() == spent,
                "{} {}",
                spec.name,
                peek.status().quota
            );
            seen += 1;
        }
        let about = self.reference.specs.iter().filter(|spec| spec.is_about(request));
        assert_eq!(seen, about.map(|spec| spec.quotas.len()).sum::<usize>());
    }

    fn ask(&mut self, request: &Request) {
        let now = self.now();
        let enforced = self.enforced(request);
        let expected = self.reference.check(request, &enforced, now);
        let about = self.reference.specs.iter().any(|spec| spec.is_about(request));
        match self.rules.check(request) {
            Ok(admitted) => {
                assert_eq!(expected, Ok(()));
                assert_eq!(admitted.at().get(), now);
                // Another request came in between.
                self.denied = None;
                assert!(about || !admitted.is_limited());
            }
            Err(denied) => {
                let mut violations: Vec<Violation> = denied
                    .violations()
                    .map(|it| (it.rule.to_string(), it.quota.to_string(), it.limit, it.remaining))
                    .collect();
                violations.sort_unstable();
                assert_eq!(expected, Err(violations));
                assert_eq!(denied.at().get(), now);
                let retry = denied.retry_after();
                self.judge_retry(request, &enforced, retry);
                self.denied = Some((request.clone(), retry, denied.at()));
            }
        }
        // All states equal the definitions, and a denied request has changed none.
        self.compare(request);
        let other = Request {
            user: request.user + 1,
            login: !request.login,
            ..request.clone()
        };
        self.compare(&other);
    }

    /// Without other requests, the request is admitted at the retry time, and not earlier.
    fn judge_retry(&self, request: &Request, enforced: &[bool], retry: Option<Duration>) {
        let admits = |at: u64| self.reference.violations(request, enforced, at).is_empty();
        let Some(retry) = retry else {
            assert!(self.reference.is_hopeless(request, enforced), "never");
            return;
        };
        assert!(!self.reference.is_hopeless(request, enforced), "after {retry:?}");
        let (now, wait) = (self.now(), nanos(retry));
        assert!(wait > 0 && admits(now + wait), "not yet after {retry:?}");
        assert!(!admits(now + wait - 1), "a nanosecond before {retry:?}");
        // Cells begin at multiples of 100 ms: test a few of these times.
        let cells = (now / 100_000_000 + 1)..=((now + wait - 1) / 100_000_000);
        let few = 1 + wait as usize / 100_000_000 / 30;
        for cell in cells.step_by(few) {
            assert!(!admits(cell * 100_000_000), "before {retry:?}");
        }
    }

    fn give_back(&mut self, request: &Request) {
        let (now, enforced) = (self.now(), self.enforced(request));
        self.denied = None;
        let charged = self.reference.charged(request, now);
        let expected = self.reference.check(request, &enforced, now);
        match self.rules.reserve(request) {
            Ok(reservation) => {
                assert_eq!(expected, Ok(()));
                let settled = match self.reference.take_back(request, &charged) {
                    0 => Settled::Exact,
                    kept => Settled::Forfeited(kept),
                };
                assert_eq!(self.rules.refund(reservation), settled);
            }
            Err(denied) => assert_eq!(expected.map_err(|it| it.len()), Err(denied.violations().count())),
        }
        self.compare(request);
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Ask(request, times) => (0..*times).for_each(|_| self.ask(request)),
            Op::GiveBack(request) => self.give_back(request),
            Op::Wait(nanos) => self.clock.advance(Duration::from_nanos(*nanos)),
            Op::Retry => {
                let Some((request, Some(retry), at)) = self.denied.take() else {
                    return;
                };
                if self.clock.now() == at {
                    self.clock.advance(retry);
                    self.ask(&request);
                    assert!(self.denied.is_none(), "denied when it was told to come");
                }
            }
        }
    }

    fn compare_counts(&self) {
        for ((name, counts), expected) in self.rules.counts().zip(&self.reference.counts) {
            assert_eq!(counts, *expected, "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn rules_decide_as_they_are_defined(specs in specs(), ops in ops()) {
        let mut history = History::new(specs);
        for op in &ops {
            history.run(op);
        }
        history.compare_counts();
    }
}
