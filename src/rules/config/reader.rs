use alloc::format;
use alloc::vec::Vec;

use super::block_field;
use super::calendar;
use super::extractors::Extractors;
use super::fields::{keyword, missing, only_fields, only_limit, text, whole};
use super::file_error::FileError;
use super::keywords::{A_CALENDAR, A_PERCENTAGE, A_QUOTA, FILE, ON_ERROR, ON_FULL, RULE, TIERS, percent};
use super::mode_field;
use super::parse::node::{Node, Value};
use super::prefix_field::PrefixedKeys;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::rules::evaluate::key_hashes::Seeds;
use crate::rules::evaluate::state_algorithms::StateAlgorithms;
use crate::rules::key_list::ListKind;
use crate::rules::migration;
use crate::rules::rule::Rule;
use crate::rules::rule::algorithm::RuleAlgorithm;
use crate::rules::rule::error::RuleError;
use crate::rules::set::builder::RuleSetBuilder;
use crate::rules::set::clock_origin::ClockOrigin;

/// Reads the rules of a file, and checks that a rule set can be built of them.
pub(super) fn read<R: ?Sized>(
    root: &Node,
    extractors: &Extractors<R>,
) -> Result<RuleSetBuilder<R>, FileError> {
    only_fields(root, FILE, "rules", "a map with the field rules")?;
    if let Some(schema) = root.field("$schema") {
        text(schema, "$schema", "text: the location of the schema")?;
    }
    let list = root
        .field("rules")
        .ok_or_else(|| missing(root, "rules", "a list of rules"))?;
    let Value::List(nodes) = &list.value else {
        return Err(list.unexpected("rules", "a list of rules"));
    };
    let mut builder = RuleSetBuilder::new();
    let mut prefixed = PrefixedKeys::new();
    for node in nodes {
        let rule = rule(node, extractors, &mut prefixed).map_err(|error| {
            match node.field("name").map(|name| &name.value) {
                Some(Value::Text(name)) if !name.is_empty() => error.in_rule(name),
                _ => error,
            }
        });
        builder = builder.rule(rule?);
    }
    // The rule set is built here, so that its error gets a position.
    match migration::migrate(
        builder.rules(),
        None,
        &[],
        Seeds::new([1, 2, 3, 4]),
        ClockOrigin::ANY,
    ) {
        Ok(_) => Ok(builder),
        Err(error) => Err(locate(nodes, &builder, error)),
    }
}

fn rule<R: ?Sized>(
    node: &Node,
    extractors: &Extractors<R>,
    prefixed: &mut PrefixedKeys<R>,
) -> Result<Rule<R>, FileError> {
    only_fields(node, RULE, "rules", "a map for each rule")?;
    let field = |name: &str| node.field(name);
    let name = field("name").ok_or_else(|| missing(node, "name", "a name for each rule"))?;
    let name = text(name, "name", "text")?;
    let mut rule = match (field("calendar"), field("in_flight")) {
        (Some(quota), _) => calendar::rule(name, quota, node)?,
        (None, _) if field("time_zone").is_some() => return Err(calendar::missing(node)),
        (None, Some(limit)) => in_flight(name, limit, node)?,
        (None, None) => {
            let mut quotas = quotas(node)?.into_iter();
            let first = quotas
                .next()
                .ok_or_else(|| missing(node, "quota", "at least one quota"))?;
            quotas.fold(Rule::new(name, first), Rule::also)
        }
    };
    if let Some(old) = field("renamed_from") {
        rule = rule.renamed_from(text(old, "renamed_from", "text: the previous name of the rule")?);
    }
    if let Some(algorithm) = field("algorithm") {
        rule = rule.algorithm(keyword("algorithm", algorithm, RuleAlgorithm::NAMES)?);
    }
    if let Some(cells) = field("cells") {
        rule = rule.cells(whole("cells", cells)?);
    }
    if let Some(burst) = field("burst") {
        rule = rule.burst(whole("burst", burst)?);
    }
    if let Some(key) = field("key") {
        rule = rule.by(&extractors.find_key(key)?);
    }
    if let Some(prefix) = field("prefix") {
        let key = prefixed.key(prefix, rule.key.as_ref())?;
        rule = rule.by(&key);
    }
    if let Some(cost) = field("cost") {
        rule = rule.cost(&extractors.find_cost(cost)?);
    }
    if let Some(when) = field("when") {
        rule = rule.when(&extractors.find_condition(when)?);
    }
    if let Some(node) = field("tiers") {
        rule = tiers(node, rule, extractors)?;
    }
    if let Some(node) = field("block") {
        rule = rule.block(block_field::block(node)?);
    }
    if let Some(capacity) = field("capacity") {
        rule = rule.capacity(whole("capacity", capacity)?);
    }
    if let Some(on_full) = field("on_full") {
        rule = rule.on_full(keyword("on_full", on_full, ON_FULL)?);
    }
    if let Some(on_error) = field("on_error") {
        rule = rule.on_error(keyword("on_error", on_error, ON_ERROR)?);
    }
    if let Some(mode) = field("mode") {
        rule = rule.mode(mode_field::mode(mode)?);
    }
    rule = enforcement(node, rule)?;
    for kind in [ListKind::Allow, ListKind::Deny] {
        if let Some(keys) = field(kind.field()) {
            rule = list(kind, keys, rule)?;
        }
    }
    Ok(rule)
}

fn in_flight<R: ?Sized>(name: &str, limit: &Node, rule: &Node) -> Result<Rule<R>, FileError> {
    only_limit("in_flight", limit, rule, &["quota", "quotas"])?;
    Ok(Rule::in_flight(name, whole("in_flight", limit)?))
}

fn quotas(rule: &Node) -> Result<Vec<Quota>, FileError> {
    let quota = |field: &'static str, node: &Node| -> Result<Quota, FileError> {
        text(node, field, A_QUOTA)?
            .parse()
            .map_err(|error| FileError::value(node.at, error))
    };
    let invalid = |at, given, expected| {
        let error = ConfigError::new("quotas", given, expected);
        Err(FileError::value(at, error))
    };
    match (rule.field("quota"), rule.field("quotas")) {
        (Some(one), None) => Ok(alloc::vec![quota("quota", one)?]),
        (None, Some(list)) => match &list.value {
            Value::List(nodes) if nodes.is_empty() => invalid(list.at, "an empty list", "at least one quota"),
            Value::List(nodes) => nodes.iter().map(|node| quota("quotas", node)).collect(),
            Value::Bool(_) | Value::Whole(_) | Value::Text(_) | Value::Map(_) | Value::Other(_) => {
                Err(list.unexpected("quotas", format!("a list of {A_QUOTA}")))
            }
        },
        (Some(_), Some(list)) => invalid(list.at, "given beside quota", "one of the two"),
        (None, None) => Err(missing(
            rule,
            "quota",
            &format!(
                "{A_QUOTA}, a list of such in quotas, {A_CALENDAR} in calendar, or a number in in_flight"
            ),
        )),
    }
}

fn tiers<R: ?Sized>(
    node: &Node,
    mut rule: Rule<R>,
    extractors: &Extractors<R>,
) -> Result<Rule<R>, FileError> {
    only_fields(node, TIERS, "tiers", "a map with the fields by and limits")?;
    let by = node
        .field("by")
        .ok_or_else(|| missing(node, "by", "the name of a tier function"))?;
    rule = rule.tier_of(&extractors.find_tier_of(by)?);
    let a_map = "a map of tier names to limits";
    let limits = node
        .field("limits")
        .ok_or_else(|| missing(node, "limits", a_map))?;
    let Value::Map(fields) = &limits.value else {
        return Err(limits.unexpected("limits", a_map));
    };
    for field in fields {
        let limit = whole("limits", &field.node)?;
        if !rule.is_in_flight() {
            Quota::new(limit, rule.quotas[0].window())
                .map_err(|error| FileError::value(field.node.at, error))?;
        }
        rule = rule.tier(field.name.as_str(), limit);
    }
    Ok(rule)
}

fn enforcement<R: ?Sized>(node: &Node, rule: Rule<R>) -> Result<Rule<R>, FileError> {
    let shadow = match node.field("shadow") {
        None => false,
        Some(node) => match node.value {
            Value::Bool(shadow) => shadow,
            Value::Whole(_) | Value::Text(_) | Value::List(_) | Value::Map(_) | Value::Other(_) => {
                return Err(node.unexpected("shadow", "true or false"));
            }
        },
    };
    match node.field("enforce") {
        Some(node) if shadow => Err(FileError::value(
            node.at,
            ConfigError::new("enforce", "given beside shadow", "one of the two"),
        )),
        Some(node) => match percent(text(node, "enforce", A_PERCENTAGE)?) {
            Some(percent) => Ok(rule.enforce_percent(percent)),
            None => Err(node.unexpected("enforce", A_PERCENTAGE)),
        },
        None if shadow => Ok(rule.shadow()),
        None => Ok(rule),
    }
}

/// Reads the list `allow` or `deny`.
fn list<R: ?Sized>(kind: ListKind, list: &Node, mut rule: Rule<R>) -> Result<Rule<R>, FileError> {
    const KEYS: &str = "a list of keys, each as text";
    let field = kind.field();
    let Value::List(nodes) = &list.value else {
        return Err(list.unexpected(field, KEYS));
    };
    let Some(key) = rule.key.clone() else {
        // The rule set reports only a list that is not empty, so an empty list is checked here.
        let error = ConfigError::new(field, "given for a rule without a key", "a rule with a key");
        return Err(FileError::value(list.at, error));
    };
    for node in nodes {
        let entry = text(node, field, KEYS)?;
        // The entry is checked here, so that its error gets a position.
        key.check_entry(entry, kind)
            .map_err(|error| FileError::value(node.at, error))?;
        rule = match kind {
            ListKind::Allow => rule.allow(entry),
            ListKind::Deny => rule.deny(entry),
        };
    }
    Ok(rule)
}

/// Converts the error of a rule set to an error at the position of the value that it is about.
fn locate<R: ?Sized>(nodes: &[Node], builder: &RuleSetBuilder<R>, error: RuleError) -> FileError {
    let RuleError {
        rule: name, error, ..
    } = error;
    let named = |(_, rule): &(usize, &Rule<R>)| rule.name() == name;
    let mut of_name = builder.rules().iter().enumerate().filter(named);
    let (at, rule) = match error.field {
        "rules" => (RuleSetBuilder::<R>::MAX_RULES, None),
        // A name is invalid if it is empty, or at its second use.
        "name" if !name.is_empty() => (of_name.nth(1).map_or(0, |(at, _)| at), None),
        _ => of_name.next().map_or((0, None), |(at, rule)| (at, Some(rule))),
    };
    let node = &nodes[at];
    let value = rule
        .and_then(|rule| invalid_alone(node, rule, &error))
        .or_else(|| node.field(error.field))
        .or_else(|| node.field("quota"))
        .or_else(|| node.field("quotas"));
    let position = match error.field {
        "rules" => node.at,
        _ => value.map_or(node.at, |node| node.at),
    };
    let error = FileError::value(position, error);
    if name.is_empty() {
        error
    } else {
        error.in_rule(name)
    }
}

/// Returns the quota, or the tier, that causes the same error without the others.
fn invalid_alone<'n, R: ?Sized>(node: &'n Node, rule: &Rule<R>, error: &ConfigError) -> Option<&'n Node> {
    let fails = |rule: &Rule<R>| {
        StateAlgorithms::new(rule, &rule.quotas, ClockOrigin::ANY).is_err_and(|other| other == *error)
    };
    let mut bare = rule.clone();
    bare.tiers.clear();
    if let Some(quotas) = node.field("quotas") {
        let fails_alone = |(_, quota): &(&Node, &Quota)| {
            bare.quotas = alloc::vec![**quota];
            fails(&bare)
        };
        return quotas
            .values()
            .into_iter()
            .zip(&rule.quotas)
            .find(fails_alone)
            .map(|(node, _)| node);
    }
    if error.field == "tiers" || fails(&bare) {
        return None;
    }
    let limits = node.field("tiers")?.field("limits")?.values();
    limits
        .into_iter()
        .zip(&rule.tiers)
        .find(|(_, tier)| {
            bare.tiers = alloc::vec![(*tier).clone()];
            fails(&bare)
        })
        .map(|(node, _)| node)
}
