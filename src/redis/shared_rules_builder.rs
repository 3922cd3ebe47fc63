use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use super::books::Books;
use super::desk::nanos;
use super::flusher;
use super::shared_rules::{NodeBooks, SharedRules};
use super::store::Store;
use super::term_clock::TermClock;
use crate::clock::Clock;
use crate::error::ConfigError;
use crate::keyed::random_seeds;
use crate::rules::{Mode, Rule, RuleError, RuleSetBuilder, SharedPlan};

/// Rules, from which [`SharedRules`] are built.
#[must_use = "a builder does nothing until it is built"]
pub struct SharedRulesBuilder<R: ?Sized> {
    rules: RuleSetBuilder<R>,
    nodes: NonZeroU32,
    secret: [u8; 16],
    term: Duration,
    period: Duration,
    accounts: u64,
    clock: Option<Arc<dyn Clock + Send + Sync>>,
}

impl<R: ?Sized> SharedRulesBuilder<R> {
    pub(super) const fn new() -> Self {
        Self {
            rules: RuleSetBuilder::new(),
            nodes: NonZeroU32::MIN,
            secret: [0; 16],
            term: Duration::from_secs(2),
            period: Duration::from_millis(50),
            accounts: 10_000,
            clock: None,
        }
    }

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

    /// How many nodes there are, for [`OnError::Share`](crate::OnError::Share). Say it: when nothing is said it is one,
    /// and while the store does not answer each node admits the whole limit, as with
    /// [`OnError::Local`](crate::OnError::Local).
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
    /// answered: 2 s when nothing is said, 10 ms to 60 s. (The node stops an eighth or a quarter of it early, for clocks that
    /// differ: see the [module's caveats](crate::redis#caveats).) The hold of a node that vanishes is kept for this time and a
    /// window.
    pub fn term(mut self, term: Duration) -> Self {
        self.term = term;
        self
    }

    /// The time between two questions about one key in [`Mode::Lease`], 50 ms when nothing is
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

    /// The clock that terms end by, for tests: when nothing is said, one that also counts the time that the machine was
    /// suspended (on Linux, the system's `CLOCK_BOOTTIME`; elsewhere the monotonic clock or the wall clock, whichever has
    /// gone farther).
    pub fn term_clock(mut self, clock: impl Clock + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Builds the rules over a store. Where a rule's [mode](Mode) needs accounts, a task of the runtime that this is called
    /// in asks the store about them, and ends when the rules are dropped.
    ///
    /// # Errors
    ///
    /// As [`RuleSetBuilder::build_with`], and with the field: `key`, for one without
    /// [`shared_as`](crate::Key::shared_as); `algorithm`, for one that no store keeps; `window`, for less than a
    /// millisecond; `cells`, for more than 1000; `limit`, for a log of more than 100,000 permits. `mode`, for one that
    /// needs [accounts](Store::accounts) where the store has none; `runtime`, for such a one outside of a runtime;
    /// `term`, `period`, `accounts`.
    pub fn build(self, store: Arc<dyn Store>) -> Result<SharedRules<R>, RuleError> {
        let secret = u128::from_le_bytes(self.secret);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let secret = [secret as u64, (secret >> 64) as u64];
        let plan = SharedPlan::new(&self.rules, u64::from(self.nodes.get()), secret)?;
        let needs = |rule: &&Rule<R>| matches!(rule.mode_of(), Mode::Lease { .. } | Mode::Sync { .. });
        let rule = self.rules.rules().iter().find(needs);
        let wrong = |field, given: String, allowed: String| RuleError {
            rule: rule.map_or_else(String::new, |rule| rule.name().to_owned()),
            error: ConfigError::new(field, given, allowed),
        };
        let within = |field, given: Duration, least: Duration, most: Duration| {
            if given < least || given > most {
                return Err(wrong(
                    field,
                    format!("{given:?}"),
                    format!("{least:?} to {most:?}"),
                ));
            }
            Ok(())
        };
        within(
            "term",
            self.term,
            Duration::from_millis(10),
            Duration::from_secs(60),
        )?;
        within("period", self.period, Duration::from_millis(1), self.term / 4)?;
        if self.accounts == 0 || self.accounts > MOST_ACCOUNTS {
            let allowed = format!("1 to {MOST_ACCOUNTS}");
            return Err(wrong("accounts", format!("{}", self.accounts), allowed));
        }
        let mut books = None;
        if let Some(rule) = rule {
            if store.accounts().is_none() {
                let given = format!("{:?}", rule.mode_of());
                return Err(wrong(
                    "mode",
                    given,
                    "Local or Strict, over a store without accounts".to_owned(),
                ));
            }
            let runtime = tokio::runtime::Handle::try_current().map_err(|error| {
                wrong(
                    "runtime",
                    format!("none: {error}"),
                    "a tokio runtime with time".to_owned(),
                )
            })?;
            let clock = match self.clock {
                Some(clock) => TermClock::given(clock),
                None => TermClock::new(nanos(self.term) >= TermClock::LEAST_COARSE),
            };
            let [node, ..] = random_seeds();
            let all = Arc::new(Books::new(
                self.accounts,
                clock,
                Arc::clone(&store),
                plan.books(),
                node,
            ));
            let periods = self.rules.rules().iter().filter_map(|rule| match rule.mode_of() {
                Mode::Lease { .. } => Some(self.period),
                Mode::Sync { period, .. } => Some(period),
                _ => None,
            });
            let period = periods.min().unwrap_or(self.period);
            let task = runtime.spawn(flusher::run(Arc::downgrade(&all), period));
            books = Some(NodeBooks {
                books: all,
                task: task.abort_handle(),
                term: nanos(self.term),
                period: nanos(self.period),
            });
        }
        Ok(SharedRules { plan, store, books })
    }
}

/// The most accounts of a node: each takes about 400 bytes.
const MOST_ACCOUNTS: u64 = 1_000_000;

impl<R: ?Sized> fmt::Debug for SharedRulesBuilder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the secret.
        f.debug_struct("SharedRulesBuilder")
            .field("rules", &self.rules)
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}
