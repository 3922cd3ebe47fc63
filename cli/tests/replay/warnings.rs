//! Inputs and rules that make a result doubtful cause a warning, a note or an error.

use crate::log::{START, access, line, twenty};
use crate::tool::{
    assert_error, assert_half_denied, file, json, on_file, on_pipe, replay, run, stderr, texts, tool,
};

#[test]
fn unreadable_lines_are_a_warning_or_an_error() {
    let good = twenty(|number| access("198.51.100.9", number));
    let with_bad = |good: usize, bad: usize| {
        let lines = (0..good).map(|number| access(&format!("198.51.100.{}", number % 2), number % 60) + "\n");
        lines.collect::<String>() + &"nonsense\n".repeat(bad)
    };
    let warned = |good, bad| {
        let output = on_pipe(&mut tool("--rule 10/60s --quiet", None), with_bad(good, bad));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        // A warning is printed before the tables.
        text.starts_with("warning ")
    };
    assert!(!warned(99, 1) && warned(98, 1) && warned(50, 50));
    assert_error(
        "",
        &with_bad(50, 51),
        "51 of 101 lines of standard input are unreadable as combined, by line 1",
    );
    assert_eq!(json(&replay("--lenient", with_bad(50, 51)))["unreadable"], 51);
    // One of several inputs is of another format.
    let files = [file(&good), file("nonsense\n".repeat(2))];
    let path = |number: usize| files[number].path().to_str().unwrap().to_owned();
    let args = ["replay", "--rule", "10/60s", "--json"].map(str::to_owned);
    let of = |more: &[String]| {
        run(args
            .iter()
            .cloned()
            .chain([path(0), path(1)])
            .chain(more.iter().cloned()))
    };
    assert_eq!(of(&[]).status.code(), Some(2));
    assert!(stderr(&of(&[])).contains(&format!("2 of 2 lines of {}", path(1))));
    assert_eq!(of(&["--lenient".to_owned()]).status.code(), Some(0));
}

#[test]
fn rules_that_match_nothing_are_a_warning() {
    let good = twenty(|number| access("198.51.100.9", number));
    let warnings = |rule: &str| {
        let output = on_pipe(tool("--json --quiet", None).arg("--rule").arg(rule), &good);
        texts(&json(&output), "warnings")
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(warnings("10/60s when path=/a"), Vec::<String>::new());
    assert_eq!(
        warnings("10/60s when path=/b as login"),
        ["rule \"login\" applies to no request: \"path=/b\" never holds"]
    );
    assert_eq!(
        warnings("50/60s cost size as bytes"),
        ["rule \"bytes\" always denies 20 requests: they cost up to 57, and it admits at most 50 at once"]
    );
    assert_eq!(warnings("57/60s cost size"), Vec::<String>::new());
    let suggest = |when: &str| {
        let file = file(&good);
        let output = run(["suggest", "--json", "--when", when, file.path().to_str().unwrap()]);
        json(&output)["warnings"].as_array().unwrap().len()
    };
    assert_eq!((suggest("path=/b"), suggest("path=/a")), (1, 0));
}

#[test]
fn rules_that_may_be_mistyped_are_a_note() {
    let good = twenty(|number| access("198.51.100.9", number));
    let notes = |rule: &str| {
        let object = json(&on_pipe(
            tool("--json --quiet", None).arg("--rule").arg(rule),
            &good,
        ));
        let notes = texts(&object, "notes");
        notes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for rule in [
        "10/60s when path!=/a",
        "10/60s when path=/a",
        "5MB/min cost size",
        "5/min",
        "5 per min",
        "5 in 1 min by client",
    ] {
        assert_eq!(notes(rule), Vec::<String>::new(), "{rule}");
    }
    assert_eq!(
        notes("10/60s when \"path!=/b and status=200\" as login"),
        ["rule \"login\" applies to every request: \"path!=/b and status=200\" always holds"]
    );
    for rule in ["5MB/min", "50 KiB per minute by client", "2.5Gbit/min"] {
        assert_eq!(
            notes(rule),
            [format!(
                "rule {rule:?} has a limit in bytes and no cost, so a request counts as one byte (cost FIELD names its size)"
            )]
        );
    }
    let file = file(&good);
    let path = file.path().to_str().unwrap();
    let suggested = json(&run(["suggest", "--json", "--when", "path!=/b", path]));
    assert!(
        texts(&suggested, "notes")
            .iter()
            .any(|note| note.ends_with("\"path!=/b\" always holds")),
        "{suggested}"
    );
}

#[test]
fn an_outlying_time_is_a_warning_and_can_be_excluded() {
    let good = twenty(|number| access("198.51.100.9", number));
    let stray = |date: &str| good.clone() + &access("198.51.100.8", 1).replace("17/May/2015", date);
    // A limiter can represent a span of 500 days.
    let object = json(&replay("", stray("01/Jan/2014")));
    assert_eq!(
        texts(&object, "warnings"),
        [
            "1 request, as that at 2014-01-01T10:05:01Z (line 21), is 500 days before all others (--from \
          2015-05-17T10:05:00Z leaves it out)"
        ]
    );
    let cut = assert_half_denied("--from 2015-05-17T10:05:00Z", &stray("01/Jan/2014"));
    assert_eq!(texts(&cut, "warnings").len(), 0);
    assert_eq!(
        texts(&cut, "notes")[0],
        "1 requests are outside of --from and --to, and left out"
    );
    let object = json(&replay("", stray("01/Jan/2019")));
    assert!(
        texts(&object, "warnings")[0].contains("after all others (--to 2019-01-01T10:05:01Z leaves it out)"),
        "{object}"
    );
    assert_half_denied("--to 2019-01-01", &stray("01/Jan/2019"));
    // A limiter cannot represent a span of 45 years.
    assert_error(
        "",
        &stray("01/Jan/1970"),
        "input spans 1970-01-01T10:05:01Z (line 21) to 2015-05-17T10:05:19Z (line 20)",
    );
    assert_half_denied("--from 2015-05-17", &stray("01/Jan/1970"));
    assert_error(
        "--from 2016-01-01",
        &good,
        "20 requests are outside of --from and --to",
    );
}

#[test]
fn a_page_never_overwrites_an_input() {
    let log = line("198.51.100.9", START);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.log");
    std::fs::write(&path, &log).unwrap();
    let linked = directory.path().join("link.html");
    std::fs::hard_link(&path, &linked).unwrap();
    let rules = directory.path().join("rules.toml");
    std::fs::write(&rules, "[[rules]]\nname = 'r'\nquota = '2/h'\nkey = 'client'\n").unwrap();
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let dotted = format!("{}/./access.log", text(directory.path()));
    for html in [text(&path), text(&linked), dotted, text(&rules)] {
        let output = run(["replay", "--rules", &text(&rules), "--html", &html, &text(&path)]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            stderr(&output).contains("invalid --html: "),
            "{}",
            stderr(&output)
        );
    }
    let mut redirected = tool("--rule 2/h", None);
    redirected
        .args(["--html", &text(&path)])
        .stdin(std::fs::File::open(&path).unwrap());
    assert_eq!(redirected.output().unwrap().status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), log);
    // A page that is no input is written.
    let other = directory.path().join("page.html");
    let output = run([
        "replay",
        "--rules",
        &text(&rules),
        "--html",
        &text(&other),
        &text(&path),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(on_file("--rule 2/h", &log).status.success() && other.exists());
}

/// A counter denies some requests that a log admits, because its oldest cell counts until all of it has left the window.
#[test]
fn denials_of_whole_cells_are_explained() {
    let late = (5..10).map(|number| access("198.51.100.9", number).replace("10:05:", "10:06:") + "\n");
    let log = twenty(|number| {
        if number < 10 {
            access("198.51.100.9", 0)
        } else {
            String::new()
        }
    }) + &late.collect::<String>();
    let notes = |args: &str| {
        let object = json(&replay(&format!("--compare {args}"), &log));
        texts(&object, "notes")
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        notes("--cells 5"),
        [
            "rule \"10/60s\" denies 5 requests more than a log, because each of the 5 cells counts in full until all of it has left the \
          window; with 13 cells it would deny 0"
        ]
    );
    assert_eq!(notes("--algorithm log"), Vec::<String>::new());
}
