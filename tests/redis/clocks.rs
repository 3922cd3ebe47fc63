//! A server clock that goes back. The stored state is then newer than TIME, and is repaired so that limits become
//! stricter.

use ringgate::shared::Counting;

use crate::scripts::{CounterStatus, FAR_AHEAD, ScriptRequest, Scripts};

const SECOND: u64 = 1_000_000;
const EARLY: u64 = FAR_AHEAD - 3600 * SECOND;

/// Counters with a window of ten seconds.
fn all(limit: u64) -> [ScriptRequest; 3] {
    [
        ScriptRequest::log("log", limit, 10 * SECOND),
        ScriptRequest::cells("cells", limit, 5, 2 * SECOND),
        ScriptRequest::gcra("bucket", limit, limit, 10 * SECOND),
    ]
}

/// Permits that were spent before the clock went back count for a whole window afterwards, and for at most a window
/// and a cell. A flood of denials does not move them.
#[test]
fn charges_ahead_of_the_clock_count_from_now() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    for asked in all(5) {
        let (admitted, spent) = scripts.charge(FAR_AHEAD, &asked.clone().of(5));
        assert!(admitted);
        // `peek` does not repair the state, but its answer is that of the repaired state.
        let (_, looked) = scripts.peek(EARLY, &asked);
        assert_eq!(looked[0].remaining, 0);
        let (admitted, refused) = scripts.charge(EARLY, &asked);
        assert!(!admitted);
        let answer = |found: &[CounterStatus]| (found[0].room, found[0].remaining, found[0].wait);
        assert_eq!(answer(&refused), answer(&looked), "{asked:?}");
        let wait = u64::try_from(refused[0].wait).expect("a wait");
        // A bucket refills its first permit after two of the ten seconds.
        let expected = match asked.counting {
            Counting::Gcra(_) => 2 * SECOND..=2 * SECOND,
            _ => 10 * SECOND..=12 * SECOND,
        };
        assert!(expected.contains(&wait), "{asked:?}: {wait}");
        let receipt = asked.clone().of(5).with_receipt(spent[0].receipt);
        assert_eq!(scripts.refund(EARLY, &receipt), [0]);
        // The permits expire neither earlier nor later.
        for denied in (0..100).map(|step| step * wait / 100).chain([wait - 1]) {
            assert!(!scripts.charge(EARLY + denied, &asked).0, "{asked:?} {denied}");
        }
        let (admitted, found) = scripts.charge(EARLY + wait, &asked);
        assert!(admitted);
        // No permit ahead of the current time is left.
        let now = EARLY + wait;
        let ahead: Vec<String> = match asked.counting {
            Counting::Log => scripts.ask(&format!("ZRANGEBYSCORE log {} +inf", now + 1)),
            Counting::Cells(_) => {
                let fields: Vec<String> = scripts.ask("HKEYS cells");
                let is_ahead =
                    |field: &String| field.parse().is_ok_and(|cell: u64| cell > now / (2 * SECOND));
                fields.into_iter().filter(is_ahead).collect()
            }
            _ => Vec::new(),
        };
        assert_eq!(ahead, Vec::<String>::new());
        let is_bucket = matches!(asked.counting, Counting::Gcra(_));
        assert_eq!(found[0].remaining, if is_bucket { 0 } else { 4 });
    }
}

/// A permit from before a repair is not refunded after it, since its cell may hold permits of other requests.
#[test]
fn a_repaired_charge_is_not_refunded() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    for asked in all(5).into_iter().take(2) {
        let (_, found) = scripts.charge(FAR_AHEAD, &asked);
        let receipt = asked.clone().with_receipt(found[0].receipt);
        assert!(scripts.charge(EARLY, &asked).0);
        assert_eq!(scripts.refund(EARLY, &receipt), [0]);
        assert_eq!(scripts.peek(EARLY, &asked).1[0].remaining, 3);
        if matches!(asked.counting, Counting::Cells(_)) {
            // Also not when the clock has reached that cell again, and another request was charged to it.
            assert!(scripts.charge(FAR_AHEAD, &asked).0);
            assert_eq!(scripts.refund(FAR_AHEAD, &receipt), [0]);
        }
    }
}

/// Registered permits that end at once when the clock has gone back leave no key without an expiry.
#[test]
fn a_step_back_leaves_no_lease_without_an_expiry() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let part = ScriptRequest::log("short", 10, 100);
    let none = part.clone().of(0);
    // The first request begins the time since which the server has forgotten nothing.
    scripts.renew(FAR_AHEAD, &none, (1, [1, 1, 4, 4, 50]));
    let granted = scripts.renew(FAR_AHEAD + 2 * SECOND, &none, (2, [1, 1, 4, 4, 50]));
    assert_eq!(granted, Some(4));
    // The year 2020 has passed, so the permits have ended when the server sets the expiry.
    scripts.charge(1_577_836_800_000_000, &part);
    assert_eq!(scripts.ask::<i64>("PTTL short:leases"), -2, "the hash has ended");
}
