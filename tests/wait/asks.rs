//! Every history of a few waits for shared rules, up to a length, over a store that executes and answers each call when the history
//! says so.
//!
//! Each history asserts:
//!
//! - *no waiter is forgotten*: when time has passed, a waiter is woken;
//! - *no refund is slept through*: while a permit is free that was refunded through the queues, a waiter is woken or asks;
//! - *order*: no waiter asks while an earlier one is in the queue and was not woken;
//! - *rest*: after the last wait, a request is decided without a turn.

use core::sync::atomic::AtomicBool;

use super::*;
use ringgate::shared::{CheckResult, CounterRequest, CounterStatus, CounterStore, SharedRules, StoreFuture};
use ringgate::wait::{SharedAdmission, SharedFair};

/// The retry time of each denial.
const RETRY: Duration = Duration::from_millis(50);

/// A store of a number of free permits, which executes and answers each decision by hand.
#[derive(Debug, Default)]
struct ByHand(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    free: u64,
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
struct Call {
    /// Whether the request was admitted, once the store has executed the call.
    admitted: Option<bool>,
    is_answered: bool,
    waker: Option<Waker>,
}

impl ByHand {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap())
    }

    fn calls(&self) -> usize {
        self.with(|state| state.calls.len())
    }

    fn execute(&self, call: usize) {
        self.with(|state| {
            let admits = state.free > 0;
            state.free -= u64::from(admits);
            state.calls[call].admitted = Some(admits);
        });
    }

    fn answer(&self, call: usize) {
        let waker = self.with(|state| {
            state.calls[call].is_answered = true;
            state.calls[call].waker.take()
        });
        waker.into_iter().for_each(Waker::wake);
    }
}

impl CounterStore for ByHand {
    fn decide<'a>(&'a self, _: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        let mut own = None;
        Box::pin(poll_fn(move |context| {
            self.with(|state| {
                let own = *own.get_or_insert_with(|| {
                    state.calls.push(Call::default());
                    state.calls.len() - 1
                });
                let (free, call) = (state.free, &mut state.calls[own]);
                let Some(is_admitted) = call.admitted.filter(|_| call.is_answered) else {
                    call.waker = Some(context.waker().clone());
                    return Poll::Pending;
                };
                let denied = CounterStatus::without_room(0, Some(RETRY));
                Poll::Ready(Ok(match is_admitted {
                    true => CheckResult::admitted(0, vec![CounterStatus::with_room(free)]),
                    false => CheckResult::denied(0, vec![denied]),
                }))
            })
        }))
    }

    fn peek<'a>(&'a self, _: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        unreachable!("no test peeks")
    }

    fn charge<'a>(&'a self, _: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        unreachable!("no test charges")
    }

    fn refund<'a>(&'a self, _: &'a [CounterRequest], _: &'a CheckResult) -> StoreFuture<'a, u64> {
        self.with(|state| state.free += 1);
        Box::pin(async { Ok(0) })
    }

    fn reset<'a>(&'a self, _: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        unreachable!("no test resets")
    }

    forward!(keeps);
}

/// Whether a task was woken since its last poll.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Admission = Result<SharedAdmission<str>, WaitError>;
type Rules = Arc<SharedRules<str>>;
type Fair = SharedFair<Rules>;

/// One wait, and what the history knows of it.
struct Wait {
    /// `None` when it has ended.
    future: Option<Pin<Box<dyn Future<Output = Admission>>>>,
    woken: Arc<Woken>,
    is_polled: bool,
    /// Its call that was not answered yet.
    call: Option<usize>,
    /// Its position in the order of arrival at the queue.
    rank: Option<usize>,
}

impl Wait {
    fn is_woken(&self) -> bool {
        self.future.is_some() && self.woken.0.load(Ordering::Relaxed)
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Polls a wait that was woken, or for the first time.
    Poll(usize),
    /// The store executes a call.
    Execute(usize),
    /// The store answers a call.
    Answer(usize),
    /// A charge is refunded through the queues.
    Refund,
    /// A wait is dropped.
    Drop(usize),
}

/// The numbers of a set of histories.
#[derive(Clone, Copy, Debug)]
struct Case {
    waits: usize,
    free: u64,
    refunds: usize,
    drops: usize,
    /// The length of the histories, which then end in one way.
    steps: usize,
}

struct World {
    fair: Arc<Fair>,
    store: Arc<ByHand>,
    waits: Vec<Wait>,
    charged: Vec<SharedAdmission<str>>,
    refunds: usize,
    drops: usize,
    next_rank: usize,
}

impl World {
    /// A world over these rules, whose store has no permits and calls.
    fn new(case: Case, rules: &Rules, store: &Arc<ByHand>) -> Self {
        store.with(|state| *state = State::default());
        let mut world = Self {
            fair: Arc::new(SharedFair::new(Arc::clone(rules))),
            store: Arc::clone(store),
            waits: Vec::new(),
            charged: Vec::new(),
            refunds: case.refunds,
            drops: case.drops,
            next_rank: 0,
        };
        world.store.with(|state| state.free = case.refunds as u64);
        for wait in 0..case.refunds {
            world.begin();
            assert!(world.poll(wait));
            world.store.execute(wait);
            world.store.answer(wait);
            assert!(world.poll(wait));
        }
        world.waits.clear();
        world
            .store
            .with(|state| (state.free, state.calls) = (case.free, Vec::new()));
        for _ in 0..case.waits {
            world.begin();
        }
        world
    }

    fn begin(&mut self) {
        let fair = Arc::clone(&self.fair);
        self.waits.push(Wait {
            future: Some(Box::pin(async move { fair.acquire("request").await })),
            woken: Arc::new(Woken(AtomicBool::new(true))),
            is_polled: false,
            call: None,
            rank: None,
        });
    }

    /// Whether a wait that has not ended has arrived at the queue.
    fn is_limited(&self) -> bool {
        self.waits
            .iter()
            .any(|wait| wait.future.is_some() && wait.rank.is_some())
    }

    fn rank(&mut self, at: usize) {
        if self.waits[at].rank.is_none() {
            self.waits[at].rank = Some(self.next_rank);
            self.next_rank += 1;
        }
    }

    /// Polls a wait that was woken. Returns whether it was.
    fn poll(&mut self, at: usize) -> bool {
        if !self.waits[at].is_woken() {
            return false;
        }
        if !self.waits[at].is_polled && self.is_limited() {
            self.rank(at);
        }
        let before = self.store.calls();
        let wait = &mut self.waits[at];
        let is_answered = |call: &usize| self.store.with(|state| state.calls[*call].is_answered);
        let answered = wait.call.take_if(|call| is_answered(call)).is_some();
        wait.is_polled = true;
        wait.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&wait.woken));
        let future = wait.future.as_mut().unwrap().as_mut();
        let polled = future.poll(&mut Context::from_waker(&waker));
        match polled {
            Poll::Ready(admission) => {
                self.charged.push(admission.unwrap());
                wait.future = None;
            }
            Poll::Pending => {
                if self.store.calls() > before {
                    wait.call = Some(before);
                    let rank = wait.rank;
                    self.assert_order(rank);
                }
                if answered || self.waits[at].call.is_none() {
                    self.rank(at);
                }
            }
        }
        true
    }

    /// Asserts that no waiter before this rank is in the queue and was not woken.
    fn assert_order(&self, rank: Option<usize>) {
        let Some(rank) = rank else { return };
        let is_overtaken = |wait: &Wait| {
            let is_before = wait.rank.is_some_and(|other| other < rank);
            is_before && wait.future.is_some() && wait.call.is_none() && !wait.is_woken()
        };
        assert!(!self.waits.iter().any(is_overtaken), "a waiter is overtaken");
    }

    /// The steps that are possible now.
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (at, wait) in self.waits.iter().enumerate() {
            // The waits arrive in their order.
            if wait.is_woken() && (wait.is_polled || self.waits[..at].iter().all(|wait| wait.is_polled)) {
                steps.push(Step::Poll(at));
            }
            if self.drops > 0 && wait.is_polled && wait.future.is_some() {
                steps.push(Step::Drop(at));
            }
        }
        self.store.with(|state| {
            for (at, call) in state.calls.iter().enumerate() {
                match call.admitted {
                    None => steps.push(Step::Execute(at)),
                    Some(_) if !call.is_answered => steps.push(Step::Answer(at)),
                    Some(_) => {}
                }
            }
        });
        if self.refunds > 0 && !self.charged.is_empty() {
            steps.push(Step::Refund);
        }
        steps
    }

    async fn make(&mut self, step: Step) {
        match step {
            Step::Poll(wait) => assert!(self.poll(wait)),
            Step::Execute(call) => self.store.execute(call),
            Step::Answer(call) => self.store.answer(call),
            Step::Refund => {
                self.refunds -= 1;
                let charge = self.charged.pop().unwrap();
                self.fair.refund(charge).await.unwrap();
            }
            Step::Drop(wait) => {
                self.drops -= 1;
                self.waits[wait].future = None;
            }
        }
    }

    /// Makes every step but refunds and drops, until none is left.
    async fn settle(&mut self) {
        (self.refunds, self.drops) = (0, 0);
        while let Some(&step) = self.steps().first() {
            self.make(step).await;
        }
    }

    /// Polls each wait that was woken, until none is.
    fn poll_woken(&mut self) {
        while let Some(woken) = self.waits.iter().position(Wait::is_woken) {
            self.poll(woken);
        }
    }

    /// Makes the rest of the history, in which all waits end.
    async fn finish(mut self) {
        loop {
            self.settle().await;
            let left = self.waits.iter().filter(|wait| wait.future.is_some()).count();
            if left == 0 {
                break;
            }
            let found = self.store.with(|state| state.free);
            assert_eq!(found, 0, "a free permit is slept through");
            // Permits of another node leave the window.
            self.store.with(|state| state.free = left as u64);
            tokio::time::advance(RETRY + Duration::from_millis(2)).await;
            assert!(self.waits.iter().any(Wait::is_woken), "a waiter is forgotten");
        }
        assert_eq!(self.fair.waiting(), 0);
        let calls = self.store.calls();
        self.begin();
        self.poll(self.waits.len() - 1);
        assert_eq!(self.store.calls(), calls + 1, "a gate is left");
    }
}

/// Explores all histories of a case, and returns their number.
async fn explore(case: Case) -> usize {
    let store = Arc::new(ByHand::default());
    let rule = Rule::new("all", "100/h".parse().unwrap()).algorithm(RuleAlgorithm::Log);
    let rules = SharedRules::<str>::builder().rule(rule).build(store.clone());
    let rules = Arc::new(rules.unwrap());
    let (mut histories, mut ends) = (vec![Vec::new()], 0);
    while let Some(history) = histories.pop() {
        let mut world = World::new(case, &rules, &store);
        for &step in &history {
            world.make(step).await;
        }
        let steps = match history.len() < case.steps {
            true => world.steps(),
            false => Vec::new(),
        };
        if steps.is_empty() {
            ends += 1;
            world.finish().await;
        }
        histories.extend(steps.into_iter().map(|step| {
            let mut longer = history.clone();
            longer.push(step);
            longer
        }));
    }
    ends
}

/// Four waiters ask together. The denial of the first is answered before the admissions of the others. Then only the first asks.
#[tokio::test(start_paused = true)]
async fn admissions_from_before_a_denial_let_no_waiter_ask() {
    let store = Arc::new(ByHand::default());
    let rule = Rule::new("all", "100/h".parse().unwrap()).algorithm(RuleAlgorithm::Log);
    let rules = SharedRules::<str>::builder().rule(rule).build(store.clone());
    let case = Case {
        waits: 12,
        free: 0,
        refunds: 0,
        drops: 0,
        steps: 0,
    };
    let mut world = World::new(case, &Arc::new(rules.unwrap()), &store);
    let mut answered = 0;
    // All are denied. Then the number of those that ask grows.
    for (asks, free) in [(12, 0), (1, 1), (1, 1), (2, 2)] {
        world.poll_woken();
        assert_eq!(store.calls() - answered, asks);
        store.with(|state| state.free = free);
        for call in answered..store.calls() {
            store.execute(call);
            store.answer(call);
        }
        answered = store.calls();
        world.poll_woken();
        if free == 0 {
            tokio::time::advance(RETRY + Duration::from_millis(2)).await;
        }
    }
    assert_eq!(store.calls() - answered, 4);
    store.with(|state| state.free = 3);
    for call in [1, 2, 3, 0] {
        store.execute(answered + call);
    }
    for call in [0, 1, 2, 3] {
        store.answer(answered + call);
        world.poll_woken();
    }
    let before = store.calls();
    tokio::time::advance(RETRY + Duration::from_millis(2)).await;
    world.poll_woken();
    assert_eq!(store.calls() - before, 1);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn no_history_forgets_or_overtakes_a_waiter() {
    let case = |waits, free, refunds, drops, steps| Case {
        waits,
        free,
        refunds,
        drops,
        steps,
    };
    for case in [
        case(2, 0, 0, 0, 20),
        case(2, 0, 1, 0, 11),
        case(2, 0, 0, 1, 11),
        case(2, 1, 1, 0, 10),
        case(2, 0, 1, 1, 7),
        case(3, 0, 0, 0, 8),
        case(3, 0, 2, 0, 6),
        case(3, 1, 0, 1, 6),
    ] {
        println!("{case:?}: {} histories", explore(case).await);
    }
}
