//! Rules in words, completions and the manual page.

use crate::tool::{rules, run, stderr};

/// The exit status and the output of `ringgate check` with a flag.
fn words(flag: Option<&str>, text: &str) -> (Option<i32>, String) {
    let file = rules(text);
    let path = file.path().to_str().unwrap();
    let output = run(["check"].into_iter().chain(flag).chain([path]));
    let message = String::from_utf8(output.stdout.clone()).unwrap() + &stderr(&output);
    (output.status.code(), message)
}

/// `check --shared` reports at once everything that no store serves, and says how a store serves the rest.
#[test]
fn a_check_for_a_store_names_every_rule() {
    let check = |rules: &str| words(Some("--shared"), rules);
    let rule = |name: &str, fields: &str| format!("[[rules]]\nname = '{name}'\n{fields}\n");
    let served = rule("a", "quota = '5/min'\nkey = 'client'")
        + &rule("b", "quota = '5/min'\nmode = 'local'\nalgorithm = 'even'")
        + &rule("c", "in_flight = 5\nkey = 'user'\non_error = 'deny'");
    let (status, text) = check(&served);
    assert_eq!(status, Some(0), "{text}");
    for line in [
        "  served by a store, in mode Strict, or without its answer by Share; in the program, the key client needs `shared_as`\n",
        "  in mode Local: each machine counts separately, and no store is asked\n",
        "  served by a store, in mode Strict, or without its answer by Deny; in the program, the key user needs `shared_as`\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let unserved = rule("a", "quota = '5/min'\ncells = 1001")
        + &rule("b", "quota = '5/min'")
        + &rule("c", "quota = '5/min'\nalgorithm = 'classic'")
        + &rule("d", "quota = '5/min'\nalgorithm = 'even'")
        + &rule("e", "quota = '200000/h'\nalgorithm = 'log'")
        + &rule("f", "quota = '5/100us'");
    let (status, text) = check(&unserved);
    assert_eq!(status, Some(2), "{text}");
    for part in [
        "rule \"a\": invalid cells: 1001",
        "rule \"c\": invalid algorithm: Classic",
        "rule \"d\": invalid algorithm: Even",
        "rule \"e\": invalid limit: 200000 permits",
        "rule \"f\": invalid window: 100µs",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("rule \"b\""), "{text}");
    // Without the option, the file is valid.
    assert_eq!(words(None, &unserved).0, Some(0));
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
        [rules.block]
        after = '3/min'
        for = '10min'

        [[rules]]
        name = 'bytes'
        quota = '1000/s'
        algorithm = 'gcra'
        burst = 50
        cost = 'size'
        shadow = true

        [[rules]]
        name = 'pages'
        quota = '60/min'
        key = 'client'
        when = 'path=/page'
        block = { after = '1/h', for = '1s', factor = 2, ceiling = '1h', forgive_after = '1d', extend = true }

        [[rules]]
        name = 'all'
        quota = '60/min'
    ";
    let (status, message) = words(None, rules);
    let expected = "\
4 rules, decided together: a request is admitted if all admit it, and otherwise charged to none

login
  5 permits in 60s for each client, by sliding-window in 60 cells: at most 5 in any window, 496 bytes of state a key
  20 permits in 3600s for each client, by sliding-window in 60 cells: at most 20 in any window, 496 bytes of state a key
  applies to requests with path=/login
  a request costs 1 permit
  keys that are always denied: 1
  violation 3 of a key within 60s blocks it for 600s

bytes
  1000 permits in 1s for all requests together, by gcra: at most 1049 in any window, 8 bytes of state a key
  applies to every request
  a request costs as many permits as size says
  at most 50 permits at once
  in the shadow: counts, and denies nothing

pages
  60 permits in 60s for each client, by sliding-window in one word of 16 cells in units of 4: at most 60 in any window, \
8 bytes of state a key
  applies to requests with path=/page
  a request costs 1 permit
  violation 1 of a key within 3600s blocks it for 1s; each further block is 2 times as long, up to 3600s, until the key is \
forgiven after 86400s; a retry begins the block anew

all
  60 permits in 60s for all requests together, by sliding-window in 60 cells: at most 60 in any window, 496 bytes of state a key
  applies to every request
  a request costs 1 permit
";
    assert_eq!((status, message.as_str()), (Some(0), expected));
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
