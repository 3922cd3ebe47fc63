use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::extractors::Extractors;
use super::file_error::FileError;
use super::modes;
use super::node::{Node, Value};
use super::words::{
    A_QUOTA, A_SHARE, A_WHOLE_NUMBER, ALGORITHMS, FILE, ON_ERROR, ON_FULL, RULE, TIERS, one_of, percent,
};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::rules::group::Seeds;
use crate::rules::policy::Policy;
use crate::rules::succession;
use crate::rules::{Rule, RuleError, RuleSetBuilder};

/// The rules of a file, of which a rule set can be built.
pub(super) fn read<R: ?Sized>(
    root: &Node,
    extractors: &Extractors<R>,
) -> Result<RuleSetBuilder<R>, FileError> {
    only(root, FILE, "rules", "a map with the field rules")?;
    if let Some(schema) = root.field("$schema") {
        text(schema, "$schema", "text: where the schema of the file is")?;
    }
    let list = root
        .field("rules")
        .ok_or_else(|| missing(root, "rules", "a list of rules"))?;
    let Value::List(nodes) = &list.value else {
        return Err(list.not_allowed("rules", "a list of rules"));
    };
    let mut rules = RuleSetBuilder::new();
    for node in nodes {
        let read = rule(node, extractors).map_err(|error| match node.field("name").map(|name| &name.value) {
            Some(Value::Text(name)) if !name.is_empty() => error.in_rule(name),
            _ => error,
        });
        rules = rules.rule(read?);
    }
    // As the rule set will be built: whatever is wrong then is wrong now.
    match succession::follow(&rules, None, &[], Seeds::new([1, 2, 3, 4])) {
        Ok(_) => Ok(rules),
        Err(error) => Err(locate(nodes, &rules, error)),
    }
}

fn rule<R: ?Sized>(node: &Node, extractors: &Extractors<R>) -> Result<Rule<R>, FileError> {
    only(node, RULE, "rules", "a map for each rule")?;
    let given = |name: &str| node.field(name);
    let name = given("name").ok_or_else(|| missing(node, "name", "a name for each rule"))?;
    let name = text(name, "name", "text")?;
    let mut quotas = quotas(node)?.into_iter();
    // There is one at least.
    let first = quotas
        .next()
        .ok_or_else(|| missing(node, "quota", "one quota or more"))?;
    let mut rule = quotas.fold(Rule::new(name, first), Rule::also);
    if let Some(was) = given("was") {
        rule = rule.was(text(was, "was", "text: the name that the rule had")?);
    }
    if let Some(algorithm) = given("algorithm") {
        rule = rule.algorithm(one("algorithm", algorithm, ALGORITHMS)?);
    }
    if let Some(cells) = given("cells") {
        rule = rule.cells(whole("cells", cells)?);
    }
    if let Some(burst) = given("burst") {
        rule = rule.burst(whole("burst", burst)?);
    }
    if let Some(key) = given("key") {
        rule = rule.by(extractors.find_key(key)?);
    }
    if let Some(cost) = given("cost") {
        rule = rule.cost(extractors.find_cost(cost)?);
    }
    if let Some(when) = given("when") {
        rule = rule.when(extractors.find_condition(when)?);
    }
    if let Some(given) = given("tiers") {
        rule = tiers(given, rule, extractors)?;
    }
    if let Some(capacity) = given("capacity") {
        rule = rule.capacity(whole("capacity", capacity)?);
    }
    if let Some(on_full) = given("on_full") {
        rule = rule.on_full(one("on_full", on_full, ON_FULL)?);
    }
    if let Some(on_error) = given("on_error") {
        rule = rule.on_error(one("on_error", on_error, ON_ERROR)?);
    }
    if let Some(mode) = given("mode") {
        rule = rule.mode(modes::mode(mode)?);
    }
    rule = enforced(node, rule)?;
    for (field, allowed) in [("allow", true), ("deny", false)] {
        if let Some(keys) = given(field) {
            rule = listed(field, allowed, keys, rule)?;
        }
    }
    Ok(rule)
}

fn quotas(rule: &Node) -> Result<Vec<Quota>, FileError> {
    let quota = |field: &'static str, node: &Node| -> Result<Quota, FileError> {
        text(node, field, A_QUOTA)?
            .parse()
            .map_err(|error| FileError::value(node.at, error))
    };
    match (rule.field("quota"), rule.field("quotas")) {
        (Some(one), None) => Ok(alloc::vec![quota("quota", one)?]),
        (None, Some(list)) => match &list.value {
            Value::List(nodes) if nodes.is_empty() => Err(FileError::value(
                list.at,
                ConfigError::new("quotas", "an empty list", "one quota or more"),
            )),
            Value::List(nodes) => nodes.iter().map(|node| quota("quotas", node)).collect(),
            _ => Err(list.not_allowed("quotas", format!("a list of {A_QUOTA}"))),
        },
        (Some(_), Some(list)) => Err(FileError::value(
            list.at,
            ConfigError::new("quotas", "given beside quota", "one of them"),
        )),
        (None, None) => Err(missing(
            rule,
            "quota",
            &format!("{A_QUOTA}, or quotas: a list of it"),
        )),
    }
}

fn tiers<R: ?Sized>(
    node: &Node,
    mut rule: Rule<R>,
    extractors: &Extractors<R>,
) -> Result<Rule<R>, FileError> {
    only(node, TIERS, "tiers", "a map with the fields by and limits")?;
    let by = node
        .field("by")
        .ok_or_else(|| missing(node, "by", "what says the tier of a request"))?;
    rule = rule.tier_of(extractors.find_tier_of(by)?);
    let a_map = "a limit for each tier, by its name";
    let limits = node
        .field("limits")
        .ok_or_else(|| missing(node, "limits", a_map))?;
    let Value::Map(entries) = &limits.value else {
        return Err(limits.not_allowed("limits", a_map));
    };
    for entry in entries {
        let limit = whole("limits", &entry.node)?;
        Quota::new(limit, rule.quotas[0].window()).map_err(|error| FileError::value(entry.node.at, error))?;
        rule = rule.tier(entry.name.as_str(), limit);
    }
    Ok(rule)
}

fn enforced<R: ?Sized>(node: &Node, rule: Rule<R>) -> Result<Rule<R>, FileError> {
    let shadow = match node.field("shadow") {
        None => false,
        Some(node) => match node.value {
            Value::Bool(shadow) => shadow,
            _ => return Err(node.not_allowed("shadow", "true or false")),
        },
    };
    match node.field("enforce") {
        Some(share) if shadow => Err(FileError::value(
            share.at,
            ConfigError::new("enforce", "given for a rule in the shadow", "one of them"),
        )),
        Some(share) => match percent(text(share, "enforce", A_SHARE)?) {
            Some(percent) => Ok(rule.enforce_percent(percent)),
            None => Err(share.not_allowed("enforce", A_SHARE)),
        },
        None if shadow => Ok(rule.shadow()),
        None => Ok(rule),
    }
}

fn listed<R: ?Sized>(
    field: &'static str,
    allowed: bool,
    list: &Node,
    mut rule: Rule<R>,
) -> Result<Rule<R>, FileError> {
    const KEYS: &str = "a list of keys, each as text";
    let Value::List(nodes) = &list.value else {
        return Err(list.not_allowed(field, KEYS));
    };
    let Some(key) = rule.key.as_ref().map(|key| key.name().to_string()) else {
        // As the rule set would say of a list that is not empty.
        let error = ConfigError::new(field, "a list of keys", "nothing for a rule without a key");
        return Err(FileError::value(list.at, error));
    };
    for node in nodes {
        let entry = text(node, field, KEYS)?;
        rule = rule.list_text(entry, allowed).map_err(|error: String| {
            node.not_allowed(field, format!("what the key {key:?} can be: {error}"))
        })?;
    }
    Ok(rule)
}

/// Refuses a field that is none of these, at its name.
pub(super) fn only(
    node: &Node,
    fields: &[&str],
    field: &'static str,
    allowed: &'static str,
) -> Result<(), FileError> {
    let Value::Map(entries) = &node.value else {
        return Err(node.not_allowed(field, allowed));
    };
    match entries
        .iter()
        .find(|entry| !fields.contains(&entry.name.as_str()))
    {
        None => Ok(()),
        Some(entry) => Err(FileError::value(
            entry.at,
            ConfigError::new("field", format!("{:?}", entry.name), one_of(fields)),
        )),
    }
}

pub(super) fn missing(node: &Node, field: &'static str, allowed: &str) -> FileError {
    FileError::value(node.at, ConfigError::new(field, "missing", allowed))
}

pub(super) fn text<'n>(node: &'n Node, field: &'static str, allowed: &str) -> Result<&'n str, FileError> {
    match &node.value {
        Value::Text(text) => Ok(text),
        _ => Err(node.not_allowed(field, allowed)),
    }
}

pub(super) fn whole(field: &'static str, node: &Node) -> Result<u64, FileError> {
    match node.value {
        Value::Whole(number) => Ok(number),
        _ => Err(node.not_allowed(field, A_WHOLE_NUMBER)),
    }
}

fn one<T: Copy>(field: &'static str, node: &Node, words: &[(&str, T)]) -> Result<T, FileError> {
    if let Value::Text(text) = &node.value
        && let Some(&(_, meant)) = words.iter().find(|(word, _)| word == text)
    {
        return Ok(meant);
    }
    let words: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
    Err(node.not_allowed(field, one_of(&words)))
}

/// The error of a rule set, at the value that it is about.
fn locate<R: ?Sized>(nodes: &[Node], rules: &RuleSetBuilder<R>, error: RuleError) -> FileError {
    let RuleError { rule: name, error } = error;
    let named = |(_, rule): &(usize, &Rule<R>)| rule.name() == name;
    let mut of_name = rules.rules().iter().enumerate().filter(named);
    let (at, rule) = match error.field {
        "rules" => (RuleSetBuilder::<R>::MAX_RULES, None),
        // The name is wrong because it is empty, or at its second use.
        "name" if !name.is_empty() => (of_name.nth(1).map_or(0, |(at, _)| at), None),
        _ => of_name.next().map_or((0, None), |(at, rule)| (at, Some(rule))),
    };
    let node = &nodes[at];
    let place = rule
        .and_then(|rule| trial(node, rule, &error))
        .or_else(|| node.field(error.field))
        .or_else(|| node.field("quota"))
        .or_else(|| node.field("quotas"));
    let place = match error.field {
        "rules" => node.at,
        _ => place.map_or(node.at, |node| node.at),
    };
    let error = FileError::value(place, error);
    if name.is_empty() {
        error
    } else {
        error.in_rule(name)
    }
}

/// The one of several quotas, or of several tiers, that is wrong by itself.
fn trial<'n, R: ?Sized>(node: &'n Node, rule: &Rule<R>, error: &ConfigError) -> Option<&'n Node> {
    let is_wrong = |rule: &Rule<R>| Policy::new(rule, &rule.quotas).is_err_and(|other| other == *error);
    let mut bare = rule.clone();
    bare.tiers.clear();
    if let Some(quotas) = node.field("quotas") {
        let alone = |(_, quota): &(&Node, &Quota)| {
            bare.quotas = alloc::vec![**quota];
            is_wrong(&bare)
        };
        return quotas
            .values()
            .into_iter()
            .zip(&rule.quotas)
            .find(alone)
            .map(|(node, _)| node);
    }
    if error.field == "tiers" || is_wrong(&bare) {
        return None;
    }
    let limits = node.field("tiers")?.field("limits")?.values();
    limits
        .into_iter()
        .zip(&rule.tiers)
        .find(|(_, tier)| {
            bare.tiers = alloc::vec![(*tier).clone()];
            is_wrong(&bare)
        })
        .map(|(node, _)| node)
}
