//! A single limiter.

use super::*;
use proptest::prelude::*;
use ringgate::RateLimiter;

/// The admissions of a history, by the readings and by the times of the receipts.
struct Logs {
    read: Log,
    receipts: Log,
}

/// Follows a history. Returns its admissions, the limiter of the last process, and the line.
fn follow(subject: &Subject, acts: &[Act]) -> (Logs, RateLimiter<Any, ManualClock>, Line) {
    let mut line = Line::new(7 * WINDOW + 123);
    let limiter = |line: &Line| RateLimiter::with_clock(subject.algorithm.clone(), line.clock.clone());
    let mut current = limiter(&line);
    let mut logs = Logs {
        read: Log::default(),
        receipts: Log::default(),
    };
    let mut newest = line.now();
    for &act in acts {
        match act {
            Act::Take { permits, .. } => {
                if let Ok(admitted) = current.check_n(permits) {
                    logs.read.add(line.now(), permits);
                    logs.receipts.add(line.time_of(admitted.at()), permits);
                }
            }
            Act::Wait(time) => line.wait(time),
            Act::Back(time) => {
                // A saved state of one limiter does not say how far it is ahead of its clock. A cell is accounted for.
                newest = newest.max(line.now());
                let least = newest.get() - cell_of(subject);
                line.back(time.min(line.now().get().saturating_sub(least)));
            }
            Act::Restart { gap, known, phase } => {
                let saved = current.save();
                line.restart(gap, phase);
                current = limiter(&line);
                current.restore(&saved, Duration::from_nanos(gap * known / 1_000));
            }
        }
    }
    (logs, current, line)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// No window holds more than the bound, however often the process is restarted, and wherever the cells of its clock begin.
    #[test]
    fn no_window_exceeds_the_bound(which in 0..SUBJECTS, limit in 1..12_u64, acts in history(0)) {
        let subject = subjects(limit).swap_remove(which);
        let (logs, ..) = follow(&subject, &acts);
        prop_assert_eq!(subject.broken(&logs.read), None, "{}", subject.name);
        prop_assert_eq!(subject.broken(&logs.receipts), None, "{}", subject.name);
    }

    /// Restarts make a limiter stricter by two cells at most: after that time and the span of the algorithm, it is as a fresh one.
    #[test]
    fn restarts_do_not_add_up(which in 0..SUBJECTS, limit in 1..12_u64, acts in history(0)) {
        let subject = subjects(limit).swap_remove(which);
        let (_, limiter, mut line) = follow(&subject, &acts);
        line.wait(span_of(&subject) + 2 * cell_of(&subject));
        prop_assert_eq!(limiter.peek().spent(), 0, "{}", subject.name);
        if let Ok(admitted) = limiter.check() {
            prop_assert_eq!(line.time_of(admitted.at()), line.now(), "{}", subject.name);
        } else {
            // The shares of the cells of an even ring.
            prop_assert!(subject.name.starts_with("even"));
        }
    }

    /// A clock that steps back by up to a cell before the save, or behind the restore, gives no fresh budget, by the times of the
    /// receipts: an interval that is shorter than the window by a cell holds no more than the bound.
    #[test]
    fn a_step_back_gives_no_fresh_budget(
        which in 0..SUBJECTS,
        limit in 1..12_u64,
        acts in history_with_steps(0, WINDOW),
    ) {
        let subject = subjects(limit).swap_remove(which);
        let (logs, ..) = follow(&subject, &acts);
        prop_assert_eq!(shorter_by_a_cell(&subject).broken(&logs.receipts), None, "{}", subject.name);
    }
}
