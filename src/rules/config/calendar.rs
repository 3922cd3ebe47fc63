//! The fields `calendar` and `time_zone` of a rule.

use super::fields::{only_limit, text};
use super::file_error::FileError;
use super::keywords::A_CALENDAR;
use super::parse::node::Node;
use crate::algorithm::CalendarQuota;
use crate::error::ConfigError;
use crate::rules::rule::Rule;

/// Reads a rule with a calendar.
pub(super) fn rule<R: ?Sized>(name: &str, quota: &Node, rule: &Node) -> Result<Rule<R>, FileError> {
    only_limit("calendar", quota, rule, &["quota", "quotas", "in_flight"])?;
    let limit = text(quota, "calendar", A_CALENDAR)?;
    let mut calendar: CalendarQuota = limit.parse().map_err(|error: ConfigError| {
        let error = match error.field {
            "quota" => ConfigError {
                field: "calendar",
                ..error
            },
            _ => error,
        };
        FileError::value(quota.at, error)
    })?;
    if let Some(node) = rule.field("time_zone") {
        let zone = text(node, "time_zone", "text such as \"Europe/Berlin\"")?;
        calendar = calendar
            .in_named_zone(zone)
            .map_err(|error| FileError::value(node.at, error))?;
    }
    Ok(Rule::calendar(name, calendar))
}

/// Returns the error about a time zone without a calendar.
pub(super) fn missing(rule: &Node) -> FileError {
    let at = rule.field("time_zone").map_or(rule.at, |zone| zone.at);
    let error = ConfigError::new(
        "time_zone",
        "given without calendar",
        "a calendar, or no time zone",
    );
    FileError::value(at, error)
}
