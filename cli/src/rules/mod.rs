//! The rules of a run: their rule set, and one [`PlanEntry`] for each quota.

pub(crate) mod algorithm;
pub(crate) mod argument;
mod condition;
pub(crate) mod fields;
pub(crate) mod key;
mod plan_entry;
pub(crate) mod record_layout;

use std::collections::HashMap;
use std::path::Path;
use std::time::SystemTime;

use ringgate::keyed::OnFull;
use ringgate::rules::{AnyRule, Extractors, Mode, OnError, RuleSetBuilder};
use ringgate::{Algorithm, ManualClock, Quota, RuleSet};

use crate::args::{AlgorithmName, CountArgs};
use crate::failure::Failure;
use crate::input::client::Prefixes;
use crate::replay::span::Span;
use crate::rules::algorithm::AlgorithmSpec;
use crate::rules::fields::Fields;
use crate::rules::plan_entry::shortest;
use crate::rules::record_layout::{Event, RecordLayout};

pub(crate) use plan_entry::PlanEntry;

/// The rules and their quotas.
#[derive(Debug)]
pub(crate) struct Plan {
    rules: RuleSetBuilder<Event>,
    /// Whether tables get the capacity that the input needs.
    roomy: bool,
    pub(crate) entries: Vec<PlanEntry>,
    pub(crate) fields: Fields,
    /// Notes about rules that are left out.
    pub(crate) notes: Vec<String>,
}

/// The reason why a limit of requests in flight is not replayed.
pub(crate) const UNSEEN: &str = "a log does not show when a request ends";

/// Fixed seeds of the tables, so that every run makes the same decisions.
const SEEDS: [u64; 4] = [1, 2, 3, 4];

/// The largest size, in bytes, of all tables that get the capacity that the input needs.
const ROOM: u64 = 1 << 30;

impl Plan {
    /// The rules of the command line. `condition` is that of rules without one.
    ///
    /// # Errors
    ///
    /// When a rule is invalid.
    pub(crate) fn of_args(
        rules: &[String],
        otherwise: &CountArgs,
        condition: Option<&str>,
        aliases: HashMap<String, String>,
    ) -> Result<Self, Failure> {
        let fields = Fields::new(RecordLayout::new(aliases));
        let mut builder = RuleSetBuilder::new();
        for rule in rules {
            builder = builder.rule(argument::read(rule, otherwise, condition, &fields)?);
        }
        let mut plan = Self::new(builder, true, fields)?;
        let in_bytes = rules
            .iter()
            .zip(plan.rules.rules())
            .filter(|(text, rule)| argument::is_in_bytes(text) && rule.view().cost.is_none());
        plan.notes = in_bytes
            .map(|(text, _)| {
                format!("rule {text:?} has a limit in bytes and no cost, so a request counts as one byte (cost FIELD names its size)")
            })
            .collect();
        // Built once with a small table, so that an error is reported before the input is read.
        plan.rules_for(1).build_with(ManualClock::new(), SEEDS)?;
        Ok(plan)
    }

    /// The rules of a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or a rule is invalid.
    pub(crate) fn of_file(path: &Path, aliases: HashMap<String, String>) -> Result<Self, Failure> {
        let read = |layout| {
            let fields = Fields::new(layout);
            let extractors = Extractors::new().resolver(fields.clone());
            RuleSetBuilder::from_file(path, &extractors).map(|rules| (rules, fields))
        };
        let (mut rules, mut fields) = read(RecordLayout::with_addresses(aliases.clone()))?;
        let needs_addresses = |rule: &AnyRule<Event>| {
            let view = rule.view();
            let has_prefixes = view.key.is_some_and(|key| Prefixes::of_name(key).is_some());
            view.allowed + view.denied > 0 || has_prefixes
        };
        if !rules.rules().iter().any(needs_addresses) {
            // Without lists and prefixes, hashes suffice. A prefix of the default length leaves no trace in the name of its key,
            // but needs addresses, so that this read fails.
            if let Ok(hashed) = read(RecordLayout::new(aliases)) {
                (rules, fields) = hashed;
            }
        }
        if rules.rules().is_empty() {
            return Err(Failure::new(format!(
                "no rules in {} (expected one or more)",
                path.display()
            )));
        }
        Self::new(rules, false, fields)
    }

    fn new(rules: RuleSetBuilder<Event>, roomy: bool, fields: Fields) -> Result<Self, Failure> {
        let mut tiers: Vec<Box<str>> = Vec::new();
        let mut entries = Vec::new();
        let mut layout = fields.layout();
        for rule in rules.rules() {
            let view = rule.view();
            // The counts of a calendar need no algorithm, so its entry has any.
            let algorithm = view.algorithm.unwrap_or_default();
            let algorithm = AlgorithmName::of(algorithm).ok_or_else(|| {
                let name = view.name;
                let names = AlgorithmName::ALL.map(|name| name.to_string());
                let names = names.join(", ");
                Failure::new(format!(
                    "rule {name:?}: invalid algorithm: {algorithm:?} (expected {names})"
                ))
            })?;
            tiers.extend(view.tiers.iter().map(|(name, _)| (*name).into()));
            // A limit of requests in flight has no quota, and is not evaluated.
            for quota in view.quotas {
                let name = match view.quotas {
                    [_] => view.name.to_string(),
                    _ => {
                        let mut name = format!("{}-{:?}", view.name, quota.window());
                        // Another rule may have that name.
                        while rules.rules().iter().any(|other| {
                            let other = other.view();
                            other.quotas.len() == 1 && other.name == name
                        }) {
                            name.push('\'');
                        }
                        name
                    }
                };
                entries.push(PlanEntry {
                    name,
                    rule: view.name.to_string(),
                    quota: match view.calendar {
                        Some(calendar) => Quota::new(calendar.limit(), shortest(calendar)?)?,
                        None => *quota,
                    },
                    calendar: view.calendar.cloned(),
                    counting: AlgorithmSpec {
                        algorithm,
                        cells: view.cells,
                        burst: view.burst,
                        has_cost: view.cost.is_some(),
                        has_key: view.key.is_some(),
                        shares_state: false,
                        tiers: {
                            let limits = || view.tiers.iter().map(|(_, limit)| *limit);
                            limits().min().zip(limits().max())
                        },
                    },
                    key: view
                        .key
                        .and_then(|name| Some((name.to_string(), layout.key_word(name)?))),
                    cost: view.cost.and_then(|name| layout.cost_word(name)),
                    when: view.when.and_then(|name| layout.condition_place(name)),
                    condition: view.when.map(ToString::to_string),
                    cost_name: view.cost.map(ToString::to_string),
                    shadow: view.enforced < 100.0,
                    lists: view.allowed > 0,
                    left_out: [
                        (view.tiers.len(), "tiers"),
                        (view.allowed, "allow"),
                        (view.denied, "deny"),
                        (usize::from(view.block.is_some()), "block"),
                        (usize::from(view.capacity.is_some()), "capacity"),
                        (usize::from(view.on_full != OnFull::default()), "on_full"),
                        (usize::from(view.on_error != OnError::default()), "on_error"),
                        (usize::from(view.mode != Mode::default()), "mode"),
                        (usize::from(view.enforced < 100.0), "shadow"),
                    ]
                    .into_iter()
                    .filter_map(|(count, part)| (count > 0).then_some(part))
                    .collect(),
                    tiers: view.tiers.iter().map(|(_, limit)| *limit).collect(),
                });
            }
        }
        tiers.sort_unstable();
        tiers.dedup();
        layout.tiers = tiers.into();
        drop(layout);
        note_shared_states(&rules, &mut entries);
        Ok(Self {
            rules,
            roomy,
            entries,
            fields,
            notes: Vec::new(),
        })
    }

    /// The windows that are not those of a calendar, in nanoseconds.
    pub(crate) fn windows(&self) -> impl Iterator<Item = i64> {
        let entries = self.entries.iter().filter(|entry| entry.calendar.is_none());
        entries.map(PlanEntry::window)
    }

    /// Leaves out the rules that a log cannot show, with a note for each.
    ///
    /// # Errors
    ///
    /// When no other rule is left.
    pub(crate) fn replayable(mut self) -> Result<Self, Failure> {
        let mut kept = RuleSetBuilder::new();
        for rule in self.rules.rules() {
            let view = rule.view();
            match view.in_flight {
                Some(limit) => self.notes.push(format!(
                    "rule {:?} is not replayed: in_flight = {limit} limits requests that have not ended, and {UNSEEN}",
                    view.name
                )),
                None => kept = kept.rule(rule.clone()),
            }
        }
        if kept.rules().is_empty() {
            return Err(Failure::new(format!(
                "no rule to replay: each is in_flight, and {UNSEEN} (expected one or more rules with a quota)"
            )));
        }
        if !self.notes.is_empty() {
            self.rules = kept;
        }
        Ok(self)
    }

    /// The rules as they were given.
    pub(crate) const fn rules(&self) -> &RuleSetBuilder<Event> {
        &self.rules
    }

    /// The rules, each of which can be built.
    ///
    /// # Errors
    ///
    /// When a rule cannot be built.
    pub(crate) fn checked(&self) -> Result<&[AnyRule<Event>], Failure> {
        self.rules_for(1).build_with(ManualClock::new(), SEEDS)?;
        Ok(self.rules.rules())
    }

    /// The word of a record with the key of all rules, if requests of different keys do not affect each other: the rules have
    /// one key, and their tables have room for the keys of the input.
    pub(crate) fn common_key(&self) -> Option<usize> {
        let word = |entry: &PlanEntry| entry.key.as_ref().map(|(_, word)| *word);
        let first = self.entries.first().and_then(word).filter(|_| self.roomy)?;
        self.entries
            .iter()
            .all(|entry| word(entry) == Some(first))
            .then_some(first)
    }

    /// The rule set, for a clock with the readings of `span`, with room for this number of keys in rules of the command line.
    ///
    /// # Errors
    ///
    /// When a table is too large.
    pub(crate) fn rule_set(
        &self,
        clock: ManualClock,
        keys: u64,
        span: Span,
    ) -> Result<RuleSet<Event, ManualClock>, Failure> {
        let rules = self.rules_for(keys).origin(span.origin());
        Ok(rules.build_with(clock, SEEDS)?)
    }

    /// Whether the tables of one rule set have room for this number of keys.
    pub(crate) fn has_room(&self, keys: u64) -> bool {
        let mut keyed = self.entries.iter().filter(|entry| entry.key.is_some());
        keyed.all(|entry| keys <= self.room(entry))
    }

    /// The largest capacity of the table of an entry with a key.
    fn room(&self, entry: &PlanEntry) -> u64 {
        let tables = self.entries.iter().filter(|entry| entry.key.is_some()).count() as u64;
        // The words of an entry. A table has two entries for each key if their states have one word, and otherwise a quarter more
        // entries than keys.
        let bytes = 8 * entry.words() + 64;
        let bytes = if entry.words() == 1 {
            2 * bytes
        } else {
            bytes * 5 / 4
        };
        (ROOM / tables.max(1) / bytes).max(1)
    }

    fn rules_for(&self, keys: u64) -> RuleSetBuilder<Event> {
        if !self.roomy {
            return self.rules.clone();
        }
        let mut rules = RuleSetBuilder::new();
        for (rule, entry) in self.rules.rules().iter().zip(&self.entries) {
            let rule: AnyRule<Event> = rule.clone();
            rules = rules.rule(if entry.key.is_some() {
                // A block has entries for a quarter of the keys, and all of them may violate the rule.
                let entries = match rule.view().block {
                    Some(_) => keys.saturating_mul(4),
                    None => keys,
                };
                rule.capacity(entries.clamp(1, self.room(entry)))
            } else {
                rule
            });
        }
        rules
    }
}

/// Notes which entries share a state with others: the rule set then chooses another algorithm than for the entry alone. Rules
/// that cannot be built are reported where they are built.
fn note_shared_states(rules: &RuleSetBuilder<Event>, entries: &mut [PlanEntry]) {
    let small = rules.rules().iter().map(|rule| match rule.view().key {
        Some(_) => rule.clone().capacity(1),
        None => rule.clone(),
    });
    let small = small.fold(RuleSetBuilder::new(), RuleSetBuilder::rule);
    let Ok(set) = small
        .origin(SystemTime::UNIX_EPOCH)
        .build_with(ManualClock::new(), SEEDS)
    else {
        return;
    };
    for (rule, quota, algorithm) in set.algorithms() {
        for entry in entries.iter_mut().filter(|entry| entry.is(rule, quota)) {
            let alone = entry.counting.build(entry.quota).ok().map(|alone| alone.words());
            entry.counting.shares_state = alone.is_some_and(|alone| alone != algorithm.words());
        }
    }
}
