//! The validation of rules for a store, and the fallback rules of this node.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::algorithm::CounterRing;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::rules::evaluate::state_algorithms::StateAlgorithms;
use crate::rules::rule::AnyRule;
use crate::rules::rule::algorithm::{Bound, InStore, RuleAlgorithm};
use crate::rules::rule::kind::{AnyKind, InFlight, Rate};
use crate::rules::rule::mode::Mode;
use crate::rules::rule::on_error::OnError;
use crate::rules::set::clock_origin::ClockOrigin;

/// The largest limit of a quota that a store keeps as a log, in permits.
const MOST_LOGGED: u64 = 100_000;
/// The maximum number of cells of a window.
const MOST_CELLS: u64 = 1000;
/// The shortest window. The expiry times of stores are in milliseconds.
const SHORTEST: Duration = Duration::from_millis(1);

/// The most permits that a rule may admit beyond its limit in a window on this number of nodes, by its worst quota or tier.
pub(super) fn overshoot<R: ?Sized>(rule: &AnyRule<R>, nodes: u64) -> Option<u64> {
    let limits = rule.kind.quotas().iter().map(|quota| quota.limit());
    let mut limits = limits.chain(rule.tier_limits());
    let others = nodes.saturating_sub(1);
    limits.try_fold(0, |most: u64, limit| {
        let beyond = match rule.mode {
            Mode::Strict | Mode::Lease { .. } => bound(&rule.kind, limit)? - limit,
            Mode::Sync { pending, .. } => {
                let largest_budget = match rule.kind.rate() {
                    Some(rate) if rate.algorithm.facts().has_burst => burst(rate, limit),
                    Some(_) | None => limit,
                };
                let budgets = others.checked_mul(pending.min(largest_budget))?;
                budgets.checked_add(bound(&rule.kind, limit)? - limit)?
            }
            Mode::Local => bound(&rule.kind, limit)?.checked_mul(nodes.max(1))? - limit,
        };
        Some(most.max(beyond))
    })
}

/// The most permits that one node admits in a window by a rule of this kind.
fn bound(kind: &AnyKind, limit: u64) -> Option<u64> {
    let rate = match kind {
        AnyKind::Rate(rate) => rate,
        AnyKind::Calendar(_) => return limit.checked_mul(2),
        AnyKind::InFlight(_) => return Some(limit),
    };
    match rate.algorithm.facts().bound {
        Bound::Limit => Some(limit),
        Bound::Twice => limit.checked_mul(2),
        Bound::WithShare => limit.checked_add(limit.div_ceil(rate.cells_or_default())),
        // The burst of a tier is proportional to its limit. Here it is rounded up.
        Bound::WithBurst => {
            let first = rate.quotas[0].limit();
            let burst = u128::from(rate.burst.unwrap_or(first)) * u128::from(limit);
            let burst = u64::try_from(burst.div_ceil(u128::from(first)).max(1)).ok()?;
            // A burst is at least one permit.
            limit.checked_add(burst - 1)
        }
    }
}

/// Whether leases decide about the rules of this mode.
pub(in crate::shared) const fn needs_leases(mode: Mode) -> bool {
    match mode {
        Mode::Lease { .. } | Mode::Sync { .. } => true,
        Mode::Local | Mode::Strict => false,
    }
}

/// How a store keeps a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredAs {
    Log,
    Cells(u64),
    /// A token bucket of this burst.
    Gcra(u64),
    /// Slots in flight, each for this time after its last renewal.
    Slots(Duration),
    /// A counter for each fixed window, or for each period of a calendar.
    Periods,
}

/// The burst of a rate for a key of this limit: proportional to the limit, as that of a rule in one process.
pub(super) fn burst(rate: &Rate, limit: u64) -> u64 {
    let first = rate.quotas[0].limit();
    let burst = u128::from(rate.burst.unwrap_or(first)) * u128::from(limit) / u128::from(first);
    u64::try_from(burst).unwrap_or(u64::MAX).max(1)
}

/// The features of a store beside counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreFeatures {
    pub(crate) leases: bool,
    pub(crate) slots: bool,
    pub(crate) blocks: bool,
}

/// How a store of these features keeps a rule, or everything about the rule that it does not keep. The burst is that of keys in no
/// tier. `term` is the time for which a slot in flight is held without a renewal.
pub(super) fn stored_as<R: ?Sized>(
    rule: &AnyRule<R>,
    term: Duration,
    store: StoreFeatures,
) -> Result<StoredAs, Vec<ConfigError>> {
    let mut errors = Vec::new();
    let mut wrong = |field, given: String, expected: &str| {
        errors.push(ConfigError::new(field, given, expected));
    };
    let mode = || format!("{:?}", rule.mode);
    if rule.block.is_some() && rule.mode != Mode::Strict {
        wrong("mode", mode(), "Strict for a rule with a block");
    }
    if let (Some(calendar), Mode::Local) = (rule.kind.calendar(), rule.mode) {
        let expected = "the mode Strict, or a rule of a `RuleSet` or `LiveRules` of each process";
        wrong("calendar", format!("\"{calendar}\""), expected);
    }
    // A local rule is not in the store, so its form there is never used.
    let mut kept = StoredAs::Log;
    if rule.mode != Mode::Local {
        kept = kept_in_store(rule, term, &mut wrong);
        let needs_leases = needs_leases(rule.mode);
        if needs_leases && !store.leases && !rule.kind.is_in_flight() {
            wrong("mode", mode(), "Local or Strict over a store without leases");
        }
        if rule.kind.is_in_flight() && !needs_leases && !store.slots {
            let expected = "Local over a store that keeps no slots in flight";
            wrong("mode", mode(), expected);
        }
    }
    if rule.block.is_some() && !store.blocks {
        let given = "given for a store without blocks";
        wrong("block", given.into(), "a store that keeps blocks, or no block");
    }
    match errors.is_empty() {
        true => Ok(kept),
        false => Err(errors),
    }
}

/// How a store keeps a rule that is not local. Calls `wrong` with the field, the given value and the accepted ones of everything
/// that no store keeps.
fn kept_in_store<R: ?Sized>(
    rule: &AnyRule<R>,
    term: Duration,
    wrong: &mut impl FnMut(&'static str, String, &str),
) -> StoredAs {
    if rule.limit_by.is_some() {
        let expected = "no function: tiers, or the mode `Local`";
        wrong("limit_by", "given for a rule in a store".into(), expected);
    }
    if let Some(key) = &rule.key
        && key.parts.is_none()
    {
        let given = format!("{:?} without shared parts", key.name());
        wrong("key", given, "a key with `shared_as`, equal on all machines");
    }
    let by_period = "Strict for fixed windows and calendars in a store";
    let mut only = |expected| {
        if rule.mode != Mode::Strict {
            wrong("mode", format!("{:?}", rule.mode), expected);
        }
    };
    let rate = match &rule.kind {
        AnyKind::Rate(rate) => rate,
        AnyKind::Calendar(_) => {
            only(by_period);
            return StoredAs::Periods;
        }
        AnyKind::InFlight(_) => {
            only("Strict or Local for a rule of requests in flight");
            return StoredAs::Slots(term);
        }
    };
    if rate.algorithm.facts().in_store == InStore::Periods {
        only(by_period);
    }
    for quota in &rate.quotas {
        if quota.window() < SHORTEST {
            let given = format!("{:?}", quota.window());
            wrong("window", given, "1ms to 366 days in a store");
        } else if StateAlgorithms::new(rule, &[*quota], ClockOrigin::ANY)
            .is_ok_and(|algorithms| algorithms.unit() > 1)
        {
            let given = format!("{} permits in {:?}", quota.limit(), quota.window());
            let expected = "a limit that needs no unit in a store, or the mode `Local`";
            wrong("limit", given, expected);
        }
    }
    match rate.algorithm.facts().in_store {
        InStore::Log => {
            let limits = rate.quotas.iter().map(|quota| quota.limit());
            let most = limits.chain(rule.tier_limits()).max().unwrap_or(1);
            if most > MOST_LOGGED {
                let expected = format!("1 to {MOST_LOGGED} permits for a log in a store");
                wrong("limit", format!("{most} permits"), &expected);
            }
            StoredAs::Log
        }
        InStore::Cells => {
            let cells = rate.cells.unwrap_or(CounterRing::DEFAULT_CELLS);
            if !(1..=MOST_CELLS).contains(&cells) {
                let expected = format!("1 to {MOST_CELLS} in a store");
                wrong("cells", format!("{cells}"), &expected);
            }
            StoredAs::Cells(cells)
        }
        InStore::Bucket => StoredAs::Gcra(burst(rate, rate.quotas[0].limit())),
        InStore::Periods => StoredAs::Periods,
        InStore::Refused => {
            let expected = format!("{} in a store", kept_algorithms());
            wrong("algorithm", format!("{:?}", rate.algorithm), &expected);
            StoredAs::Log
        }
    }
}

/// The algorithms that a store keeps, as in `Counter, Log or Gcra`.
fn kept_algorithms() -> String {
    let all = RuleAlgorithm::NAMES.iter().map(|&(_, algorithm)| algorithm);
    let kept = all.filter(|algorithm| algorithm.facts().in_store != InStore::Refused);
    let names: Vec<String> = kept.map(|algorithm| format!("{algorithm:?}")).collect();
    match names.split_last() {
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}

/// The rule that this node decides by if the store does not answer.
pub(super) fn fallback<R: ?Sized>(rule: &AnyRule<R>, nodes: u64) -> AnyRule<R> {
    let mut rule = rule.clone();
    // Only the store counts violations.
    rule.block = None;
    if rule.mode == Mode::Local {
        // This is the rule itself, since this node always decides it.
        return rule;
    }
    let share = |limit: u64| match rule.on_error {
        // A limit of zero stays zero, so that it is refused here, too.
        OnError::Share => (limit / nodes).max(limit.min(1)),
        OnError::Local | OnError::Deny | OnError::Admit => limit,
    };
    let share_of = |quota: Quota| quota.with_limit(share(quota.limit()));
    // The fallback of a log is a sliding window, which counts most keys in one word and is at least as strict. A table of logs
    // could be larger than the memory. The clock of the node's limiters knows no calendar and no time of day, so the fallback of
    // periods counts any window of their longest length, which is stricter, too.
    rule.kind = match rule.kind {
        AnyKind::Rate(mut rate) => {
            match rate.algorithm.facts().in_store {
                InStore::Log | InStore::Periods => rate.algorithm = RuleAlgorithm::SlidingWindow,
                InStore::Cells | InStore::Bucket | InStore::Refused => {}
            }
            rate.quotas.iter_mut().for_each(|quota| *quota = share_of(*quota));
            rate.burst = rate.burst.map(share);
            rate.into()
        }
        AnyKind::Calendar(calendar) => Rate::new(share_of(calendar.longest)).into(),
        AnyKind::InFlight(InFlight { limit }) => {
            let limit = share_of(limit);
            InFlight { limit }.into()
        }
    };
    for (_, limit) in &mut rule.tiers {
        *limit = share(*limit);
    }
    rule
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::algorithm::Algorithm;
    use crate::rules::condition::Cost;
    use crate::rules::key::Key;
    use crate::rules::rule::Rule;

    /// The limiters that decide if the store does not answer have the form that a rule set chooses: one word for each key.
    #[test]
    fn a_fallback_counts_as_a_rule_of_one_process() {
        let key = Key::new("user", |(), _| {});
        let rule = |text: &str| {
            let rule = Rule::<()>::new("rule", text.parse().expect("a quota"));
            rule.on_error(OnError::Local)
        };
        let keyed = |text: &str| rule(text).by(&key);
        let share = |rule: Rule<()>| rule.on_error(OnError::Share);
        for (rule, form) in [
            (keyed("60/min"), "one word of 16 cells in units of 4"),
            (
                keyed("60/min").algorithm(RuleAlgorithm::Log),
                "one word of 16 cells in units of 4",
            ),
            (
                keyed("60/min").algorithm(RuleAlgorithm::Fixed),
                "one word of 16 cells in units of 4",
            ),
            (
                keyed("60/min").mode(Mode::Local),
                "one word of 16 cells in units of 4",
            ),
            (keyed("60/min").algorithm(RuleAlgorithm::Counter), "60 cells"),
            (keyed("60/min").cells(29), "29 cells"),
            (keyed("60/min").cost(&Cost::new("cost", |()| 1)), "60 cells"),
            (rule("60/min"), "60 cells"),
            // A quarter of the limit.
            (share(keyed("40/min")), "one word of 23 cells in units of 1"),
            (
                share(keyed("240/min").algorithm(RuleAlgorithm::Log)),
                "one word of 16 cells in units of 4",
            ),
        ] {
            let fallback = fallback(&rule.clone().into_any(), 4);
            let quotas = fallback.kind.quotas();
            let chosen = StateAlgorithms::new(&fallback, quotas, ClockOrigin::ANY).expect("an algorithm");
            assert_eq!(chosen.tiers[0].to_string(), form, "{rule:?}");
            assert_eq!(chosen.tiers[0].bound(), quotas[0].limit());
        }
    }
}
