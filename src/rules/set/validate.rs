//! Every reason for which rules are refused. No other code refuses a rule, unless memory cannot be allocated.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use std::collections::HashSet;

use super::clock_origin::ClockOrigin;
use crate::algorithm::Violations;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::rules::evaluate::request_limit::RequestLimit;
use crate::rules::evaluate::state_algorithms::StateAlgorithms;
use crate::rules::key_list::ListKind;
use crate::rules::rule::AnyRule;
use crate::rules::rule::block::Block;
use crate::rules::rule::enforcement::Enforcement;
use crate::rules::rule::error::RuleError;
use crate::rules::rule::kind::{AnyKind, Rate};
use crate::rules::rule::mode::Mode;
use crate::table::Table;

/// The maximum number of rules in a set.
const MAX_RULES: usize = 1000;

/// The maximum number of quotas of a rule, and of a state. Each quota makes a decision of the state longer.
pub(super) const MAX_QUOTAS: usize = 16;

/// A reason for which rules are refused.
#[derive(Debug)]
pub(crate) struct Reason {
    /// The index of the rule.
    pub(crate) rule: usize,
    pub(crate) part: Part,
    pub(crate) error: ConfigError,
}

/// The part of a field that a reason is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The field with the name in the error.
    Field,
    /// The quota with this index.
    Quota(usize),
    /// The limit of the tier with this index.
    Tier(usize),
    /// The entry with this index of the list with the name in the error.
    Entry(usize),
}

impl Reason {
    /// Returns all reasons as one error.
    pub(crate) fn all<R: ?Sized>(reasons: Vec<Self>, rules: &[AnyRule<R>]) -> Result<(), RuleError> {
        let errors = reasons.into_iter();
        RuleError::all(errors.map(|reason| RuleError::new(&rules[reason.rule], reason.error)))
    }
}

/// Returns every reason for which no rule set can be built of the rules, in their order.
///
/// `decided` are the rules that this node decides: the rules themselves, or the fallbacks of shared rules, whose algorithms may differ.
pub(crate) fn reasons<R: ?Sized>(
    rules: &[AnyRule<R>],
    decided: &[AnyRule<R>],
    origin: ClockOrigin,
) -> Vec<Reason> {
    let mut all = Vec::new();
    for (at, (rule, decided)) in rules.iter().zip(decided).enumerate().take(MAX_RULES) {
        let mut reasons = ReasonsOfRule {
            rule: at,
            reasons: Vec::new(),
        };
        reasons.check_names(rule, rules);
        reasons.check_mode(rule.mode);
        reasons.check_kind(rule, origin);
        if let Some(block) = &rule.block {
            reasons.check_block(block);
        }
        reasons.check_tiers(rule);
        reasons.check_key(rule);
        reasons.check_limits(decided, origin);
        all.append(&mut reasons.reasons);
    }
    if rules.len() > MAX_RULES {
        let error = ConfigError::new(
            "rules",
            format!("{} rules", rules.len()),
            format!("at most {MAX_RULES}"),
        );
        all.push(Reason {
            rule: MAX_RULES,
            part: Part::Field,
            error,
        });
    }
    all
}

/// Returns the first field of a rule with these tiers that its algorithm does not have.
pub(crate) fn error_of_algorithm(rate: &Rate, tiers: &[(Arc<str>, u64)]) -> Option<ConfigError> {
    let mut reasons = ReasonsOfRule {
        rule: 0,
        reasons: Vec::new(),
    };
    reasons.check_algorithm(rate);
    reasons.check_tiers_of_log(rate, tiers);
    let first = reasons.reasons.into_iter().next();
    first.map(|reason| reason.error)
}

/// The reasons for which one rule is refused.
struct ReasonsOfRule {
    rule: usize,
    reasons: Vec<Reason>,
}

impl ReasonsOfRule {
    fn add(&mut self, field: &'static str, given: impl Into<String>, expected: impl Into<String>) {
        self.add_error(Part::Field, ConfigError::new(field, given, expected));
    }

    fn add_if(&mut self, is_wrong: bool, field: &'static str, given: &str, expected: &str) {
        if is_wrong {
            self.add(field, given, expected);
        }
    }

    fn add_error(&mut self, part: Part, error: ConfigError) {
        let rule = self.rule;
        self.reasons.push(Reason { rule, part, error });
    }

    fn check_names<R: ?Sized>(&mut self, rule: &AnyRule<R>, rules: &[AnyRule<R>]) {
        self.add_if(rule.name.is_empty(), "name", "empty", "a name");
        if !rule.name.is_empty() && rules[..self.rule].iter().any(|other| other.name == rule.name) {
            let given = format!("{:?} again", rule.name);
            self.add("name", given, "a different name for each rule");
        }
        if let Some(old) = &rule.renamed_from {
            let uses_name =
                |other: &AnyRule<R>| other.name == *old || other.renamed_from.as_ref() == Some(old);
            let mut others = rules.iter().enumerate().filter(|(at, _)| *at != self.rule);
            if others.any(|(_, other)| uses_name(other)) {
                let expected = "a name that no other rule has or was renamed from";
                self.add("renamed_from", format!("{old:?}"), expected);
            }
        }
    }

    fn check_mode(&mut self, mode: Mode) {
        let (field, permits) = match mode {
            Mode::Local | Mode::Strict => return,
            Mode::Lease { permits } => ("permits", permits),
            Mode::Sync { period, pending } => {
                self.check_duration("period", period, Mode::MIN_PERIOD, Mode::MAX_PERIOD);
                ("pending", pending)
            }
        };
        if !(1..=Mode::MAX_PERMITS).contains(&permits) {
            let expected = format!("1 to {} permits", Mode::MAX_PERMITS);
            self.add(field, format!("{permits}"), expected);
        }
    }

    fn check_duration(&mut self, field: &'static str, given: Duration, least: Duration, most: Duration) {
        if !(least..=most).contains(&given) {
            self.add(field, format!("{given:?}"), format!("{least:?} to {most:?}"));
        }
    }

    fn check_kind<R: ?Sized>(&mut self, rule: &AnyRule<R>, origin: ClockOrigin) {
        match &rule.kind {
            AnyKind::Rate(rate) => self.check_rate(rule, rate),
            AnyKind::Calendar(_) => {
                let expected = "a clock that follows the time of the operating system, by \
                                build_with(SystemClock::new(), random_seeds())";
                let given = "the default clock for a calendar";
                self.add_if(origin.is_of_default_clock, "clock", given, expected);
            }
            AnyKind::InFlight(_) => {}
        }
    }

    fn check_rate<R: ?Sized>(&mut self, rule: &AnyRule<R>, rate: &Rate) {
        self.check_algorithm(rate);
        let quotas = rate.quotas.len();
        if quotas > MAX_QUOTAS {
            let given = format!("{quotas} quotas");
            self.add("quotas", given, format!("at most {MAX_QUOTAS}"));
        }
        if quotas > 1 && rule.enforced != Enforcement::All && !rate.is_one_state() {
            let algorithm = rate.algorithm;
            self.add(
                "quotas",
                format!("{quotas} quotas of a {algorithm:?} rule that is not fully enforced"),
                "one quota, or a sliding window, counter, classic or fixed rule, whose quotas share a state",
            );
        }
        let (given, expected) = ("given for a rule with several quotas", "a rule with one quota");
        self.add_if(quotas > 1 && !rule.tiers.is_empty(), "tiers", given, expected);
        let has_function = rule.limit_by.is_some();
        self.add_if(quotas > 1 && has_function, "limit_by", given, expected);
    }

    /// Adds the fields that the algorithm of a rate does not have.
    fn check_algorithm(&mut self, rate: &Rate) {
        let no_burst = (!rate.algorithm.facts().has_burst).then_some("no burst, except for a gcra rule");
        let no_cells = rate.algorithm.in_place_of_cells();
        for (field, given, expected) in [("cells", rate.cells, no_cells), ("burst", rate.burst, no_burst)] {
            if let (Some(given), Some(expected)) = (given, expected) {
                self.add(field, format!("{given}"), expected);
            }
        }
    }

    fn check_block(&mut self, block: &Block) {
        let after = block.after;
        if after.limit() > Violations::MAX_LIMIT || after.window() < Block::MIN {
            let given = format!("{} in {:?}", after.limit(), after.window());
            let expected = format!("1 to {} in {:?} or more", Violations::MAX_LIMIT, Block::MIN);
            self.add("after", given, expected);
        }
        let (first, factor, ceiling) = (block.duration, block.factor, block.ceiling);
        self.check_duration("for", first, Block::MIN, Block::MAX);
        if factor == 0 || factor == 1 && ceiling != first {
            self.add("factor", format!("{factor}"), "a whole number, at least 2");
        }
        // Without a factor, the ceiling is the first duration.
        if ceiling != first {
            self.check_duration("ceiling", ceiling, first, Block::MAX);
        }
        self.check_duration("forgive_after", block.forgive_after, Duration::ZERO, Block::MAX);
    }

    fn check_tiers<R: ?Sized>(&mut self, rule: &AnyRule<R>) {
        let given = match (rule.tiers.is_empty(), rule.tier_of.is_some()) {
            (true, true) => Some("a function without tiers"),
            (false, false) => Some("tiers without a function"),
            (true, false) | (false, true) => None,
        };
        if let Some(given) = given {
            let expected = "tiers, and a function that returns the tier of a request";
            self.add("tiers", given, expected);
        }
        if rule.tiers.len() > RequestLimit::MAX_TIERS {
            let expected = format!("at most {} tiers", RequestLimit::MAX_TIERS);
            self.add("tiers", format!("{} tiers", rule.tiers.len()), expected);
        }
        let mut names = HashSet::new();
        for (name, _) in &rule.tiers {
            if !names.insert(name) {
                self.add(
                    "tiers",
                    format!("{name:?} again"),
                    "a different name for each tier",
                );
            }
        }
    }

    /// Adds the fields that need a key, and the entries that are no values of the key.
    fn check_key<R: ?Sized>(&mut self, rule: &AnyRule<R>) {
        let lists = [(ListKind::Allow, &rule.allow), (ListKind::Deny, &rule.deny)];
        let percent = match rule.enforced {
            Enforcement::All | Enforcement::None => None,
            Enforcement::Percent(percent) => Some(percent),
        };
        if let Some(percent) = percent
            && !(0.0..=100.0).contains(&percent)
        {
            self.add("enforce", format!("{percent} %"), "0 to 100 %");
        }
        let Some(key) = &rule.key else {
            let needs_key = [
                ("enforce", percent.is_some()),
                ("capacity", rule.capacity.is_some()),
                ("block", rule.block.is_some()),
            ];
            let of_list = lists.map(|(kind, list)| (kind.field(), !list.is_empty()));
            for (field, is_given) in needs_key.into_iter().chain(of_list) {
                let given = "given for a rule without a key";
                self.add_if(is_given, field, given, "a rule with a key");
            }
            return;
        };
        if let Err(error) = Table::validate_capacity(rule.keys()) {
            self.add_error(Part::Field, error);
        }
        for (kind, list) in lists {
            for (at, error) in key.invalid_entries(kind, list) {
                self.add_error(Part::Entry(at), error);
            }
        }
    }

    /// Adds the limits, cells and bursts that the algorithm of the rule does not accept.
    fn check_limits<R: ?Sized>(&mut self, rule: &AnyRule<R>, origin: ClockOrigin) {
        if let Some(rate) = rule.kind.rate() {
            self.check_tiers_of_log(rate, &rule.tiers);
        }
        for (at, &quota) in rule.kind.quotas().iter().enumerate() {
            let error_of = |rule: &AnyRule<R>| StateAlgorithms::new(rule, &[quota], origin).err();
            let Some(error_of_all) = error_of(rule) else {
                continue;
            };
            // The quota and each tier are tried alone, so that each of them has its own reason.
            let mut alone = rule.clone();
            alone.tiers.clear();
            let reasons_before = self.reasons.len();
            let error_of_quota = error_of(&alone);
            let quota_is_valid = error_of_quota.is_none();
            if let Some(error) = error_of_quota {
                self.add_limit_error(Part::Quota(at), error);
            }
            for (at, tier) in rule.tiers.iter().enumerate() {
                alone.tiers = [tier.clone()].into();
                let error = match quota_is_valid {
                    true => error_of(&alone),
                    // Algorithms with the invalid quota would return its error, and not that of the tier.
                    false if rule.kind.is_in_flight() => {
                        StateAlgorithms::new(&alone, &[Quota::in_flight(1)], origin).err()
                    }
                    false => Quota::new(tier.1, quota.window()).err(),
                };
                if let Some(error) = error {
                    self.add_limit_error(Part::Tier(at), error);
                }
            }
            if self.reasons.len() == reasons_before {
                self.add_limit_error(Part::Quota(at), error_of_all);
            }
        }
    }

    fn check_tiers_of_log(&mut self, rate: &Rate, tiers: &[(Arc<str>, u64)]) {
        if !rate.algorithm.facts().has_tiers
            && let [(_, limit), ..] = tiers
        {
            let given = format!("a tier of {limit} permits");
            let expected = "no tiers for a log rule, which has one slot per permit";
            self.add("tiers", given, expected);
        }
    }

    /// Adds an error of the algorithm, unless there is a reason about its field, or another quota has the same error.
    fn add_limit_error(&mut self, part: Part, error: ConfigError) {
        let is_known = |known: &Reason| match known.part {
            Part::Field => known.error.field == error.field,
            Part::Quota(_) => known.error == error,
            Part::Tier(_) | Part::Entry(_) => false,
        };
        if !self.reasons.iter().any(is_known) {
            self.add_error(part, error);
        }
    }
}
