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

/// An address that is left out would be one that the report calls checked.
#[test]
fn each_line_of_standard_input_is_an_address() {
    let output = run_with("check -", &("\n".repeat(1000) + "redis://127.0.0.1:1\n"));
    assert_eq!(output.status.code(), Some(2));
    let expected = "error: cannot check redis://127.0.0.1:1: ";
    assert!(stderr(&output).starts_with(expected), "{}", stderr(&output));
}

#[test]
fn standard_input_without_an_address_is_an_error() {
    let output = run_with("check -", "\n  \n");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no address"), "{}", stderr(&output));
}
