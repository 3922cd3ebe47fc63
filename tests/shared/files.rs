//! Fields of rules files about the store of the nodes, and about what a node does without it.

use alloc::sync::Arc;
use core::num::NonZeroU32;
use core::time::Duration;

use ringgate::rules::{Extractors, FileFormat, RuleSetBuilder};
use ringgate::shared::{CounterStore, SharedRules};
use tokio::time::advance;

use crate::slots::Connection;
use crate::{memory, user};

/// Two of four nodes, which read the same rule from a file.
fn nodes(store: Arc<dyn CounterStore>, fields: &str) -> [SharedRules<str>; 2] {
    let text = format!("[[rules]]\nname = 'it'\nkey = 'user'\n{fields}");
    let extractors = Extractors::new().key(user()).expect("a key");
    [(); 2].map(|()| {
        let rules = RuleSetBuilder::from_text(&text, FileFormat::Toml, &extractors).expect("rules");
        let builder = SharedRules::builder()
            .rules(rules)
            .nodes(NonZeroU32::new(4).expect("four"));
        builder.build(store.clone()).expect("rules")
    })
}

#[tokio::test(start_paused = true)]
async fn a_file_states_the_slots_of_all_nodes() {
    let [one, two] = nodes(memory(), "in_flight = 1\non_error = 'deny'");
    let _held = one.check("alice").await.expect("a slot");
    assert!(two.check("alice").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_file_states_the_blocks_of_all_nodes() {
    let [one, two] = nodes(
        memory(),
        "quota = '1/s'\nblock = { after = '1/min', for = '10min' }",
    );
    assert!(one.check("alice").await.is_ok() && two.check("alice").await.is_err());
    advance(Duration::from_secs(500)).await;
    assert!(one.check("alice").await.is_err());
}

/// The permits by which four nodes exceed the limit tell the modes apart.
#[tokio::test]
async fn a_file_sets_the_mode() {
    for (mode, overshoot) in [
        ("'strict'", 0),
        ("'local'", 24),
        // Each node admits b + L − 1.
        ("'local'\nalgorithm = 'gcra'\nburst = 3", 4 * 10 - 8),
        ("{ lease = { permits = 5 } }", 0),
        ("{ sync = { period = '100ms', pending = 5 } }", 15),
    ] {
        let [rules, _] = nodes(memory(), &format!("quota = '8/h'\nmode = {mode}"));
        let found = rules.max_overshoot(4).next();
        assert_eq!(found, Some(("it", Some(overshoot))), "{mode}");
    }
}

#[tokio::test]
async fn a_file_sets_on_error() {
    for (word, expected) in [("local", 8), ("share", 2), ("deny", 0), ("admit", 20)] {
        let store = Connection::new(memory());
        store.cut(true);
        let fields = format!("quota = '8/h'\nalgorithm = 'log'\non_error = '{word}'");
        let [rules, _] = nodes(store, &fields);
        let mut admitted = 0;
        for _ in 0..20 {
            admitted += u32::from(rules.check("alice").await.is_ok());
        }
        assert_eq!(admitted, expected, "{word}");
    }
}
