use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::accounts::{Accounts, Answers, Ask, Told};
use super::builder::RedisStoreBuilder;
use super::health::Health;
use super::script::{self, Script};
use super::store::{Answer, Found, Part, Store, Verdict};
use super::store_error::StoreError;
use super::supervisor::Supervisor;

/// A [`Store`] in a Redis or Valkey server, or in a cluster of them.
///
/// Share it in an `Arc`: one connection serves all limits of a process. It ends, with its connection, when it is
/// dropped.
///
/// # Guarantee
///
/// - A call ends within the [call timeout](RedisStoreBuilder::call_timeout), and at once while there is no
///   connection. (In a cluster, a request over several slots is several calls.)
/// - No call is sent twice, unless the server has said that it did not execute the first. (In a cluster the client
///   library may send one again after its connection has ended; what is charged twice is charged too much.)
/// - No more calls are on their way than [allowed](RedisStoreBuilder::max_in_flight), whatever the server does.
/// - No lock is held while waiting for the network.
///
/// # Cost
///
/// One round trip for a request, however many rules it has: `EVALSHA`, and `EVAL` with the whole text when the server
/// does not know the script. In a cluster one for each slot that is looked at, all at once, and then one after the
/// other to take; a single one when all keys share a slot. Of the server's time 10 to 20 µs for each rule with a few
/// cells (70 with a hundred, 400 and more with a thousand), or with a log.
///
/// A key takes 150 to 250 bytes of the server's memory with five cells, and 40 to 120 bytes for each permit with a
/// log. A log writes a member for each permit, which takes about 2 µs: for requests that cost thousands of permits
/// there are cells.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn core::error::Error>> {
/// use core::time::Duration;
/// use ringgate::redis::RedisStore;
///
/// let store = RedisStore::builder("redis://127.0.0.1:6379").prefix("shop").build()?;
/// store.ready(Duration::from_secs(1)).await?;
/// assert!(store.health().connected);
/// # Ok(())
/// # }
/// ```
pub struct RedisStore {
    supervisor: Arc<Supervisor>,
    judge: Script,
    give_back: Script,
    settle: Script,
    task: tokio::task::AbortHandle,
}

impl RedisStore {
    /// A store in one server, at an address as `redis://user:password@host:6379/0` or `unix:///run/redis.sock`.
    pub fn builder(url: &str) -> RedisStoreBuilder {
        RedisStoreBuilder::server(url)
    }

    /// A store in a cluster, by the addresses of some of its nodes.
    #[cfg(feature = "redis-cluster")]
    pub fn cluster(urls: &[&str]) -> RedisStoreBuilder {
        RedisStoreBuilder::cluster(urls)
    }

    pub(super) fn new(supervisor: Arc<Supervisor>, task: tokio::task::AbortHandle) -> Self {
        Self {
            supervisor,
            judge: Script::judge(),
            give_back: Script::give_back(),
            settle: Script::settle(),
            task,
        }
    }

    /// Waits until there is a connection.
    ///
    /// # Errors
    ///
    /// When there is none after this time, with the reason of the last attempt. Further ones are made all the same.
    pub async fn ready(&self, within: Duration) -> Result<(), StoreError> {
        self.supervisor.ready(within).await
    }

    /// How it is.
    #[must_use]
    pub fn health(&self) -> Health {
        self.supervisor.health()
    }

    #[cfg(feature = "observe")]
    pub(super) const fn supervisor(&self) -> &Arc<Supervisor> {
        &self.supervisor
    }

    /// The name that the part's counts are kept under.
    #[must_use]
    pub fn name_of(&self, part: &Part) -> String {
        script::name(self.supervisor.prefix(), part)
    }

    fn in_cluster(&self) -> bool {
        self.supervisor.target().is_cluster()
    }

    /// Whether these parts cannot be decided by one script.
    fn is_spread(&self, parts: &[Part]) -> bool {
        let [first, others @ ..] = parts else { return false };
        self.supervisor.target().is_cluster() && others.iter().any(|other| other.tag() != first.tag())
    }

    pub(super) async fn judge(&self, verb: &str, parts: &[Part]) -> Result<Verdict, StoreError> {
        let asked: Vec<_> = parts.iter().map(|part| (part, (0, 0))).collect();
        let arguments = script::arguments(verb, &asked);
        let names = script::names(
            self.supervisor.prefix(),
            self.in_cluster(),
            &parts.iter().collect::<Vec<_>>(),
        );
        let answer = self.supervisor.run(&self.judge, &names, &arguments).await?;
        script::verdict(&answer, parts.len())
    }

    /// Gives back what was taken together.
    pub(super) async fn undo(&self, parts: &[Part], taken: &Verdict) -> Result<u64, StoreError> {
        let charged = parts.iter().zip(taken.found());
        let charged: Vec<_> = charged.filter(|(_, found)| found.is_taken()).collect();
        let names: Vec<&Part> = charged.iter().map(|&(part, _)| part).collect();
        let names = script::names(self.supervisor.prefix(), self.in_cluster(), &names);
        let asked: Vec<_> = charged
            .iter()
            .map(|(part, found)| (*part, found.receipt()))
            .collect();
        let arguments = script::arguments("give back", &asked);
        let answer = self.supervisor.run(&self.give_back, &names, &arguments).await?;
        let given = script::numbers(&answer, charged.len())?;
        let given = given.iter().map(|&given| u64::try_from(given).unwrap_or(0));
        Ok(charged
            .iter()
            .zip(given)
            .map(|((part, _), given)| part.permits().saturating_sub(given))
            .sum())
    }

    /// Settles accounts that one script can: all, but in a cluster those of one key.
    pub(super) async fn settle_together(&self, asks: &[Ask]) -> Result<Vec<Told>, StoreError> {
        let prefix = self.supervisor.prefix();
        let mut names = script::names(
            prefix,
            self.in_cluster(),
            &asks.iter().map(Ask::part).collect::<Vec<_>>(),
        );
        // In a cluster each key's server has an era of its own.
        names.push(match asks.first() {
            Some(ask) if self.supervisor.target().is_cluster() => {
                format!("{prefix}:{{{:032x}}}:era", ask.part().tag())
            }
            _ => format!("{prefix}:era"),
        });
        let arguments = script::settling(asks);
        let answer = self.supervisor.run(&self.settle, &names, &arguments).await?;
        script::told(&answer, asks.len())
    }

    pub(super) async fn forget(&self, parts: &[Part]) -> Result<(), StoreError> {
        let mut command = ::redis::cmd("DEL");
        // Not their holds: these are spent by those who have them, and count until they are charged.
        let names: Vec<String> = parts.iter().map(|part| self.name_of(part)).collect();
        command.arg(names);
        self.supervisor.send(&command).await.map(|_| ())
    }
}

impl Store for RedisStore {
    fn take<'a>(&'a self, parts: &'a [Part]) -> Answer<'a, Verdict> {
        if self.is_spread(parts) {
            return Box::pin(self.take_spread(parts));
        }
        Box::pin(self.judge("take", parts))
    }

    fn peek<'a>(&'a self, parts: &'a [Part]) -> Answer<'a, Verdict> {
        if self.is_spread(parts) {
            return Box::pin(self.peek_spread(parts));
        }
        Box::pin(self.judge("peek", parts))
    }

    fn give_back<'a>(&'a self, parts: &'a [Part], taken: &'a Verdict) -> Answer<'a, u64> {
        if !taken.is_admitted() || !taken.found().iter().any(Found::is_taken) {
            return Box::pin(async { Ok(0) });
        }
        if self.is_spread(parts) {
            return Box::pin(self.give_back_spread(parts, taken));
        }
        Box::pin(self.undo(parts, taken))
    }

    fn reset<'a>(&'a self, parts: &'a [Part]) -> Answer<'a, ()> {
        if parts.is_empty() {
            return Box::pin(async { Ok(()) });
        }
        if self.is_spread(parts) {
            return Box::pin(self.reset_spread(parts));
        }
        Box::pin(self.forget(parts))
    }

    fn accounts(&self) -> Option<&dyn Accounts> {
        Some(self)
    }
}

impl Accounts for RedisStore {
    fn settle<'a>(&'a self, asks: &'a [Ask]) -> Answers<'a> {
        if self.supervisor.target().is_cluster() {
            return Box::pin(self.settle_spread(asks));
        }
        Box::pin(async move {
            match self.settle_together(asks).await {
                Ok(told) => told.into_iter().map(Ok).collect(),
                Err(error) => asks.iter().map(|_| Err(error.clone())).collect(),
            }
        })
    }
}

/// Ends the task that makes connections; calls that are on their way still end.
impl Drop for RedisStore {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("supervisor", &self.supervisor)
            .finish_non_exhaustive()
    }
}
