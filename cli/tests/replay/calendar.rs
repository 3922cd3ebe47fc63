//! Rules with a calendar: the time of the log decides which period a request is in.

use std::fs;

use serde_json::Value;

use crate::tool::{self, assert_fields, by_rules, on_file, run, stderr};

/// A log of these times of UTC, each with a number of requests.
fn log(times: &[(&str, u32)]) -> String {
    let line = |time: &str| format!("192.0.2.1 - - [{time} +0000] \"GET / HTTP/1.1\" 200 17\n");
    times
        .iter()
        .map(|(time, requests)| line(time).repeat(*requests as usize))
        .collect()
}

fn rules(fields: &str) -> String {
    format!("[[rules]]\nname = 'contract'\n{fields}")
}

fn replayed(fields: &str, times: &[(&str, u32)], args: &str) -> Value {
    by_rules(&rules(fields), args, log(times))
}

fn decided(report: &Value) -> [u64; 2] {
    let rule = &report["rules"][0];
    ["admitted", "denied"].map(|count| rule[count].as_u64().unwrap())
}

/// The month ends at 04:00 of UTC in New York.
const MONTH: &[(&str, u32)] = &[
    ("31/Oct/2026:20:00:00", 2),
    ("01/Nov/2026:03:59:59", 2),
    ("01/Nov/2026:04:00:00", 2),
    ("30/Nov/2026:23:00:00", 2),
    ("01/Dec/2026:04:59:59", 1),
    ("01/Dec/2026:05:00:00", 3),
];

#[test]
fn months_end_in_their_time_zone() {
    let in_zone = |zone: &str, limit: u64| {
        let fields = format!("calendar = '{limit}/month'\ntime_zone = '{zone}'\nkey = 'client'");
        replayed(&fields, MONTH, "")
    };
    // Three of four in October, three of five in November, and three in December.
    let report = in_zone("America/New_York", 3);
    assert_eq!(decided(&report), [9, 3]);
    // In UTC: two of two, three of six, three of four.
    assert_eq!(decided(&in_zone("UTC", 3)), [8, 4]);
    let rule = &report["rules"][0];
    assert_eq!(rule["quota"], "3/month, America/New_York");
    assert_eq!(
        (&rule["algorithm"], &rule["cells"]),
        (&Value::from("calendar"), &Value::Null)
    );
    assert_fields(rule, "limit bound bytes", [3, 6, 8], "");
    // Other limits are tried in the same months.
    let what_if = &report["what_if"][0];
    let numbers = |name: &str| -> Vec<u64> {
        let list = what_if[name].as_array().unwrap();
        list.iter().map(|number| number.as_u64().unwrap()).collect()
    };
    for (limit, denied) in numbers("limits").into_iter().zip(numbers("denied")) {
        assert_eq!(
            decided(&in_zone("America/New_York", limit)),
            [12 - denied, denied],
            "{limit}"
        );
    }
    assert!(numbers("limits").contains(&5) && numbers("denied").contains(&0));
}

/// The first of November has 25 hours in New York, and the eighth of March 23.
#[test]
fn days_have_their_hours() {
    let fields = "calendar = '2/day'\ntime_zone = 'America/New_York'";
    let autumn = [
        ("01/Nov/2026:04:00:00", 2),
        ("02/Nov/2026:04:59:59", 1),
        ("02/Nov/2026:05:00:00", 2),
    ];
    assert_eq!(decided(&replayed(fields, &autumn, "")), [4, 1]);
    let spring = [
        ("08/Mar/2026:05:00:00", 2),
        ("09/Mar/2026:03:59:59", 1),
        ("09/Mar/2026:04:00:00", 2),
    ];
    assert_eq!(decided(&replayed(fields, &spring, "")), [4, 1]);
}

/// Rules with and without a calendar are one decision, and the shadow counts.
#[test]
fn a_calendar_is_decided_with_other_rules() {
    let fields = "calendar = '3/month'\ntime_zone = 'America/New_York'\nshadow = true\n\n[[rules]]\nname = 'rate'\nquota = '1/500ms'";
    let report = replayed(fields, MONTH, "");
    assert_eq!(report["denied"], 6);
    // One request of each second is admitted, and no month has more than three of these.
    assert_eq!(
        (&report["rules"][0]["denied"], &report["rules"][1]["denied"]),
        (&0.into(), &6.into())
    );
}

#[test]
fn a_calendar_is_not_compared_with_windows() {
    let report = replayed("calendar = '3/month'", MONTH, "--compare");
    assert_eq!(report["compare"], Value::Array(Vec::new()));
    let notes = report["notes"].to_string();
    let note = "no comparison of rule \\\"contract\\\": no other algorithm has calendar periods";
    assert!(notes.contains(note), "{notes}");
}

#[test]
fn times_before_1970_are_an_error() {
    let file = tool::rules(&rules("calendar = '3/month'"));
    let args = format!("--rules {}", file.path().display());
    let output = on_file(&args, log(&[("31/Dec/1969:20:00:00", 2)]));
    let expected = "a time in the years 1970 to 9900";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn a_calendar_is_explained_in_words() {
    let rules = tool::rules(&rules(
        "calendar = '50_000/month from the 5th'\ntime_zone = 'Europe/Berlin'\nkey = 'client'",
    ));
    let output = run(["check", rules.path().to_str().unwrap()]);
    let expected = "\
1 rule

contract
  50000 permits in each month from 5, Europe/Berlin for each client: at most 100000 in 2419200s, 8 bytes of state a key
  applies to every request
  a request costs 1 permit
";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

/// The page states the periods, and the rule to copy has them.
#[test]
fn a_page_states_the_calendar() {
    let fields = "calendar = '3/month from 5'\ntime_zone = 'America/New_York'\nkey = 'client'";
    let (rules, log) = (tool::rules(&rules(fields)), tool::file(log(MONTH)));
    let page = tempfile::Builder::new().suffix(".html").tempfile().unwrap();
    let [rules, log, page] = [rules.path(), log.path(), page.path()].map(|path| path.to_str().unwrap());
    let output = run(["replay", "--html", page, "--rules", rules, log]);
    // The tables are printed, too.
    assert!(output.stdout.starts_with(b"requests "), "{}", stderr(&output));
    let page = fs::read_to_string(page).unwrap();
    for expected in [
        "3\u{a0}per\u{a0}month from 5, America/New_York",
        "calendar = \"6/month from 5\"\ntime_zone = \"America/New_York\"\nkey = \"client\"</code>",
        "let quota: CalendarQuota = \"6/month from 5\".parse()?;\n\
         let rule = Rule::calendar(\"contract\", quota.in_zone(\"America/New_York\")?)\n",
        "\"period\":\"month from 5, America/New_York\"",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert!(!page.contains("ringgate replay --rule"));
}
