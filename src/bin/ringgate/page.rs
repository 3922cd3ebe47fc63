//! The report as a page.

use serde_json::Value;

/// One page that needs no network, of the JSON object of a replay.
pub(crate) fn render(report: &Value) -> String {
    // The object as it is, for whoever reads it in a browser.
    let text = serde_json::to_string_pretty(report).unwrap_or_default();
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    format!("<!doctype html><meta charset=\"utf-8\"><title>ringgate replay</title><pre>{text}</pre>\n")
}
