//! A store in memory for the tests of waits, which counts its decisions, and may be slow, fail or hang.

use core::future::pending;
use core::sync::atomic::AtomicBool;

use super::*;
use ringgate::rules::kind::AnyKind;
use ringgate::shared::{
    CheckResult, CounterRequest, CounterStatus, CounterStore, LeaseStore, MemoryStore, SharedRules,
    SharedRulesBuilder, StoreError, StoreErrorKind, StoreFuture,
};
use ringgate::wait::{SharedFair, SharedSource};
use tokio::time::sleep;

/// A user, and the permits that the request costs.
pub(super) type Request = (u32, u64);
pub(super) type Rules = SharedRules<Request>;
pub(super) type Waiting = Arc<SharedFair<Arc<Rules>>>;

/// The behaviour of a [`Store`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Behaviour {
    /// Whether other tasks run before and after a call takes effect.
    pub(super) yields: bool,
    /// The time of each half of a call.
    pub(super) half: Duration,
    pub(super) fails: bool,
    pub(super) hangs: bool,
    /// Whether it denies requests, and names no quota that does.
    pub(super) denies: bool,
}

/// A store in memory, in tokio's time, which counts its decisions, and may be slow, fail or hang.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) memory: MemoryStore,
    behaviour: Mutex<Behaviour>,
    pub(super) decisions: AtomicU64,
    /// Whether refunds are kept from taking effect.
    pub(super) keeps_refunds: AtomicBool,
    /// The times of the renewals of slots.
    pub(super) renewals: Mutex<Vec<Instant>>,
}

impl Store {
    pub(super) fn new() -> Arc<Self> {
        Self::with(Behaviour::default())
    }

    pub(super) fn slow(millis: u64) -> Arc<Self> {
        let half = ms(millis) / 2;
        Self::with(Behaviour {
            half,
            ..Behaviour::default()
        })
    }

    pub(super) fn with(behaviour: Behaviour) -> Arc<Self> {
        Arc::new(Self {
            memory: MemoryStore::with_clock(TokioClock::new()),
            behaviour: Mutex::new(behaviour),
            decisions: AtomicU64::new(0),
            keeps_refunds: AtomicBool::new(false),
            renewals: Mutex::default(),
        })
    }

    /// Makes every call fail from now on.
    pub(super) fn fail(&self) {
        let fails = true;
        self.set(Behaviour {
            fails,
            ..Behaviour::default()
        });
    }

    pub(super) fn set(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    pub(super) fn decisions(&self) -> u64 {
        self.decisions.load(Ordering::Relaxed)
    }

    async fn call<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let Behaviour {
            yields,
            half,
            fails,
            hangs,
            ..
        } = *self.behaviour.lock().unwrap();
        let pause = async || match half {
            Duration::ZERO if yields => tokio::task::yield_now().await,
            Duration::ZERO => {}
            half => sleep(half).await,
        };
        pause().await;
        if hangs {
            pending::<()>().await;
        }
        if fails {
            return Err(StoreError::new(
                StoreErrorKind::Disconnected,
                "as the test demands",
            ));
        }
        let output = call.await;
        pause().await;
        output
    }
}

impl CounterStore for Store {
    forward!(memory: peek reset);

    fn decide<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        self.decisions.fetch_add(1, Ordering::Relaxed);
        if self.behaviour.lock().unwrap().denies {
            let statuses = requests.iter().map(|_| CounterStatus::with_room(1));
            let denied = CheckResult::denied(0, statuses.collect());
            return Box::pin(async move { Ok(denied) });
        }
        Box::pin(self.call(self.memory.decide(requests)))
    }

    fn charge<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        self.renewals.lock().unwrap().push(Instant::now());
        Box::pin(self.call(self.memory.charge(requests)))
    }

    fn refund<'a>(
        &'a self,
        requests: &'a [CounterRequest],
        charged: &'a CheckResult,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            while self.keeps_refunds.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
            self.call(self.memory.refund(requests, charged)).await
        })
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        self.memory.leases()
    }

    fn keeps_slots(&self) -> bool {
        true
    }

    fn keeps_blocks(&self) -> bool {
        true
    }
}

pub(super) fn log(name: &str, quota: &str) -> Rule<Request> {
    let cost = Cost::new("cost", |request: &Request| request.1);
    Rule::new(name, quota.parse().unwrap())
        .algorithm(RuleAlgorithm::Log)
        .cost(&cost)
}

pub(super) fn user() -> Key<Request> {
    let key = Key::new("user", |request: &Request, key| {
        core::hash::Hash::hash(&request.0, key)
    });
    key.shared_as(|request: &Request, key| {
        key.part(request.0.to_be_bytes());
    })
}

pub(super) fn builder<K: Into<AnyKind>>(
    rules: impl IntoIterator<Item = Rule<Request, K>>,
) -> SharedRulesBuilder<Request> {
    rules
        .into_iter()
        .fold(SharedRules::builder(), SharedRulesBuilder::rule)
}

pub(super) fn fair<K: Into<AnyKind>>(
    store: &Arc<Store>,
    rules: impl IntoIterator<Item = Rule<Request, K>>,
) -> Waiting {
    let store: Arc<dyn CounterStore> = store.clone();
    Arc::new(SharedFair::new(Arc::new(builder(rules).build(store).unwrap())))
}

/// Charges a request that does not wait.
pub(super) async fn charge(fair: &Waiting, request: Request) {
    drop(fair.acquire_within(&request, Duration::ZERO).await.expect("room"));
}

/// Waits, and returns the duration of the wait in milliseconds.
pub(super) fn timed<S>(fair: &Arc<SharedFair<S>>, request: Request) -> JoinHandle<Result<u128, WaitError>>
where
    S: SharedSource<Request = Request> + Send + Sync + 'static,
{
    let fair = Arc::clone(fair);
    tokio::spawn(async move {
        let began = Instant::now();
        // The slots of the request are released at once.
        fair.acquire(&request).await.map(drop)?;
        Ok(began.elapsed().as_millis())
    })
}
