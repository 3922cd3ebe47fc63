//! Runs calls in threads, and checks their answers.

use core::cell::Cell;
use std::collections::HashSet;

use ringgate::sync::{AtomicU64, Ordering, Shared, Words};
use ringgate::{Algorithm, Nanos, Receipt};

#[cfg(not(ringgate_loom))]
use alloc::sync::Arc;
#[cfg(ringgate_loom)]
use loom::{sync::Arc, thread};
#[cfg(not(ringgate_loom))]
use std::thread;

/// A call of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    /// Requests permits at a time.
    Check(u64, u64),
    /// Refunds this many permits of the thread's latest receipt, if it has one.
    Refund(u64),
    /// Charges permits at a time.
    Charge(u64, u64),
    /// Reads the remaining capacity at a time.
    Remaining(u64),
    /// Reads, at a time, when this many permits would be admitted.
    ReadyAt(u64, u64),
}

/// The answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Admitted { at: u64, permits: u64 },
    Denied,
    Refunded(bool),
    NoReceipt,
    Charged(u64),
    Remaining(u64),
    ReadyAt(Option<u64>),
}

/// The checks of a model's executions, and the number of executions that loom explores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    /// The most preemptions in an execution that loom explores. `None`: no bound.
    pub(crate) preemptions: Option<usize>,
    /// Whether the answers must equal those of some order of the calls.
    pub(crate) ordered: bool,
    /// A further window, in nanoseconds, and its bound.
    pub(crate) also: Option<(u64, u64)>,
    /// Whether thread i starts with the receipt of the i-th admission of `before`.
    pub(crate) inherits: bool,
    /// Whether refunded permits may still count in the current cell of a wide ring, because the refund overlapped
    /// with the entry of that cell.
    pub(crate) late: bool,
}

/// Explores every execution, with any number of preemptions. For two threads with few steps each.
pub(crate) const FULL: Model = Model {
    preemptions: None,
    ordered: true,
    also: None,
    inherits: false,
    late: false,
};

/// Explores every execution with up to three preemptions. With two, loom does not find the fault of a recycled slot.
///
/// `up_to(2)` is for a model that takes longer than a few seconds with three, and in which no slot or entry passes on and back while a
/// thread stalls. With two preemptions, a thread stalls at any point while the other runs, and stalls in turn at any point of that run.
/// `up_to(1)` is for a model that takes as long with two, and whose fault needs one thread that stalls at any point while the other
/// runs. With LOOM_MAX_PREEMPTIONS=3, every such model has three.
pub(crate) const BOUNDED: Model = Model {
    preemptions: Some(3),
    ordered: true,
    also: None,
    inherits: false,
    late: false,
};

impl Model {
    /// Does not check the order of the answers.
    pub(crate) const fn unordered(self) -> Self {
        Self {
            ordered: false,
            ..self
        }
    }

    /// Gives thread i the receipt of the i-th admission of `before`.
    pub(crate) const fn inheriting(self) -> Self {
        Self {
            inherits: true,
            ..self
        }
    }

    /// Allows refunded permits to count in a cell that is entered during the refund, but in no later cell.
    pub(crate) const fn with_late_refunds(self) -> Self {
        Self { late: true, ..self }
    }

    /// Explores executions of at most this many preemptions.
    pub(crate) const fn up_to(self, preemptions: usize) -> Self {
        Self {
            preemptions: Some(preemptions),
            ..self
        }
    }

    /// Asserts the bound of a further window.
    pub(crate) const fn and_within(self, bound: u64, window: u64) -> Self {
        Self {
            also: Some((bound, window)),
            ..self
        }
    }

    /// Runs `before` in order, and then the calls of each thread concurrently, in each execution that the model
    /// covers.
    pub(crate) fn run<A>(self, algorithm: A, before: &'static [Call], threads: &'static [&'static [Call]])
    where
        A: Algorithm + Clone + Send + Sync + 'static,
    {
        // The orders need thousands of sequential runs, which are slow in Miri. Miri only checks the bound and the
        // state when all permits have expired.
        let expected = (self.ordered && !cfg!(miri))
            .then(|| alloc::sync::Arc::new(self.orders(&algorithm, before, threads)));
        let algorithm = alloc::sync::Arc::new(algorithm);
        self.explore(move || {
            let words: Arc<Vec<AtomicU64>> =
                Arc::new((0..algorithm.words()).map(|_| AtomicU64::new(0)).collect());
            let (first, receipts) = play_before(&*algorithm, Shared::new(&words), before);
            let mut inherited = receipts.into_iter().filter(|_| self.inherits);
            let handles: Vec<_> = threads
                .iter()
                .map(|calls| {
                    let (algorithm, words) = (alloc::sync::Arc::clone(&algorithm), Arc::clone(&words));
                    let receipt = inherited.next();
                    thread::spawn(move || play(&*algorithm, Shared::new(&words), calls, receipt))
                })
                .collect();
            let answers: Vec<Vec<Answer>> =
                handles.into_iter().map(|handle| handle.join().unwrap()).collect();

            let plain = Plain::copy(&words);
            self.within_bound(&*algorithm, before, &first, threads, &answers);
            comes_to_rest(&*algorithm, &plain.twin(), before, threads);
            if let Some(expected) = &expected {
                let seen = (answers, outlook(&*algorithm, &plain, before, threads));
                assert!(
                    expected.contains(&seen),
                    "no order of the calls has the answers {seen:?}; the orders have {expected:#?}"
                );
            }
        });
    }

    /// Explores an execution. The thread that starts first must write a word that another one reads: of each word, loom keeps only the
    /// last access, so it forgets the read of a thread when the next thread reads the word before it writes it, and never preempts
    /// the first one.
    #[cfg(ringgate_loom)]
    pub(crate) fn explore(self, execution: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        // The builder begins with the bound of LOOM_MAX_PREEMPTIONS. That variable only raises the bound of a model.
        builder.preemption_bound = self
            .preemptions
            .map(|own| own.max(builder.preemption_bound.unwrap_or(0)));
        let executions = alloc::sync::Arc::new(core::sync::atomic::AtomicU64::new(0));
        let counted = alloc::sync::Arc::clone(&executions);
        builder.check(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            execution();
        });
        assert!(
            executions.load(Ordering::Relaxed) > 1,
            "a model of one execution shows nothing of threads"
        );
    }

    #[cfg(not(ringgate_loom))]
    pub(crate) fn explore(self, execution: impl Fn() + Send + Sync + 'static) {
        // Miri interleaves by its seed, and `ci/miri.sh` has another one for each commit. Real threads need many runs, and more of
        // them for a model that loom cannot explore in full.
        let times = match (cfg!(miri), self.preemptions) {
            (true, _) => 1,
            (false, Some(_)) => 400,
            (false, None) => 200,
        };
        // `ci/tsan.sh` has fewer: ThreadSanitizer finds a race in whatever order the threads run.
        let times = std::env::var("RINGGATE_EXECUTIONS")
            .map_or(times, |set| set.parse().expect("RINGGATE_EXECUTIONS is a number"));
        for _ in 0..times {
            execution();
        }
    }
}

/// Words of a single thread, for the sequential reference.
struct Plain(Vec<Cell<u64>>);

impl Plain {
    fn fresh(words: usize) -> Self {
        Self((0..words).map(|_| Cell::new(0)).collect())
    }

    fn copy(words: &[AtomicU64]) -> Self {
        Self(
            words
                .iter()
                .map(|word| Cell::new(word.load(Ordering::Acquire)))
                .collect(),
        )
    }

    fn twin(&self) -> Self {
        Self(self.0.clone())
    }
}

impl Words for &Plain {
    fn load(self, index: usize, _: Ordering) -> u64 {
        self.0[index].get()
    }

    fn exchange(self, index: usize, current: u64, new: u64, _: Ordering) -> Result<u64, u64> {
        let seen = self.0[index].get();
        if seen == current {
            self.0[index].set(new);
            Ok(seen)
        } else {
            Err(seen)
        }
    }
}

/// The words of a wide ring whose first base belongs to another cell than the refund expects.
#[derive(Clone, Copy)]
struct LateRefund<'a>(&'a Plain);

impl Words for LateRefund<'_> {
    fn load(self, index: usize, order: Ordering) -> u64 {
        self.0.load(index, order)
    }

    fn exchange(self, index: usize, current: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        match index {
            1 => Err(self.0.load(1, order)),
            _ => self.0.exchange(index, current, new, order),
        }
    }
}

/// Makes the calls of one thread, which may start with a receipt.
fn play<A: Algorithm, W: Words>(
    algorithm: &A,
    words: W,
    calls: &[Call],
    mut receipt: Option<Receipt>,
) -> Vec<Answer> {
    calls
        .iter()
        .map(|&call| answer(algorithm, words, call, &mut receipt))
        .collect()
}

/// Makes the calls before the threads start, and returns the receipts of the admissions.
fn play_before<A: Algorithm, W: Words>(
    algorithm: &A,
    words: W,
    calls: &[Call],
) -> (Vec<Answer>, Vec<Receipt>) {
    let mut receipts = Vec::new();
    let answers = calls
        .iter()
        .map(|&call| {
            let mut receipt = None;
            let given = answer(algorithm, words, call, &mut receipt);
            receipts.extend(receipt);
            given
        })
        .collect();
    (answers, receipts)
}

fn answer<A: Algorithm, W: Words>(
    algorithm: &A,
    words: W,
    call: Call,
    receipt: &mut Option<Receipt>,
) -> Answer {
    match call {
        Call::Check(now, permits) => match algorithm.decide(words, Nanos::new(now), permits) {
            Some(taken) => {
                let at = taken.at().get();
                *receipt = Some(taken);
                Answer::Admitted { at, permits }
            }
            None => Answer::Denied,
        },
        Call::Refund(permits) => match receipt.take() {
            Some(taken) => Answer::Refunded(algorithm.refund(words, &taken, permits)),
            None => Answer::NoReceipt,
        },
        Call::Charge(now, permits) => Answer::Charged(algorithm.charge(words, Nanos::new(now), permits)),
        Call::Remaining(now) => Answer::Remaining(algorithm.remaining(words, Nanos::new(now))),
        Call::ReadyAt(now, permits) => Answer::ReadyAt(
            algorithm
                .ready_at(words, Nanos::new(now), permits)
                .map(Nanos::get),
        ),
    }
}

/// The answers of each thread, and the final answers of the words.
type Seen = (Vec<Vec<Answer>>, Vec<u64>);

impl Model {
    /// The results of every order of the calls.
    fn orders<A: Algorithm>(self, algorithm: &A, before: &[Call], threads: &[&[Call]]) -> HashSet<Seen> {
        let words = Plain::fresh(algorithm.words());
        let (_, receipts) = play_before(algorithm, &words, before);
        let mut seen = HashSet::new();
        let mut inherited = receipts.into_iter().filter(|_| self.inherits);
        let mut players: Vec<Player> = threads
            .iter()
            .map(|calls| Player::new(calls, inherited.next()))
            .collect();
        self.extend(algorithm, before, threads, &words, &mut players, &mut seen);
        seen
    }
}

#[derive(Debug, Clone)]
struct Player {
    calls: &'static [Call],
    entered: bool,
    mark: Option<(u64, u64, u64)>,
    answers: Vec<Answer>,
}

impl Player {
    fn new(calls: &[Call], receipt: Option<Receipt>) -> Self {
        Self {
            calls: calls.to_vec().leak(),
            entered: false,
            mark: receipt.map(|taken| parts(&taken)),
            answers: Vec::new(),
        }
    }
}

fn parts(receipt: &Receipt) -> (u64, u64, u64) {
    (receipt.at().get(), receipt.permits(), receipt.mark())
}

impl Model {
    fn extend<A: Algorithm>(
        self,
        algorithm: &A,
        before: &[Call],
        threads: &[&[Call]],
        words: &Plain,
        players: &mut Vec<Player>,
        seen: &mut HashSet<Seen>,
    ) {
        let mut done = true;
        for index in 0..players.len() {
            let Some(&call) = players[index].calls.get(players[index].answers.len()) else {
                continue;
            };
            done = false;
            let kept = players[index].clone();
            // A call that moves the window may do so in a separate step, before it is decided.
            if let (false, Call::Check(now, _) | Call::Charge(now, _)) = (kept.entered, call) {
                let words = words.twin();
                assert!(algorithm.decide(&words, Nanos::new(now), u64::MAX).is_none());
                players[index].entered = true;
                self.extend(algorithm, before, threads, &words, players, seen);
                players[index] = kept.clone();
            }
            let ways = if self.late && matches!(call, Call::Refund(_)) {
                2
            } else {
                1
            };
            for late in (0..ways).map(|way| way == 1) {
                let words = words.twin();
                let mut receipt = kept
                    .mark
                    .map(|(at, permits, mark)| Receipt::new(Nanos::new(at), permits, mark));
                let given = if late {
                    answer(algorithm, LateRefund(&words), call, &mut receipt)
                } else {
                    answer(algorithm, &words, call, &mut receipt)
                };
                players[index].mark = receipt.map(|taken| parts(&taken));
                players[index].answers.push(given);
                players[index].entered = false;
                self.extend(algorithm, before, threads, &words, players, seen);
                players[index] = kept.clone();
            }
        }
        if done {
            let answers = players.iter().map(|player| player.answers.clone()).collect();
            seen.insert((answers, outlook(algorithm, words, before, threads)));
        }
    }
}

fn latest(before: &[Call], threads: &[&[Call]]) -> u64 {
    let time = |call: &Call| match *call {
        Call::Check(now, _) | Call::Charge(now, _) | Call::Remaining(now) | Call::ReadyAt(now, _) => now,
        Call::Refund(_) => 0,
    };
    threads
        .iter()
        .flat_map(|calls| calls.iter())
        .chain(before)
        .map(time)
        .max()
        .unwrap_or(0)
}

/// Returns the capacity after the last call, at ten times over two windows.
fn outlook<A: Algorithm>(algorithm: &A, words: &Plain, before: &[Call], threads: &[&[Call]]) -> Vec<u64> {
    let from = latest(before, threads);
    let step = u64::try_from(algorithm.window().as_nanos()).unwrap() / 5;
    (0..10)
        .map(|steps| algorithm.remaining(words, Nanos::new(from + steps * step)))
        .collect()
}

impl Model {
    fn within_bound<A: Algorithm>(
        self,
        algorithm: &A,
        before: &[Call],
        first: &[Answer],
        threads: &[&[Call]],
        answers: &[Vec<Answer>],
    ) {
        let mut log = Vec::new();
        let is_admitted = |answer: &&Answer| matches!(answer, Answer::Admitted { .. });
        let inherited = first.iter().filter(is_admitted).count();
        let lists = core::iter::once((before, first))
            .chain(threads.iter().copied().zip(answers.iter().map(Vec::as_slice)));
        for (list, (calls, answers)) in lists.enumerate() {
            // The first list is that of `before`, whose admissions come first in the log.
            let mut latest = list
                .checked_sub(1)
                .filter(|&thread| self.inherits && thread < inherited);
            for (call, answer) in calls.iter().zip(answers) {
                match (call, *answer) {
                    (_, Answer::Admitted { at, permits }) => {
                        latest = Some(log.len());
                        log.push((at, permits));
                    }
                    (Call::Refund(back), Answer::Refunded(true)) => {
                        let index = latest.take().expect("the thread has a receipt");
                        log[index].1 -= back;
                    }
                    _ => {}
                }
            }
        }
        let window = u64::try_from(algorithm.window().as_nanos()).unwrap();
        for (bound, window) in [(algorithm.bound(), window)].into_iter().chain(self.also) {
            for &(end, _) in &log {
                // Half-open: t - W < s <= t.
                let sum: u64 = log
                    .iter()
                    .filter(|&&(at, _)| at <= end && at + window > end)
                    .map(|&(_, permits)| permits)
                    .sum();
                assert!(
                    sum <= bound,
                    "{sum} permits, more than {bound}, in the window up to {end}: {log:?}"
                );
            }
        }
    }
}

fn comes_to_rest<A: Algorithm>(algorithm: &A, words: &Plain, before: &[Call], threads: &[&[Call]]) {
    let window = u64::try_from(algorithm.window().as_nanos()).unwrap();
    let debts: u64 = threads
        .iter()
        .flat_map(|calls| calls.iter())
        .chain(before)
        .map(|call| match *call {
            Call::Charge(_, permits) => permits * window,
            _ => 0,
        })
        .sum();
    let later = Nanos::new(latest(before, threads) + 8 * window + debts);
    assert_eq!(algorithm.remaining(words, later), algorithm.max_request());
    assert_eq!(algorithm.idle_at(words, later), Some(later));
    assert!(algorithm.decide(words, later, algorithm.max_request()).is_some());
    assert_eq!(algorithm.remaining(words, later), 0);
    assert!(algorithm.decide(words, later, 1).is_none());
}
