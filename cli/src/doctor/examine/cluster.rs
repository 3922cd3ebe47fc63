//! The nodes of a cluster.

use super::facts::lines;
use super::finding::{Finding, Level};

const CHECK: &str = "cluster";

/// All slots that there are.
const SLOTS: &str = "16384";

/// A node, as another one knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) myself: bool,
    id: String,
    /// The primary's, of a replica.
    of: Option<String>,
    failed: bool,
}

impl Node {
    /// Whether it decides about anything, as far as anybody knows.
    pub(super) fn is_primary(&self) -> bool {
        self.of.is_none() && !self.failed
    }
}

/// The answer to CLUSTER NODES: `id host:port@bus[,name] flags primary ...`, one a line.
pub(super) fn nodes(text: &str) -> Vec<Node> {
    let node = |line: &str| {
        let mut words = line.split(' ');
        let (id, place, flags, of) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let flags: Vec<&str> = flags.split(',').collect();
        let (place, _) = place.split_once('@').unwrap_or((place, ""));
        let (host, port) = place.rsplit_once(':')?;
        Some(Node {
            host: host.to_owned(),
            port: port.parse().ok()?,
            myself: flags.contains(&"myself"),
            id: id.to_owned(),
            of: (of != "-").then(|| of.to_owned()),
            failed: flags
                .iter()
                .any(|flag| matches!(*flag, "fail" | "noaddr" | "handshake")),
        })
    };
    text.lines().filter_map(node).collect()
}

/// `info`: the answer to CLUSTER INFO; `away`: primaries that cannot be reached from here.
pub(super) fn judge(info: &str, nodes: &[Node], away: &[String]) -> Finding {
    let info = lines(info);
    let value = |name: &str| info.get(name).map_or("?", String::as_str);
    let primaries: Vec<&Node> = nodes.iter().filter(|node| node.is_primary()).collect();
    let found = format!(
        "cluster_state {}, {} of {SLOTS} slots served, {} primaries, {} nodes",
        value("cluster_state"),
        value("cluster_slots_ok"),
        primaries.len(),
        value("cluster_known_nodes"),
    );
    if value("cluster_state") != "ok" || value("cluster_slots_ok") != SLOTS {
        return Finding::new(
            CHECK,
            Level::Problem,
            found,
            "Calls about keys of slots that nobody serves are errors, of all slots when cluster-require-full-coverage is yes; \
             OnError decides.",
        )
        .advise("Bring the nodes back, or give their slots to others: redis-cli --cluster check and --cluster fix.");
    }
    if !away.is_empty() {
        return Finding::new(
            CHECK,
            Level::Problem,
            format!("{found}; cannot be reached from here: {}", away.join(", ")),
            "Calls about keys of their slots are errors, and OnError decides.",
        )
        .advise("Open these addresses to this machine, or let the nodes announce others (cluster-announce-ip, -port).");
    }
    let alone = |primary: &&&Node| {
        let replica = |node: &Node| node.of.as_ref() == Some(&primary.id) && !node.failed;
        !nodes.iter().any(replica)
    };
    let alone = primaries.iter().filter(alone).count();
    let means = "Rules by one key are one script, and by several keys several: all are looked at, then taken, and given back if \
                 one refuses after all.";
    if alone > 0 {
        return Finding::new(
            CHECK,
            Level::Note,
            format!("{found}; primaries without a replica: {alone}"),
            format!(
                "{means} While such a primary is away, calls about its slots are errors, and OnError decides."
            ),
        )
        .advise("Nothing, if that may be; otherwise a replica for each.");
    }
    Finding::new(CHECK, Level::Ok, found, means)
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
    fn nodes_are_read() {
        let nodes = nodes(NODES);
        let said: Vec<_> = nodes
            .iter()
            .map(|node| (&*node.host, node.port, node.myself, node.is_primary()))
            .collect();
        let expected = [
            ("10.0.0.1", 6379, true, true),
            ("10.0.0.2", 6379, false, true),
            ("::1", 6380, false, false),
            ("", 0, false, false),
        ];
        assert_eq!(said, expected);
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
        assert!(
            finding.found.ends_with("primaries without a replica: 1"),
            "{finding:?}"
        );
        let without_b: Vec<Node> = nodes.iter().filter(|node| node.id != "b").cloned().collect();
        assert_eq!(judge(&info("ok", 16384), &without_b, &[]).level, Level::Ok);
    }
}
