//! Whether what was spent may be forgotten for want of memory.

use super::facts::Facts;
use super::finding::{Finding, Level};

const CHECK: &str = "eviction";

/// In a hundred of maxmemory: so much used is nearly all.
const NEARLY_FULL: u64 = 90;

/// `None`: nothing is known.
pub(super) fn judge(facts: &Facts) -> Option<Finding> {
    let policy = facts
        .info("maxmemory_policy")
        .or(facts.config("maxmemory-policy"))?;
    let most = facts
        .number("maxmemory")
        .or_else(|| facts.config("maxmemory")?.parse().ok())?;
    let used = facts.number("used_memory").unwrap_or(0);
    let percent = used.saturating_mul(100).checked_div(most);
    let limit = match percent {
        None => "no maxmemory".to_owned(),
        Some(percent) => format!("maxmemory {}, {percent} % of it used", size(most)),
    };
    let mut found = format!("maxmemory-policy {policy}, {limit}");
    if let Some(evicted) = facts.number("evicted_keys").filter(|&evicted| evicted > 0) {
        found += &format!(", {evicted} keys evicted so far");
    }
    Some(match (policy, percent) {
        ("noeviction", None) => Finding::new(
            CHECK,
            Level::Note,
            found,
            "Nothing that was spent is forgotten, for as long as the machine has memory: a server that is ended for want \
             of it comes back with what its disk has.",
        )
        .advise("Set maxmemory to what the machine can spare, and leave the policy as it is."),
        ("noeviction", Some(percent)) if percent >= NEARLY_FULL => Finding::new(
            CHECK,
            Level::Warning,
            found,
            "Nothing that was spent is forgotten. Once memory is full, writes are refused: every call is an error, and \
             OnError decides.",
        )
        .advise("Raise maxmemory, or give limits a server of their own."),
        ("noeviction", Some(_)) => Finding::new(
            CHECK,
            Level::Ok,
            found,
            "Nothing that was spent is forgotten. If memory should ever be full, writes are refused, and OnError decides.",
        ),
        (_, None) => Finding::new(
            CHECK,
            Level::Note,
            found,
            "Nothing is evicted without a maxmemory. Were one set, what was spent could be forgotten.",
        )
        .advise("Set maxmemory-policy to noeviction before anybody sets maxmemory."),
        (_, Some(_)) => Finding::new(
            CHECK,
            Level::Problem,
            found,
            format!(
                "What was spent may be forgotten when memory is full, in every mode: \"no true window holds more than L\" \
                 does not hold, L more may be admitted for each key that is evicted.{}",
                if policy == "volatile-ttl" {
                    " What ends soonest goes first, so long windows suffer last."
                } else {
                    ""
                }
            ),
        )
        .advise("CONFIG SET maxmemory-policy noeviction (and in its configuration file), or give limits a server of their own."),
    })
}

fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|&(_, unit)| bytes >= unit) {
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_forgets_is_a_problem() {
        let level = |policy: &str, most: u64, used: u64| {
            let info = format!("maxmemory_policy:{policy}\nmaxmemory:{most}\nused_memory:{used}");
            judge(&Facts::from_lines(&info, "")).expect("known").level
        };
        assert_eq!(level("noeviction", 0, 1), Level::Note);
        assert_eq!(level("noeviction", 100, 89), Level::Ok);
        assert_eq!(level("noeviction", 100, 90), Level::Warning);
        assert_eq!(level("allkeys-lru", 0, 1), Level::Note);
        for policy in [
            "allkeys-lru",
            "allkeys-lfu",
            "allkeys-random",
            "volatile-lru",
            "volatile-ttl",
        ] {
            assert_eq!(level(policy, 100, 1), Level::Problem, "{policy}");
        }
        // By CONFIG alone.
        let facts = Facts::from_lines("", "maxmemory:100\nmaxmemory-policy:allkeys-lru");
        assert_eq!(judge(&facts).expect("known").level, Level::Problem);
        assert_eq!(judge(&Facts::default()), None);
    }

    #[test]
    fn sizes_are_readable() {
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(100 << 20), "100.0 MiB");
        assert_eq!(size(u64::MAX), "17179869183.9 GiB");
    }
}
