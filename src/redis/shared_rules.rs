use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::answer::{Look, More, SharedPassed, SharedRefused};
use super::books::Books;
use super::looks::{complete, look, part};
use super::shared_rules_builder::SharedRulesBuilder;
use super::standing::Standing;
use super::store::{Part, Store};
use super::store_error::StoreError;
use crate::receipt::Settled;
use crate::rules::{Mode, Plan, Planned, RuleCounts, SharedPlan};

/// Several rules, judged as one, over counts that many machines share: a request is admitted when every rule that
/// is about it admits it, and otherwise charged to none.
///
/// # Guarantee
///
/// - While the store answers and loses nothing, no rule admits more than its limit in any window, on all machines
///   together, by the store's clock, and in the modes [`Sync`](Mode::Sync) and [`Local`](Mode::Local) no more than
///   [`max_overshoot`](Self::max_overshoot) beyond it; see the [module's documentation](crate::redis) for what happens
///   when it does not answer.
/// - A refused request is charged nowhere. (In a cluster, over several slots, what was charged for a race that was
///   lost is given back.)
/// - Every call ends within the time that the store states, whatever happens to it. (Before it, one by accounts may wait to hear
///   of them: the [module's documentation](crate::redis) says for how long.)
///
/// A rule counts as [`Counter`](crate::RuleAlgorithm::Counter), in constant memory and up to a cell too strict, or as
/// [`Log`](crate::RuleAlgorithm::Log), exactly. All else that a rule says holds here too: keys, costs, conditions,
/// tiers, lists, shadow and share. Each node keeps limiters of its own beside, charged with what the store admits by
/// way of this node, to decide when the store does not: by [`Rule::on_error`](crate::Rule::on_error).
///
/// # Cost
///
/// One call of the store for a request, where it decides. On this node a few allocations, and for each rule what a
/// [`RuleSet`](crate::RuleSet) takes, its memory included. A decision by accounts ([`Mode`]) makes no call:
/// for each account one cache line, a reading of the clock and a compare-exchange, without a lock; an admission allocates
/// nothing. About 400 bytes for each [account](SharedRulesBuilder::accounts) that there is room for.
///
/// # Caveats
///
/// - A key must say what of it is [the same on all machines](crate::Key::shared_as).
/// - Counts are kept under the rule's name, its key's parts, its window and its cells: another one begins anew, and
///   while nodes disagree, each counts for itself. Another limit holds at once.
/// - Dropping the future may leave the request charged, or charge it later.
/// - A request by rules in different [modes](crate::Mode) is all or nothing as far as accounts can give back: see the
///   [module's documentation](crate::redis).
///
/// # Examples
///
/// Two a second for each user, on an endpoint that takes 50 in ten seconds and 100 in a minute, over all machines:
///
/// ```no_run
/// use core::hash::Hash;
/// use std::sync::Arc;
///
/// use ringgate::redis::{OnError, RedisStore, SharedRules};
/// use ringgate::{Key, Rule};
///
/// struct Request {
///     user: String,
/// }
///
/// # async fn example() -> Result<(), Box<dyn core::error::Error>> {
/// let user = Key::new("user", |request: &Request, key| request.user.hash(key))
///     // The same on all machines, which `Hash` does not promise.
///     .shared_as(|request, key| {
///         key.part(&request.user);
///     });
/// let store = Arc::new(RedisStore::builder("redis://127.0.0.1:6379").build()?);
/// let rules = SharedRules::builder()
///     .rule(Rule::new("user", "2/s".parse()?).by(&user).on_error(OnError::Local))
///     .rule(Rule::new("endpoint", "50/10s".parse()?).also("100/60s".parse()?))
///     .build(store)?;
///
/// let request = Request { user: "alice".into() };
/// if let Err(refused) = rules.check(&request).await {
///     println!("{refused}");
/// }
/// # Ok(())
/// # }
/// ```
pub struct SharedRules<R: ?Sized> {
    pub(super) plan: SharedPlan<R>,
    pub(super) store: Arc<dyn Store>,
    /// Where a rule's mode needs accounts.
    pub(super) books: Option<NodeBooks>,
}

/// The accounts of this node, and the task that asks about them.
#[derive(Debug)]
pub(super) struct NodeBooks {
    pub(super) books: Arc<Books>,
    pub(super) task: tokio::task::AbortHandle,
    /// Of leases, in nanoseconds.
    pub(super) term: u64,
    pub(super) period: u64,
}

/// Ends the task; calls that are on their way still end.
impl Drop for NodeBooks {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<R: ?Sized> SharedRules<R> {
    /// No rules yet.
    pub const fn builder() -> SharedRulesBuilder<R> {
        SharedRulesBuilder::new()
    }

    /// Takes what the request costs of every rule that is about it, if all of them have room.
    ///
    /// What the rules say of the request is worked out at once, and the future needs it no longer. What can be decided
    /// [on this node](Self::check_now) is decided at once too, before the future is polled.
    ///
    /// # Errors
    ///
    /// When a rule has no room, or more; says which. When the store does not answer, [`OnError`](crate::OnError) decides.
    ///
    /// # Concurrency
    ///
    /// The decision takes effect at one instant: in the store, between this call and its answer, or in an account of this
    /// node. Dropping the future before may leave it charged, and charges this node's own limiters nothing.
    pub fn check<'a>(
        &'a self,
        request: &R,
    ) -> impl Future<Output = Result<SharedPassed, SharedRefused>> + Send + use<'a, R> {
        self.check_times(request, 1)
    }

    /// As [`check`](Self::check), as if the request were made so many times at once.
    pub(super) fn check_times<'a>(
        &'a self,
        request: &R,
        times: u64,
    ) -> impl Future<Output = Result<SharedPassed, SharedRefused>> + Send + use<'a, R> {
        let outline = self.plan.outline(request, times);
        let decided = self.decide_now(&outline).ok_or_else(|| {
            let mut plan = Plan::from(outline);
            self.plan.name(&mut plan, request);
            plan
        });
        async move {
            match decided {
                Ok(decided) => decided,
                Err(plan) => self.decide(plan).await,
            }
        }
    }

    /// Takes what the request costs, if that can be decided on this node at once: by accounts, by rules that are
    /// [local](Mode::Local), or since no rule is about the request. `None`: the store must be asked, by
    /// [`check`](Self::check), and nothing was taken. (Of several accounts one may have been faster to ask than to be given
    /// back to; then the request's permits stay spent there.)
    ///
    /// No allocation for an admission by accounts of up to two quotas. No lock, and no await; who brings an account to
    /// half of what it has wakes a task, for which the runtime may take a lock of its own.
    ///
    /// # Errors
    ///
    /// When a rule has no room, or more; says which.
    #[must_use]
    #[inline]
    pub fn check_now(&self, request: &R) -> Option<Result<SharedPassed, SharedRefused>> {
        self.check_times_now(request, 1)
    }

    /// As [`check_now`](Self::check_now), as if the request were made so many times at once.
    #[inline]
    pub(super) fn check_times_now(
        &self,
        request: &R,
        times: u64,
    ) -> Option<Result<SharedPassed, SharedRefused>> {
        self.decide_now(&self.plan.outline(request, times))
    }

    /// Looks at the rules that are about the request, as far as the store keeps them, and changes nothing. What this node's
    /// own accounts hold is not looked at: to the store it is taken.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub fn peek<'a>(
        &'a self,
        request: &R,
    ) -> impl Future<Output = Result<Vec<Look>, StoreError>> + Send + use<'a, R> {
        let mut plan = self.plan.plan(request, 1);
        self.plan.name(&mut plan, request);
        async move {
            let planned: Vec<Planned<'_>> = self.plan.parts(&plan).collect();
            let planned = planned.into_iter().filter(|planned| planned.mode != Mode::Local);
            let planned: Vec<Planned<'_>> = planned.collect();
            let parts: Vec<Part> = planned.iter().map(part).collect();
            if parts.is_empty() {
                return Ok(Vec::new());
            }
            let verdict = self.store.peek(&parts).await?;
            complete(&verdict, &parts)?;
            Ok(planned.iter().zip(verdict.found()).map(look).collect())
        }
    }

    /// Forgets what the request's keys have spent, in the store and in the accounts of this node, which are settled first:
    /// not what this node's own limiters were charged. Other nodes keep their holds and budgets, and charge afterwards what
    /// they have spent of them.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    ///
    /// # Concurrency
    ///
    /// A request meanwhile may be charged before or after. Dropping the future may leave what was spent as it is; the
    /// accounts still settle.
    pub fn reset<'a>(
        &'a self,
        request: &R,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<'a, R> {
        let mut plan = self.plan.plan(request, 1);
        self.plan.name(&mut plan, request);
        async move {
            // What is uncharged counts to be forgotten too.
            self.settle(&plan).await?;
            let planned = self.plan.parts(&plan);
            let kept = planned.filter(|planned| planned.mode != Mode::Local);
            let parts: Vec<Part> = kept.map(|planned| part(&planned)).collect();
            self.store.reset(&parts).await?;
            // What the store has said of its room before is no longer so.
            if let Some(node) = &self.books {
                node.books.reopen(self.account_keys(&plan));
            }
            Ok(())
        }
    }

    /// Gives back what a request was charged that was not served after all. What the limiters that stand in for the store
    /// were charged stays charged.
    ///
    /// Says how many permits could not be given back: those of a cell or a log that has left its window, or was
    /// repaired because the server's clock went back; those of an account that is being asked about, or was since; and
    /// all that was admitted without the store because it did not answer.
    ///
    /// # Errors
    ///
    /// When the store does not answer: it is not known then whether anything was given back.
    pub async fn refund(&self, passed: SharedPassed) -> Result<Settled, StoreError> {
        let SharedPassed { spent, more, .. } = passed;
        let mut lost = self.give_back(&spent);
        if let Some(more) = more {
            let More {
                parts, verdict, paid, ..
            } = *more;
            lost += self.plan.give_back_here(paid);
            lost += match &verdict {
                Some(verdict) => self.store.give_back(&parts, verdict).await?,
                None => parts.iter().map(Part::permits).sum(),
            };
        }
        Ok(match lost {
            0 => Settled::Exact,
            lost => Settled::Forfeited(lost),
        })
    }

    /// How many permits more than its limit each rule may admit in a window, on so many nodes together, while the store
    /// answers and forgets nothing; by the rules' names, in the order in which they were given. `None`: there is no
    /// bound that a number can hold.
    pub fn max_overshoot(&self, nodes: u64) -> impl Iterator<Item = (&str, Option<u64>)> {
        self.plan.max_overshoot(nodes)
    }

    /// Charges what accounts have admitted and gives their holds back: for an orderly end, after which nothing is lost
    /// and nobody has to wait for a term.
    ///
    /// # Errors
    ///
    /// When the store does not answer: what it has not charged stays in the accounts and is asked about again, and holds
    /// stay theirs until their terms are over.
    ///
    /// # Concurrency
    ///
    /// What is admitted meanwhile may be charged later. Dropping the future after its first poll stops nothing: the
    /// accounts are charged and their holds given back all the same.
    pub async fn flush(&self) -> Result<(), StoreError> {
        match &self.books {
            Some(books) => books.books.give_back_of(0..books.books.accounts.len()).await,
            None => Ok(()),
        }
    }

    /// How the accounts are. Looks at every account that there is room for.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let books = self.books.as_ref();
        books.map_or_else(Standing::default, |books| books.books.standing())
    }

    /// What each rule has done on this node, by its name, in the order in which they were given.
    pub fn counts(&self) -> impl Iterator<Item = (&str, RuleCounts)> {
        self.plan.counts()
    }

    #[cfg(feature = "observe")]
    pub(super) fn books(&self) -> Option<&Arc<Books>> {
        self.books.as_ref().map(|books| &books.books)
    }

    /// The same as they go on, for [`Observer::publish_counts`](crate::Observer::publish_counts).
    #[cfg(feature = "observe")]
    pub fn live_counts(&self) -> crate::rules::LiveCounts<'_> {
        self.plan.live_counts()
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Charges what the accounts of these keys have admitted, and gives their holds back.
    async fn settle(&self, plan: &Plan) -> Result<(), StoreError> {
        let Some(node) = &self.books else { return Ok(()) };
        let accounts = self.account_keys(plan).filter_map(|key| node.books.find(key));
        let accounts: Vec<usize> = accounts.collect();
        node.books.give_back_of(accounts).await
    }

    /// What the accounts of the request's keys are found by.
    fn account_keys<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = u64> + 'a {
        let steps = self.plan.steps(plan);
        steps.flat_map(|step| (0..step.parts).map(move |quota| step.account(quota)))
    }
}

impl<R: ?Sized> fmt::Debug for SharedRules<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRules")
            .field("plan", &self.plan)
            .field("store", &self.store)
            .finish()
    }
}
