//! Many tasks and keys at once: no request is denied while its key has permits.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::shared::{Mode, SharedRules};
use ringgate::{Clock, Key, Nanos, Rule};
use tokio::time::Instant;

use crate::pausing::Pausing;

const KEYS: u64 = 5_000;
const TASKS: u64 = 512;
const LIMIT: u64 = 10;
/// The requests for each key, a few more than its limit.
const EACH: u64 = 14;

/// The time of tokio since an instant.
pub(crate) struct Paused(pub(crate) Instant);

impl Clock for Paused {
    fn now(&self) -> Nanos {
        Nanos::from_duration(self.0.elapsed())
    }
}

/// The period of the budgets in milliseconds. The node lengthens it by up to a half.
const PERIOD: u64 = 20;

/// The duration of a call of the store in milliseconds.
const CALL: u64 = 2;

/// The longest wait of a request: two periods of its budget, each with the call that follows. A timer of tokio may be late by 1 ms.
/// The time is that of tokio, which stands still while any task can run.
const PATIENCE: Duration = Duration::from_millis(2 * (PERIOD + PERIOD / 2 + 1 + CALL + 1));

/// One window holds all requests, so each key is admitted exactly its limit. A budget may be the whole limit.
#[tokio::test(start_paused = true)]
async fn no_request_of_many_keys_and_tasks_is_denied_while_permits_remain() {
    for pending in [LIMIT, 10 * LIMIT] {
        let key = Key::new("key", |key: &u64, hasher| core::hash::Hash::hash(key, hasher));
        let key = key.shared_as(|key, parts| {
            parts.part(key.to_be_bytes());
        });
        let period = Duration::from_millis(PERIOD);
        let rule = Rule::new("keys", "10/h".parse().expect("a quota")).by(&key);
        let limiter = SharedRules::builder()
            .rule(rule.mode(Mode::Sync { period, pending }))
            .term_clock(Paused(Instant::now()))
            .build(Arc::new(Pausing::slow(Duration::from_millis(CALL))))
            .expect("rules");
        let limiter = Arc::new(limiter);
        let began = Instant::now();
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let limiter = Arc::clone(&limiter);
                tokio::spawn(async move {
                    let (mut admitted, mut slowest) = (vec![0_u64; KEYS as usize], Duration::ZERO);
                    // Each task makes a part of the requests, in turn for all keys.
                    for request in (task..KEYS * EACH).step_by(TASKS as usize) {
                        let key = request * 7919 % KEYS;
                        tokio::time::sleep(Duration::from_millis(request * 31 % 5)).await;
                        let asked = Instant::now();
                        let checked = limiter.check(&key).await;
                        slowest = slowest.max(asked.elapsed());
                        match checked {
                            Ok(checked) => {
                                assert!(checked.error().is_none(), "{checked:?}");
                                admitted[key as usize] += 1;
                            }
                            Err(denied) => assert!(denied.error().is_none(), "{denied:?}"),
                        }
                    }
                    (admitted, slowest)
                })
            })
            .collect();
        let (mut admitted, mut slowest) = (vec![0; KEYS as usize], Duration::ZERO);
        for task in tasks {
            let (part, slow) = task.await.expect("no panic");
            admitted.iter_mut().zip(part).for_each(|(all, part)| *all += part);
            slowest = slowest.max(slow);
        }
        let wrong = admitted.iter().filter(|&&admitted| admitted != LIMIT).count();
        let all = KEYS * EACH;
        println!(
            "pending {pending}: {all} decisions in {:?}, slowest {slowest:?}, {wrong} keys wrong",
            began.elapsed()
        );
        assert!(slowest <= PATIENCE, "a request has waited for {slowest:?}");
        assert_eq!(wrong, 0, "of {KEYS} keys have not exactly {LIMIT}");
    }
}
