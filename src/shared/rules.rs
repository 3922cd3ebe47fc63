use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::charges::{Charges, Decision, Details, StoreCharge};
use super::convert::{
    all_blocks, block_requests, block_status, check_length, counter_request, forfeited, remote_status,
};
use super::lease::{LeaseStats, LeaseTable};
use super::plan::{CheckPlan, PlannedQuota, Planner};
use super::slots::SlotKeeper;
use super::store::{CheckResult, CounterRequest, CounterStatus, CounterStore, Counting, StoreError};
use crate::clock::Clock;
use crate::receipt::Settled;
use crate::rules::{Admitted, Mode, QuotaStatus, RuleCounts};
use crate::time::Nanos;

/// Several rules, evaluated as one, over counts that many machines share: a request is admitted if every rule that
/// applies to it has enough capacity left, and charged to none of them otherwise.
///
/// # Guarantee
///
/// - While the store answers and loses nothing, no rule admits more than its limit in any window, on all machines
///   together, by the store's clock. In the modes [`Sync`](Mode::Sync) and [`Local`](Mode::Local) a rule may admit
///   [`max_overshoot`](Self::max_overshoot) more. The [module's documentation](crate::shared) says what happens when the
///   store does not answer.
/// - A denied request is charged nowhere. In a cluster, charges to one slot are refunded when another slot denies.
/// - Every call to the store ends within the time that the store states. Before the call, a request may wait for a lease, for as
///   long as the [module's documentation](crate::shared) says.
///
/// The store counts a rule in cells ([`SlidingWindow`](crate::rules::RuleAlgorithm::SlidingWindow),
/// [`Counter`](crate::rules::RuleAlgorithm::Counter)): 60 by default, and a denial may last up to one cell longer than by a log. Or it
/// counts by a [`Log`](crate::rules::RuleAlgorithm::Log) (exact), by [`Gcra`](crate::rules::RuleAlgorithm::Gcra) (b + L − 1 permits in a
/// window), or by [fixed windows or a calendar](crate::shared#fixed-windows-and-calendars) (L permits in each period). It also counts
/// [requests in flight](crate::shared#requests-in-flight). Keys, costs, conditions, tiers, lists, shadow mode and gradual
/// enforcement work as in a [`RuleSet`](crate::RuleSet). Each node also keeps limiters of its own, which count as those of a
/// `RuleSet`: most keys in one word. They are charged with what the store admits for this node, and decide by
/// [`Rule::on_error`](crate::Rule::on_error) when the store does not answer.
///
/// # Cost
///
/// One call of the store for a request that the store decides. On this node a few allocations, and for each rule the time and
/// memory of a [`RuleSet`](crate::RuleSet). A decision by leases ([`Mode`]) makes no call: one cache line for each lease, a reading of
/// the clock and a compare-exchange, without a lock or an allocation. Each [lease](super::SharedRulesBuilder::leases) takes about 480
/// bytes.
///
/// # Caveats
///
/// - A key must name the parts that are [equal on all machines](crate::Key::shared_as).
/// - Counts are kept under the rule's name, its key's parts, its window and its cells. If one of them changes, the counts
///   begin anew, and nodes that disagree count apart. A changed limit applies at once.
/// - Dropping the future may leave the request charged, or charge it later.
/// - A request by rules in different [modes](crate::rules::Mode) is all or nothing as far as leases can be refunded: see the
///   [module's documentation](crate::shared).
///
/// # Examples
///
/// Two a second for each user, on an endpoint that takes 50 in ten seconds and 100 in a minute:
///
/// ```
/// use core::hash::Hash;
/// use std::sync::Arc;
///
/// use ringgate::shared::{MemoryStore, OnError, SharedRules};
/// use ringgate::{Key, Rule};
///
/// struct Request {
///     user: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let user = Key::new("user", |request: &Request, key| request.user.hash(key))
///     // Equal on all machines, which `Hash` does not promise.
///     .shared_as(|request, key| {
///         key.part(&request.user);
///     });
/// // Over several machines, a store such as `redis::RedisStore`.
/// let store = Arc::new(MemoryStore::new());
/// let rules = SharedRules::builder()
///     .rule(Rule::new("user", "2/s".parse()?).by(&user).on_error(OnError::Local))
///     .rule(Rule::new("endpoint", "50/10s".parse()?).also("100/60s".parse()?))
///     .build(store)?;
///
/// let request = Request { user: "alice".into() };
/// if let Err(denied) = rules.check(&request).await {
///     println!("{denied}");
/// }
/// # Ok(())
/// # }
/// ```
pub struct SharedRules<R: ?Sized> {
    pub(super) planner: Planner<R>,
    pub(super) store: Arc<dyn CounterStore>,
    /// `None`: no rule has a mode that needs leases.
    pub(super) leases: Option<NodeLeases>,
    /// `None`: no rule holds slots in flight in the store.
    pub(super) slots: Option<Arc<SlotKeeper>>,
}

/// The leases of this node, and the task that renews them.
#[derive(Debug)]
pub(super) struct NodeLeases {
    pub(super) table: Arc<LeaseTable>,
    pub(super) task: tokio::task::AbortHandle,
    /// The term of registered leases, in nanoseconds, and the time between two requests about one of them.
    pub(super) term: u64,
    pub(super) period: u64,
}

/// Ends the task. Calls in progress still end.
impl Drop for NodeLeases {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<R: ?Sized> SharedRules<R> {
    /// Charges the request to every rule that applies to it, if all of them have room.
    ///
    /// Keys, costs and conditions are computed at once, and the future does not borrow the request. A decision that
    /// [this node can make alone](Self::check_now) is made at once, too, before the future is polled.
    ///
    /// # Errors
    ///
    /// When a rule has no room. The error names every such rule. When the store does not answer,
    /// [`OnError`](crate::rules::OnError) decides.
    ///
    /// # Concurrency
    ///
    /// The decision takes effect at one instant: in the store, between this call and its answer, or in a lease of this
    /// node. Dropping the future before the answer may leave the request charged in the store. It charges nothing on this node.
    pub fn check<'a>(&'a self, request: &R) -> impl Future<Output = Decision<R>> + Send + use<'a, R> {
        self.check_times(request, 1)
    }

    /// Charges the request as if it were made this many times at once.
    pub(super) fn check_times<'a>(
        &'a self,
        request: &R,
        times: u64,
    ) -> impl Future<Output = Decision<R>> + Send + use<'a, R> {
        let decided = self.decide_or_plan(request, times);
        async move {
            match decided {
                Ok(decided) => decided,
                Err(plan) => self.decide(*plan).await,
            }
        }
    }

    /// Charges the request if this node can decide at once. Fails with the plan that the store decides by.
    #[inline(always)]
    pub(crate) fn decide_or_plan(&self, request: &R, times: u64) -> Result<Decision<R>, Box<CheckPlan>> {
        let plan = self.planner.plan_quickly(request, times);
        self.decide_now(&plan).ok_or_else(|| {
            let mut plan = CheckPlan::from(plan);
            self.planner.hash_keys(&mut plan, request);
            Box::new(plan)
        })
    }

    /// The plan of a request, with the hashes of its keys in the store.
    pub(crate) fn hashed_plan(&self, request: &R) -> CheckPlan {
        let mut plan = self.planner.plan(request, 1);
        self.planner.hash_keys(&mut plan, request);
        plan
    }

    /// Returns why the request has no key of an enforced rule that denies it, if the key states a reason.
    pub(crate) fn missing_cause(&self, request: &R) -> Option<crate::rules::MissingCause> {
        self.planner.on_node.states.missing_cause(request)
    }

    /// The time of this node's limiters.
    pub(crate) fn now(&self) -> Nanos {
        self.planner.on_node.clock.now()
    }

    /// Charges the request if this node can decide at once: by leases, by [local](Mode::Local) rules, or because no rule
    /// applies. `None`: nothing was charged, and the store must be asked by [`check`](Self::check).
    ///
    /// With several leases, one of them may report to the store before it is refunded. Then its permits stay charged.
    ///
    /// # Errors
    ///
    /// When a rule has no room.
    #[inline]
    #[must_use]
    pub fn check_now(&self, request: &R) -> Option<Decision<R>> {
        self.check_times_now(request, 1)
    }

    /// Charges the request as if it were made this many times, if this node can decide at once.
    #[inline]
    pub(super) fn check_times_now(&self, request: &R, times: u64) -> Option<Decision<R>> {
        self.decide_now(&self.planner.plan_quickly(request, times))
    }

    /// Returns the status of each quota that the store keeps, and changes nothing. Permits that nodes hold as leases count
    /// as taken. The [block](crate::Rule::block) of a rule is one of the quotas while the key is blocked.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub fn peek<'a>(
        &'a self,
        request: &R,
    ) -> impl Future<Output = Result<Vec<QuotaStatus>, StoreError>> + Send + use<'a, R> {
        let plan = self.hashed_plan(request);
        async move {
            let quotas = self.planner.quotas(&plan);
            let quotas: Vec<PlannedQuota<'_>> = quotas.filter(|it| it.mode != Mode::Local).collect();
            let mut requests: Vec<CounterRequest> = quotas.iter().map(counter_request).collect();
            if requests.is_empty() {
                return Ok(Vec::new());
            }
            let blocks = all_blocks(&quotas);
            requests.extend(block_requests(&quotas, &blocks, false));
            let result = self.store.peek(&requests).await?;
            check_length(&result, &requests)?;
            let of_blocks = blocks.iter().zip(&result.statuses[quotas.len()..]);
            let blocked = of_blocks
                .filter(|(_, status)| !status.has_room)
                .map(|(&(quota, block), status)| block_status(&quotas[quota], block, status));
            let statuses = quotas.iter().zip(&result.statuses).map(remote_status);
            Ok(statuses.chain(blocked).collect())
        }
    }

    /// Forgets what was charged to the request's keys in the store. The leases of this node report their use first and
    /// give their permits back.
    ///
    /// The limiters of this node keep what they were charged. Other nodes keep their leases and budgets, and charge
    /// afterwards what they have spent. Slots in flight are free until their nodes renew them. Blocks stay: see
    /// [`unblock`](Self::unblock).
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    ///
    /// # Concurrency
    ///
    /// A concurrent request may be charged before the reset or after it. Dropping the future may leave the counts as
    /// they are, but the leases still report their use.
    pub fn reset<'a>(
        &'a self,
        request: &R,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<'a, R> {
        let plan = self.hashed_plan(request);
        async move {
            // Before the reset, so that it also forgets the permits that were not charged yet.
            self.release(&plan).await?;
            let quotas = self.planner.quotas(&plan);
            let kept = quotas.filter(|planned| planned.mode != Mode::Local);
            let requests: Vec<CounterRequest> = kept.map(|planned| counter_request(&planned)).collect();
            self.store.reset(&requests).await?;
            // The leases' notices of a full store are outdated.
            if let Some(node) = &self.leases {
                node.table.reopen(Self::lease_keys(&plan));
            }
            Ok(())
        }
    }

    /// Refunds a request that was admitted and not served. The limiters that decide when the store does not answer stay
    /// charged.
    ///
    /// Returns how many permits could not be refunded: those of a cell or a log that has left its window or was repaired
    /// because the server's clock went back, those of a lease that has reported them to the store, and all that were
    /// admitted because the store did not answer.
    ///
    /// # Errors
    ///
    /// When the store does not answer. The permits may have been refunded then.
    pub async fn refund(&self, admitted: Admitted<Charges<R>>) -> Result<Settled, StoreError> {
        let Charges { spends, details } = admitted.charges;
        let lost = spends.iter().map(|spend| self.return_to_lease(spend));
        let mut lost: u64 = lost.sum();
        if let Some(details) = details {
            let Details {
                in_store,
                store_time,
                states,
                ..
            } = *details;
            if let Some(Settled::Forfeited(permits)) =
                states.map(|states| self.planner.on_node.refund(states))
            {
                lost += permits;
            }
            lost += self.refund_in_store(&in_store, store_time.unwrap_or(0)).await?;
        }
        Ok(forfeited(lost))
    }

    /// Refunds charges of the store, which has charged them at `at`, and returns how many permits could not be refunded. They are
    /// attributed to the charges in their order.
    pub(super) async fn refund_in_store(&self, charges: &[StoreCharge], at: u64) -> Result<u64, StoreError> {
        let answered = charges
            .iter()
            .filter_map(|charge| Some((charge.request.clone(), charge.status?)));
        let (requests, statuses): (Vec<CounterRequest>, Vec<CounterStatus>) = answered.unzip();
        let lost = match requests.is_empty() {
            // Without an answer there are no receipts, so nothing can be refunded.
            true => charges.iter().map(|charge| charge.request.permits()).sum(),
            false => {
                let charged = CheckResult::admitted(at, statuses);
                self.store.refund(&requests, &charged).await?
            }
        };
        let mut unattributed = lost;
        for charge in charges {
            let permits = charge.request.permits();
            let of_charge = unattributed.min(permits);
            unattributed -= of_charge;
            self.planner
                .count_refund(charge.state, charge.member, permits, of_charge);
        }
        Ok(lost)
    }

    /// The request, with a name for its slot if it needs one.
    pub(super) fn named(&self, request: CounterRequest) -> CounterRequest {
        match (request.counting(), &self.slots) {
            (Counting::Slots, Some(keeper)) => request.with_slot(keeper.name()),
            (Counting::Slots, None)
            | (Counting::Log | Counting::Cells(_) | Counting::Gcra(_) | Counting::Violations, _) => request,
        }
    }

    /// The most permits that each rule may admit beyond its limit in a window, on this number of nodes together, while the
    /// store answers and forgets nothing.
    ///
    /// The rules are in the order in which they were given. `None`: the bound exceeds a `u64`.
    pub fn max_overshoot(&self, nodes: u64) -> impl Iterator<Item = (&str, Option<u64>)> {
        self.planner.max_overshoot(nodes)
    }

    /// Charges what leases have admitted and gives their permits back, and releases the slots in flight that were dropped. After
    /// it the process can end without a loss, and other nodes need not wait for a term.
    ///
    /// # Errors
    ///
    /// When the store does not answer. Then the uncharged permits are reported again later, and leases last until their
    /// terms are over.
    ///
    /// # Concurrency
    ///
    /// A request that is admitted meanwhile may be charged later. Dropping the future after its first poll stops nothing:
    /// the permits are still charged and given back, and the slots released. If the last report of a lease has failed, the call waits
    /// for the next one, for up to a [period](super::SharedRulesBuilder::period).
    pub async fn flush(&self) -> Result<(), StoreError> {
        // All leases are marked before the first wait, because the future may be dropped there.
        let leases = self.leases.as_ref().map(|node| &*node.table);
        let leases = leases.map(|table| (table, table.begin_release(0..table.states.len())));
        let mut released = match &self.slots {
            Some(slots) => slots.release_in_store().await,
            None => Ok(()),
        };
        if let Some((table, pending)) = leases {
            released = table.wait_for_all(pending).await.and(released);
        }
        released
    }

    /// Waits until the slots in flight that were dropped are released in the store.
    pub(crate) async fn wait_for_releases(&self) {
        if let Some(slots) = &self.slots {
            slots.wait_for_releases().await;
        }
    }

    /// The leases of this node in numbers. Reads every lease that there is room for.
    #[must_use]
    pub fn lease_stats(&self) -> LeaseStats {
        let leases = self.leases.as_ref();
        leases.map_or_else(LeaseStats::default, |leases| leases.table.stats())
    }

    /// The counts of each rule on this node, in the order in which the rules were given.
    pub fn counts(&self) -> impl Iterator<Item = (&str, RuleCounts)> {
        self.planner.on_node.counts()
    }

    #[cfg(feature = "observe")]
    pub(super) fn lease_table(&self) -> Option<&Arc<LeaseTable>> {
        self.leases.as_ref().map(|leases| &leases.table)
    }

    /// The counts of each rule as they change, for [`Observer::publish_counts`](crate::observe::Observer::publish_counts).
    #[cfg(feature = "observe")]
    pub fn live_counts(&self) -> crate::rules::LiveCounts<'_> {
        crate::rules::LiveCounts::shared(&self.planner.on_node.states)
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn CounterStore> {
        &self.store
    }

    /// Charges what the leases of these keys have admitted, and gives their permits back.
    async fn release(&self, plan: &CheckPlan) -> Result<(), StoreError> {
        let Some(node) = &self.leases else { return Ok(()) };
        let leases = Self::lease_keys(plan).filter_map(|key| node.table.find(key));
        let leases: Vec<usize> = leases.collect();
        node.table.release(leases).await
    }

    /// The keys of the request's leases.
    fn lease_keys(plan: &CheckPlan) -> impl Iterator<Item = u64> {
        let targets = plan.targets.iter();
        targets.flat_map(|target| target.quotas().map(move |quota| target.lease_key(quota)))
    }
}

impl<R: ?Sized> fmt::Debug for SharedRules<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRules")
            .field("planner", &self.planner)
            .field("store", &self.store)
            .finish()
    }
}
