//! Who else has the counts, and who decides about them.

use super::facts::Facts;
use super::finding::{Finding, Level};

const CHECK: &str = "replication";

/// `None`: nothing is known.
pub(super) fn judge(facts: &Facts) -> Option<Finding> {
    match facts.info("role")? {
        "slave" => Some(replica(facts)),
        _ => Some(primary(facts)),
    }
}

fn replica(facts: &Facts) -> Finding {
    let place = |name| facts.info(name).unwrap_or("?");
    let of = format!("{}:{}", place("master_host"), place("master_port"));
    let read_only = match facts
        .info("slave_read_only")
        .or(facts.config("replica-read-only"))
    {
        Some(setting) => setting != "0" && setting != "no",
        None => true,
    };
    let link = match facts.info("master_link_status") {
        Some("down") => ", and cut off from it",
        _ => "",
    };
    let advice =
        format!("Give the address of the primary, {of}; where failovers happen, one that follows it.");
    if read_only {
        return Finding::new(
            CHECK,
            Level::Problem,
            format!("a read-only replica of {of}{link}"),
            "Strict: a request that it would admit is an error, and OnError decides; one that it refuses by what it has \
             copied is refused. Lease, sync: no hold or budget is granted here, and what a node still has it spends until \
             its term is over.",
        )
        .advise(advice);
    }
    Finding::new(
        CHECK,
        Level::Problem,
        format!("a replica of {of}{link} that takes writes"),
        "What is spent here is not known to the primary, nor to anybody who asks it, and forgotten when this one copies \
         anew: no window is held to L, in any mode that asks it.",
    )
    .advise(advice)
}

fn primary(facts: &Facts) -> Finding {
    let replicas = facts.number("connected_slaves").unwrap_or(0);
    if replicas == 0 {
        return Finding::new(
            CHECK,
            Level::Ok,
            "a primary without replicas",
            "No failover can forget anything. While it is away every call is an error, and OnError decides. Lease, sync: a \
             node first goes on with what it has, until its term is over.",
        );
    }
    let lag = (0..replicas).filter_map(|replica| {
        let line = facts.info(&format!("slave{replica}"))?;
        let lag = line.split(',').find_map(|field| field.strip_prefix("lag="))?;
        lag.parse::<i64>().ok()
    });
    let lag = lag.max().map_or(String::new(), |lag| {
        format!(", the slowest last heard of {lag} s ago")
    });
    Finding::new(
        CHECK,
        Level::Note,
        format!("a primary with replicas: {replicas}{lag}"),
        "Replication is asynchronous: a failover may forget the last moments, and the windows that these lie in may hold as \
         much more, L for each time. Lease: the same, and no hold is granted for a term and a window after it. Sync: its \
         overshoot comes once more, too.",
    )
    .advise("Nothing, if that may be. (min-replicas-to-write bounds it, at the price of errors while replicas are away.)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_told_apart() {
        let of = |info: &str| judge(&Facts::from_lines(info, "")).expect("known");
        let alone = of("role:master\nconnected_slaves:0");
        assert_eq!(alone.level, Level::Ok);
        let two = of("role:master\nconnected_slaves:2\nslave0:ip=a,port=1,lag=0\nslave1:ip=b,port=1,lag=3");
        assert_eq!(two.level, Level::Note);
        assert_eq!(
            two.found,
            "a primary with replicas: 2, the slowest last heard of 3 s ago"
        );
        let replica = "role:slave\nmaster_host:h\nmaster_port:1\nmaster_link_status:";
        let down = of(&format!("{replica}down\nslave_read_only:1"));
        assert_eq!(down.level, Level::Problem);
        assert_eq!(down.found, "a read-only replica of h:1, and cut off from it");
        let writable = of(&format!("{replica}up\nslave_read_only:0"));
        assert_eq!(writable.level, Level::Problem);
        assert_eq!(writable.found, "a replica of h:1 that takes writes");
        assert_eq!(judge(&Facts::default()), None);
    }
}
