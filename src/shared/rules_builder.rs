use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;
use std::time::SystemTime;

use tokio::runtime::Handle;

use super::lease::{self, LeaseTable, TermClock, nanos};
use super::plan::{FallbackLimiters, Planner, StoreFeatures, WallClock, needs_leases};
use super::rules::{NodeLeases, SharedRules};
use super::slots::{self, SlotKeeper};
use super::store::CounterStore;
use crate::clock::Clock;
use crate::error::ConfigError;
use crate::keyed::random_seeds;
use crate::rules::kind::AnyKind;
use crate::rules::{AnyRule, Mode, Rule, RuleError, RuleSetBuilder};

/// Builds [`SharedRules`].
#[must_use = "a builder does nothing until it is built"]
pub struct SharedRulesBuilder<R: ?Sized> {
    rules: RuleSetBuilder<R>,
    nodes: NonZeroU32,
    secret: [u8; 16],
    term: Duration,
    period: Duration,
    leases: u64,
    clock: Option<Arc<dyn Clock + Send + Sync>>,
    /// `None`: the clock of the system.
    wall_clock: Option<WallClock>,
}

impl<R: ?Sized> SharedRules<R> {
    /// Begins with no rules.
    pub const fn builder() -> SharedRulesBuilder<R> {
        SharedRulesBuilder {
            rules: RuleSetBuilder::new(),
            nodes: NonZeroU32::MIN,
            secret: [0; 16],
            term: Duration::from_secs(2),
            period: Duration::from_millis(50),
            leases: 10_000,
            clock: None,
            wall_clock: None,
        }
    }
}

impl<R: ?Sized> SharedRulesBuilder<R> {
    /// Adds a rule of any kind.
    pub fn rule<K: Into<AnyKind>>(mut self, rule: Rule<R, K>) -> Self {
        self.rules = self.rules.rule(rule);
        self
    }

    /// Replaces the rules by these, from a file for example.
    ///
    /// A file is read as the rules of one process. Where it says `log`, a table for as many keys as the rule has room for
    /// exists in this node's memory for a moment.
    pub fn rules(mut self, rules: RuleSetBuilder<R>) -> Self {
        self.rules = rules;
        self
    }

    /// Sets the number of nodes, for [`OnError::Share`](crate::rules::OnError::Share): 1 by default.
    ///
    /// With the default, each node admits the whole limit while the store does not answer, as with
    /// [`OnError::Local`](crate::rules::OnError::Local).
    pub fn nodes(mut self, nodes: NonZeroU32) -> Self {
        self.nodes = nodes;
        self
    }

    /// Sets the secret that keys are hashed with, equal on all nodes.
    ///
    /// The default is public. Where clients choose their keys, set a secret that they do not know, so that they cannot
    /// search for two keys that share a limit.
    pub fn secret(mut self, secret: [u8; 16]) -> Self {
        self.secret = secret;
        self
    }

    /// Sets how long a node may spend a lease without an answer of the store, from the sending of a request that was
    /// answered: 2 s by default, 10 ms to 60 s.
    ///
    /// A slot of a request [in flight](crate::shared#requests-in-flight) is free a term after its last renewal. Set the same term on all
    /// nodes.
    ///
    /// The node stops an eighth or a quarter of the term early, since clocks differ: see the
    /// [module's caveats](crate::shared#caveats). The store keeps the permits of a node that vanishes for the term and
    /// a window, and up to an eighth of that longer.
    pub fn term(mut self, term: Duration) -> Self {
        self.term = term;
        self
    }

    /// Sets the time between two requests about one key in [`Mode::Lease`]: 50 ms by default, 1 ms to a quarter of the
    /// [term](Self::term).
    pub fn period(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// Sets the most leases that the node keeps at once, for all rules together: 10,000 by default, 1 to 1,000,000. Keys
    /// without a lease are decided by the store.
    pub fn leases(mut self, leases: u64) -> Self {
        self.leases = leases;
        self
    }

    /// Sets the clock that terms end by, for tests.
    ///
    /// The default counts the time that the machine is suspended: `CLOCK_BOOTTIME` on Linux; on other systems the monotonic
    /// clock or the wall clock, whichever has advanced more.
    pub fn term_clock(mut self, clock: impl Clock + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Sets the time of day by which [fixed windows](crate::rules::RuleAlgorithm::Fixed) and calendars begin, for tests. The default
    /// is the clock of the system.
    pub fn wall_clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.wall_clock = Some(Arc::new(now));
        self
    }

    /// A builder with these settings and other rules.
    pub(super) fn with_rules(&self, rules: RuleSetBuilder<R>) -> Self {
        Self {
            rules,
            clock: self.clock.clone(),
            wall_clock: self.wall_clock.clone(),
            ..*self
        }
    }

    /// Builds the rules over a store. If a rule's [mode](Mode) needs leases, a task in the present runtime renews them. It
    /// ends when the rules are dropped. Another task renews slots in flight, until the admissions that hold them are dropped, too.
    ///
    /// # Errors
    ///
    /// One error names every mistake: the first one, and the [`others`](RuleError::others) after it. Those in the settings come first:
    /// `term`, `period` and `leases`. Then come those in all rules, as in [`RuleSetBuilder::build_with`], and everything that the store
    /// does not serve. The fields about the store are: `key`, without [`shared_as`](crate::Key::shared_as); `algorithm`, if no store
    /// keeps it; `window`, below a millisecond; `cells`, above 1000; `limit`, of a log above 100,000 permits; `calendar`; `limit_by`;
    /// `mode`, if it needs [leases](CounterStore::leases) or [slots](CounterStore::keeps_slots) and the store has none, or has no
    /// meaning for requests in flight, or for a [block](Rule::block); `block`, without a key, or if the store
    /// [keeps none](CounterStore::keeps_blocks).
    /// The error `runtime` comes alone, if the rules need leases or slots and there is no runtime.
    pub fn build(self, store: Arc<dyn CounterStore>) -> Result<SharedRules<R>, RuleError> {
        self.build_after(store, None)
    }

    /// Builds the rules over a store, with states of this node that continue those of `old`.
    pub(super) fn build_after(
        self,
        store: Arc<dyn CounterStore>,
        old: Option<&SharedRules<R>>,
    ) -> Result<SharedRules<R>, RuleError> {
        let secret = u128::from_le_bytes(self.secret);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let secret = [secret as u64, (secret >> 64) as u64];
        let mut rules = self.rules.rules().iter();
        let leased = rules.find(|rule| needs_leases(rule.mode));
        let features = StoreFeatures {
            leases: store.leases().is_some(),
            slots: store.keeps_slots(),
            blocks: store.keeps_blocks(),
        };
        let nodes = u64::from(self.nodes.get());
        let wall_clock = self.wall_clock.clone();
        let wall_clock = wall_clock.unwrap_or_else(|| Arc::new(SystemTime::now));
        let (old, term) = (old.map(|old| &old.planner), self.term);
        let planner = Planner::new(&self.rules, nodes, secret, term, features, wall_clock, old);
        let of_rules = planner.as_ref().err().cloned();
        RuleError::all(self.errors_of_settings(leased).into_iter().chain(of_rules))?;
        let planner = planner?;
        let leases = match leased {
            Some(rule) => Some(self.keep_leases(rule, &planner, &store)?),
            None => None,
        };
        let slots = match self.rules.rules().iter().find(|rule| holds_slots(rule)) {
            Some(rule) => Some(keep_slots(rule, &store, self.term)?),
            None => None,
        };
        Ok(SharedRules {
            planner,
            store,
            leases,
            slots,
        })
    }

    /// The errors of the settings. They name `leased`, a rule that needs leases.
    fn errors_of_settings(&self, leased: Option<&AnyRule<R>>) -> Vec<RuleError> {
        let mut errors = Vec::new();
        let mut add = |field, given: String, expected: String| {
            errors.push(RuleError {
                rule: leased.map_or_else(String::new, |rule| rule.name().to_owned()),
                error: ConfigError::new(field, given, expected),
                others: Vec::new(),
            });
        };
        let (least_term, most_term) = (Duration::from_millis(10), Duration::from_secs(60));
        // With a wrong term, a period is wrong only if it is wrong with the nearest right one.
        let most_period = self.term.clamp(least_term, most_term) / 4;
        let least_period = Duration::from_millis(1);
        for (field, given, least, most) in [
            ("term", self.term, least_term, most_term),
            ("period", self.period, least_period, most_period),
        ] {
            if given < least || given > most {
                add(field, format!("{given:?}"), format!("{least:?} to {most:?}"));
            }
        }
        if self.leases == 0 || self.leases > MAX_LEASES {
            add("leases", format!("{}", self.leases), format!("1 to {MAX_LEASES}"));
        }
        errors
    }

    /// Creates the leases of this node, and spawns the task that renews them. `rule` is one that needs them.
    fn keep_leases(
        &self,
        rule: &AnyRule<R>,
        planner: &Planner<R>,
        store: &Arc<dyn CounterStore>,
    ) -> Result<NodeLeases, RuleError> {
        let runtime = runtime_for(rule)?;
        let clock = match &self.clock {
            Some(clock) => TermClock::given(Arc::clone(clock)),
            None => TermClock::new(nanos(self.term) >= TermClock::LEAST_COARSE),
        };
        let ([node, ..], fallbacks) = (random_seeds(), FallbackLimiters::new(planner));
        let table = LeaseTable::new(self.leases, clock, Arc::clone(store), fallbacks, node);
        let table = Arc::new(table);
        let periods = self.rules.rules().iter().filter_map(|rule| match rule.mode {
            Mode::Lease { .. } => Some(self.period),
            Mode::Sync { period, .. } => Some(period),
            Mode::Strict | Mode::Local => None,
        });
        let shortest_period = periods.min().unwrap_or(self.period);
        let task = runtime.spawn(lease::run(&table, shortest_period));
        Ok(NodeLeases {
            table,
            task: task.abort_handle(),
            term: nanos(self.term),
            period: nanos(self.period),
        })
    }
}

/// The present runtime, for a task that this rule needs.
fn runtime_for<R: ?Sized>(rule: &AnyRule<R>) -> Result<Handle, RuleError> {
    Handle::try_current().map_err(|error| {
        let given = format!("none: {error}");
        let error = ConfigError::new("runtime", given, "a tokio runtime with time");
        RuleError::new(rule, error)
    })
}

/// Whether the store counts the slots in flight of a rule.
fn holds_slots<R: ?Sized>(rule: &AnyRule<R>) -> bool {
    rule.kind.is_in_flight() && rule.mode == Mode::Strict
}

/// Creates the keeper of the slots that this node holds in the store, and spawns its task. `rule` is one that needs it.
fn keep_slots<R: ?Sized>(
    rule: &AnyRule<R>,
    store: &Arc<dyn CounterStore>,
    term: Duration,
) -> Result<Arc<SlotKeeper>, RuleError> {
    let runtime = runtime_for(rule)?;
    let [node, ..] = random_seeds();
    let keeper = Arc::new(SlotKeeper::new(Arc::clone(store), term, node));
    runtime.spawn(slots::run(&keeper));
    Ok(keeper)
}

/// The most leases of a node. Each takes about 480 bytes.
const MAX_LEASES: u64 = 1_000_000;

impl<R: ?Sized> fmt::Debug for SharedRulesBuilder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret is left out.
        f.debug_struct("SharedRulesBuilder")
            .field("rules", &self.rules)
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}
