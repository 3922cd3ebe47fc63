//! The unchanged scripts in a real server, except that the test passes the time.

use alloc::sync::Arc;

use ringgate::shared::Counting;

use crate::server::{Server, ask};

/// A script whose time is an argument.
struct Script(redis::Script);

const TEXT: [&str; 8] = [
    include_str!("../../../src/redis/script/prelude.lua"),
    include_str!("../../../src/redis/script/log.lua"),
    include_str!("../../../src/redis/script/cells.lua"),
    include_str!("../../../src/redis/script/gcra.lua"),
    include_str!("../../../src/redis/script/slots.lua"),
    include_str!("../../../src/redis/script/blocks.lua"),
    include_str!("../../../src/redis/script/leases.lua"),
    include_str!("../../../src/redis/script/counters.lua"),
];

/// The arguments of a script for one counter.
#[derive(Clone, Debug)]
pub(crate) struct ScriptRequest {
    pub(crate) key: String,
    pub(crate) counting: Counting,
    pub(crate) limit: u64,
    /// The time per permit of a bucket, in halves of a nanosecond.
    pub(crate) permit: u64,
    /// The window of a log, or the width of a cell.
    pub(crate) window: u64,
    pub(crate) permits: u64,
    /// The number of the rule, negative if it is in the shadow.
    pub(crate) rule: i64,
    pub(crate) receipt: (u64, u64),
    /// The permits that stay free.
    pub(crate) reserve: u64,
    /// The last five arguments of a block.
    pub(crate) block: Option<[u64; 5]>,
}

/// The script's result for one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CounterStatus {
    pub(crate) room: bool,
    pub(crate) not_charged: bool,
    pub(crate) remaining: u64,
    pub(crate) wait: i64,
    pub(crate) receipt: (u64, u64),
}

impl ScriptRequest {
    pub(crate) fn log(key: &str, limit: u64, window: u64) -> Self {
        Self {
            key: key.into(),
            counting: Counting::Log,
            limit,
            permit: 0,
            window,
            permits: 1,
            rule: 1,
            receipt: (0, 0),
            reserve: 0,
            block: None,
        }
    }

    /// A request to GCRA, whose arguments are the burst and the time per permit.
    pub(crate) fn gcra(key: &str, limit: u64, burst: u64, window: u64) -> Self {
        Self {
            counting: Counting::Gcra(burst),
            permit: (window * 2000).div_ceil(limit),
            ..Self::log(key, burst, window)
        }
    }

    /// A request for the slot of this number.
    pub(crate) fn slot(key: &str, limit: u64, term: u64, number: u64) -> Self {
        Self {
            counting: Counting::Slots,
            receipt: (1, number),
            ..Self::log(key, limit, term)
        }
    }

    /// A request for the violations that begin a block. The numbers are the first and the longest block and the time after which a
    /// key is forgiven, whether a retry extends the block, and the factor of repeated blocks.
    pub(crate) fn block(key: &str, violations: u64, window: u64, numbers: [u64; 5]) -> Self {
        Self {
            counting: Counting::Violations,
            block: Some(numbers),
            ..Self::log(key, violations, window)
        }
    }

    pub(crate) fn of(self, permits: u64) -> Self {
        Self { permits, ..self }
    }

    pub(crate) fn with_receipt(self, receipt: (u64, u64)) -> Self {
        Self { receipt, ..self }
    }

    pub(crate) fn cells(key: &str, limit: u64, cells: u64, width: u64) -> Self {
        Self {
            counting: Counting::Cells(cells),
            ..Self::log(key, limit, width)
        }
    }
}

fn timeless(last: &str) -> Script {
    let text = TEXT.concat() + last;
    let (server_time, argument) = ("redis.call('TIME')", "{ ARGV[#ARGV - 1], ARGV[#ARGV] }");
    assert_eq!(text.matches(server_time).count(), 1, "TIME is read once");
    Script(redis::Script::new(&text.replace(server_time, argument)))
}

/// The year 2100 in microseconds, so far ahead of the server's time that nothing expires. It is the same in every run, so cells and
/// terms begin at the same times.
pub(crate) const FAR_AHEAD: u64 = 4_102_444_800_000_000;

impl Script {
    fn run<T: redis::FromRedisValue>(
        &self,
        client: &mut redis::Connection,
        now: u64,
        verb: &str,
        parts: &[ScriptRequest],
    ) -> T {
        let mut call = self.0.prepare_invoke();
        call.arg(verb);
        for part in parts {
            let (by, cells) = match part.counting {
                Counting::Log => ("log", 0),
                Counting::Cells(cells) => ("cells", cells),
                Counting::Gcra(_) => ("gcra", 0),
                Counting::Slots => ("slots", 0),
                Counting::Violations => ("blocks", 0),
                other => unreachable!("{other:?}"),
            };
            call.key(&part.key)
                .key(format!("{}:leases", part.key))
                .arg(by)
                .arg(part.limit)
                .arg(part.window)
                .arg(cells);
            call.arg(part.permits).arg(part.rule);
            let rate = (part.permit / 2000, part.permit % 2000);
            let last = [part.receipt.0, part.receipt.1, part.reserve, rate.0, rate.1];
            call.arg(&part.block.unwrap_or(last));
        }
        call.arg(now / 1_000_000).arg(now % 1_000_000);
        call.invoke(client).expect("the script runs")
    }

    /// Decides a request. Returns whether it is admitted, and the status of each counter.
    fn decide(
        &self,
        client: &mut redis::Connection,
        now: u64,
        verb: &str,
        parts: &[ScriptRequest],
    ) -> (bool, Vec<CounterStatus>) {
        let answer: Vec<i64> = self.run(client, now, verb, parts);
        assert_eq!(answer.len(), 2 + 5 * parts.len());
        assert_eq!(answer[1], i64::try_from(now).expect("a time"), "no digit is lost");
        let unsigned = |number: i64| u64::try_from(number).expect("not negative");
        let found = answer[2..].chunks_exact(5).map(|found| CounterStatus {
            room: found[0] == 1,
            not_charged: found[0] == 2,
            remaining: unsigned(found[1]),
            wait: found[2],
            receipt: (unsigned(found[3]), unsigned(found[4])),
        });
        (answer[0] == 1, found.collect())
    }

    /// Renews a lease with the arguments `[sequence, begins, cap, want, term]`. The charge is `part.permits`. Returns the
    /// granted permits, or `None` if the lease is unknown.
    fn renew(
        &self,
        client: &mut redis::Connection,
        now: u64,
        part: &ScriptRequest,
        (lease_id, question): (u64, [u64; 5]),
    ) -> Option<u64> {
        let (by, cells) = match part.counting {
            Counting::Cells(cells) => ("cells", cells),
            Counting::Gcra(_) => ("gcra", 0),
            _ => ("log", 0),
        };
        let [sequence, begins, cap, want, term] = question;
        let mut call = self.0.prepare_invoke();
        call.key(&part.key)
            .key(format!("{}:leases", part.key))
            .key(format!("{}:lease:{lease_id}", part.key))
            .key("era");
        call.arg("renew")
            .arg(by)
            .arg(part.limit)
            .arg(part.window)
            .arg(cells);
        call.arg(part.permits).arg(&[0, 0, 0, 0]);
        call.arg(part.permit / 2000).arg(part.permit % 2000);
        call.arg(sequence).arg(begins).arg(1).arg(cap).arg(want).arg(term);
        call.arg(now / 1_000_000).arg(now % 1_000_000);
        let answer: Vec<i64> = call.invoke(client).expect("the script runs");
        assert_eq!(answer.len(), 4);
        (answer[0] == 1).then(|| u64::try_from(answer[1]).expect("not negative"))
    }
}

/// A server, and the scripts over a connection to it.
pub(crate) struct Scripts {
    server: Arc<Server>,
    client: redis::Connection,
    decide: Script,
    refund: Script,
    renew: Script,
}

impl Scripts {
    /// Without a server, reports that the test is skipped and returns `None`.
    pub(crate) fn start() -> Option<Self> {
        Server::start().map(|server| Self::over(Arc::new(server)))
    }

    /// The scripts over another connection to this server.
    pub(crate) fn again(&self) -> Self {
        Self::over(Arc::clone(&self.server))
    }

    fn over(server: Arc<Server>) -> Self {
        Self {
            client: server.client(),
            server,
            decide: timeless(include_str!("../../../src/redis/script/decide.lua")),
            refund: timeless(include_str!("../../../src/redis/script/refund.lua")),
            renew: timeless(include_str!("../../../src/redis/script/renew.lua")),
        }
    }

    /// Sends a command, whose words are separated by spaces, and returns the answer.
    pub(crate) fn ask<T: redis::FromRedisValue>(&mut self, command: &str) -> T {
        ask(&mut self.client, command)
    }

    /// Charges a request to all counters or to none. Returns whether it is admitted, and the status of each counter.
    pub(crate) fn charge(
        &mut self,
        now: u64,
        parts: &impl AsRef<[ScriptRequest]>,
    ) -> (bool, Vec<CounterStatus>) {
        self.decide
            .decide(&mut self.client, now, "charge", parts.as_ref())
    }

    pub(crate) fn peek(
        &mut self,
        now: u64,
        parts: &impl AsRef<[ScriptRequest]>,
    ) -> (bool, Vec<CounterStatus>) {
        self.decide.decide(&mut self.client, now, "peek", parts.as_ref())
    }

    /// Charges a request whether there is room or not.
    pub(crate) fn owe(&mut self, now: u64, parts: &impl AsRef<[ScriptRequest]>) {
        self.decide.decide(&mut self.client, now, "owe", parts.as_ref());
    }

    /// Returns the refunded permits of each counter.
    pub(crate) fn refund(&mut self, now: u64, parts: &impl AsRef<[ScriptRequest]>) -> Vec<u64> {
        self.refund.run(&mut self.client, now, "refund", parts.as_ref())
    }

    /// Renews a lease, as [`Script::renew`] says.
    pub(crate) fn renew(&mut self, now: u64, part: &ScriptRequest, question: (u64, [u64; 5])) -> Option<u64> {
        self.renew.renew(&mut self.client, now, part, question)
    }
}

impl AsRef<[ScriptRequest]> for ScriptRequest {
    fn as_ref(&self) -> &[ScriptRequest] {
        core::slice::from_ref(self)
    }
}
