//! Users, passwords and rights.

use crate::server::Server;
use crate::servers::{names, order};
use crate::tool::{Said, run, stderr, stdout};

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
    let said = Said::to(&url);
    assert_eq!(said.level("rights"), "ok");
    assert_eq!(said.level("scripts"), "ok");
    assert_eq!((said.level("server"), said.level("eviction")), ("ok", "note"));
    // Without +info, the checks that need INFO are left out.
    let said = Said::to(&user(&server, &format!("~ringgate:* {RIGHTS} -info")));
    assert_eq!(said.level("server"), "note");
    assert_eq!(
        (
            said.of("eviction"),
            said.of("persistence"),
            said.of("replication")
        ),
        (None, None, None)
    );
    assert_eq!(
        said.all["server"],
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
        let said = Said::to(&url);
        let (level, found) = said.found("rights");
        let bearable = ["+del", "+ping", "+info", "+role"].contains(&right);
        assert_eq!(
            level,
            if bearable { "warning" } else { "problem" },
            "{right}: {found}"
        );
        assert!(found.contains(&name.to_uppercase()), "{right}: {found}");
        let advice = said.advice("rights");
        assert_eq!(advice, format!("ACL SETUSER {name} {right}"));
        order(&server, advice);
        assert_eq!(Said::to(&url).level("rights"), "ok", "{right}");
    };
    for some in rights.chunks(6) {
        std::thread::scope(|scope| {
            for right in some {
                scope.spawn(|| missed(right));
            }
        });
    }
    // Keys that could not be removed without DEL expire.
    for name in names(&server) {
        let left: i64 = redis::cmd("PTTL")
            .arg(&name)
            .query(&mut server.client())
            .expect("a time");
        assert!((1..=12_000).contains(&left) || left == -2, "{name}: {left}");
    }
}

#[test]
fn a_user_without_access_to_the_keys() {
    let Some(server) = Server::start() else { return };
    let url = user(&server, &format!("~shop:* {RIGHTS}"));
    let said = Said::to(&url);
    assert_eq!(said.level("rights"), "problem");
    assert_eq!(said.found("scripts"), ("note", "not tried: rights are missing"));
    let advice = said.advice("rights").to_owned();
    assert_eq!(advice, "ACL SETUSER limiter ~ringgate:*");
    assert_eq!(Said::to(&format!("--prefix shop {url}")).level("rights"), "ok");
    order(&server, &advice);
    assert_eq!(Said::to(&url).level("scripts"), "ok");
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
    ]) else {
        return;
    };
    let said = Said::to(&server.url());
    assert_eq!(
        said.found("rights"),
        ("problem", "the server does not have HINCRBY")
    );
    assert_eq!(said.level("scripts"), "note");
    // Settings are unknown without CONFIG.
    let (_, found) = said.found("persistence");
    assert_eq!(found, "appendonly no, snapshots unknown");
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
        let said = Said::to(&url);
        assert_eq!(said.found("login"), ("problem", found));
        assert_eq!((said.findings().len(), said.status), (1, Some(1)));
        assert!(!said.all.to_string().contains("guessed"), "{said:?}");
    }
    let socket = server.socket_url().replace("unix:", "redis+unix:");
    for url in [
        format!("redis://:se%2Fcret@{at}"),
        format!("{socket}?pass=se%2Fcret"),
    ] {
        let said = Said::to(&url);
        assert_eq!(said.level("scripts"), "ok", "{said:?}");
        assert!(!said.all.to_string().contains("cret"), "{said:?}");
        let output = run(&format!("check {url}"));
        assert!(!(stdout(&output) + &stderr(&output)).contains("cret"));
    }
}
