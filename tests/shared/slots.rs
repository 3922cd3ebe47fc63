//! Requests in flight over many machines: a slot is held until its admission is dropped, and ends with its node.

use alloc::sync::Arc;
use core::num::NonZeroU32;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;

use ringgate::Rule;
use ringgate::rules::kind::{AnyKind, InFlight};
use ringgate::shared::{
    Admitted, Charges, CounterRequest, CounterStore, DecidedBy, LeaseFuture, LeaseRequest, LeaseStore,
    MemoryStore, Mode, OnError, Reason, SharedRules, StoreError, StoreErrorKind, StoreFuture,
};
use tokio::time::{Instant, sleep};

use crate::cut::Cut;
use crate::many::Paused;
use crate::pausing::Pausing;
use crate::random::Random;
use crate::{memory, runtime, user};

const TERM: Duration = Duration::from_secs(2);
/// A moment in which the task of a node releases slots.
const MOMENT: Duration = Duration::from_millis(1);

/// A connection to a store, which can be cut. A cut call may have been executed.
#[derive(Debug)]
pub(crate) struct Connection {
    store: Arc<dyn CounterStore>,
    is_cut: AtomicBool,
    loses_answers: AtomicBool,
    /// The renewals that panic, and the time that each renewal takes until it is executed.
    panics: AtomicU32,
    delay: Duration,
}

impl Connection {
    pub(crate) fn new(store: Arc<dyn CounterStore>) -> Arc<Self> {
        Self::with_delay(store, Duration::ZERO)
    }

    fn with_delay(store: Arc<dyn CounterStore>, delay: Duration) -> Arc<Self> {
        Arc::new(Self {
            store,
            is_cut: AtomicBool::new(false),
            loses_answers: AtomicBool::new(false),
            panics: AtomicU32::new(0),
            delay,
        })
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    async fn through<T>(&self, call: StoreFuture<'_, T>) -> Result<T, StoreError> {
        if self.is_cut.load(Ordering::Relaxed) {
            return Err(StoreError::new(StoreErrorKind::Down, "cut"));
        }
        let answer = call.await;
        if self.loses_answers.load(Ordering::Relaxed) {
            return Err(StoreError::new(StoreErrorKind::TimedOut, "lost"));
        }
        answer
    }
}

impl CounterStore for Connection {
    forward!(store by through: decide peek refund reset);

    fn charge<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        let left = self.panics.load(Ordering::Relaxed);
        self.panics.store(left.saturating_sub(1), Ordering::Relaxed);
        assert!(left == 0, "the store panics");
        Box::pin(async move {
            sleep(self.delay).await;
            self.through(self.store.charge(requests)).await
        })
    }

    forward!(keeps slots blocks leases);
}

impl LeaseStore for Connection {
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a> {
        let leases = self.store.leases().expect("the store has leases");
        Box::pin(async move {
            let renewed = self.through(Box::pin(async { Ok(leases.renew(requests).await) }));
            match renewed.await {
                Ok(grants) => grants,
                Err(error) => requests.iter().map(|_| Err(error.clone())).collect(),
            }
        })
    }
}

fn slots(limit: u64) -> Rule<str, InFlight> {
    Rule::in_flight("slots", limit).by(&user())
}

fn node<K: Into<AnyKind>>(
    store: Arc<dyn CounterStore>,
    rules: impl IntoIterator<Item = Rule<str, K>>,
) -> SharedRules<str> {
    let builder = SharedRules::builder()
        .term(TERM)
        .nodes(NonZeroU32::new(2).expect("two"));
    let builder = rules
        .into_iter()
        .fold(builder, |builder, rule| builder.rule(rule));
    builder.build(store).expect("rules")
}

/// The slots of a key that the store counts as free.
async fn free(node: &SharedRules<str>, key: &str) -> u64 {
    node.peek(key).await.expect("an answer")[0].remaining
}

#[tokio::test(start_paused = true)]
async fn nodes_share_the_slots_of_a_key() {
    let store = memory();
    let (one, two) = (node(store.clone(), [slots(2)]), node(store, [slots(2)]));
    let first = one.check("alice").await.expect("a slot");
    assert!(first.holds_slots() && first.is_limited() && first.decided_by() == DecidedBy::Store);
    let second = two.check("alice").await.expect("a slot");
    let denied = one.check("alice").await.expect_err("no slot is free");
    assert_eq!(
        (denied.retry_after(), denied.reason(), denied.decided_by()),
        (None, Reason::Spent, DecidedBy::Store)
    );
    assert_eq!(
        denied.to_string(),
        "rate limit reached: slots (0 of 2 in flight left); try again when a request has ended"
    );
    assert!(two.check("bob").await.is_ok());
    drop(second);
    sleep(MOMENT).await;
    assert_eq!((free(&one, "alice").await, free(&two, "bob").await), (1, 2));
    assert!(one.check("alice").await.is_ok());
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_held_for_as_long_as_its_admission() {
    let store = memory();
    let (one, two) = (node(store.clone(), [slots(1)]), node(store, [slots(1)]));
    let held = one.check("alice").await.expect("a slot");
    // Also after the rules are dropped.
    drop(one);
    for _ in 0..100 {
        sleep(TERM / 5).await;
        assert!(two.check("alice").await.is_err());
    }
    drop(held);
    // The task has ended with the admission, so the slot ends with its term.
    sleep(TERM).await;
    assert!(two.check("alice").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_slots_of_a_node_that_vanishes_are_free_within_a_term() {
    let store = memory();
    let connection = Connection::new(store.clone());
    let (one, two) = (node(connection.clone(), [slots(1)]), node(store, [slots(1)]));
    let held = one.check("alice").await.expect("a slot");
    sleep(3 * TERM).await;
    connection.cut(true);
    // The last renewal was up to a quarter of a term before.
    sleep(TERM * 3 / 4 - MOMENT).await;
    assert!(two.check("alice").await.is_err());
    sleep(TERM / 4 + MOMENT).await;
    let other = two.check("alice").await.expect("a slot");
    // The node comes back. Both slots count, so no more than these two requests are in flight.
    connection.cut(false);
    sleep(TERM / 4 + MOMENT).await;
    drop(other);
    sleep(MOMENT).await;
    assert!(two.check("alice").await.is_err());
    drop(held);
    sleep(MOMENT).await;
    assert!(two.check("alice").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_store_learns_of_the_slots_again_after_a_reset() {
    let one = node(memory(), [slots(2)]);
    let held = one.check("alice").await.expect("a slot");
    one.reset("alice").await.expect("an answer");
    assert_eq!(free(&one, "alice").await, 2);
    sleep(TERM / 4 + MOMENT).await;
    assert_eq!(free(&one, "alice").await, 1);
    drop(held);
    sleep(MOMENT).await;
    assert_eq!(free(&one, "alice").await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_is_charged_by_all_rules_or_by_none() {
    let rate = Rule::new("rate", "3/h".parse().expect("a quota")).by(&user());
    let one = node(memory(), [slots(2).into_any(), rate.into_any()]);
    let left = async || {
        let statuses = one.peek("alice").await.expect("an answer");
        (statuses[0].remaining, statuses[1].remaining)
    };
    let first = one.check("alice").await.expect("a slot");
    let second = one.check("alice").await.expect("a slot");
    assert!(one.check("alice").await.is_err());
    assert_eq!(left().await, (0, 1));
    drop((first, second));
    sleep(MOMENT).await;
    drop(one.check("alice").await.expect("a slot"));
    sleep(MOMENT).await;
    assert!(one.check("alice").await.is_err());
    assert_eq!(left().await, (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_refund_returns_the_permits_and_the_slot() {
    let rate = Rule::new("rate", "3/h".parse().expect("a quota")).by(&user());
    let one = node(memory(), [slots(2).into_any(), rate.into_any()]);
    let held = one.check("alice").await.expect("a slot");
    assert_eq!(one.refund(held).await, Ok(ringgate::Settled::Exact));
    sleep(MOMENT).await;
    let statuses = one.peek("alice").await.expect("an answer");
    assert_eq!((statuses[0].remaining, statuses[1].remaining), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn a_rule_in_the_shadow_denies_nothing_and_holds_what_is_free() {
    let one = node(memory(), [slots(1).shadow()]);
    let first = one.check("alice").await.expect("the rule is in the shadow");
    let second = one.check("alice").await.expect("the rule is in the shadow");
    assert!(first.holds_slots() && !second.holds_slots());
    assert_eq!(
        one.counts().map(|(_, counts)| counts.shadow_denied).sum::<u64>(),
        1
    );
    drop(first);
    sleep(MOMENT).await;
    assert_eq!(free(&one, "alice").await, 1);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_the_fallback_decides() {
    // Two nodes share four slots.
    for (on_error, most) in [
        (OnError::Share, 2),
        (OnError::Local, 4),
        (OnError::Deny, 0),
        (OnError::Admit, 100),
    ] {
        let connection = Connection::new(memory());
        let one = node(connection.clone(), [slots(4).on_error(on_error)]);
        // The limiter of the node counts none of the slots that the store has admitted.
        for _ in 0..10 {
            drop(one.check("alice").await.expect("a slot"));
            one.flush().await.expect("an answer");
        }
        connection.cut(true);
        for _ in 0..3 {
            let held: Vec<Admitted<Charges<str>>> = {
                let mut held = Vec::new();
                while held.len() < 100
                    && let Ok(admitted) = one.check("alice").await
                {
                    assert_eq!(admitted.decided_by(), DecidedBy::Fallback);
                    held.push(admitted);
                }
                held
            };
            assert_eq!(held.len(), most, "{on_error:?}");
        }
        // The slots of this node are not those of the store.
        connection.cut(false);
        assert_eq!(free(&one, "alice").await, 4, "{on_error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slot_whose_answer_was_lost_ends_after_its_term() {
    let connection = Connection::new(memory());
    let one = node(connection.clone(), [slots(1).on_error(OnError::Deny)]);
    connection.loses_answers.store(true, Ordering::Relaxed);
    assert!(one.check("alice").await.is_err());
    connection.loses_answers.store(false, Ordering::Relaxed);
    assert_eq!(free(&one, "alice").await, 0);
    sleep(TERM).await;
    assert_eq!(free(&one, "alice").await, 1);
}

/// A release that overtakes a renewal would leave the slot held for a term.
#[tokio::test(start_paused = true)]
async fn a_renewal_is_answered_before_a_release_is_sent() {
    let one = node(Connection::with_delay(memory(), TERM / 8), [slots(1)]);
    let held = one.check("alice").await.expect("a slot");
    // The renewal is sent after a quarter of the term, and executed an eighth later.
    sleep(TERM / 4 + MOMENT).await;
    drop(held);
    one.flush().await.expect("an answer");
    sleep(TERM / 8).await;
    assert_eq!(free(&one, "alice").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_store_ends_one_renewal() {
    let connection = Connection::new(memory());
    let one = node(connection.clone(), [slots(1)]);
    let held = one.check("alice").await.expect("a slot");
    connection.panics.store(2, Ordering::Relaxed);
    sleep(4 * TERM).await;
    assert_eq!(
        (
            connection.panics.load(Ordering::Relaxed),
            free(&one, "alice").await
        ),
        (0, 0)
    );
    drop(held);
    sleep(MOMENT).await;
    assert_eq!(free(&one, "alice").await, 1);
}

/// The rules are used after the runtime of their task has ended.
#[test]
fn without_a_task_no_slot_is_held_in_the_store() {
    let first = runtime();
    let (one, held) = first.block_on(async {
        let one = node(memory(), [slots(1).on_error(OnError::Deny)]);
        let held = one.check("alice").await.expect("a slot");
        (one, held)
    });
    drop(first);
    drop(held);
    runtime().block_on(async {
        let denied = one.check("alice").await.expect_err("no slot is renewed");
        assert_eq!(denied.error().map(StoreError::kind), Some(StoreErrorKind::Down));
        assert_eq!(denied.reason(), Reason::Unavailable);
    });
}

#[tokio::test(start_paused = true)]
async fn a_local_rule_counts_the_slots_of_its_node() {
    let store = memory();
    let local = || slots(1).mode(Mode::Local);
    let (one, two) = (node(store.clone(), [local()]), node(store, [local()]));
    let held = one.check_now("alice").expect("decided").expect("a slot");
    assert!(held.holds_slots() && two.check("alice").await.is_ok());
    assert!(one.check("alice").await.is_err());
    // A panic releases it, too.
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _held = held;
        panic!("the work fails");
    }));
    assert!(panicked.is_err() && one.check("alice").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_check_that_is_dropped_at_any_await_holds_no_slot_after_a_term() {
    for when_woken in [false, true] {
        for polls in 0.. {
            let store = MemoryStore::with_clock(Paused(Instant::now()));
            let one = node(Arc::new(Pausing::over(store)), [slots(1)]);
            let cut = Cut { polls, when_woken };
            let admitted = cut.off(one.check("alice")).await;
            let is_done = admitted.is_some_and(|admitted| admitted.is_ok_and(|it| it.holds_slots()));
            sleep(TERM + MOMENT).await;
            assert_eq!(free(&one, "alice").await, 1, "{cut:?}");
            if is_done {
                break;
            }
        }
    }
}

/// A node, its connection, and the slots that it holds.
struct Member {
    rules: SharedRules<str>,
    connection: Arc<Connection>,
    held: Vec<Admitted<Charges<str>>>,
    /// The time since which its slots count for certain: the connection was never cut for longer than three quarters of a term.
    steady_since: Instant,
    cut_at: Option<Instant>,
}

impl Member {
    /// The slots that the store must count.
    fn counted(&self, now: Instant) -> usize {
        let is_lost = self.cut_at.is_some_and(|at| now >= at + TERM * 3 / 4);
        if is_lost || now < self.steady_since {
            return 0;
        }
        self.held.len()
    }
}

#[tokio::test(start_paused = true)]
async fn random_histories_of_nodes_hold_at_most_the_limit() {
    const LIMIT: usize = 5;
    for seed in 13..=32 {
        let mut random = Random::new(seed);
        let store = memory();
        let mut members: Vec<Member> = (0..3)
            .map(|_| {
                let connection = Connection::new(store.clone());
                Member {
                    rules: node(connection.clone(), [slots(5).on_error(OnError::Deny)]),
                    connection,
                    held: Vec::new(),
                    steady_since: Instant::now(),
                    cut_at: None,
                }
            })
            .collect();
        let mut denied_when_full = 0;
        for _ in 0..2_000 {
            let at = random.index(3);
            let now = Instant::now();
            match random.below(12) {
                0 if random.below(8) == 0 => match members[at].cut_at.take() {
                    None => {
                        members[at].connection.cut(true);
                        members[at].cut_at = Some(now);
                    }
                    Some(cut_at) => {
                        members[at].connection.cut(false);
                        if now >= cut_at + TERM * 3 / 4 {
                            // The slots are added again by the next renewal.
                            members[at].steady_since = now + TERM / 4 + MOMENT;
                        }
                    }
                },
                0..=4 => {
                    let some = members[at].held.len();
                    if some > 0 {
                        drop(members[at].held.swap_remove(random.index(some)));
                    }
                }
                5..=8 => sleep(Duration::from_millis(random.below(300))).await,
                _ => {
                    let answer = members[at].rules.check("key").await;
                    let counted: usize = members.iter().map(|member| member.counted(now)).sum();
                    match answer {
                        Ok(admitted) => {
                            assert!(counted < LIMIT, "seed {seed}: {counted} slots and one more");
                            members[at].held.push(admitted);
                        }
                        Err(denied) if denied.reason() == Reason::Spent => denied_when_full += 1,
                        Err(_) => {}
                    }
                }
            }
        }
        assert!(denied_when_full > 20, "seed {seed}: {denied_when_full}");
        for member in &mut members {
            member.held.clear();
        }
        sleep(TERM + MOMENT).await;
        members[0].connection.cut(false);
        assert_eq!(free(&members[0].rules, "key").await, LIMIT as u64, "seed {seed}");
    }
}
