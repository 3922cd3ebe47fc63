//! The scripts, their arguments and their replies.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use ::redis::{Cmd, Value};

use crate::shared::{
    CheckResult, CounterRequest, CounterStatus, Counting, LeaseGrant, LeaseRequest, StoreError,
    StoreErrorKind,
};

/// A script, and the digest that servers know it by.
#[derive(Debug)]
pub(super) struct Script {
    text: &'static str,
    digest: String,
}

macro_rules! script {
    ($last:literal) => {
        concat!(
            include_str!("prelude.lua"),
            include_str!("log.lua"),
            include_str!("cells.lua"),
            include_str!("gcra.lua"),
            include_str!("slots.lua"),
            include_str!("blocks.lua"),
            include_str!("leases.lua"),
            include_str!("counters.lua"),
            include_str!($last),
        )
    };
}

impl Script {
    /// The script that decides requests, peeks, and charges debts.
    pub(super) fn decide() -> Self {
        Self::new(script!("decide.lua"))
    }

    /// The script that refunds requests.
    pub(super) fn refund() -> Self {
        Self::new(script!("refund.lua"))
    }

    /// The script that renews leases.
    pub(super) fn renew() -> Self {
        Self::new(script!("renew.lua"))
    }

    fn new(text: &'static str) -> Self {
        let digest = ::redis::Script::new(text).get_hash().to_owned();
        Self { text, digest }
    }

    /// The command that runs the script: by its digest if the server knows it (`is_known`), and otherwise by its text.
    pub(super) fn call(&self, is_known: bool, names: &[String], arguments: &[String]) -> Cmd {
        let mut call = if is_known {
            let mut call = ::redis::cmd("EVALSHA");
            call.arg(&self.digest);
            call
        } else {
            let mut call = ::redis::cmd("EVAL");
            call.arg(self.text);
            call
        };
        call.arg(names.len()).arg(names).arg(arguments);
        call
    }
}

/// A microsecond, in the units of [`CounterRequest::time_per_permit`].
const MICROSECOND: u64 = 2000;

/// The name of a counter.
///
/// The braces keep all counters of one key in one slot of a cluster. The name says how the counter is kept, so nodes that
/// disagree about that, as during a deployment, do not misread each other's counts.
pub(super) fn name(prefix: &str, counter: &CounterRequest) -> String {
    let (key, index) = (counter.key_hash(), counter.quota_index());
    let rule = match counter.period() {
        Some(start) => format!("{}@{start}", counter.rule()),
        None => String::from(counter.rule()),
    };
    let (length, cells) = length_and_cells(counter);
    match counter.counting() {
        Counting::Log => format!("{prefix}:{{{key:032x}}}:{rule}:{index}:log:{length}"),
        Counting::Cells(_) => format!("{prefix}:{{{key:032x}}}:{rule}:{index}:cells:{cells}x{length}"),
        Counting::Gcra(_) => format!("{prefix}:{{{key:032x}}}:{rule}:{index}:gcra:{length}"),
        // Without the term, so that nodes with different terms share the slots.
        Counting::Slots => format!("{prefix}:{{{key:032x}}}:{rule}:{index}:slots"),
        // Without the block's numbers, so that a deployment with other ones keeps the blocks.
        Counting::Violations => format!("{prefix}:{{{key:032x}}}:{rule}:{index}:block"),
    }
}

/// The width of a cell and the number of cells, or the window and 0 for a counter without cells. A length is in microseconds, and is
/// rounded up, which is stricter.
fn length_and_cells(counter: &CounterRequest) -> (u64, u64) {
    let window = micros(counter.window());
    match counter.counting() {
        Counting::Log | Counting::Gcra(_) | Counting::Slots | Counting::Violations => (window, 0),
        Counting::Cells(cells) => (window.div_ceil(cells), cells),
    }
}

/// A time in microseconds, rounded up.
fn micros(time: Duration) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "a time is at most 732 days")]
    let micros = time.as_nanos().div_ceil(1000) as u64;
    micros
}

/// The last arguments of a block, in their order: the length of the first block, the longest length, the time after which a key is
/// forgiven, and a pair: 1 if a retry extends the block (otherwise 0), and the factor of repeated blocks.
fn block_numbers(counter: &CounterRequest) -> (u64, u64, u64, (u64, u64)) {
    let Some(block) = counter.block() else {
        return (0, 0, 0, (0, 0));
    };
    (
        micros(block.duration),
        micros(block.ceiling),
        micros(block.forgive_after),
        (u64::from(block.extends), u64::from(block.factor)),
    )
}

/// The arguments of a script: a verb, and those of each counter with its receipt.
pub(super) fn arguments(verb: &str, counters: &[(&CounterRequest, (u64, u64))]) -> Vec<String> {
    let mut arguments = alloc::vec![verb.to_owned()];
    // The counters of one rule share a number. It is negative in shadow mode.
    let number_of_rule = |counter: &CounterRequest| {
        let same = |(other, _): &(&CounterRequest, _)| {
            other.is_enforced() == counter.is_enforced() && other.rule() == counter.rule()
        };
        let number = 1 + counters.iter().position(same).unwrap_or(0);
        match counter.is_enforced() {
            true => format!("{number}"),
            false => format!("-{number}"),
        }
    };
    for &(counter, (first, second)) in counters {
        let (length, cells) = length_and_cells(counter);
        let counting = match counter.counting() {
            Counting::Log => "log",
            Counting::Cells(_) => "cells",
            Counting::Gcra(_) => "gcra",
            Counting::Slots => "slots",
            Counting::Violations => "blocks",
        };
        let rate = (
            counter.time_per_permit() / MICROSECOND,
            counter.time_per_permit() % MICROSECOND,
        );
        // In these places, a slot has its name instead of a receipt, and a block has its own numbers.
        let (first, second, reserve, rate) = match counter.counting() {
            Counting::Log | Counting::Cells(_) | Counting::Gcra(_) => {
                (first, second, counter.reserve(), rate)
            }
            Counting::Slots => {
                let (node, number) = counter.slot();
                (node, number, 0, rate)
            }
            Counting::Violations => block_numbers(counter),
        };
        arguments.push(counting.to_owned());
        let numbers = [counter.capacity(), length, cells, counter.permits()];
        arguments.extend(numbers.iter().map(|number| format!("{number}")));
        arguments.push(number_of_rule(counter));
        let numbers = [first, second, reserve, rate.0, rate.1];
        arguments.extend(numbers.iter().map(|number| format!("{number}")));
    }
    arguments
}

/// The keys of a script: for each counter its name, and the name of its leases.
///
/// In a cluster, a script on several names fails while their slot moves, but a script on one name follows the slot. So a counter
/// without leases repeats its own name there.
pub(super) fn names(prefix: &str, in_cluster: bool, counters: &[&CounterRequest]) -> Vec<String> {
    let both = counters.iter().flat_map(|counter| {
        let name = name(prefix, counter);
        let leases = match in_cluster && !counter.is_leasable() {
            true => name.clone(),
            false => format!("{name}:leases"),
        };
        [name, leases]
    });
    both.collect()
}

/// The keys of `renew.lua`: those of the counters, and the key of each lease.
///
/// The last key has the time since which the server has forgotten nothing. In a cluster, each counter's key has a time of its own.
pub(super) fn renewal_names(prefix: &str, in_cluster: bool, requests: &[LeaseRequest]) -> Vec<String> {
    let counters = requests
        .iter()
        .map(|request| &request.counter)
        .collect::<Vec<_>>();
    let mut names = names(prefix, in_cluster, &counters);
    for request in requests {
        let name = name(prefix, &request.counter);
        names.push(format!("{name}:lease:{:032x}", request.lease_id));
    }
    names.push(match requests.first() {
        Some(request) if in_cluster => format!("{prefix}:{{{:032x}}}:era", request.counter.key_hash()),
        _ => format!("{prefix}:era"),
    });
    names
}

/// The arguments of `renew.lua`.
pub(super) fn renewals(requests: &[LeaseRequest]) -> Vec<String> {
    let charges: Vec<CounterRequest> = requests
        .iter()
        .map(|request| request.counter.clone().with_permits(request.charge))
        .collect();
    let counters: Vec<_> = charges.iter().map(|counter| (counter, (0, 0))).collect();
    let mut arguments = arguments("renew", &counters);
    for request in requests {
        let term = request.term.as_nanos().div_ceil(1000);
        arguments.push(format!("{}", request.sequence));
        arguments.push(format!("{}", u8::from(request.is_new)));
        arguments.push(format!("{}", u8::from(request.is_registered)));
        arguments.push(format!("{}", request.cap));
        arguments.push(format!("{}", request.wanted));
        arguments.push(format!("{term}"));
    }
    arguments
}

/// The wait in the answer about a lease, if the server does not tell when its run began.
const START_UNKNOWN: i64 = -2;
/// The wait in the answer about a lease, if its key or a key of its counter holds data of another program.
const FOREIGN_DATA: i64 = -3;

/// Whether a reply of `renew.lua` says that the server registers no lease, because it does not tell when its run began.
pub(super) fn is_start_unknown(reply: &Value) -> bool {
    let Value::Array(numbers) = reply else {
        return false;
    };
    let (grants, _) = numbers.as_chunks::<4>();
    grants.iter().any(|[.., wait]| *wait == Value::Int(START_UNKNOWN))
}

/// Reads the reply of `renew.lua`: an answer to each request, or the error of the whole reply.
pub(super) fn grants(
    reply: &Value,
    prefix: &str,
    requests: &[LeaseRequest],
) -> Result<Vec<Result<LeaseGrant, StoreError>>, StoreError> {
    let numbers = numbers(reply, 4 * requests.len())?;
    let (answers, _) = numbers.as_chunks::<4>();
    let grants = requests.iter().zip(answers).map(|(request, answer)| {
        let &[is_known, granted, left, wait] = answer;
        if wait == FOREIGN_DATA {
            let name = name(prefix, &request.counter);
            let detail = format!("a key of {name} holds data of another program");
            return Ok(Err(StoreError::new(StoreErrorKind::UnexpectedReply, detail)));
        }
        if is_known == 0 {
            return Ok(Ok(LeaseGrant::unknown()));
        }
        let grant = LeaseGrant::of(unsigned(granted)?);
        let wait = u64::try_from(wait).unwrap_or(0);
        Ok(Ok(match unsigned(left)? {
            0 => grant.with_remaining(0, Duration::from_micros(wait)),
            left => grant.with_remaining(left, Duration::ZERO),
        }))
    });
    grants.collect()
}

/// Reads the reply of `decide.lua`.
pub(super) fn check_result(reply: &Value, counters: usize) -> Result<CheckResult, StoreError> {
    let numbers = numbers(reply, 2 + 5 * counters)?;
    let (admitted, at) = (numbers[0], unsigned(numbers[1])?);
    let (answers, _) = numbers[2..].as_chunks::<5>();
    let statuses = answers.iter().map(|&[room, remaining, wait, first, second]| {
        let remaining = unsigned(remaining)?;
        let retry_after = u64::try_from(wait).ok().map(Duration::from_micros);
        let status = match room {
            0 => CounterStatus::without_room(remaining, retry_after),
            1 => CounterStatus::with_room(remaining),
            2 => CounterStatus::with_room(remaining).not_charged(),
            other => return Err(unexpected(other)),
        };
        Ok(status.with_receipt(unsigned(first)?, unsigned(second)?))
    });
    let statuses: Vec<CounterStatus> = statuses.collect::<Result<_, StoreError>>()?;
    match admitted {
        0 => Ok(CheckResult::denied(at, statuses)),
        1 => Ok(CheckResult::admitted(at, statuses)),
        other => Err(unexpected(other)),
    }
}

/// The numbers of a reply, exactly `count` of them.
pub(super) fn numbers(reply: &Value, count: usize) -> Result<Vec<i64>, StoreError> {
    let unexpected = || StoreError::new(StoreErrorKind::UnexpectedReply, format!("{reply:?}"));
    let Value::Array(values) = reply else {
        return Err(unexpected());
    };
    let number = |value: &Value| match value {
        Value::Int(number) => Some(*number),
        _ => None,
    };
    let numbers: Option<Vec<i64>> = values.iter().map(number).collect();
    numbers
        .filter(|numbers| numbers.len() == count)
        .ok_or_else(unexpected)
}

fn unsigned(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|_| unexpected(number))
}

/// The error of a number that no script of this version replies with.
fn unexpected(number: i64) -> StoreError {
    StoreError::new(StoreErrorKind::UnexpectedReply, format!("{number}"))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn counter(counting: Counting, window: Duration) -> CounterRequest {
        CounterRequest::new("login", 0xabc, counting, 10, window).with_quota_index(1)
    }

    #[test]
    fn a_reply_is_read_or_an_error() {
        let ints = |numbers: &[i64]| Value::Array(numbers.iter().map(|&number| Value::Int(number)).collect());
        let read = check_result(&ints(&[0, 5, 0, 3, 7, 0, 0, 0, 0, -1, 0, 0]), 2).expect("two counters");
        assert!(!read.is_admitted);
        assert_eq!(read.at, 5);
        let after = Some(Duration::from_micros(7));
        let expected = [
            CounterStatus::without_room(3, after),
            CounterStatus::without_room(0, None),
        ];
        assert_eq!(read.statuses, expected);
        let read = check_result(&ints(&[1, 5, 1, 3, 0, 8, 9, 2, 4, 0, 0, 0]), 2).expect("two counters");
        assert!(read.is_admitted);
        let expected = [
            CounterStatus::with_room(3).with_receipt(8, 9),
            CounterStatus::with_room(4).not_charged(),
        ];
        assert_eq!(read.statuses, expected);
        for reply in [
            Value::Nil,
            Value::Okay,
            Value::Int(1),
            ints(&[]),
            ints(&[1, 5]),
            ints(&[1, 5, 1, 3, 0, 8]),
            ints(&[1, 5, 1, 3, 0, 8, 9, 1]),
            ints(&[1, -5, 1, 3, 0, 8, 9]),
            ints(&[2, 5, 1, 3, 0, 8, 9]),
            ints(&[-1, 5, 1, 3, 0, 8, 9]),
            ints(&[1, 5, 3, 3, 0, 8, 9]),
            ints(&[0, 5, -1, 3, 0, 8, 9]),
            ints(&[1, 5, i64::MAX, 3, 0, 8, 9]),
            ints(&[1, 5, 1, -3, 0, 8, 9]),
            ints(&[1, 5, 1, 3, 0, 8, i64::MIN]),
            Value::Array(vec![Value::Nil; 7]),
        ] {
            let error = check_result(&reply, 1).expect_err("an error");
            assert_eq!(error.kind(), StoreErrorKind::UnexpectedReply, "{reply:?}");
        }
    }

    /// The counters of a rule and its block share a number, also if each period of the rule has a counter of its own.
    #[test]
    fn a_rule_and_its_block_share_a_number() {
        let second = Duration::from_secs(1);
        let of = |rule: &str, counting| CounterRequest::new(rule, 1, counting, 10, second);
        let fixed = |rule: &str, start| of(rule, Counting::Cells(1)).with_period(start);
        let block = |rule: &str| of(rule, Counting::Violations);
        let shadow = |rule: &str, start| fixed(rule, start).with_enforced(false);
        for (counters, expected) in [
            (vec![fixed("a", 60), block("a")], vec!["1", "1"]),
            (
                vec![fixed("a", 0), fixed("b", 0), block("b"), block("a")],
                vec!["1", "2", "2", "1"],
            ),
            (
                vec![fixed("a", 60), fixed("a", 3600), block("a")],
                vec!["1", "1", "1"],
            ),
            (
                vec![of("a", Counting::Log), block("a"), fixed("b", 1)],
                vec!["1", "1", "3"],
            ),
            (vec![of("a@60", Counting::Log), fixed("a", 60)], vec!["1", "2"]),
            (
                vec![shadow("a", 60), shadow("a", 3600), fixed("b", 0)],
                vec!["-1", "-1", "3"],
            ),
            (vec![shadow("a", 60), fixed("a", 60)], vec!["-1", "2"]),
        ] {
            let asked: Vec<_> = counters.iter().map(|counter| (counter, (0, 0))).collect();
            let arguments = arguments("charge", &asked);
            let numbers: Vec<&str> = arguments[1..]
                .chunks_exact(11)
                .map(|counter| &*counter[5])
                .collect();
            assert_eq!(numbers, expected, "{counters:?}");
        }
        let named = name("p", &fixed("login", 60_000_000));
        assert_eq!(
            named,
            format!("p:{{{:032x}}}:login@60000000:0:cells:1x1000000", 1)
        );
    }

    /// A cell is at least as long as its part of the window, and a window is at least as long as it was given.
    #[test]
    fn lengths_are_rounded_up() {
        let second = Duration::from_secs(1);
        let name = |counting, window| name("p", &counter(counting, window));
        let tag = "{00000000000000000000000000000abc}";
        assert_eq!(
            name(Counting::Log, second),
            alloc::format!("p:{tag}:login:1:log:1000000")
        );
        assert_eq!(
            name(Counting::Cells(3), second),
            alloc::format!("p:{tag}:login:1:cells:3x333334")
        );
        assert_eq!(
            name(Counting::Log, second + Duration::from_nanos(1)),
            alloc::format!("p:{tag}:login:1:log:1000001")
        );
    }
}
