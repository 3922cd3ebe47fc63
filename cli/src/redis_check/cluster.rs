//! The state and the nodes of a cluster.

use super::facts::fields;
use super::finding::{Finding, Level};

/// All slots of a cluster.
const SLOTS: &str = "16384";

/// A node, as CLUSTER NODES describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) myself: bool,
    id: String,
    /// The id of the primary, for a replica.
    primary: Option<String>,
    failed: bool,
}

impl Node {
    /// Whether the node serves slots.
    pub(super) fn is_primary(&self) -> bool {
        self.primary.is_none() && !self.failed
    }
}

/// The lines of CLUSTER NODES: `id host:port@bus[,name] flags primary ...`.
pub(super) fn nodes(text: &str) -> Vec<Node> {
    let node = |line: &str| {
        let mut words = line.split(' ');
        let (id, place, flags, primary) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let flags: Vec<&str> = flags.split(',').collect();
        let (place, _) = place.split_once('@').unwrap_or((place, ""));
        let (host, port) = place.rsplit_once(':')?;
        Some(Node {
            host: host.to_owned(),
            port: port.parse().ok()?,
            myself: flags.contains(&"myself"),
            id: id.to_owned(),
            primary: (primary != "-").then(|| primary.to_owned()),
            failed: ["fail", "noaddr", "handshake"]
                .iter()
                .any(|flag| flags.contains(flag)),
        })
    };
    text.lines().filter_map(node).collect()
}

/// Judges the answer of CLUSTER INFO, the nodes, and the primaries that this machine cannot reach.
pub(super) fn judge(info: &str, nodes: &[Node], unreachable: &[String]) -> Finding {
    let info = fields(info);
    let value = |name: &str| info.get(name).map_or("?", String::as_str);
    let primaries: Vec<&Node> = nodes.iter().filter(|node| node.is_primary()).collect();
    let found = format!(
        "cluster_state {}, {} of {SLOTS} slots served, {} primaries, {} nodes",
        value("cluster_state"),
        value("cluster_slots_ok"),
        primaries.len(),
        value("cluster_known_nodes"),
    );
    let finding = |level, found| Finding::new("cluster", level, found);
    if value("cluster_state") != "ok" || value("cluster_slots_ok") != SLOTS {
        return finding(Level::Problem, found)
            .means("Calls for keys of the other slots are errors, and OnError decides.")
            .advise("Restore the nodes or move their slots: redis-cli --cluster check, --cluster fix.");
    }
    if !unreachable.is_empty() {
        return finding(
            Level::Problem,
            format!("{found}; unreachable: {}", unreachable.join(", ")),
        )
        .means("Calls for keys of their slots are errors, and OnError decides.")
        .advise("Allow connections to these addresses, or set cluster-announce-ip and -port.");
    }
    let has_replica = |primary: &Node| {
        nodes
            .iter()
            .any(|node| node.primary.as_ref() == Some(&primary.id) && !node.failed)
    };
    let single = primaries.iter().filter(|primary| !has_replica(primary)).count();
    if single > 0 {
        return finding(
            Level::Note,
            format!("{found}; primaries without a replica: {single}"),
        )
        .means("While such a primary is down, calls for keys of its slots are errors, and OnError decides.")
        .advise("Add a replica for each primary if this is too much.");
    }
    finding(Level::Ok, found).means("All slots are served, and each primary has a replica.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str = "\
        a 10.0.0.1:6379@16379,name myself,master - 0 0 1 connected 0-8191\n\
        b 10.0.0.2:6379@16379 master - 0 0 2 connected 8192-16383\n\
        c ::1:6380@16380 slave a 0 0 1 connected\n\
        d :0@0 master,noaddr - 0 0 3 disconnected\n";

    #[test]
    fn nodes_are_parsed() {
        let nodes = nodes(NODES);
        let parsed: Vec<_> = nodes
            .iter()
            .map(|node| (&*node.host, node.port, node.myself, node.is_primary()))
            .collect();
        let expected = [
            ("10.0.0.1", 6379, true, true),
            ("10.0.0.2", 6379, false, true),
            ("::1", 6380, false, false),
            ("", 0, false, false),
        ];
        assert_eq!(parsed, expected);
    }

    #[test]
    fn states_are_judged() {
        let nodes = nodes(NODES);
        let info = |state: &str, slots: u32| {
            format!("cluster_state:{state}\r\ncluster_slots_ok:{slots}\r\ncluster_known_nodes:4\r\n")
        };
        let level = |state, slots, away: &[String]| judge(&info(state, slots), &nodes, away).level;
        assert_eq!(level("ok", 16384, &["10.0.0.2:6379".to_owned()]), Level::Problem);
        assert_eq!(level("fail", 16384, &[]), Level::Problem);
        assert_eq!(level("ok", 16383, &[]), Level::Problem);
        let finding = judge(&info("ok", 16384), &nodes, &[]);
        assert_eq!(finding.level, Level::Note);
        assert!(finding.found.ends_with("without a replica: 1"), "{finding:?}");
        let without_b: Vec<Node> = nodes.iter().filter(|node| node.id != "b").cloned().collect();
        assert_eq!(judge(&info("ok", 16384), &without_b, &[]).level, Level::Ok);
    }
}
