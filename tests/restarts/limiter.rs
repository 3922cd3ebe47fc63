//! A single limiter.

use super::*;
use proptest::prelude::*;
use ringgate::RateLimiter;

fn follow(subject: &Subject, acts: &[Act]) -> Followed<RateLimiter<Any, ManualClock>> {
    let mut line = line();
    // A saved state of one limiter does not say how far it is ahead of its clock. A cell is accounted for.
    line.behind = cell_of(subject);
    let begun = |line: &Line| RateLimiter::with_clock(subject.algorithm.clone(), line.clock.clone());
    super::follow(
        begun(&line),
        line,
        acts,
        |limiter, _, permits| {
            let admitted = limiter.check_n(permits).ok()?;
            Some((permits, admitted.at()))
        },
        |before, line, elapsed| {
            let limiter = begun(line);
            limiter.restore(&before.save(), elapsed);
            limiter
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// No window holds more than the bound, however often the process is restarted, and wherever the cells of its clock begin.
    #[test]
    fn no_window_exceeds_the_bound(which in 0..SUBJECTS, limit in 1..12_u64, acts in history(0)) {
        let subject = subjects(limit).swap_remove(which);
        let Followed { read, receipts, .. } = follow(&subject, &acts);
        prop_assert_eq!(broken(&subject, &read), None, "{}", subject.name);
        prop_assert_eq!(broken(&subject, &receipts), None, "{}", subject.name);
    }

    /// Restarts make a limiter stricter by two cells at most: after that time and the span of the algorithm, it is as a fresh one.
    #[test]
    fn restarts_do_not_add_up(which in 0..SUBJECTS, limit in 1..12_u64, acts in history(0)) {
        let subject = subjects(limit).swap_remove(which);
        let Followed { limiter, mut line, .. } = follow(&subject, &acts);
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
        let Followed { receipts, .. } = follow(&subject, &acts);
        prop_assert_eq!(broken(&shorter_by_a_cell(&subject), &receipts), None, "{}", subject.name);
    }
}
