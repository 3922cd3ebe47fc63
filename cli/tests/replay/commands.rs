//! Rules in words, completions and the manual page.

use std::fs;

use crate::tool::{run, stderr};

fn words(rules: &str) -> (Option<i32>, String) {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    fs::write(file.path(), rules).unwrap();
    let output = run(["check", file.path().to_str().unwrap()]);
    let message = String::from_utf8(output.stdout.clone()).unwrap() + &stderr(&output);
    (output.status.code(), message)
}

#[test]
fn rules_are_explained_in_words() {
    let rules = "
        [[rules]]
        name = 'login'
        quotas = ['5/min', '20/h']
        key = 'client'
        when = 'path=/login'
        deny = ['192.0.2.1']

        [[rules]]
        name = 'bytes'
        quota = '1000/s'
        algorithm = 'gcra'
        burst = 50
        cost = 'size'
        shadow = true
    ";
    let (status, message) = words(rules);
    let expected = "\
2 rules, decided together: a request is admitted if all admit it, and otherwise charged to none

login
  5 permits in 60s for each client, by counter with 60 cells: at most 5 in any window, 496 bytes of state a key
  20 permits in 3600s for each client, by counter with 60 cells: at most 20 in any window, 496 bytes of state a key
  applies to requests with path=/login
  a request costs 1 permit
  keys that are always denied: 1

bytes
  1000 permits in 1s for all requests together, by gcra: at most 1049 in any window, 8 bytes of state a key
  applies to every request
  a request costs as many permits as size says
  at most 50 permits at once
  in the shadow: counts, and denies nothing
";
    assert_eq!((status, message.as_str()), (Some(0), expected));
    for (rules, message) in [
        (
            "[[rules]]\nname = 'r'\nquota = '2/x'\n",
            ".toml:3:9: rule \"r\": ",
        ),
        ("rules = []", "no rules in "),
        ("[[rules]]\nname = 'r'\nquota = '2/h'\nburst = 3\n", "burst"),
        ("[[rules]]\nname = 'r'\nquota = '2/h'\nqouta = '3/h'\n", "qouta"),
    ] {
        let (status, text) = words(rules);
        assert_eq!(status, Some(2), "{rules}");
        assert!(text.starts_with("error: ") && text.contains(message), "{text}");
    }
}

#[test]
fn completions_and_a_manual_page_are_printed() {
    let text = |args: &[&str]| {
        let output = run(args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = text(&["completions", shell]);
        assert!(
            script.contains("log-format") && script.contains("suggest"),
            "{shell}"
        );
    }
    let page = text(&["man"]);
    for message in [
        ".TH",
        "ringgate",
        "\\-\\-log\\-format",
        "Failed password",
        "suggest",
    ] {
        assert!(page.contains(message), "{message}");
    }
    assert_eq!(run(["completions", "tcl"]).status.code(), Some(2));
}
