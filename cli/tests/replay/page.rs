//! The page of a replay carries its report. `ci/page.sh` tests the rest in a browser.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::tool::{file, json, run};

/// Four requests of a client whose name would end a script element, of which two are denied.
const LOG: &str = r#"{"time": 1431857103, "user": "</script>"}
{"time": 1431857104, "user": "</script>"}
{"time": 1431857105, "user": "</script>"}
{"time": 1431857106, "user": "</script>"}
"#;

/// The report that a page carries.
fn carried(page: &str) -> Value {
    let (_, after) = page
        .split_once(r#"<script type="application/json" id="data">"#)
        .unwrap();
    let (report, _) = after.split_once("</script>").unwrap();
    serde_json::from_str(report).unwrap()
}

#[test]
fn the_page_carries_the_json_report() {
    let folder = tempdir().unwrap();
    let page = folder.path().join("report.html");
    let log = file(LOG);
    let output = run([
        "replay".as_ref(),
        "--json".as_ref(),
        "--html".as_ref(),
        page.as_os_str(),
        "--rule".as_ref(),
        "2/60s by user".as_ref(),
        log.path().as_os_str(),
    ]);
    let printed = json(&output);
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(carried(&page), printed);
    assert_eq!(printed["denied"], 2);
    let said = r#"The user <b><bdi class="key">&lt;/script&gt;</bdi></b> was denied most often: <b>2</b> of 4 requests"#;
    assert!(page.contains(said), "{page}");
}
