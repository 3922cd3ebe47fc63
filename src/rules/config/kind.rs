//! The fields that state the kind of a rule, and those that not every kind has. No other code refuses a field for the kind of its rule.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::fields::{MapReader, keyword, list, quota, text, whole};
use super::file_error::FileError;
use super::keywords::{A_CALENDAR, A_QUOTA, one_of};
use super::parse::node::Node;
use crate::algorithm::CalendarQuota;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::rules::rule::algorithm::RuleAlgorithm;
use crate::rules::rule::{AnyRule, Rule};

/// The fields that state the limit of a rule, each with the reader of a rule of its kind. A rule has one of them.
const fn limit_fields<R: ?Sized>() -> [(&'static str, ReadRule<R>); 4] {
    [
        ("calendar", calendar),
        ("in_flight", in_flight),
        ("quota", rate),
        ("quotas", rate),
    ]
}

/// Reads the fields of one kind of rule. The text is the name of the rule.
type ReadRule<R> = fn(&mut MapReader<'_>, &str) -> AnyRule<R>;

/// The other fields that not every kind of rule has, each with the limits of the kinds that have it.
const FIELDS_BY_LIMIT: &[(&str, &[&str])] = &[
    ("time_zone", &["calendar"]),
    ("algorithm", &["quota", "quotas"]),
    ("cells", &["quota", "quotas"]),
    ("burst", &["quota", "quotas"]),
    ("cost", &["quota", "quotas", "calendar"]),
];

/// The quota of a rule without a valid limit, which is not used.
const STAND_IN: Quota = Quota::of_period(1, Duration::from_secs(1));

/// Reads the fields of the kind of a rule. Adds an error for each field that a rule of this kind does not have.
pub(super) fn rule<R: ?Sized>(map: &mut MapReader<'_>, name: &str) -> AnyRule<R> {
    let mut given = limit_fields().to_vec();
    given.retain(|(limit, _)| map.field(limit).is_some());
    let Some((&(limit, read), others)) = given.split_first() else {
        let a_list = "a list of such in quotas";
        let expected = format!("{A_QUOTA}, {a_list}, {A_CALENDAR} in calendar, or a number in in_flight");
        map.missing("quota", &expected);
        return rate(map, name);
    };
    for &(other, _) in others {
        map.refuse(other, limit, "one of the two");
    }
    for &(field, limits) in FIELDS_BY_LIMIT {
        if !limits.contains(&limit) {
            map.refuse(field, limit, &format!("a rule with {}", one_of(limits)));
        }
    }
    read(map, name)
}

fn rate<R: ?Sized>(map: &mut MapReader<'_>, name: &str) -> AnyRule<R> {
    let mut rule = Rule::new(name, STAND_IN);
    let rate = &mut rule.kind;
    if let Some(quota) = map.optional("quota", |node| quota("quota", node)) {
        rate.quotas = alloc::vec![quota];
    }
    if let Some(quotas) = map.optional("quotas", quotas) {
        rate.quotas = quotas;
    }
    let algorithm = |word: &Node| keyword("algorithm", word, RuleAlgorithm::NAMES);
    rate.algorithm = map.optional("algorithm", algorithm).unwrap_or_default();
    rate.cells = map.optional("cells", |cells| whole("cells", cells));
    rate.burst = map.optional("burst", |burst| whole("burst", burst));
    rule.into_any()
}

fn quotas(node: &Node) -> Result<Vec<Quota>, FileError> {
    match list(node, "quotas", &format!("a list of {A_QUOTA}"))? {
        [] => Err(node.invalid("quotas", "an empty list", "at least one quota")),
        nodes => FileError::each(nodes.iter().map(|node| quota("quotas", node))),
    }
}

fn calendar<R: ?Sized>(map: &mut MapReader<'_>, name: &str) -> AnyRule<R> {
    let quota: Option<CalendarQuota> = map.optional("calendar", |node| {
        let quota = text(node, "calendar", A_CALENDAR)?.parse();
        quota.map_err(|error: ConfigError| {
            let field = match error.field {
                "quota" => "calendar",
                other => other,
            };
            FileError::value(node.at, ConfigError { field, ..error })
        })
    });
    // A zone is also checked beside an invalid calendar.
    let in_zone = map.optional("time_zone", |node| {
        let zone = text(node, "time_zone", "text such as \"Europe/Berlin\"")?;
        let quota = quota.clone().map_or_else(|| CalendarQuota::per_day(1), Ok);
        let in_zone = quota.and_then(|quota| quota.in_named_zone(zone));
        in_zone.map_err(|error| FileError::value(node.at, error))
    });
    match in_zone.or(quota) {
        Some(quota) => Rule::calendar(name, quota).into_any(),
        None => Rule::new(name, STAND_IN).into_any(),
    }
}

fn in_flight<R: ?Sized>(map: &mut MapReader<'_>, name: &str) -> AnyRule<R> {
    let limit = map.optional("in_flight", |node| whole("in_flight", node));
    Rule::in_flight(name, limit.unwrap_or(1)).into_any()
}
