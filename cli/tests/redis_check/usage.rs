//! Arguments and help, which need no server.

use crate::tool::run_with;
use crate::tool::{run, stderr, stdout};

/// Errors about arguments show no password.
#[test]
fn errors_show_no_password() {
    for args in [
        "redis://user:secret@127.0.0.1:1",
        "check --prefix",
        "check --jsno redis://user:secret@127.0.0.1:1",
        "check --timeout redis://:secret@127.0.0.1:1 redis://user:secret@127.0.0.1:1",
        "check --redis://user:secret@127.0.0.1:1",
        "check --unix:///a?pass=secret",
        "check rediss://user:secret@127.0.0.1:1",
        "check http://user:secret@127.0.0.1:1",
        "check --timeout 100 redis://user:secret@127.0.0.1:1",
        "check --timeout 100 redis+unix:///nowhere?user=u&pass=secret",
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert_eq!(stdout(&output), "", "{args}");
        assert!(
            stderr(&output).starts_with("error: "),
            "{args}: {}",
            stderr(&output)
        );
        assert!(!stderr(&output).contains("secret"), "{args}: {}", stderr(&output));
    }
}

#[test]
fn help_is_no_error() {
    for args in ["--help", "check --help"] {
        let output = run(args);
        assert_eq!(
            (output.status.code(), stderr(&output)),
            (Some(0), String::new()),
            "{args}"
        );
        assert!(stdout(&output).contains("check"), "{args}: {}", stdout(&output));
    }
    assert!(stdout(&run("check --help")).contains("Exit status:"));
}

/// Errors name the argument and the expected values.
#[test]
fn invalid_arguments_are_named() {
    for (args, words) in [
        ("check", &["<URL>"][..]),
        (
            "check --timeout 9 redis://127.0.0.1:1",
            &["--timeout", "9", "10..=60000"],
        ),
        (
            "check --prefix a{b} redis://127.0.0.1:1",
            &["prefix", "a{b}", "without braces"],
        ),
        (
            "check rediss://127.0.0.1:1/#insecure",
            &["url", "insecure", "a certificate that can be checked"],
        ),
        (
            "check 127.0.0.1:6379",
            &["error: invalid url: not a URL of Redis (expected redis://[user:password@]host:port"],
        ),
        (
            "check redis:///0",
            &["invalid url: Missing hostname (expected redis://"],
        ),
        (
            "check redis://host/x",
            &["invalid url: Invalid database number (expected redis://"],
        ),
    ] {
        let output = run(args);
        assert_eq!(
            (output.status.code(), stdout(&output)),
            (Some(2), String::new()),
            "{args}"
        );
        for word in words {
            assert!(
                stderr(&output).contains(word),
                "{args}: {word} in {}",
                stderr(&output)
            );
        }
    }
    let output = run_with("check -", "\n  \n");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no address"), "{}", stderr(&output));
}
