//! Shared rules that are replaced while they are in use.

use alloc::sync::{Arc, Weak};
use core::time::Duration;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use ringgate::rules::{RuleAlgorithm, RuleSetBuilder};
use ringgate::shared::{LiveSharedRules, MemoryStore, Mode, OnError, SharedRules};
use ringgate::{Key, Rule};

use crate::cut::PATIENCE;
use crate::{modes, runtime, user};

fn rules(limit: u64, mode: Mode, algorithm: RuleAlgorithm) -> RuleSetBuilder<str> {
    let quota = format!("{limit}/h").parse().expect("a quota");
    let rule = Rule::new("user", quota)
        .by(&user())
        .mode(mode)
        .algorithm(algorithm);
    RuleSetBuilder::new().rule(rule.on_error(OnError::Deny))
}

fn live(rules: RuleSetBuilder<str>) -> Arc<LiveSharedRules<str>> {
    let live = SharedRules::builder()
        .rules(rules)
        .build_live(Arc::new(MemoryStore::new()));
    Arc::new(live.expect("rules"))
}

/// The admissions of this number of requests.
async fn admitted(live: &LiveSharedRules<str>, requests: u64) -> u64 {
    let mut admitted = 0;
    for _ in 0..requests {
        admitted += u64::from(live.load().check("alice").await.is_ok());
    }
    admitted
}

/// Reloads add no permit: the limits before and after it, and the admissions of 30 requests before it and of 100 after it.
#[tokio::test]
async fn a_reload_continues_the_counts() {
    for algorithm in [RuleAlgorithm::Counter, RuleAlgorithm::Log, RuleAlgorithm::Gcra] {
        // A log of this node has a slot for each permit of its limit, so it begins anew with another limit. A bucket of this node
        // keeps the time in which its permits are paid.
        let modes = modes(10).into_iter();
        let modes = modes.filter(|&mode| mode != Mode::Local || algorithm == RuleAlgorithm::Counter);
        for mode in modes {
            for (before, after, first, second) in [
                (20, 20, 20, 0),
                (20, 50, 20, 30),
                (50, 40, 30, 10),
                (50, 10, 30, 0),
                (100, 100, 30, 70),
            ] {
                let live = live(rules(before, mode, algorithm));
                assert_eq!(
                    admitted(&live, 30).await,
                    first,
                    "{algorithm:?} {mode:?} {before}"
                );
                // The replaced rules report what they have admitted in the background.
                live.load().flush().await.expect("an answer");
                live.store(rules(after, mode, algorithm)).expect("rules");
                let more = admitted(&live, 100).await;
                assert_eq!(more, second, "{algorithm:?} {mode:?} {before} {after}");
                let (_, counts) = live.load().counts().next().expect("a rule");
                assert_eq!(counts.admitted, first + second, "{algorithm:?} {mode:?}");
            }
        }
    }
}

/// Requests while the rules are replaced again and again: together at most the limit in the modes that are exact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_under_load_keep_the_limit() {
    for mode in [Mode::Strict, Mode::Lease { permits: 10 }] {
        let live = live(rules(500, mode, RuleAlgorithm::Counter));
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let live = Arc::clone(&live);
                tokio::spawn(async move { admitted(&live, 100).await })
            })
            .collect();
        for _ in 0..20 {
            live.store(rules(500, mode, RuleAlgorithm::Counter))
                .expect("rules");
            tokio::task::yield_now().await;
        }
        let mut all = 0;
        for task in tasks {
            all += task.await.expect("no panic");
        }
        assert!((1..=500).contains(&all), "{mode:?}: {all}");
    }
}

/// Rules that cannot be built change nothing, whatever thread gives them.
#[tokio::test]
async fn invalid_rules_change_nothing() {
    let live = live(rules(3, Mode::Strict, RuleAlgorithm::Counter));
    let wrong = || {
        let rules = rules(100, Mode::Strict, RuleAlgorithm::Even);
        rules.rule(Rule::new("other", "5/h".parse().expect("a quota")).cells(1001))
    };
    let error = live.store(wrong()).expect_err("neither is served");
    assert_eq!((error.error.field, error.others.len()), ("algorithm", 1));
    let other = Arc::clone(&live);
    let lease = rules(4, Mode::Lease { permits: 2 }, RuleAlgorithm::Counter);
    let stored = std::thread::spawn(move || {
        assert!(other.store(wrong()).is_err());
        other.store(lease)
    });
    stored.join().expect("no panic").expect("a runtime is known");
    assert_eq!(admitted(&live, 10).await, 4);
}

/// A slot that was taken before a reload counts until its admission is dropped.
#[tokio::test]
async fn a_slot_is_held_over_a_reload() {
    let slots = |limit| {
        let rule = Rule::in_flight("slots", limit).by(&user());
        RuleSetBuilder::new().rule(rule.on_error(OnError::Deny))
    };
    let live = live(slots(1));
    let held = live.load().check("alice").await.expect("a slot");
    live.store(slots(1)).expect("rules");
    assert!(live.load().check("alice").await.is_err());
    live.store(slots(2)).expect("rules");
    let second = live.load().check("alice").await.expect("a slot");
    assert!(live.load().check("alice").await.is_err());
    drop((held, second));
    let rules = live.load();
    let is_free = async {
        while rules.check("alice").await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), is_free)
        .await
        .expect("the slots are released");
}

#[cfg(feature = "watch")]
#[tokio::test]
async fn a_watched_file_replaces_the_rules() {
    use std::fs;

    use ringgate::rules::{Extractors, FileFormat};

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rules.toml");
    let text =
        |fields: &str| format!("[[rules]]\nname = 'user'\nkey = 'user'\non_error = 'deny'\n{fields}\n");
    let extractors = || Extractors::new().key(user()).expect("a key");
    let read = |fields: &str| RuleSetBuilder::from_text(&text(fields), FileFormat::Toml, &extractors());
    let live = live(read("quota = '2/h'").expect("rules"));
    assert_eq!(admitted(&live, 5).await, 2);
    let (send, mut reports) = tokio::sync::mpsc::unbounded_channel();
    fs::write(&path, text("quota = '3/h'")).expect("written");
    let watcher = live.watch(&path, extractors(), move |report| {
        let _ = send.send(report.map(drop).map_err(|error| error.to_string()));
    });
    let watcher = watcher.expect("a watcher");
    // The text of the file, a part of the report, and the admissions of five requests after it.
    for (fields, reported, more) in [
        (None, None, 1),
        (Some("quota = '4/h'"), None, 1),
        (Some("quota = '9/h'\nalgorithm = 'even'"), Some("algorithm"), 0),
        (Some("quota = '9/fortnight'"), Some("quota"), 0),
        (Some("quota = '6/h'\nmode = { lease = { permits = 2 } }"), None, 2),
        (Some("quota = '6/h'"), None, 0),
    ] {
        if let Some(fields) = fields {
            let new = folder.path().join("new");
            fs::write(&new, text(fields)).expect("written");
            fs::rename(&new, &path).expect("renamed");
        }
        let report = tokio::time::timeout(Duration::from_secs(20), reports.recv()).await;
        let report = report.expect("a report in time").expect("a watcher");
        match (&report, reported) {
            (Ok(()), None) => {}
            (Err(error), Some(part)) => assert!(error.contains(part), "{error}"),
            _ => panic!("{fields:?}: {report:?}"),
        }
        live.load().flush().await.expect("an answer");
        assert_eq!(admitted(&live, 5).await, more, "{fields:?}");
        live.load().flush().await.expect("an answer");
    }
    drop(watcher);
}

/// Replaces the rules when it is dropped, as code of the user may.
struct ReplacesAtDrop(Weak<LiveSharedRules<str>>, Sender<()>);

impl Drop for ReplacesAtDrop {
    fn drop(&mut self) {
        if let Some(live) = self.0.upgrade() {
            let replaced = live.store(rules(3, Mode::Strict, RuleAlgorithm::Log));
            replaced.expect("rules");
            let _ = self.1.send(());
        }
    }
}

/// The replaced rules are dropped by the reload: there is no runtime, or it has ended.
#[test]
fn code_of_the_user_may_reload_when_rules_are_dropped() {
    for in_runtime in [false, true] {
        let (send, replaced) = channel();
        thread::spawn(move || {
            let first = || live(RuleSetBuilder::new());
            let live = match in_runtime {
                true => runtime().block_on(async { first() }),
                false => first(),
            };
            let drops = ReplacesAtDrop(Arc::downgrade(&live), send);
            let key = Key::text("own", move |user: &str| Some((user, &drops).0));
            let quota = "9/h".parse().expect("a quota");
            let own = RuleSetBuilder::new().rule(Rule::new("own", quota).by(&key));
            drop(key);
            live.store(own).expect("rules");
            live.store(rules(2, Mode::Strict, RuleAlgorithm::Log))
                .expect("rules");
        });
        let replaced = replaced.recv_timeout(PATIENCE);
        assert!(replaced.is_ok(), "in a runtime: {in_runtime}");
    }
}
