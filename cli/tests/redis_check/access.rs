//! Users, passwords and rights.

use crate::server::Server;
use crate::servers::{names, order};
use crate::tool::{Report, run, stderr, stdout};

/// The rights that the documentation of `ringgate::redis` requires.
const RIGHTS: &str = "+evalsha +eval +time +pexpireat +del +ping +hgetall +hget +hincrby +hset +hdel +zadd +zcount +zrange \
                      +zrangebyscore +zrevrangebyscore +zremrangebyscore +zrem +get +set +info +role";

/// Creates a user with only these rights.
fn user(server: &Server, rights: &str) -> String {
    order(server, &format!("ACL SETUSER limiter reset on >secret {rights}"));
    format!("redis://limiter:secret@127.0.0.1:{}", server.port())
}

#[test]
fn all_rights() {
    let Some(server) = Server::start() else { return };
    let url = user(&server, &format!("~ringgate:* {RIGHTS}"));
    let report = Report::to(&url);
    assert_eq!(report.level("rights"), "ok");
    assert_eq!(report.level("scripts"), "ok");
    assert_eq!((report.level("server"), report.level("eviction")), ("ok", "ok"));
    // Without +info, the checks that need INFO are left out.
    let report = Report::to(&user(&server, &format!("~ringgate:* {RIGHTS} -info")));
    assert_eq!(report.level("server"), "warning");
    assert_eq!(
        (
            report.of("eviction"),
            report.of("persistence"),
            report.of("replication")
        ),
        (None, None, None)
    );
    assert_eq!(
        report.all["server"],
        format!("redis://limiter@127.0.0.1:{}", server.port())
    );
    assert_eq!(names(&server).len(), 0);
}

/// Each missing right is found, and the advice grants it.
#[test]
fn each_missing_right_is_found() {
    let Some(server) = Server::start() else { return };
    let rights: Vec<&str> = RIGHTS.split_whitespace().collect();
    let missed = |right: &str| {
        let others: Vec<&str> = rights.iter().copied().filter(|other| *other != right).collect();
        let name = &right[1..];
        order(
            &server,
            &format!("ACL SETUSER {name} on >secret ~ringgate:* {}", others.join(" ")),
        );
        let url = format!("redis://{name}:secret@127.0.0.1:{}", server.port());
        let report = Report::to(&url);
        let (level, found) = report.found("rights");
        assert_eq!(level, "problem", "{right}: {found}");
        assert!(found.contains(&name.to_uppercase()), "{right}: {found}");
        let advice = report.advice("rights");
        assert_eq!(advice, format!("ACL SETUSER {name} {right}"));
        order(&server, advice);
        assert_eq!(Report::to(&url).level("rights"), "ok", "{right}");
    };
    for some in rights.chunks(6) {
        std::thread::scope(|scope| {
            for right in some {
                scope.spawn(|| missed(right));
            }
        });
    }
    // Without a right, no script runs. The keys of the other checks are removed.
    assert_eq!(names(&server).len(), 0);
}

#[test]
fn a_user_without_access_to_the_keys() {
    let Some(server) = Server::start() else { return };
    let url = user(&server, &format!("~shop:* {RIGHTS}"));
    let report = Report::to(&url);
    assert_eq!(report.level("rights"), "problem");
    assert_eq!(
        report.found("scripts"),
        ("warning", "not tried: rights are missing")
    );
    let advice = report.advice("rights").to_owned();
    assert_eq!(advice, "ACL SETUSER limiter ~ringgate:*");
    assert_eq!(Report::to(&format!("--prefix shop {url}")).level("rights"), "ok");
    order(&server, &advice);
    assert_eq!(Report::to(&url).level("scripts"), "ok");
}

#[test]
fn a_server_that_renames_commands() {
    let Some(server) = Server::with(&[
        "--rename-command",
        "HINCRBY",
        "",
        "--rename-command",
        "CONFIG",
        "",
        "--appendonly",
        "yes",
    ]) else {
        return;
    };
    let report = Report::to(&server.url());
    assert_eq!(
        report.found("rights"),
        ("problem", "the server does not have HINCRBY")
    );
    assert_eq!(report.level("scripts"), "warning");
    // The setting is unknown without CONFIG.
    assert_eq!(report.found("persistence"), ("warning", "appendfsync unknown"));
}

#[test]
fn passwords() {
    let Some(server) = Server::guarded("se/cret") else {
        return;
    };
    let at = format!("127.0.0.1:{}", server.port());
    for (url, found) in [
        (
            format!("redis://:guessed@{at}"),
            "wrong password for the user \"default\"",
        ),
        (
            format!("redis://other:guessed@{at}"),
            "wrong password for the user \"other\"",
        ),
        (
            format!("redis://{at}"),
            "a password is required, and the address has none",
        ),
    ] {
        let report = Report::to(&url);
        assert_eq!(report.found("login"), ("problem", found));
        assert_eq!((report.findings().len(), report.status), (1, Some(1)));
        assert!(!report.all.to_string().contains("guessed"), "{report:?}");
        let says_off = report.advice("login").contains("unknown or off");
        assert_eq!(says_off, found.starts_with("wrong"), "{report:?}");
    }
    let socket = server.socket_url().replace("unix:", "redis+unix:");
    for url in [
        format!("redis://:se%2Fcret@{at}"),
        format!("{socket}?pass=se%2Fcret"),
    ] {
        let report = Report::to(&url);
        assert_eq!(report.level("scripts"), "ok", "{report:?}");
        assert!(!report.all.to_string().contains("cret"), "{report:?}");
        let output = run(&format!("check {url}"));
        assert!(!(stdout(&output) + &stderr(&output)).contains("cret"));
    }
}
