//! The state and the settings of a server, and the nodes of its cluster.

use alloc::collections::BTreeMap;

use super::connection::{CallError, Connection, text};

/// The answers of INFO, CONFIG GET and CLUSTER, as far as the user may run them.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    values: BTreeMap<String, String>,
    pub(super) nodes: Vec<Node>,
}

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) myself: bool,
    /// Whether the node is a primary that has not failed.
    pub(super) is_primary: bool,
}

impl Facts {
    pub(super) async fn read(connection: &Connection) -> Result<Self, CallError> {
        let calls = ["INFO", "CLUSTER INFO", "CLUSTER NODES", "CONFIG GET appendfsync"];
        let calls = calls.map(|call| call.split(' ').collect());
        let answers = connection.call_all(&calls).await?;
        // A forbidden call leaves its facts unknown.
        let lines = |number: usize| answers[number].as_ref().ok().and_then(text).unwrap_or_default();
        let mut facts = Self::default();
        facts.add(&lines(0));
        facts.add(&lines(1));
        facts.nodes = parse_nodes(&lines(2));
        if let Ok(settings) = &answers[3] {
            let settings: Result<BTreeMap<String, String>, _> = redis::from_redis_value_ref(settings);
            facts.values.extend(settings.unwrap_or_default());
        }
        Ok(facts)
    }

    /// Adds lines of the form `name:value`.
    pub(super) fn add(&mut self, text: &str) {
        for (name, value) in text.lines().filter_map(|line| line.trim_end().split_once(':')) {
            self.values.insert(name.to_owned(), value.to_owned());
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub(super) fn number(&self, name: &str) -> u64 {
        self.get(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    pub(super) fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == Some(value)
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.is("cluster_enabled", "1")
    }

    pub(super) fn is_sentinel(&self) -> bool {
        self.is("redis_mode", "sentinel") || self.is("server_mode", "sentinel")
    }

    /// The product and its version.
    pub(super) fn product(&self) -> Option<(&'static str, &str)> {
        // Products that are compatible with Redis report a version of Redis too.
        let names = [
            ("Valkey", "valkey_version"),
            ("Dragonfly", "dragonfly_version"),
            ("Redis", "redis_version"),
        ];
        let found = |(product, version)| self.get(version).map(|version| (product, version));
        names.into_iter().find_map(found)
    }
}

/// The lines of CLUSTER NODES: `id host:port@bus[,name] flags ...`.
pub(super) fn parse_nodes(text: &str) -> Vec<Node> {
    let node = |line: &str| {
        let mut words = line.split(' ');
        let (place, flags) = (words.nth(1)?, words.next()?);
        let has = |flag| flags.split(',').any(|other| other == flag);
        let (host, port) = place.split('@').next()?.rsplit_once(':')?;
        Some(Node {
            host: host.to_owned(),
            port: port.parse().ok()?,
            myself: has("myself"),
            is_primary: has("master") && !["fail", "noaddr", "handshake"].into_iter().any(has),
        })
    };
    text.lines().filter_map(node).collect()
}
