//! What a server that was lost comes back with.

use super::facts::Facts;
use super::finding::{Finding, Level};

const CHECK: &str = "persistence";

/// What is the same in all modes is said without it.
const MODES: &str = "Lease: no hold is granted for a term and a window after a restart; until then the server decides. Sync: what \
                     is forgotten lets its overshoot through once more, too.";

/// `None`: nothing is known.
pub(super) fn judge(facts: &Facts) -> Option<Finding> {
    let appends = match facts.info("aof_enabled") {
        Some(enabled) => enabled == "1",
        None => facts.config("appendonly")? == "yes",
    };
    let sync = facts.config("appendfsync");
    let save = facts.config("save").map(str::trim);
    let mut found = match (appends, sync) {
        (true, Some(sync)) => format!("appendonly yes, appendfsync {sync}"),
        (true, None) => "appendonly yes, appendfsync not known".to_owned(),
        (false, _) => "appendonly no".to_owned(),
    };
    found += &match save {
        Some("") => ", no snapshots".to_owned(),
        Some(save) => format!(", save {save}"),
        None => ", snapshots not known".to_owned(),
    };
    for (status, what) in [
        ("rdb_last_bgsave_status", "snapshot"),
        ("aof_last_write_status", "write of the log"),
    ] {
        if facts.info(status).is_some_and(|status| status != "ok") {
            found += &format!("; the last {what} has failed");
            return Some(
                Finding::new(
                    CHECK,
                    Level::Warning,
                    found,
                    "The server forgets more at its next restart than its settings say, and may refuse to write until then \
                     (MISCONF): every call is an error, and OnError decides.",
                )
                .advise("See in the server's log why it cannot write to its disk."),
            );
        }
    }
    Some(match (appends, sync) {
        (true, Some("always")) => Finding::new(
            CHECK,
            Level::Ok,
            found,
            "A restart forgets nothing that was acknowledged: no window holds more than L for it. Lease: no hold is granted \
             for a term and a window after it; until then the server decides.",
        ),
        (true, Some("everysec")) => Finding::new(
            CHECK,
            Level::Note,
            found,
            format!(
                "A server that is killed forgets nothing. A machine that goes down forgets up to two seconds, and the windows \
                 that these lie in may hold as much more: L for each time. {MODES}"
            ),
        )
        .advise("Nothing, if that may be; otherwise appendfsync always, at the price of a write to the disk for each decision."),
        (true, _) => Finding::new(
            CHECK,
            Level::Warning,
            found,
            format!(
                "A server that is killed forgets nothing. A machine that goes down forgets what its system had not written yet, \
                 half a minute or more: the windows that this lies in may hold as much more, L for each time. {MODES}"
            ),
        )
        .advise("CONFIG SET appendfsync everysec"),
        (false, _) if save.is_some_and(|save| !save.is_empty()) => Finding::new(
            CHECK,
            Level::Warning,
            found,
            format!(
                "A restart forgets what was spent since the last snapshot: windows that are longer than it is away may hold L \
                 more for each time. {MODES}"
            ),
        )
        .advise("CONFIG SET appendonly yes; or nothing, if that may be, as for windows of a few seconds."),
        (false, _) => Finding::new(
            CHECK,
            Level::Warning,
            found,
            format!(
                "A restart forgets all that was spent: windows that are longer than it is away may hold L more for each time. \
                 {MODES}"
            ),
        )
        .advise("CONFIG SET appendonly yes; or nothing, if that may be, as for windows of a few seconds."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_when() {
        let level = |config: &str| judge(&Facts::from_lines("", config)).expect("known").level;
        assert_eq!(level("appendonly:yes\nappendfsync:always\nsave:"), Level::Ok);
        assert_eq!(level("appendonly:yes\nappendfsync:everysec\nsave:"), Level::Note);
        assert_eq!(level("appendonly:yes\nappendfsync:no\nsave:"), Level::Warning);
        let of = |info: &str, config: &str| judge(&Facts::from_lines(info, config)).expect("known");
        let snapshots = of("", "appendonly:no\nsave:3600 1");
        assert!(
            snapshots.level == Level::Warning && snapshots.means.contains("snapshot"),
            "{snapshots:?}"
        );
        let nothing = of("", "appendonly:no\nsave:");
        assert!(
            nothing.level == Level::Warning && nothing.means.contains("all that"),
            "{nothing:?}"
        );
        let failing = of("aof_enabled:1\naof_last_write_status:err", "appendfsync:always");
        assert!(
            failing.level == Level::Warning && failing.found.contains("has failed"),
            "{failing:?}"
        );
        assert_eq!(judge(&Facts::default()), None);
    }
}
