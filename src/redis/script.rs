//! The scripts, what they are asked and what they answer.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use ::redis::{Cmd, Value};

use super::accounts::{Ask, Told};
use super::store::{Counting, Found, Part, Verdict};
use super::store_error::{StoreError, StoreErrorKind};

/// A script and the digest that a server knows it by.
#[derive(Debug)]
pub(super) struct Script {
    text: &'static str,
    digest: String,
}

macro_rules! script {
    ($last:literal) => {
        concat!(
            include_str!("head.lua"),
            include_str!("log.lua"),
            include_str!("cells.lua"),
            include_str!("holds.lua"),
            include_str!("parts.lua"),
            include_str!($last),
        )
    };
}

impl Script {
    /// Takes, or peeks.
    pub(super) fn judge() -> Self {
        Self::new(script!("judge.lua"))
    }

    /// Gives back.
    pub(super) fn give_back() -> Self {
        Self::new(script!("give_back.lua"))
    }

    /// Settles accounts.
    pub(super) fn settle() -> Self {
        Self::new(script!("settle.lua"))
    }

    fn new(text: &'static str) -> Self {
        let digest = ::redis::Script::new(text).get_hash().to_owned();
        Self { text, digest }
    }

    /// The call by its digest, or by its text when the server does not know it (any more): as one command either way.
    pub(super) fn call(&self, known: bool, names: &[String], arguments: &[String]) -> Cmd {
        let mut call = if known {
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

/// The name that a part's counts are kept under.
///
/// What belongs to one key is kept in one place of a cluster: by the braces. How it is counted is in the name, so
/// that nodes that disagree about it, as during a deployment, do not read each other's counts as what they are not.
pub(super) fn name(prefix: &str, part: &Part) -> String {
    let (tag, rule, number) = (part.tag(), part.rule(), part.number());
    let (window, cells) = measures(part);
    match part.counting() {
        Counting::Log => format!("{prefix}:{{{tag:032x}}}:{rule}:{number}:log:{window}"),
        Counting::Cells(_) => format!("{prefix}:{{{tag:032x}}}:{rule}:{number}:cells:{cells}x{window}"),
    }
}

/// The window of a log, or the width of a cell, in microseconds; and the number of cells. Rounded up, which is
/// stricter.
fn measures(part: &Part) -> (u64, u64) {
    #[expect(clippy::cast_possible_truncation, reason = "a window is 366 days at the most")]
    let window = part.window().as_nanos().div_ceil(1000) as u64;
    match part.counting() {
        Counting::Log => (window, 0),
        Counting::Cells(cells) => (window.div_ceil(cells), cells),
    }
}

/// What a script is told of parts.
pub(super) fn arguments(verb: &str, parts: &[(&Part, (u64, u64))]) -> Vec<String> {
    let mut arguments = alloc::vec![verb.to_owned()];
    // The parts of one rule in the shadow share a number.
    let shadow = |part: &Part| match part.is_enforced() {
        true => 0,
        false => {
            let same = |(other, _): &(&Part, _)| !other.is_enforced() && other.rule() == part.rule();
            1 + parts.iter().position(same).unwrap_or(0) as u64
        }
    };
    for &(part, (first, second)) in parts {
        let (window, cells) = measures(part);
        let by = match part.counting() {
            Counting::Log => "log",
            Counting::Cells(_) => "cells",
        };
        arguments.push(by.to_owned());
        let numbers = [
            part.limit(),
            window,
            cells,
            part.permits(),
            shadow(part),
            first,
            second,
            part.reserve(),
        ];
        arguments.extend(numbers.iter().map(|number| format!("{number}")));
    }
    arguments
}

/// The names that scripts are told: for each part that of its counts, and that of its holds.
///
/// In a cluster a script on several names has to be asked again for as long as their slot moves, and one on a single name
/// follows that. So there nobody looks for holds of a rule that is not in the mode for it.
pub(super) fn names(prefix: &str, in_cluster: bool, parts: &[&Part]) -> Vec<String> {
    let both = parts.iter().flat_map(|part| {
        let counts = name(prefix, part);
        let holds = match in_cluster && !part.leased {
            true => counts.clone(),
            false => format!("{counts}:holds"),
        };
        [counts, holds]
    });
    both.collect()
}

/// What `settle.lua` is told.
pub(super) fn settling(asks: &[Ask]) -> Vec<String> {
    let charges: Vec<Part> = asks
        .iter()
        .map(|ask| Part {
            permits: ask.charge(),
            ..ask.part().clone()
        })
        .collect();
    let parts: Vec<_> = charges.iter().map(|part| (part, (0, 0))).collect();
    let mut arguments = arguments("settle", &parts);
    for ask in asks {
        let keep = ask.keep().as_nanos().div_ceil(1000);
        arguments.push(format!("{:032x}", ask.life()));
        arguments.push(format!("{}", ask.sequence()));
        arguments.push(format!("{}", u8::from(ask.begins())));
        arguments.push(format!("{}", u8::from(ask.is_hold())));
        arguments.push(format!("{}", ask.cap()));
        arguments.push(format!("{}", ask.want()));
        arguments.push(format!("{keep}"));
    }
    arguments
}

/// What `settle.lua` has answered.
pub(super) fn told(answer: &Value, asks: usize) -> Result<Vec<Told>, StoreError> {
    let numbers = numbers(answer, 4 * asks)?;
    let told = numbers.chunks_exact(4).map(|told| {
        if told[0] == 0 {
            return Ok(Told::unknown());
        }
        let granted = Told::granted(unsigned(told[1])?);
        let after = u64::try_from(told[3]).unwrap_or(0);
        Ok(match unsigned(told[2])? {
            0 => granted.leaving(0, Duration::from_micros(after)),
            left => granted.leaving(left, Duration::ZERO),
        })
    });
    told.collect()
}

/// What `judge.lua` has answered.
pub(super) fn verdict(answer: &Value, parts: usize) -> Result<Verdict, StoreError> {
    let numbers = numbers(answer, 2 + 5 * parts)?;
    let (head, rest) = numbers.split_at(2);
    let found = rest.chunks_exact(5).map(|found| {
        let remaining = unsigned(found[1])?;
        let receipt = (unsigned(found[3])?, unsigned(found[4])?);
        let found = match found[0] {
            0 => Found::without_room(remaining, u64::try_from(found[2]).ok().map(Duration::from_micros)),
            1 => Found::with_room(remaining),
            _ => Found::with_room(remaining).left_alone(),
        };
        Ok(found.with_receipt(receipt.0, receipt.1))
    });
    let found: Vec<Found> = found.collect::<Result<_, StoreError>>()?;
    let at = unsigned(head[1])?;
    Ok(match head[0] {
        0 => Verdict::refused(at, found),
        _ => Verdict::new(at, found),
    })
}

/// So many numbers, which a script has answered.
pub(super) fn numbers(answer: &Value, count: usize) -> Result<Vec<i64>, StoreError> {
    let confused = || StoreError::new(StoreErrorKind::Confused, format!("a script answers {answer:?}"));
    let Value::Array(values) = answer else {
        return Err(confused());
    };
    let number = |value: &Value| match value {
        Value::Int(number) => Some(*number),
        _ => None,
    };
    let numbers: Option<Vec<i64>> = values.iter().map(number).collect();
    numbers
        .filter(|numbers| numbers.len() == count)
        .ok_or_else(confused)
}

fn unsigned(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number)
        .map_err(|_| StoreError::new(StoreErrorKind::Confused, format!("a script answers {number}")))
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::vec;

    use super::*;

    fn part(counting: Counting, window: Duration) -> Part {
        Part {
            tag: 0xabc,
            rule: Arc::from("login"),
            number: 1,
            counting,
            limit: 10,
            window,
            permits: 1,
            enforced: true,
            reserve: 0,
            leased: false,
        }
    }

    #[test]
    fn an_answer_is_read_or_refused() {
        let ints = |numbers: &[i64]| Value::Array(numbers.iter().map(|&number| Value::Int(number)).collect());
        let read = verdict(&ints(&[0, 5, 0, 3, 7, 0, 0, 0, 0, -1, 0, 0]), 2).expect("two parts");
        assert!(!read.is_admitted());
        assert_eq!(read.at(), 5);
        let after = Some(Duration::from_micros(7));
        let expected = [Found::without_room(3, after), Found::without_room(0, None)];
        assert_eq!(read.found(), expected);
        let read = verdict(&ints(&[1, 5, 1, 3, 0, 8, 9, 2, 4, 0, 0, 0]), 2).expect("two parts");
        assert!(read.is_admitted());
        let expected = [
            Found::with_room(3).with_receipt(8, 9),
            Found::with_room(4).left_alone(),
        ];
        assert_eq!(read.found(), expected);
        // What no script of ours answers.
        for answer in [
            Value::Nil,
            Value::Okay,
            Value::Int(1),
            ints(&[]),
            ints(&[1, 5]),
            ints(&[1, 5, 1, 3, 0, 8]),
            ints(&[1, 5, 1, 3, 0, 8, 9, 1]),
            ints(&[1, -5, 1, 3, 0, 8, 9]),
            ints(&[1, 5, 1, -3, 0, 8, 9]),
            ints(&[1, 5, 1, 3, 0, 8, i64::MIN]),
            Value::Array(vec![Value::Nil; 7]),
        ] {
            let error = verdict(&answer, 1).expect_err("nonsense");
            assert_eq!(error.kind(), StoreErrorKind::Confused, "{answer:?}");
        }
    }

    /// A cell is never shorter than its part of the window, nor a window than it was said to be.
    #[test]
    fn lengths_are_rounded_up() {
        let second = Duration::from_secs(1);
        let name = |counting, window| name("p", &part(counting, window));
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
