use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::block_field;
use super::extractors::Extractors;
use super::fields::{MapReader, boolean, keyword, list, text, whole};
use super::file_error::FileError;
use super::keywords::{A_PERCENTAGE, FILE, ON_ERROR, ON_FULL, ON_FULL_OF_SLOTS, RULE, TIERS, percent};
use super::kind;
use super::mode_field;
use super::parse::node::{Node, Value};
use super::prefix_field::PrefixedKeys;
use crate::rules::condition::TierOf;
use crate::rules::evaluate::key_hashes::Seeds;
use crate::rules::key_list::ListKind;
use crate::rules::migration;
use crate::rules::rule::AnyRule;
use crate::rules::rule::enforcement::Enforcement;
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
    let nodes: &[Node] = file.required("rules", "a list of rules", &[], |rules| {
        list(rules, "rules", "a list of rules")
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
        "limit" | "window" | "cells" | "burst" | "tiers" | "quotas" => {
            &["quota", "quotas", "calendar", "in_flight", "algorithm"]
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
) -> (AnyRule<R>, MapReader<'n>) {
    let mut map = MapReader::of(node, RULE, "rules", "a map for each rule");
    let name = map.required("name", "a name for each rule", "", |name| {
        text(name, "name", "text")
    });
    let mut rule = kind::rule(&mut map, name);
    let words = match rule.kind.is_in_flight() {
        true => ON_FULL_OF_SLOTS,
        false => ON_FULL,
    };
    let on_full = map.optional("on_full", |word| keyword("on_full", word, words));
    rule.on_full = on_full.unwrap_or(rule.on_full);
    let a_name = "text: the previous name of the rule";
    let old_name = map.optional("renamed_from", |old| text(old, "renamed_from", a_name));
    rule.renamed_from = old_name.map(Arc::from);
    rule.key = map.optional("key", |key| extractors.find_key(key));
    if !map.lacks("key") {
        let prefix = |prefix| prefixed.key(prefix, rule.key.as_ref());
        rule.key = map.optional("prefix", prefix).or(rule.key);
    }
    rule.cost = map.optional("cost", |cost| extractors.find_cost(cost));
    rule.when = map.optional("when", |when| extractors.find_condition(when));
    let tiers = map.optional("tiers", |node| tiers(node, extractors));
    (rule.tier_of, rule.tiers) = tiers.unwrap_or_default();
    rule.block = map.optional("block", block_field::block);
    rule.capacity = map.optional("capacity", |keys| whole("capacity", keys));
    let on_error = |word: &Node| keyword("on_error", word, ON_ERROR);
    rule.on_error = map.optional("on_error", on_error).unwrap_or_default();
    rule.mode = map.optional("mode", mode_field::mode).unwrap_or_default();
    rule.enforced = enforcement(&mut map);
    let may_have_key = rule.key.is_some() || map.lacks("key");
    let mut entries = |kind: ListKind| {
        let entries = map.optional(kind.field(), |node| entries(kind, node, may_have_key));
        entries.unwrap_or_default()
    };
    (rule.allow, rule.deny) = (entries(ListKind::Allow), entries(ListKind::Deny));
    (rule, map)
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

fn enforcement(map: &mut MapReader<'_>) -> Enforcement {
    let shadow = map.optional("shadow", |node| boolean("shadow", node));
    let percent = map.optional("enforce", |node| match shadow {
        Some(true) => Err(node.invalid("enforce", "given beside shadow", "one of the two")),
        Some(false) | None => percent(text(node, "enforce", A_PERCENTAGE)?)
            .ok_or_else(|| node.unexpected("enforce", A_PERCENTAGE)),
    });
    match (shadow, percent) {
        (Some(true), _) => Enforcement::None,
        (_, Some(percent)) => Enforcement::Percent(percent),
        (Some(false) | None, None) => Enforcement::All,
    }
}

/// Reads the entries of the list `allow` or `deny`.
fn entries(kind: ListKind, node: &Node, may_have_key: bool) -> Result<Vec<String>, FileError> {
    const KEYS: &str = "a list of keys, each as text";
    let field = kind.field();
    let nodes = list(node, field, KEYS)?;
    if nodes.is_empty() && !may_have_key {
        // The rule set cannot tell an empty list from none.
        return Err(node.invalid(field, "given for a rule without a key", "a rule with a key"));
    }
    let entry = |node| text(node, field, KEYS).map(ToOwned::to_owned);
    FileError::each(nodes.iter().map(entry))
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
