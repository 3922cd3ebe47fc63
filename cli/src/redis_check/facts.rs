//! The state and the settings of a server, and the nodes of its cluster.

use alloc::collections::BTreeMap;

use redis::Value;

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
    pub(super) id: String,
    /// The id of the primary, for a replica.
    pub(super) primary: Option<String>,
    pub(super) failed: bool,
}

impl Node {
    /// Whether the node serves slots.
    pub(super) fn is_primary(&self) -> bool {
        self.primary.is_none() && !self.failed
    }
}

impl Facts {
    pub(super) async fn read(connection: &Connection) -> Result<Self, CallError> {
        // CONFIG GET * would return passwords too.
        let calls = [
            "INFO",
            "CLUSTER INFO",
            "CLUSTER NODES",
            "CONFIG GET appendfsync",
            "CONFIG GET save",
        ];
        let calls = calls.map(|call| call.split(' ').collect());
        let answers = connection.call_all(&calls).await?;
        let [info, cluster, nodes, settings @ ..] = answers.as_slice() else {
            return Ok(Self::default());
        };
        let lines = |answer: &Result<Value, String>| text(answer.as_ref().ok()?);
        let mut facts = Self::default();
        facts.add(&lines(info).unwrap_or_default());
        facts.add(&lines(cluster).unwrap_or_default());
        facts.nodes = parse_nodes(&lines(nodes).unwrap_or_default());
        for setting in settings.iter().flatten() {
            let pair = match setting {
                Value::Array(pair) => pair.first().zip(pair.get(1)),
                Value::Map(pairs) => pairs.first().map(|(name, value)| (name, value)),
                _ => None,
            };
            if let Some((Some(name), Some(value))) = pair.map(|(name, value)| (text(name), text(value))) {
                facts.set(&name, value);
            }
        }
        Ok(facts)
    }

    /// Adds lines of the form `name:value`.
    pub(super) fn add(&mut self, text: &str) {
        for (name, value) in text.lines().filter_map(|line| line.trim_end().split_once(':')) {
            self.set(name, value.to_owned());
        }
    }

    fn set(&mut self, name: &str, value: String) {
        self.values.insert(name.to_owned(), value);
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
        // Dragonfly's version begins with "df-v".
        let digits = |version: &'_ str| version.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
        let found = |(product, version)| {
            self.get(version)
                .map(|version| (product, &version[digits(version)..]))
        };
        names.into_iter().find_map(found)
    }
}

/// The lines of CLUSTER NODES: `id host:port@bus[,name] flags primary ...`.
pub(super) fn parse_nodes(text: &str) -> Vec<Node> {
    let node = |line: &str| {
        let mut words = line.split(' ');
        let (id, place, flags, primary) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let has = |flag| flags.split(',').any(|other| other == flag);
        let (host, port) = place.split('@').next()?.rsplit_once(':')?;
        Some(Node {
            host: host.to_owned(),
            port: port.parse().ok()?,
            myself: has("myself"),
            id: id.to_owned(),
            primary: (primary != "-").then(|| primary.to_owned()),
            failed: has("fail") || has("noaddr") || has("handshake"),
        })
    };
    text.lines().filter_map(node).collect()
}
