//! The rules of a run, and what is to be known of them.

use std::collections::HashMap;
use std::path::Path;

use ringgate::{
    Algorithm, AnyAlgorithm, ConfigError, Extractors, ManualClock, Quota, Rule, RuleSet, RuleSetBuilder,
};

use crate::algorithm::Counting;
use crate::args::{AlgorithmName, CountArgs};
use crate::failure::Failure;
use crate::layout::{Event, Fields, Layout, Place, holds_in};
use crate::rule_arg;

/// Rules, and their quotas one by one.
#[derive(Debug)]
pub(crate) struct Plan {
    rules: RuleSetBuilder<Event>,
    /// Whether the tables are to be as large as the input needs.
    roomy: bool,
    pub(crate) entries: Vec<Entry>,
    pub(crate) fields: Fields,
}

/// One quota of one rule.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The rule's name, and the window too where it has several.
    pub(crate) name: String,
    pub(crate) rule: String,
    pub(crate) quota: Quota,
    pub(crate) counting: Counting,
    /// The name of its key, and the word of a record that has it.
    pub(crate) key: Option<(String, usize)>,
    /// The word of a record that has its cost.
    pub(crate) cost: Option<usize>,
    /// Where a record says whether it is about the request.
    when: Option<Place>,
    /// Whether it is enforced for none of the keys, or a part of them.
    pub(crate) shadow: bool,
    /// Whether some keys are never limited.
    pub(crate) lists: bool,
    /// Limits of tiers.
    tiers: Vec<u64>,
}

impl Entry {
    /// Window in nanoseconds.
    pub(crate) fn window(&self) -> i64 {
        // At most 366 days: 55 bits.
        i64::try_from(self.quota.window().as_nanos()).unwrap_or(i64::MAX)
    }

    /// Whether it is about a request, as far as its condition says.
    #[inline]
    pub(crate) fn is_about(&self, record: &[u64]) -> bool {
        self.when.is_none_or(|place| holds_in(record, place))
    }

    /// The key of a request; all have one when there is none.
    #[inline]
    pub(crate) fn key_of(&self, record: &[u64]) -> u64 {
        self.key.as_ref().map_or(0, |&(_, word)| record[word])
    }

    /// What a request costs.
    #[inline]
    pub(crate) fn cost_of(&self, record: &[u64]) -> u64 {
        self.cost.map_or(1, |word| record[word])
    }
}

/// Seeds for the tables: the same decisions in every run.
const SEEDS: [u64; 4] = [1, 2, 3, 4];

/// Bytes that the tables of all rules may take that are as large as the input needs.
const ROOM: u64 = 1 << 30;

impl Plan {
    /// The rules of the command line.
    ///
    /// # Errors
    ///
    /// When one is wrong.
    pub(crate) fn of_args(
        rules: &[String],
        otherwise: &CountArgs,
        aliases: HashMap<String, String>,
    ) -> Result<Self, Failure> {
        let fields = Fields::new(Layout::new(aliases));
        let mut builder = RuleSetBuilder::new();
        for rule in rules {
            builder = builder.rule(rule_arg::read(rule, otherwise, &fields)?);
        }
        let plan = Self::new(builder, true, fields);
        // With little memory: what is wrong is an error at once.
        plan.rules_for(1).build_with(ManualClock::new(), SEEDS)?;
        Ok(plan)
    }

    /// The rules of a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or one is wrong.
    pub(crate) fn of_file(path: &Path, aliases: HashMap<String, String>) -> Result<Self, Failure> {
        let fields = Fields::new(Layout::new(aliases));
        let extractors = Extractors::new().resolver(fields.clone());
        let rules = RuleSetBuilder::from_file(path, &extractors)?;
        if rules.rules().is_empty() {
            return Err(Failure::argument(
                path.display().to_string(),
                "a file without rules",
                "one rule or more",
            ));
        }
        Ok(Self::new(rules, false, fields))
    }

    fn new(rules: RuleSetBuilder<Event>, roomy: bool, fields: Fields) -> Self {
        let mut tiers: Vec<Box<str>> = Vec::new();
        let mut entries = Vec::new();
        let mut layout = fields.layout();
        for rule in rules.rules() {
            let view = rule.view();
            tiers.extend(view.tiers.iter().map(|(name, _)| (*name).into()));
            for quota in view.quotas {
                let name = match view.quotas {
                    [_] => view.name.to_string(),
                    _ => format!("{}-{:?}", view.name, quota.window()),
                };
                entries.push(Entry {
                    name,
                    rule: view.name.to_string(),
                    quota: *quota,
                    counting: Counting {
                        algorithm: AlgorithmName::of(view.algorithm),
                        cells: view.cells,
                        burst: view.burst,
                    },
                    key: view
                        .key
                        .and_then(|name| Some((name.to_string(), layout.key_word(name)?))),
                    cost: view.cost.and_then(|name| layout.cost_word(name)),
                    when: view.when.and_then(|name| layout.condition_place(name)),
                    shadow: view.enforced < 100.0,
                    lists: view.allowed > 0,
                    tiers: view.tiers.iter().map(|(_, limit)| *limit).collect(),
                });
            }
        }
        tiers.sort_unstable();
        tiers.dedup();
        layout.tiers = tiers.into();
        drop(layout);
        Self {
            rules,
            roomy,
            entries,
            fields,
        }
    }

    /// The rule set, with room for so many keys where the rules do not say.
    ///
    /// # Errors
    ///
    /// When a table is too large.
    pub(crate) fn rule_set(
        &self,
        clock: ManualClock,
        keys: u64,
    ) -> Result<RuleSet<Event, ManualClock>, Failure> {
        Ok(self.rules_for(keys).build_with(clock, SEEDS)?)
    }

    fn rules_for(&self, keys: u64) -> RuleSetBuilder<Event> {
        if !self.roomy {
            return self.rules.clone();
        }
        let tables = self.entries.iter().filter(|entry| entry.key.is_some()).count() as u64;
        let mut rules = RuleSetBuilder::new();
        for (rule, entry) in self.rules.rules().iter().zip(&self.entries) {
            let rule: Rule<Event> = rule.clone();
            rules = rules.rule(if entry.key.is_some() {
                // The words of a key, its fingerprint, and a quarter more entries than keys.
                let bytes = (8 * entry.words() + 64) * 5 / 4;
                rule.capacity(keys.clamp(1, (ROOM / tables / bytes).max(1)))
            } else {
                rule
            });
        }
        rules
    }
}

impl Entry {
    /// Words that one key takes; none when the algorithm cannot be built.
    pub(crate) fn words(&self) -> u64 {
        self.algorithms().map_or(0, |all| {
            all.iter().map(|one| one.words() as u64).max().unwrap_or(0)
        })
    }

    /// The most permits that a key is ever admitted in a window, in whatever tier it is.
    ///
    /// # Errors
    ///
    /// When the algorithm cannot be built.
    pub(crate) fn bound(&self) -> Result<u64, ConfigError> {
        Ok(self.algorithms()?.iter().map(Algorithm::bound).max().unwrap_or(0))
    }

    /// What decides, for each tier and without one.
    fn algorithms(&self) -> Result<Vec<AnyAlgorithm>, ConfigError> {
        let own = self.quota.limit();
        let limits = [own].into_iter().chain(self.tiers.iter().copied());
        let algorithm = |limit| {
            // A tier's burst is the rule's in proportion to the limits, as in the rule set.
            let burst = self.counting.burst.map(|burst| {
                let burst = u128::from(burst) * u128::from(limit) / u128::from(own);
                u64::try_from(burst).unwrap_or(u64::MAX).max(1)
            });
            let quota = Quota::new(limit, self.quota.window())?;
            Counting {
                burst,
                ..self.counting
            }
            .build(quota)
        };
        limits.map(algorithm).collect()
    }
}
