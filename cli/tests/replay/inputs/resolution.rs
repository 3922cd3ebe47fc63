//! Times of whole seconds with short windows.

use serde_json::Value;

use crate::tool::{json, on_file, run, texts};

/// Requests of two clients, so many in each second of a minute, with a fraction and a step of the second.
fn log(in_second: usize, step: i64, fraction: &dyn Fn(usize) -> i64) -> String {
    let line = |number: usize| {
        let second = 1_431_857_100 + step * (number / in_second) as i64;
        let nanos = second * 1_000_000_000 + fraction(number % in_second);
        format!(
            "{{\"time\":{}.{:09},\"client\":\"192.0.2.{}\"}}\n",
            nanos / 1_000_000_000,
            nanos % 1_000_000_000,
            number % 2
        )
    };
    (0..60 * in_second).map(line).collect()
}

fn said(object: &Value, list: &str) -> Option<String> {
    let mut all = texts(object, list).into_iter();
    all.find(|text| text.starts_with("times are whole"))
        .map(ToOwned::to_owned)
}

#[test]
fn short_windows_are_a_warning_with_the_figures_of_a_log() {
    let whole = log(8, 1, &|_| 0);
    let figures = |rule: &str| {
        let object = json(&on_file(&format!("--json --quiet --rule {rule}"), &whole));
        assert_eq!(said(&object, "notes"), None, "{rule}");
        let warning = said(&object, "warnings").unwrap_or_default();
        let denied = object["denied"].as_u64().unwrap();
        assert!(
            warning.starts_with(&format!(
                "times are whole seconds, so all requests of a second count at its beginning; for rule {rule:?} with"
            )),
            "{warning}"
        );
        assert!(
            warning.contains(&format!(
                ": evaluated alone, the rule denies {denied} requests and a log "
            )),
            "{warning}"
        );
        warning.split("With exact times").nth(1).unwrap().to_owned()
    };
    // Each client has four requests in each second. A window of W seconds may have those of W + 1.
    for (rule, between) in [
        ("5/s", "between 0 and 180"),
        ("4/s", "between 0 and 240"),
        ("3/s", "between 120 and 300"),
        ("10/2s", "between 0 and 80"),
        ("8/2s", "between 0 and 160"),
        ("5/500ms", "between 0 and 180"),
    ] {
        let figures = figures(rule);
        assert!(figures.contains(between), "{rule}: {figures}");
    }
}

#[test]
fn other_windows_and_times_have_no_warning() {
    let (seconds, millis) = (
        log(8, 1, &|_| 0),
        log(8, 1, &|number| number as i64 * 125_000_000),
    );
    let (minutes, nanos) = (
        log(8, 60, &|_| 0),
        log(8, 1, &|number| number as i64 * 125_000_001),
    );
    for (log, rule, warned, noted) in [
        (&seconds, "80/20s", None, None),
        (&seconds, "5/min", None, None),
        (&seconds, "100/s", None, Some("seconds")),
        (&seconds, "100/19s", None, Some("seconds")),
        (&seconds, "100/20s", None, None),
        (&millis, "4/s", None, None),
        (&millis, "1/20ms", None, None),
        (&millis, "9/19ms", None, Some("milliseconds")),
        (&nanos, "9/1ms", None, None),
        (&minutes, "100/19min", None, Some("minutes")),
        (&minutes, "5/min", Some("minutes"), None),
        (&minutes, "500/20min", None, None),
    ] {
        let object = json(&on_file(&format!("--json --quiet --rule {rule}"), log));
        for (list, expected) in [("warnings", warned), ("notes", noted)] {
            let unit = said(&object, list).map(|text| text.split([' ', ',']).nth(3).unwrap().to_owned());
            assert_eq!(unit.as_deref(), expected, "{rule}: {object}");
        }
    }
    // Few requests may be at whole minutes by chance.
    let few: String = minutes
        .lines()
        .take(8)
        .map(|line| line.to_owned() + "\n")
        .collect();
    let object = json(&on_file("--json --quiet --rule 9/min", few));
    assert_eq!((said(&object, "warnings"), said(&object, "notes")), (None, None));
}

#[test]
fn suggestions_name_the_limits_of_a_log() {
    let file = crate::tool::file(log(8, 1, &|_| 0));
    let path = file.path().to_str().unwrap();
    let suggest = |args: &str| {
        let args = format!("suggest --json --quiet {args}");
        json(&run(args.split(' ').chain([path])))
    };
    let object = suggest("--window 1s --deny 0% --deny 25%");
    assert_eq!(object["suggestions"][0]["of_requests"]["limit"], 8);
    let warning = said(&object, "warnings").unwrap();
    assert!(
        warning.ends_with("with --algorithm log, those for requests are 4 (0%), 3 (25%)"),
        "{warning}"
    );
    let object = suggest("--window 1s --deny 0% --algorithm log");
    assert_eq!(object["suggestions"][0]["of_requests"]["limit"], 4);
    assert!(said(&object, "warnings").is_none() && said(&object, "notes").is_some());
    let object = suggest("--window 20s --window 60s");
    assert!(
        said(&object, "warnings").is_none() && said(&object, "notes").is_none(),
        "{object}"
    );
}
