use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use super::answer::{DecidedBy, Look, Reason, SharedPassed, SharedRefused};
use super::standing::Standing;
use super::store::{Counting, Found, Part, Store, Verdict};
use super::store_error::{StoreError, StoreErrorKind};
use crate::decision::Settled;
use crate::rules::{Full, OnError, Plan, Planned, Rule, RuleCounts, RuleError, RuleSetBuilder, SharedPlan};

/// Several rules, judged as one, over counts that many machines share: a request is admitted when every rule that
/// is about it admits it, and otherwise charged to none.
///
/// # Guarantee
///
/// - While the store answers and loses nothing, no rule admits more than its limit in any window, on all machines
///   together, by the store's clock; see the [module's documentation](crate::redis) for what happens when it does not
///   answer.
/// - A refused request is charged nowhere. (In a cluster, over several slots, what was charged for a race that was
///   lost is given back.)
/// - Every call ends within the time that the store states, whatever happens to it.
///
/// A rule counts as [`Counter`](crate::RuleAlgorithm::Counter), in constant memory and up to a cell too strict, or as
/// [`Log`](crate::RuleAlgorithm::Log), exactly. All else that a rule says holds here too: keys, costs, conditions,
/// tiers, lists, shadow and share. Each node keeps limiters of its own beside, charged with what the store admits by
/// way of this node, to decide when the store does not: by [`Rule::on_error`].
///
/// # Cost
///
/// One call of the store for a request. On this node a few allocations, and for each rule what a
/// [`RuleSet`](crate::RuleSet) takes, its memory included.
///
/// # Caveats
///
/// - A key must say what of it is [the same on all machines](crate::Key::shared_as).
/// - Counts are kept under the rule's name, its key's parts, its window and its cells: another one begins anew, and
///   while nodes disagree, each counts for itself. Another limit holds at once.
/// - Dropping the future may leave the request charged, or charge it later.
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
    plan: SharedPlan<R>,
    store: Arc<dyn Store>,
}

/// Rules, from which [`SharedRules`] are built.
#[must_use = "a builder does nothing until it is built"]
pub struct SharedRulesBuilder<R: ?Sized> {
    rules: RuleSetBuilder<R>,
    nodes: NonZeroU32,
    secret: [u8; 16],
    term: Duration,
    period: Duration,
    accounts: u64,
}

impl<R: ?Sized> SharedRulesBuilder<R> {
    /// Adds a rule.
    pub fn rule(mut self, rule: Rule<R>) -> Self {
        self.rules = self.rules.rule(rule);
        self
    }

    /// Takes these rules, from a file for example, instead of those so far. (A file is read as of one process: where
    /// it says `log`, for a moment there is a table for as many keys as the rule has room for, in this node's
    /// memory.)
    pub fn rules(mut self, rules: RuleSetBuilder<R>) -> Self {
        self.rules = rules;
        self
    }

    /// How many nodes there are, for [`OnError::Share`]. Say it: when nothing is said it is one, and while the store does not
    /// answer each node admits the whole limit, as with [`OnError::Local`].
    pub fn nodes(mut self, nodes: NonZeroU32) -> Self {
        self.nodes = nodes;
        self
    }

    /// What keys are hashed with, the same on all nodes. When nothing is said it is known to everybody; where clients
    /// choose their keys, say something that they do not know, so that nobody can look for two keys that share a
    /// limit.
    pub fn secret(mut self, secret: [u8; 16]) -> Self {
        self.secret = secret;
        self
    }

    /// How long a node may spend a hold without an answer of the store, from the sending of a question that was
    /// answered: 2 s when nothing is said, 10 ms to 60 s. The hold of a node that vanishes is kept for this time and a
    /// window.
    pub fn term(mut self, term: Duration) -> Self {
        self.term = term;
        self
    }

    /// The time between two questions about one key in [`Mode::Lease`](crate::Mode::Lease), 50 ms when nothing is
    /// said, 1 ms to a quarter of the [term](Self::term).
    pub fn period(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// Of how many keys an account is kept at once, for all rules together: 10,000 when nothing is said, 1 to
    /// 1,000,000. The keys for which there is none are decided by the store.
    pub fn accounts(mut self, accounts: u64) -> Self {
        self.accounts = accounts;
        self
    }

    /// Builds the rules over a store.
    ///
    /// # Errors
    ///
    /// As [`RuleSetBuilder::build_with`], and with the field: `key`, for one without
    /// [`shared_as`](crate::Key::shared_as); `algorithm`, for one that no store keeps; `window`, for less than a
    /// millisecond; `cells`, for more than 1000; `limit`, for a log of more than 100,000 permits.
    pub fn build(self, store: Arc<dyn Store>) -> Result<SharedRules<R>, RuleError> {
        let secret = u128::from_le_bytes(self.secret);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let secret = [secret as u64, (secret >> 64) as u64];
        Ok(SharedRules {
            plan: SharedPlan::new(&self.rules, u64::from(self.nodes.get()), secret)?,
            store,
        })
    }
}

impl<R: ?Sized> SharedRules<R> {
    /// No rules yet.
    pub const fn builder() -> SharedRulesBuilder<R> {
        SharedRulesBuilder {
            rules: RuleSetBuilder::new(),
            nodes: NonZeroU32::MIN,
            secret: [0; 16],
            term: Duration::from_secs(2),
            period: Duration::from_millis(50),
            accounts: 10_000,
        }
    }

    /// Takes what the request costs of every rule that is about it, if all of them have room.
    ///
    /// What the rules say of the request is worked out at once, and the future needs it no longer.
    ///
    /// # Errors
    ///
    /// When a rule has no room, or more; says which. When the store does not answer, [`OnError`] decides.
    ///
    /// # Concurrency
    ///
    /// The decision takes effect in the store, at one instant between this call and its answer. Dropping the future
    /// before may leave it charged, and charges this node's own limiters nothing.
    pub fn check<'a>(
        &'a self,
        request: &R,
    ) -> impl Future<Output = Result<SharedPassed, SharedRefused>> + Send + use<'a, R> {
        self.decide(self.plan.plan(request))
    }

    /// Looks at the rules that are about the request, and changes nothing.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub fn peek<'a>(
        &'a self,
        request: &R,
    ) -> impl Future<Output = Result<Vec<Look>, StoreError>> + Send + use<'a, R> {
        let plan = self.plan.plan(request);
        async move {
            let planned: Vec<Planned<'_>> = self.plan.parts(&plan).collect();
            let parts: Vec<Part> = planned.iter().map(part).collect();
            if parts.is_empty() {
                return Ok(Vec::new());
            }
            let verdict = self.store.peek(&parts).await?;
            complete(&verdict, &parts)?;
            Ok(planned.iter().zip(verdict.found()).map(look).collect())
        }
    }

    /// Forgets what the request's keys have spent, in the store: not what this node's own limiters were charged.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub fn reset<'a>(
        &'a self,
        request: &R,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<'a, R> {
        let plan = self.plan.plan(request);
        async move {
            let parts: Vec<Part> = self.plan.parts(&plan).map(|planned| part(&planned)).collect();
            self.store.reset(&parts).await
        }
    }

    /// Gives back what a request was charged that was not served after all. What this node's own limiters were
    /// charged stays charged.
    ///
    /// Says how many permits could not be given back: those of a cell or a log that has left its window, or was
    /// repaired because the server's clock went back; and all of a request that the store has not decided.
    ///
    /// # Errors
    ///
    /// When the store does not answer: it is not known then whether anything was given back.
    pub async fn refund(&self, passed: SharedPassed) -> Result<Settled, StoreError> {
        let lost = match &passed.verdict {
            Some(verdict) => self.store.give_back(&passed.parts, verdict).await?,
            None => passed.parts.iter().map(Part::permits).sum(),
        };
        Ok(match lost {
            0 => Settled::Exact,
            lost => Settled::Forfeited(lost),
        })
    }

    /// Takes what the request costs, if that can be decided on this node at once: by rules that are
    /// [local](crate::Mode::Local), and by accounts. `None`: nothing was done, and the store must be asked, by
    /// [`check`](Self::check).
    ///
    /// No allocation for an admission by up to two rules with accounts.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    #[must_use]
    pub fn check_now(&self, request: &R) -> Option<Result<SharedPassed, SharedRefused>> {
        let _ = request;
        None
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
    /// When the store does not answer: what it has not charged stays in the accounts, and holds stay theirs until their
    /// terms are over.
    ///
    /// # Concurrency
    ///
    /// What is admitted meanwhile may be charged later.
    pub async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// How the accounts are.
    #[must_use]
    pub fn standing(&self) -> Standing {
        Standing::default()
    }

    /// What each rule has done on this node, by its name, in the order in which they were given.
    pub fn counts(&self) -> impl Iterator<Item = (&str, RuleCounts)> {
        self.plan.counts()
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    async fn decide(&self, plan: Plan) -> Result<SharedPassed, SharedRefused> {
        let planned: Vec<Planned<'_>> = self.plan.parts(&plan).collect();
        let listed: Vec<&Planned<'_>> = planned
            .iter()
            .filter(|planned| planned.enforced && planned.refused)
            .collect();
        if !listed.is_empty() {
            let violations = listed.iter().map(|planned| unknown(planned)).collect();
            let rules: Vec<u16> = listed.iter().map(|planned| planned.rule).collect();
            self.plan.count_denied(&rules);
            return Err(SharedRefused {
                decided_by: DecidedBy::Nobody,
                reason: Reason::Listed,
                violations,
                at: None,
                error: None,
            });
        }
        // In the shadow, a list refuses nothing; and what costs nothing needs no room.
        let asked: Vec<usize> = (0..planned.len())
            .filter(|&at| planned[at].permits > 0 && !planned[at].refused)
            .collect();
        let parts: Vec<Part> = asked.iter().map(|&at| part(&planned[at])).collect();
        if parts.is_empty() {
            self.plan.charge_here(&plan, |_| false);
            return Ok(passed(DecidedBy::Nobody, Vec::new(), None, None));
        }
        let verdict = match self.store.take(&parts).await {
            Ok(verdict) => complete(&verdict, &parts).map(|()| verdict),
            Err(error) => Err(error),
        };
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => return self.decide_here(&plan, &planned, parts, error),
        };
        let found = asked.iter().map(|&at| &planned[at]).zip(verdict.found());
        let found_of = |part| {
            let at = asked.iter().position(|&at| at == part);
            at.map(|at| verdict.found()[at])
        };
        if verdict.is_admitted() {
            let taken = |part| found_of(part).is_some_and(|found| found.is_taken());
            self.plan.charge_here(&plan, taken);
            let looks = found.map(look).collect();
            return Ok(SharedPassed {
                parts,
                ..passed(DecidedBy::Store, looks, None, Some(verdict))
            });
        }
        let full = |part| found_of(part).map_or(planned[part].refused, |found| !found.has_room());
        self.plan.count_shadow_denied(&plan, full);
        let full = found.filter(|(planned, found)| planned.enforced && !found.has_room());
        let full: Vec<_> = full.collect();
        let rules: Vec<u16> = full.iter().map(|(planned, _)| planned.rule).collect();
        self.plan.count_denied(&rules);
        Err(SharedRefused {
            decided_by: DecidedBy::Store,
            reason: Reason::Spent,
            violations: full.into_iter().map(look).collect(),
            at: Some(verdict.at()),
            error: None,
        })
    }

    /// Decides without the store.
    fn decide_here(
        &self,
        plan: &Plan,
        planned: &[Planned<'_>],
        parts: Vec<Part>,
        error: StoreError,
    ) -> Result<SharedPassed, SharedRefused> {
        let refuse = |reason, refused: &[(u16, Look)]| {
            let rules: Vec<u16> = refused.iter().map(|&(rule, _)| rule).collect();
            self.plan.count_denied(&rules);
            SharedRefused {
                decided_by: DecidedBy::Node,
                reason,
                violations: refused.iter().map(|(_, look)| look.clone()).collect(),
                at: None,
                error: Some(error.clone()),
            }
        };
        let denying: Vec<(u16, Look)> = planned
            .iter()
            .filter(|planned| planned.enforced && planned.permits > 0 && planned.on_error == OnError::Deny)
            .map(|planned| (planned.rule, unknown(planned)))
            .collect();
        if !denying.is_empty() {
            return Err(refuse(Reason::Unavailable, &denying));
        }
        match self.plan.take_here(plan) {
            Ok(()) => Ok(SharedPassed {
                parts,
                ..passed(DecidedBy::Node, Vec::new(), Some(error), None)
            }),
            Err(full) => {
                let full: Vec<(u16, Look)> = full
                    .iter()
                    .map(|full| (planned[full.part].rule, look_here(&planned[full.part], full)))
                    .collect();
                Err(refuse(Reason::Spent, &full))
            }
        }
    }
}

/// That the store has said something of every part.
fn complete(verdict: &Verdict, parts: &[Part]) -> Result<(), StoreError> {
    if verdict.found().len() == parts.len() {
        return Ok(());
    }
    let (found, asked) = (verdict.found().len(), parts.len());
    let detail = alloc::format!("{found} answers to {asked} questions");
    Err(StoreError::new(StoreErrorKind::Confused, detail))
}

fn passed(
    decided_by: DecidedBy,
    looks: Vec<Look>,
    error: Option<StoreError>,
    verdict: Option<Verdict>,
) -> SharedPassed {
    SharedPassed {
        decided_by,
        looks,
        error,
        parts: Vec::new(),
        verdict,
    }
}

fn part(planned: &Planned<'_>) -> Part {
    Part {
        tag: planned.tag,
        rule: Arc::clone(planned.name),
        number: planned.number,
        counting: planned.cells.map_or(Counting::Log, Counting::Cells),
        limit: planned.limit,
        window: planned.quota.window(),
        permits: planned.permits,
        enforced: planned.enforced,
    }
}

fn look((planned, found): (&Planned<'_>, &Found)) -> Look {
    Look {
        remaining: found.remaining(),
        retry_after: found.retry_after(),
        ..unknown(planned)
    }
}

fn look_here(planned: &Planned<'_>, full: &Full) -> Look {
    Look {
        remaining: full.remaining,
        retry_after: full.retry_after,
        ..unknown(planned)
    }
}

/// What is known of a quota before anybody has looked.
fn unknown(planned: &Planned<'_>) -> Look {
    Look {
        rule: Arc::clone(planned.name),
        quota: planned.quota,
        limit: planned.limit,
        permits: planned.permits,
        remaining: 0,
        retry_after: None,
        enforced: planned.enforced,
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

impl<R: ?Sized> fmt::Debug for SharedRulesBuilder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the secret.
        f.debug_struct("SharedRulesBuilder")
            .field("rules", &self.rules)
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}
