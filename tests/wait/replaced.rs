//! Waits for rules that are replaced while a request is decided.

use core::sync::atomic::AtomicUsize;

use super::*;
use ringgate::wait::RuleSource;

/// The cost of a request by the old rules, and whether it is a request of each old rule.
#[derive(Clone, Copy)]
struct Request(u64, [bool; 2]);

type Rules = RuleSet<Request, TokioClock>;

/// Rules that are replaced after a number of readings.
struct Replaced {
    old: Rules,
    new: Rules,
    readings: AtomicUsize,
}

impl Replaced {
    fn after(readings: usize, old: Rules, new: Rules) -> Fair<Self> {
        let readings = AtomicUsize::new(readings);
        Fair::new(Self { old, new, readings })
    }
}

impl RuleSource for Replaced {
    type Request = Request;
    type Clock = TokioClock;

    fn with_rules<O>(&self, work: impl FnOnce(&Rules) -> O) -> O {
        let left = |readings: usize| readings.checked_sub(1);
        let is_old = self
            .readings
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        work(if is_old.is_ok() { &self.old } else { &self.new })
    }
}

fn built(rules: impl IntoIterator<Item = Rule<Request>>) -> Rules {
    let rules = rules
        .into_iter()
        .fold(RuleSetBuilder::new(), RuleSetBuilder::rule);
    rules.build_with(TokioClock::new(), [1, 2, 3, 4]).unwrap()
}

fn log(name: &str, quota: &str) -> Rule<Request> {
    Rule::new(name, quota.parse().unwrap()).algorithm(RuleAlgorithm::Log)
}

/// The readings of a wait are fewer than these.
const READINGS: usize = 100;

/// The condition of an old rule.
fn is_of(rule: usize) -> Condition<Request> {
    Condition::new("is of the rule", move |request: &Request| request.1[rule])
}

/// A request that the old rules deny is not told that it is never admitted if the new rules do not apply to it.
#[tokio::test(start_paused = true)]
async fn a_removed_rule_admits_a_request_that_joins() {
    for readings in 0..READINGS {
        let old = built([log("all", "1/1s")]);
        let request = Request(1, [true; 2]);
        assert!(old.check(&request).is_ok());
        let rules = Replaced::after(readings, old, built([]));
        let admitted = rules.acquire(&request).await;
        assert!(admitted.is_ok(), "{readings}: {admitted:?}");
    }
}

/// The cost of a request by the old rules is not compared with the limit of the new ones.
#[tokio::test(start_paused = true)]
async fn a_lower_cost_and_limit_admit_a_request_that_joins() {
    for readings in 0..READINGS {
        let cost = Cost::new("cost", |request: &Request| request.0);
        let old = built([log("all", "5/1s").cost(&cost)]);
        let request = Request(4, [true; 2]);
        assert!(old.check(&request).is_ok());
        let rules = Replaced::after(readings, old, built([log("all", "2/1s")]));
        let admitted = rules.acquire(&request).await;
        assert!(admitted.is_ok(), "{readings}: {admitted:?}");
    }
}

/// A request to which no old rule applies waits for a new rule.
#[tokio::test(start_paused = true)]
async fn an_added_rule_delays_a_request_that_joins() {
    for readings in 0..READINGS {
        let (old, new) = (
            built([log("one", "1/1s").when(&is_of(0))]),
            built([log("other", "1/1s")]),
        );
        assert!(old.check(&Request(1, [true, false])).is_ok());
        assert!(new.check(&Request(1, [false; 2])).is_ok());
        let rules = Replaced::after(READINGS, old, new);
        let mut first = Box::pin(rules.acquire(&Request(1, [true, false])));
        assert!(poll(&mut first).is_pending());
        rules.limiter().readings.store(readings, Ordering::Relaxed);
        let admitted = rules.acquire(&Request(1, [false; 2])).await;
        assert!(admitted.is_ok(), "{readings}: {admitted:?}");
    }
}

/// Neither is a request that was woken, and denied by another old rule.
#[tokio::test(start_paused = true)]
async fn a_removed_rule_admits_a_request_that_was_woken() {
    for readings in 0..READINGS {
        let old = built([
            log("one", "1/1s").when(&is_of(0)),
            log("other", "1/1h").when(&is_of(1)),
        ]);
        assert!(old.check(&Request(1, [true, false])).is_ok());
        let rules = Replaced::after(readings, old, built([]));
        let wait = rules.acquire(&Request(1, [true; 2]));
        let overtaken = async {
            let other = rules.limiter().old.check(&Request(1, [false, true]));
            assert!(other.is_ok());
            // By then, the first rule has woken the request.
            tokio::time::sleep(Duration::from_secs(2)).await;
            rules.recheck();
        };
        let (admitted, ()) = tokio::join!(wait, overtaken);
        assert!(admitted.is_ok(), "{readings}: {admitted:?}");
    }
}
