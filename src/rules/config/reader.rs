use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::block_field;
use super::calendar;
use super::extractors::Extractors;
use super::fields::{MapReader, keyword, only_limit, quota, text, whole};
use super::file_error::FileError;
use super::keywords::{A_CALENDAR, A_PERCENTAGE, A_QUOTA, FILE, ON_ERROR, ON_FULL, RULE, TIERS, percent};
use super::mode_field;
use super::parse::node::{Node, Value};
use super::prefix_field::PrefixedKeys;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::rules::condition::TierOf;
use crate::rules::evaluate::key_hashes::Seeds;
use crate::rules::key::Key;
use crate::rules::key_list::ListKind;
use crate::rules::migration;
use crate::rules::rule::Rule;
use crate::rules::rule::algorithm::RuleAlgorithm;
use crate::rules::set::builder::RuleSetBuilder;
use crate::rules::set::clock_origin::ClockOrigin;
use crate::rules::set::validate::{self, Part, Reason};

/// Reads the rules of a file, and checks that a rule set can be built of them. The error has every mistake in all rules.
pub(super) fn read<R: ?Sized>(
    root: &Node,
    extractors: &Extractors<R>,
) -> Result<RuleSetBuilder<R>, FileError> {
    let mut file = MapReader::of(root, FILE, "rules", "a map with the field rules");
    let a_location = "text: the location of the schema";
    file.optional("$schema", |schema| text(schema, "$schema", a_location));
    let nodes: &[Node] = file.required("rules", "a list of rules", &[], |list| match &list.value {
        Value::List(nodes) => Ok(nodes),
        Value::Bool(_) | Value::Whole(_) | Value::Text(_) | Value::Map(_) | Value::Other(_) => {
            Err(list.unexpected("rules", "a list of rules"))
        }
    });
    let mut builder = RuleSetBuilder::new();
    let mut prefixed = PrefixedKeys::new();
    let mut maps = Vec::new();
    for node in nodes {
        let (rule, map) = rule(node, extractors, &mut prefixed);
        builder = builder.rule(rule);
        maps.push(map);
    }
    let rules = builder.rules();
    let reasons = validate::reasons(rules, rules, ClockOrigin::ANY);
    let mut errors: Vec<Vec<FileError>> = nodes.iter().map(|_| Vec::new()).collect();
    for reason in reasons {
        if !follows_from_another(&reason, &maps[reason.rule]) {
            errors[reason.rule].push(locate(&nodes[reason.rule], reason));
        }
    }
    for ((map, errors), rule) in maps.into_iter().zip(errors).zip(rules) {
        let of_fields = map.finish(()).err();
        let of_rule = FileError::all(of_fields.into_iter().chain(errors).collect());
        file.accept(
            "rules",
            of_rule.map_err(|error| match rule.name() {
                "" => error,
                name => error.in_rule(name),
            }),
        );
    }
    file.finish(())?;
    // The rule set is built here, so that an error about its memory gets a position.
    match migration::migrate(rules, None, &[], Seeds::new([1, 2, 3, 4]), ClockOrigin::ANY) {
        Ok(_) => Ok(builder),
        Err(error) => {
            let at = rules.iter().position(|rule| rule.name() == error.rule);
            let reason = Reason {
                rule: at.unwrap_or(0),
                part: Part::Field,
                error: error.error,
            };
            Err(locate(&nodes[reason.rule], reason).in_rule(&error.rule))
        }
    }
}

/// Whether a reason may follow from the error of a field that could not be read.
fn follows_from_another(reason: &Reason, map: &MapReader<'_>) -> bool {
    let field = reason.error.field;
    let causes: &[&str] = match field {
        "enforce" | "capacity" | "allow" | "deny" | "block" => &["key", "prefix"],
        "limit" | "window" | "cells" | "burst" | "tiers" | "quotas" | "algorithm" | "cost" | "on_full" => {
            &["quota", "algorithm"]
        }
        _ => &[],
    };
    map.lacks(field) || causes.iter().any(|cause| map.lacks(cause))
}

/// Reads a rule. A field with an error is as if it were not given.
fn rule<'n, R: ?Sized>(
    node: &'n Node,
    extractors: &Extractors<R>,
    prefixed: &mut PrefixedKeys<R>,
) -> (Rule<R>, MapReader<'n>) {
    /// The quota of a rule without a valid one, which is not used.
    const STAND_IN: Quota = Quota::of_period(1, Duration::from_secs(1));
    let mut map = MapReader::of(node, RULE, "rules", "a map for each rule");
    let name = map.required("name", "a name for each rule", "", |name| {
        text(name, "name", "text")
    });
    let limits = ["calendar", "time_zone", "in_flight", "quota", "quotas"];
    let rule = if limits.iter().any(|limit| map.field(limit).is_some()) {
        map.accept("quota", limit(name, node))
    } else {
        let others = "a list of such in quotas";
        map.missing(
            "quota",
            &format!("{A_QUOTA}, {others}, {A_CALENDAR} in calendar, or a number in in_flight"),
        );
        None
    };
    let mut rule = rule.unwrap_or_else(|| Rule::new(name, STAND_IN));
    let a_name = "text: the previous name of the rule";
    let old_name = |old| text(old, "renamed_from", a_name);
    rule = map.set(rule, "renamed_from", old_name, Rule::renamed_from);
    let algorithm = |word: &Node| keyword("algorithm", word, RuleAlgorithm::NAMES);
    rule = map.set(rule, "algorithm", algorithm, Rule::algorithm);
    rule = map.set(rule, "cells", |cells| whole("cells", cells), Rule::cells);
    rule = map.set(rule, "burst", |burst| whole("burst", burst), Rule::burst);
    let by = |rule: Rule<R>, key: Key<R>| rule.by(&key);
    rule = map.set(rule, "key", |key| extractors.find_key(key), by);
    if !map.lacks("key") {
        let key = rule.key.clone();
        let prefix = |prefix| prefixed.key(prefix, key.as_ref());
        rule = map.set(rule, "prefix", prefix, by);
    }
    let cost = |cost| extractors.find_cost(cost);
    rule = map.set(rule, "cost", cost, |rule, cost| rule.cost(&cost));
    let condition = |when| extractors.find_condition(when);
    rule = map.set(rule, "when", condition, |rule, when| rule.when(&when));
    let with_tiers = |rule: Rule<R>, (tier_of, tiers)| Rule {
        tier_of,
        tiers,
        ..rule
    };
    rule = map.set(rule, "tiers", |node| tiers(node, extractors), with_tiers);
    rule = map.set(rule, "block", block_field::block, Rule::block);
    rule = map.set(rule, "capacity", |keys| whole("capacity", keys), Rule::capacity);
    let on_full = |word: &Node| keyword("on_full", word, ON_FULL);
    rule = map.set(rule, "on_full", on_full, Rule::on_full);
    let on_error = |word: &Node| keyword("on_error", word, ON_ERROR);
    rule = map.set(rule, "on_error", on_error, Rule::on_error);
    rule = map.set(rule, "mode", mode_field::mode, Rule::mode);
    rule = enforcement(&mut map, rule);
    let has_key = rule.key.is_some() || map.lacks("key");
    for kind in [ListKind::Allow, ListKind::Deny] {
        let list = map.optional(kind.field(), |list| entries(kind, list, has_key));
        for entry in list.unwrap_or_default() {
            rule = match kind {
                ListKind::Allow => rule.allow(entry),
                ListKind::Deny => rule.deny(entry),
            };
        }
    }
    (rule, map)
}

/// Reads the limit of a rule, which is one of several fields.
fn limit<R: ?Sized>(name: &str, node: &Node) -> Result<Rule<R>, FileError> {
    let field = |name: &str| node.field(name);
    match (field("calendar"), field("in_flight")) {
        (Some(quota), _) => calendar::rule(name, quota, node),
        (None, _) if field("time_zone").is_some() => Err(calendar::missing(node)),
        (None, Some(limit)) => {
            only_limit("in_flight", limit, node, &["quota", "quotas"])?;
            Ok(Rule::in_flight(name, whole("in_flight", limit)?))
        }
        (None, None) => quotas(name, node),
    }
}

fn quotas<R: ?Sized>(name: &str, node: &Node) -> Result<Rule<R>, FileError> {
    let invalid = |list: &Node, given, expected| {
        let error = ConfigError::new("quotas", given, expected);
        Err(FileError::value(list.at, error))
    };
    let Some(list) = node.field("quotas") else {
        let one = node.field("quota").unwrap_or(node);
        return Ok(Rule::new(name, quota("quota", one)?));
    };
    if node.field("quota").is_some() {
        return invalid(list, "given beside quota", "one of the two");
    }
    let Value::List(nodes) = &list.value else {
        return Err(list.unexpected("quotas", format!("a list of {A_QUOTA}")));
    };
    let quotas = FileError::each(nodes.iter().map(|node| quota("quotas", node)))?;
    let mut quotas = quotas.into_iter();
    match quotas.next() {
        Some(first) => Ok(quotas.fold(Rule::new(name, first), Rule::also)),
        None => invalid(list, "an empty list", "at least one quota"),
    }
}

/// The function that returns the tier of a request, and the tiers with their limits.
type Tiers<R> = (Option<TierOf<R>>, Vec<(Arc<str>, u64)>);

fn tiers<R: ?Sized>(node: &Node, extractors: &Extractors<R>) -> Result<Tiers<R>, FileError> {
    let mut map = MapReader::of(node, TIERS, "tiers", "a map with the fields by and limits");
    let by = |by: &Node| extractors.find_tier_of(by).map(Some);
    let tier_of = map.required("by", "the name of a tier function", None, by);
    let a_map = "a map of tier names to limits";
    let limits = map.required("limits", a_map, Vec::new(), |limits| match &limits.value {
        Value::Map(fields) => FileError::each(fields.iter().map(|field| {
            let limit = whole("limits", &field.node)?;
            Ok((Arc::from(field.name.as_str()), limit))
        })),
        Value::Bool(_) | Value::Whole(_) | Value::Text(_) | Value::List(_) | Value::Other(_) => {
            Err(limits.unexpected("limits", a_map))
        }
    });
    map.finish((tier_of, limits))
}

fn enforcement<R: ?Sized>(map: &mut MapReader<'_>, rule: Rule<R>) -> Rule<R> {
    let shadow = map.optional("shadow", |node| match node.value {
        Value::Bool(shadow) => Ok(shadow),
        Value::Whole(_) | Value::Text(_) | Value::List(_) | Value::Map(_) | Value::Other(_) => {
            Err(node.unexpected("shadow", "true or false"))
        }
    });
    let percent = map.optional("enforce", |node| match shadow {
        Some(true) => Err(FileError::value(
            node.at,
            ConfigError::new("enforce", "given beside shadow", "one of the two"),
        )),
        Some(false) | None => percent(text(node, "enforce", A_PERCENTAGE)?)
            .ok_or_else(|| node.unexpected("enforce", A_PERCENTAGE)),
    });
    match (shadow, percent) {
        (Some(true), _) => rule.shadow(),
        (_, Some(percent)) => rule.enforce_percent(percent),
        (Some(false) | None, None) => rule,
    }
}

/// Reads the entries of the list `allow` or `deny`.
fn entries(kind: ListKind, list: &Node, has_key: bool) -> Result<Vec<&str>, FileError> {
    const KEYS: &str = "a list of keys, each as text";
    let field = kind.field();
    let Value::List(nodes) = &list.value else {
        return Err(list.unexpected(field, KEYS));
    };
    if nodes.is_empty() && !has_key {
        // The rule set cannot tell an empty list from none.
        let error = ConfigError::new(field, "given for a rule without a key", "a rule with a key");
        return Err(FileError::value(list.at, error));
    }
    FileError::each(nodes.iter().map(|node| text(node, field, KEYS)))
}

/// Converts a reason to an error at the position of the value that it is about.
fn locate(node: &Node, reason: Reason) -> FileError {
    let field = |name| node.field(name);
    let name = reason.error.field;
    // The fields of a block, and of a mode.
    let inner = || {
        let modes = field("mode").map(Node::values).unwrap_or_default();
        let mut maps = field("block").into_iter().chain(modes);
        maps.find_map(|map| map.field(name))
    };
    let part = match reason.part {
        Part::Field => None,
        Part::Quota(at) => field(name).or_else(|| nth(field("quotas"), at)),
        Part::Tier(at) => nth(field("tiers").and_then(|tiers| tiers.field("limits")), at),
        Part::Entry(at) => nth(field(name), at),
    };
    let limits = ["quota", "quotas", "in_flight", "calendar"];
    let position = match name {
        "rules" => node.at,
        _ => part
            .or_else(|| field(name))
            .or_else(inner)
            .or_else(|| limits.into_iter().find_map(field))
            .map_or(node.at, |node| node.at),
    };
    FileError::value(position, reason.error)
}

/// The value with this index of a list or map.
fn nth(values: Option<&Node>, at: usize) -> Option<&Node> {
    values?.values().get(at).copied()
}
