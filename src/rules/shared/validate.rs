//! The validation of rules for a store, and the fallback rules of this node.

use alloc::format;
use core::time::Duration;

use crate::algorithm::CounterRing;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::rules::evaluate::state_algorithms::StateAlgorithms;
use crate::rules::rule::Rule;
use crate::rules::rule::algorithm::RuleAlgorithm;
use crate::rules::rule::mode::Mode;
use crate::rules::rule::on_error::OnError;
use crate::rules::set::clock_origin::ClockOrigin;

/// The largest limit of a quota that a store keeps as a log, in permits.
const MOST_LOGGED: u64 = 100_000;
/// The maximum number of cells of a window.
const MOST_CELLS: u64 = 1000;
/// The shortest window. The expiry times of stores are in milliseconds.
const SHORTEST: Duration = Duration::from_millis(1);

/// The most permits that a rule may admit beyond its limit in a window on this number of nodes, over its quotas and tiers.
pub(super) fn overshoot<R: ?Sized>(rule: &Rule<R>, nodes: u64) -> Option<u64> {
    let limits = rule.quotas.iter().map(|quota| quota.limit());
    let mut limits = limits.chain(rule.tiers.iter().map(|&(_, limit)| limit));
    let others = nodes.saturating_sub(1);
    limits.try_fold(0, |most: u64, limit| {
        let beyond = match rule.mode {
            Mode::Strict | Mode::Lease { .. } => bound(rule, limit)? - limit,
            Mode::Sync { pending, .. } => {
                let most = match rule.algorithm {
                    RuleAlgorithm::Gcra => burst(rule, limit),
                    _ => limit,
                };
                let budgets = others.checked_mul(pending.min(most))?;
                budgets.checked_add(bound(rule, limit)? - limit)?
            }
            Mode::Local => bound(rule, limit)?.checked_mul(nodes.max(1))? - limit,
        };
        Some(most.max(beyond))
    })
}

/// The most permits that one node admits in a window by the algorithm of the rule.
fn bound<R: ?Sized>(rule: &Rule<R>, limit: u64) -> Option<u64> {
    match rule.algorithm {
        RuleAlgorithm::Counter | RuleAlgorithm::Log => Some(limit),
        RuleAlgorithm::Classic | RuleAlgorithm::Fixed => limit.checked_mul(2),
        RuleAlgorithm::Even => limit.checked_add(limit.div_ceil(rule.cells_or_default())),
        // The burst of a tier is proportional to its limit. Here it is rounded up.
        RuleAlgorithm::Gcra => {
            let first = rule.quotas[0].limit();
            let burst = u128::from(rule.burst.unwrap_or(first)) * u128::from(limit);
            let burst = u64::try_from(burst.div_ceil(u128::from(first)).max(1)).ok()?;
            // A burst is at least one permit.
            limit.checked_add(burst - 1)
        }
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
}

/// The burst of a rule for a key of this limit: proportional to the limit, as that of a rule in one process.
pub(super) fn burst<R: ?Sized>(rule: &Rule<R>, limit: u64) -> u64 {
    let first = rule.quotas[0].limit();
    let burst = u128::from(rule.burst.unwrap_or(first)) * u128::from(limit) / u128::from(first);
    u64::try_from(burst).unwrap_or(u64::MAX).max(1)
}

/// How a store keeps a rule. The burst is that of keys in no tier. `term` is the time for which a slot in flight is held without a
/// renewal.
pub(super) fn stored_as<R: ?Sized>(rule: &Rule<R>, term: Duration) -> Result<StoredAs, ConfigError> {
    if rule.block.is_some() && rule.key.is_none() {
        let given = "given for a rule without a key";
        return Err(ConfigError::new("block", given, "a rule with a key"));
    }
    if rule.block.is_some() && rule.mode != Mode::Strict {
        let given = format!("{:?}", rule.mode);
        return Err(ConfigError::new("mode", given, "Strict for a rule with a block"));
    }
    #[cfg(feature = "calendar")]
    if let Some(calendar) = &rule.calendar {
        let expected = "a quota in shared rules, or a rule of a `RuleSet` or `LiveRules` of each process";
        return Err(ConfigError::new("calendar", format!("\"{calendar}\""), expected));
    }
    if rule.mode == Mode::Local {
        return Ok(StoredAs::Log);
    }
    if rule.limit_by.is_some() {
        return Err(ConfigError::new(
            "limit_by",
            "given for a rule in a store",
            "no function: tiers, or the mode `Local`",
        ));
    }
    if let Some(key) = &rule.key
        && key.parts().is_none()
    {
        return Err(ConfigError::new(
            "key",
            format!("{:?} without shared parts", key.name()),
            "a key with `shared_as`, equal on all machines",
        ));
    }
    if rule.is_in_flight() {
        return match rule.mode {
            Mode::Strict | Mode::Local => Ok(StoredAs::Slots(term)),
            Mode::Lease { .. } | Mode::Sync { .. } => Err(ConfigError::new(
                "mode",
                format!("{:?}", rule.mode),
                "Strict or Local for a rule of requests in flight",
            )),
        };
    }
    for quota in &rule.quotas {
        if quota.window() < SHORTEST {
            let given = format!("{:?}", quota.window());
            return Err(ConfigError::new("window", given, "1ms to 366 days in a store"));
        }
        if StateAlgorithms::new(rule, &[*quota], ClockOrigin::ANY)
            .is_ok_and(|algorithms| algorithms.unit() > 1)
        {
            return Err(ConfigError::new(
                "limit",
                format!("{} permits in {:?}", quota.limit(), quota.window()),
                "a limit that needs no unit in a store, or the mode `Local`",
            ));
        }
    }
    match rule.algorithm {
        RuleAlgorithm::Log => {
            let limits = rule.quotas.iter().map(|quota| quota.limit());
            let most = limits
                .chain(rule.tiers.iter().map(|&(_, limit)| limit))
                .max()
                .unwrap_or(1);
            if most > MOST_LOGGED {
                return Err(ConfigError::new(
                    "limit",
                    format!("{most} permits"),
                    format!("1 to {MOST_LOGGED} permits for a log in a store"),
                ));
            }
            match rule.cells {
                None => Ok(StoredAs::Log),
                Some(cells) => Err(ConfigError::new(
                    "cells",
                    format!("{cells}"),
                    "nothing for a log rule",
                )),
            }
        }
        RuleAlgorithm::Counter => match rule.cells.unwrap_or(CounterRing::DEFAULT_CELLS) {
            cells @ 1..=MOST_CELLS => Ok(StoredAs::Cells(cells)),
            cells => Err(ConfigError::new(
                "cells",
                format!("{cells}"),
                format!("1 to {MOST_CELLS} in a store"),
            )),
        },
        RuleAlgorithm::Gcra => Ok(StoredAs::Gcra(burst(rule, rule.quotas[0].limit()))),
        other => Err(ConfigError::new(
            "algorithm",
            format!("{other:?}"),
            "Counter, Log or Gcra in a store",
        )),
    }
}

/// The rule that this node decides by if the store does not answer.
pub(super) fn fallback<R: ?Sized>(rule: &Rule<R>, nodes: u64) -> Result<Rule<R>, ConfigError> {
    let mut rule = rule.clone();
    // Only the store counts violations.
    rule.block = None;
    if rule.mode == Mode::Local {
        // This is the rule itself, since this node always decides it.
        return Ok(rule);
    }
    if rule.algorithm == RuleAlgorithm::Log {
        // The fallback of a log is a counter ring. It takes one or two words per key, and is at least as strict. A table of logs could
        // be larger than the memory.
        rule.algorithm = RuleAlgorithm::Counter;
    }
    if rule.on_error == OnError::Share {
        let share = |limit: u64| (limit / nodes).max(1);
        for quota in &mut rule.quotas {
            *quota = match quota.is_in_flight() {
                true => Quota::in_flight(share(quota.limit())),
                false => Quota::new(share(quota.limit()), quota.window())?,
            };
        }
        for (_, limit) in &mut rule.tiers {
            *limit = share(*limit);
        }
        rule.burst = rule.burst.map(share);
    }
    Ok(rule)
}
