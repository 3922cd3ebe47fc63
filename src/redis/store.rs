use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use ::redis::Value;

use super::connection::{Connection, RedisServer};
use super::script::{self, Script};
use crate::shared::supervision::{Health, LiveHealth, Server, Supervisor};
use crate::shared::{
    CheckResult, CounterRequest, CounterStore, Counting, LeaseFuture, LeaseGrant, LeaseRequest, LeaseStore,
    StoreError, StoreFuture,
};

/// A [`CounterStore`] in a Redis or Valkey server, or in a cluster of them.
///
/// Share it in an `Arc`: one connection serves all limits of a process. The connection ends when the store is dropped.
///
/// # Guarantee
///
/// - A call ends within the [call timeout](crate::shared::supervision::SupervisorSettings::call_timeout), and at once while there is no
///   connection. In a cluster, a request over several slots is several calls.
/// - No call is sent twice, unless the server has answered that it did not execute the first. In a cluster, a call may be sent twice
///   while its slot moves to a server that owns none yet.
/// - At most [this number](crate::shared::supervision::SupervisorSettings::max_in_flight) of calls run at once, whatever the server does.
/// - No lock is held while waiting for the network.
///
/// # Cost
///
/// One round trip for a request, however many rules apply: `EVALSHA`, and `EVAL` with the whole script when the server
/// does not know it. In a cluster, a request over several slots reads all of them at once, and then charges one after the
/// other, by a call for each. `benches/README.md` has the time that a script takes on the server.
///
/// A key takes 150 to 250 bytes of the server's memory while few of its cells have permits, and up to 700 when all 60 have. With a
/// log it takes 40 to 120 bytes for each permit, and with requests in flight 35 to 140 bytes for each slot. A key with
/// violations takes up to 200 bytes more.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn core::error::Error>> {
/// use core::time::Duration;
/// use ringgate::redis::RedisStore;
///
/// let store = RedisStore::builder("redis://127.0.0.1:6379").prefix("shop").build()?;
/// if let Err(error) = store.ready(Duration::from_secs(1)).await {
///     eprintln!("on_error decides: {error}");
/// }
/// # Ok(())
/// # }
/// ```
pub struct RedisStore {
    supervisor: Supervisor<RedisServer>,
    decide: Script,
    refund: Script,
    renew: Script,
}

/// A call of a script that changes nothing: the script, its keys and its arguments.
type Probe<'a> = (&'a Script, Vec<String>, Vec<String>);

const NO_START: &str = "it registers no leases, and decides about each request: INFO server does not tell this user run_id and \
                        uptime_in_seconds (ACL SETUSER <user> +info)";

impl RedisStore {
    pub(super) fn new(supervisor: Supervisor<RedisServer>) -> Self {
        Self {
            supervisor,
            decide: Script::decide(),
            refund: Script::refund(),
            renew: Script::renew(),
        }
    }

    /// Waits until there is a connection on which the server decides: it runs the scripts of a request with two keys, and
    /// changes nothing.
    ///
    /// So a server that lacks `EVALSHA`, a user without the right to it, and a node of a cluster that the program takes for a
    /// single server are found at the start, instead of every decision being made by
    /// [`OnError`](crate::rules::OnError). [`SharedRules::ready`](crate::shared::SharedRules::ready) tries the rules
    /// themselves, and whether the server accepts writes.
    ///
    /// # Errors
    ///
    /// At once, the error that the server answers the scripts with, if no wait mends it. The text names the remedy: another
    /// constructor, a right, or another server. After this time, the error of the last attempt. The store continues to connect.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn core::error::Error>> {
    /// use core::time::Duration;
    /// use ringgate::redis::RedisStore;
    ///
    /// let store = RedisStore::builder("redis://127.0.0.1:7011").build()?;
    /// if let Err(error) = store.ready(Duration::from_secs(3)).await {
    ///     // On one node with `cluster-enabled yes`: "unexpected reply of the store: CrossSlot: Keys in request don't hash to
    ///     // the same slot (the server is a node of a cluster: connect by RedisStore::cluster, …)".
    ///     eprintln!("{error}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ready(&self, within: Duration) -> Result<(), StoreError> {
        let probes = self.probes();
        let probe = async |connection: &Connection| {
            for (script, names, arguments) in &probes {
                connection.run(script, names, arguments).await?;
            }
            Ok(())
        };
        self.supervisor.ready(within, probe).await
    }

    /// Calls of the scripts for counters of two keys, which do not exist: a decision, and a refund of nothing.
    fn probes(&self) -> Vec<Probe<'_>> {
        let window = Duration::from_secs(1);
        let counters = [1, 2].map(|key| CounterRequest::new("ready", key, Counting::Cells(1), 1, window));
        // In a cluster, requests with several keys are several calls.
        let keys_per_call = if self.in_cluster() { 1 } else { counters.len() };
        let calls = counters.chunks(keys_per_call).flat_map(|counters| {
            [(&self.decide, "peek"), (&self.refund, "refund")].map(|(script, verb)| {
                let asked: Vec<_> = counters.iter().map(|counter| (counter, (0, 0))).collect();
                let (names, arguments) = self.keys_and_arguments(verb, &asked);
                (script, names, arguments)
            })
        });
        calls.collect()
    }

    /// The state of the connection, and counts of its calls.
    #[must_use]
    pub fn health(&self) -> Health {
        self.supervisor.live_health().read()
    }

    /// The health as it changes, for [`StoreObserver::publish`](crate::shared::supervision::StoreObserver::publish).
    #[must_use]
    pub fn live_health(&self) -> &Arc<LiveHealth> {
        self.supervisor.live_health()
    }

    fn prefix(&self) -> &str {
        self.supervisor.server().prefix()
    }

    /// The name under which the server keeps a counter.
    #[must_use]
    pub fn name_of(&self, request: &CounterRequest) -> String {
        script::name(self.prefix(), request)
    }

    fn in_cluster(&self) -> bool {
        self.supervisor.server().target.is_cluster()
    }

    /// Whether the counters are in several slots of a cluster, so that no single script can decide about all of them.
    fn is_spread(&self, requests: &[CounterRequest]) -> bool {
        let [first, others @ ..] = requests else {
            return false;
        };
        self.in_cluster() && others.iter().any(|other| other.key_hash() != first.key_hash())
    }

    /// The keys and the arguments of a script about these counters, each with its receipt.
    fn keys_and_arguments(
        &self,
        verb: &str,
        asked: &[(&CounterRequest, (u64, u64))],
    ) -> (Vec<String>, Vec<String>) {
        let named: Vec<_> = asked.iter().map(|&(counter, _)| counter).collect();
        let names = script::names(self.prefix(), self.in_cluster(), &named);
        (names, script::arguments(verb, asked))
    }

    async fn run(
        &self,
        script: &Script,
        names: &[String],
        arguments: &[String],
    ) -> Result<Value, StoreError> {
        let run = async |connection: &Connection| connection.run(script, names, arguments).await;
        self.supervisor.call(run).await
    }

    /// Runs the script that decides, with one of its verbs.
    pub(super) async fn run_decide(
        &self,
        verb: &str,
        requests: &[CounterRequest],
    ) -> Result<CheckResult, StoreError> {
        let asked: Vec<_> = requests.iter().map(|request| (request, (0, 0))).collect();
        let (names, arguments) = self.keys_and_arguments(verb, &asked);
        let reply = self.run(&self.decide, &names, &arguments).await?;
        script::check_result(&reply, requests.len())
    }

    /// Refunds counters that one script can refund.
    pub(super) async fn run_refund(
        &self,
        requests: &[CounterRequest],
        charged: &CheckResult,
    ) -> Result<u64, StoreError> {
        let answered = requests.iter().zip(&charged.statuses);
        let charged: Vec<_> = answered
            .filter(|(_, status)| status.is_charged)
            .map(|(request, status)| (request, status.receipt))
            .collect();
        let (names, arguments) = self.keys_and_arguments("refund", &charged);
        let reply = self.run(&self.refund, &names, &arguments).await?;
        let refunded = script::numbers(&reply, charged.len())?;
        let refunded = refunded
            .iter()
            .map(|&permits| u64::try_from(permits).unwrap_or(0));
        Ok(charged
            .iter()
            .zip(refunded)
            .map(|((request, _), refunded)| request.permits().saturating_sub(refunded))
            .sum())
    }

    /// Renews leases that one script can renew: all of them, and in a cluster those of one key.
    pub(super) async fn run_renew(
        &self,
        requests: &[LeaseRequest],
    ) -> Result<Vec<Result<LeaseGrant, StoreError>>, StoreError> {
        let names = script::renewal_names(self.prefix(), self.in_cluster(), requests);
        let arguments = script::renewals(requests);
        let reply = self.run(&self.renew, &names, &arguments).await?;
        if requests.iter().any(|request| request.is_registered) {
            self.supervisor
                .note_lease_error(script::is_start_unknown(&reply).then_some(NO_START));
        }
        let grants = script::grants(&reply, self.prefix(), requests)?;
        for error in grants.iter().filter_map(|grant| grant.as_ref().err()) {
            self.supervisor.note_error(error.clone());
        }
        Ok(grants)
    }

    pub(super) async fn run_reset(&self, requests: &[CounterRequest]) -> Result<(), StoreError> {
        let mut command = ::redis::cmd("DEL");
        // The leases stay: nodes may still spend them, and they count until they are charged.
        let names: Vec<String> = requests.iter().map(|request| self.name_of(request)).collect();
        command.arg(names);
        let send = async |connection: &Connection| {
            let answer = connection.send(&command).await;
            answer.map(drop).map_err(|error| connection.diagnose(&error))
        };
        self.supervisor.call(send).await
    }
}

impl CounterStore for RedisStore {
    fn decide<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        if self.is_spread(requests) {
            return Box::pin(self.decide_spread(requests));
        }
        Box::pin(self.run_decide("charge", requests))
    }

    fn peek<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        if self.is_spread(requests) {
            return Box::pin(self.peek_spread(requests));
        }
        Box::pin(self.run_decide("peek", requests))
    }

    fn charge<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        if requests.is_empty() {
            return Box::pin(async { Ok(()) });
        }
        if self.is_spread(requests) {
            return Box::pin(self.charge_spread(requests));
        }
        Box::pin(async move { self.run_decide("owe", requests).await.map(|_| ()) })
    }

    fn refund<'a>(
        &'a self,
        requests: &'a [CounterRequest],
        charged: &'a CheckResult,
    ) -> StoreFuture<'a, u64> {
        if !charged.is_admitted || !charged.statuses.iter().any(|status| status.is_charged) {
            return Box::pin(async { Ok(0) });
        }
        if self.is_spread(requests) {
            return Box::pin(self.refund_spread(requests, charged));
        }
        Box::pin(self.run_refund(requests, charged))
    }

    fn reset<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        if requests.is_empty() {
            return Box::pin(async { Ok(()) });
        }
        if self.is_spread(requests) {
            return Box::pin(self.reset_spread(requests));
        }
        Box::pin(self.run_reset(requests))
    }

    fn keeps_slots(&self) -> bool {
        true
    }

    fn keeps_blocks(&self) -> bool {
        true
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

impl LeaseStore for RedisStore {
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a> {
        if self.in_cluster() {
            return Box::pin(self.renew_spread(requests));
        }
        Box::pin(async move {
            match self.run_renew(requests).await {
                Ok(grants) => grants,
                Err(error) => requests.iter().map(|_| Err(error.clone())).collect(),
            }
        })
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("supervisor", &self.supervisor)
            .finish_non_exhaustive()
    }
}
