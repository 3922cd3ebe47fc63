//! Servers that do not answer, and a check that is killed.

use core::time::Duration;
use std::io::{Read, Write};
use std::process::{Child, Output};
use std::time::Instant;

use crate::server::{PATIENCE, Server};
use crate::servers::names;
use crate::tool::{run, stderr, stdout, tool};

/// The run reports that no server answers.
fn is_unreachable(output: &Output) {
    assert_eq!(output.status.code(), Some(2), "{}", stdout(output));
    assert_eq!(stdout(output), "");
    let error = stderr(output);
    assert!(
        error.starts_with("error: cannot check redis://") && error.contains(": "),
        "{error}"
    );
    assert!(!error.contains("secret"), "{error}");
}

/// The output of a run that ends in time.
fn in_time(child: Child, began: Instant) -> Output {
    let output = child.wait_with_output().expect("the tool ends");
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    output
}

#[test]
fn no_server() {
    for args in ["", "--json"] {
        let output = run(&format!("check {args} redis://user:secret@127.0.0.1:1"));
        is_unreachable(&output);
        assert!(stderr(&output).contains("refused"), "{}", stderr(&output));
    }
}

/// A program that is not a Redis server answers.
#[test]
fn another_program() {
    for (answer, words) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "not of the Redis protocol"),
        ("", ""),
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("redis://{}", listener.local_addr().expect("an address"));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut other, _) = listener.accept().expect("a connection");
                // After a question, it answers or closes the connection.
                other.read_exact(&mut [0; 8]).expect("a question");
                other.write_all(answer.as_bytes()).expect("an answer");
            });
            let output = run(&format!("check --timeout 20000 {url}"));
            is_unreachable(&output);
            let error = stderr(&output);
            assert!(error.contains(words) && error.lines().count() == 1, "{error}");
        });
    }
}

#[test]
fn a_server_that_is_stopped() {
    let Some(server) = Server::start() else { return };
    server.signal("-STOP");
    let began = Instant::now();
    let child = tool(&format!("check --timeout 300 {}", server.url()))
        .spawn()
        .expect("the tool runs");
    is_unreachable(&in_time(child, began));
    server.signal("-CONT");
}

/// Waits for a condition without a pause.
fn at_once(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_server_that_is_stopped_in_the_middle() {
    let Some(server) = Server::start() else { return };
    let mut client = server.client();
    let all = Instant::now();
    loop {
        assert!(all.elapsed() < 5 * PATIENCE, "it was never stopped in the middle");
        let () = redis::cmd("CONFIG")
            .arg("RESETSTAT")
            .query(&mut client)
            .expect("it is done");
        let began = Instant::now();
        let child = tool(&format!("check --json --timeout 1000 {}", server.url()))
            .spawn()
            .expect("the tool runs");
        // TIME is among the first commands of a check.
        at_once("the clock is looked at", || {
            let stats: String = redis::cmd("INFO")
                .arg("commandstats")
                .query(&mut client)
                .expect("info");
            stats.contains("cmdstat_time:calls=")
        });
        server.signal("-STOP");
        let output = in_time(child, began);
        server.signal("-CONT");
        // The check may have ended before the signal. Then the test repeats it.
        if output.stdout.is_empty() {
            return is_unreachable(&output);
        }
    }
}

/// The keys of a check that was killed expire.
#[test]
fn a_check_that_is_killed() {
    let Some(server) = Server::start() else { return };
    let mut client = server.client();
    let mut seen = Vec::new();
    let began = Instant::now();
    while seen.is_empty() {
        assert!(
            began.elapsed() < PATIENCE,
            "it was never in the middle of a decision"
        );
        let mut child = tool(&format!("check {}", server.url()))
            .spawn()
            .expect("the tool runs");
        at_once("there is a name", || {
            let names: u64 = redis::cmd("DBSIZE").query(&mut client).expect("a number");
            names > 0
        });
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
        seen = names(&server);
    }
    for name in seen {
        assert!(
            name.starts_with("ringgate:{") && name.contains("}:doctor:0:"),
            "{name}"
        );
        let left: i64 = redis::cmd("PTTL").arg(&name).query(&mut client).expect("a time");
        assert!((1..=12_000).contains(&left) || left == -2, "{name}: {left}");
    }
    let began = Instant::now();
    while !names(&server).is_empty() {
        assert!(began.elapsed() < PATIENCE, "{:?}", names(&server));
        std::thread::sleep(Duration::from_millis(50));
    }
}
