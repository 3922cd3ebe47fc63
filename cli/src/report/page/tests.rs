//! The contents of a page, and text that must never be part of it.

use super::SCRIPT;
use serde_json::json;

/// A report about one rule and one key, both of one name.
fn report(name: &str) -> String {
    json!({
        "version": 1, "sources": [name], "formats": [name], "lines": 1_001, "requests": 1_000, "admitted": 980, "denied": 20, "unreadable": 1,
        "from": 1_431_857_100_000_i64, "to": 1_431_857_159_000_i64, "step": 60_000,
        "rules": [{
            "name": name, "quota": "2/60s", "limit": 2, "window": 60_000, "algorithm": "classic", "cells": 5, "key": name,
            "cost": name, "when": name, "burst": null, "shadow": false, "requests": 1_000, "admitted": 980, "denied": 20, "worst": 3, "bound": 4, "bytes": 8, "keys": 1,
        }],
        "series": {"requests": [1_000], "denied": [20], "by_rule": {name: [20]}},
        "keys": [{
            "rule": name, "key": name, "requests": 900, "denied": 20,
            "first_denied": 1_431_857_103_000_i64, "last_denied": 1_431_857_104_000_i64, "worst": 23,
        }],
        "chosen": [{
            "rule": name, "key": name, "limit": 2, "window": 60_000,
            "asked": [[1_431_857_100_000_i64, 1], [1_431_857_103_000_i64, 23], [1_431_857_104_000_i64, 23]],
            "admitted": [[1_431_857_100_000_i64, 1]], "details": [{"field": "path", "denied": [[name, 20]]}],
        }],
        "what_if": [{
            "rule": name, "limits": [1, 2, 7, 9], "denied": [40, 20, 10, 9], "keys_denied": [1, 1, 1, 1], "requests": 1_000,
            "keys": 1,
        }],
        "compare": [],
        "warnings": [name], "notes": [name], "truncated": false,
    })
    .to_string()
}

fn render(json: &str) -> String {
    super::render(&serde_json::from_str(json).expect("it is a report"), json)
}

fn page(name: &str) -> String {
    render(&report(name))
}

#[test]
fn the_page_has_the_answers() {
    let html = page("client").replace('\u{a0}', " ");
    for said in [
        "<title>2 per 60 s for each client · ringgate replay</title>",
        r#"The client <b><bdi class="key">client</bdi></b> was denied most often: <b>20</b> of 900 requests (2.22 %) were denied"#,
        r#"<b>between <time datetime="2015-05-17T10:05:03Z">2015-05-17 10:05:03</time> and "#,
        r#"At the peak, 23 permits were requested in 60 s, up to <time datetime="2015-05-17T10:05:03Z">"#,
        "A limit of <b>7</b> instead of 2 per 60 s would have denied at most 1&nbsp;% of the requests: 10 of 1,000 (1.00 %).",
        r#"<td role="cell" class="alarm" data-label="Peak usage">3</td>"#,
    ] {
        assert!(html.contains(said), "{said} is not in {html}");
    }
    // Of which nothing is to be found in the script.
    let (html, _) = html.rsplit_once("<script>").expect("there is a script");
    assert!(
        !html.contains("{{") && !html.contains("}}"),
        "a place is not filled"
    );
}

#[test]
fn text_from_a_log_is_never_markup() {
    let usual = page("client").matches('<').count();
    for name in [
        "</script><script>alert(1)</script>",
        "</title><img src=x onerror=alert(1)>",
        "\"><b>\"'&lt;",
        "<!--<script>",
        "{{data}}{{script}}",
        "\u{202e}\0\u{1b}[31m",
    ] {
        let marks = name
            .chars()
            .filter(|c| c.escape_debug().len() > 1 && !"\"'".contains(*c))
            .count();
        let html = page(name);
        // An escape sequence has an element of its own, but in the title, the heading and a choice.
        let expected = usual + marks * 2 * html.matches("<bdi ").count();
        assert_eq!(html.matches('<').count(), expected, "{name}");
        assert!(
            !html.contains('\u{202e}') && !html.contains('\0') && !html.contains('\u{1b}'),
            "{name}"
        );
    }
}

#[test]
fn reports_without_denials_or_good_limits_are_rendered() {
    let report = report("client").replace("[40,20,10,9]", "[40,20,12,11]");
    let html = render(&report).replace('\u{a0}', " ");
    let said = "No limit that was tried would have denied at most 1&nbsp;% of the requests; the largest, 9 per 60 s, denies 11 of 1,000 (1.10 %).";
    assert!(html.contains(said), "{html}");

    let mut report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    for list in ["keys", "chosen", "what_if"] {
        report[list] = json!([]);
    }
    let html = render(&report.to_string());
    assert!(html.contains("No request was denied."));
    assert!(
        !html.contains("type=\"range\"") && !html.contains("<table class=\"stack\" id=\"keys\""),
        "charts of nothing"
    );
}

#[test]
fn the_script_cannot_end_its_element() {
    assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"));
}
