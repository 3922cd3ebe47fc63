//! Tables of a sliding window: the form that it chooses, and saved tables that another version would lay out in another way.

use super::*;
use ringgate::SlidingWindow;

fn file_of(algorithm: impl Reclaim + Clone) -> Vec<u8> {
    let table = build(sized(algorithm, 10, OnFull::Share), ManualClock::new(), Plain);
    let mut file = Vec::new();
    table.save(&mut file).expect("memory");
    file
}

/// The cells and the unit of the word, as the description of a file names them.
fn words((cells, unit): (u64, u64)) -> String {
    format!("{cells} cells in units of {unit}")
}

/// A table that a sliding window would lay out in another way is refused: one of cells, as an earlier version chose, and one of other
/// cells or units. The message names the cells and the unit.
#[test]
fn a_table_of_another_layout_of_a_sliding_window_is_refused() {
    let restore = |algorithm: SlidingWindow, file: &[u8]| {
        let table = ringgate::KeyedRateLimiter::builder(algorithm).capacity(10);
        let restored = table.restore_with(ManualClock::new(), Plain, file, Duration::ZERO);
        restored.map(drop).map_err(|error| error.to_string())
    };
    for (limit, lowest, own) in [
        ("60/min", 10, (16, 4)),
        ("100/min", 10, (18, 8)),
        ("1000/min", 100, (12, 64)),
        ("10000/min", 100, (14, 1024)),
        ("30/min", 2, (17, 2)),
    ] {
        let window = || SlidingWindow::new(quota(limit)).expect("a window");
        let settled = || SlidingWindow::settled(quota(limit)).expect("a window");
        let cells = || CounterRing::new(quota(limit)).expect("a ring");
        let unit = UnitRing::with_lowest_limit(quota(limit), lowest).expect("a ring");
        let other = (unit.cells(), unit.unit());
        assert_ne!(other, own, "{limit} from {lowest}");
        let of_cells = format!(" {} words", cells().for_table(1).expect("a form").words());
        for (window, file, found, expected) in [
            (window(), file_of(unit), words(other), words(own)),
            (window(), file_of(cells()), of_cells, words(own)),
            (settled(), file_of(window()), words(own), "(expected bound".into()),
        ] {
            let error = restore(window, &file).expect_err("another layout");
            let (before, after) = error.split_once("(expected ").expect("both layouts");
            let beginning = "the saved state has another table: ";
            assert!(
                before.starts_with(beginning) && before.contains(&found),
                "{error}"
            );
            assert!(format!("(expected {after}").contains(&expected), "{error}");
        }
        let same = UnitRing::new(quota(limit)).expect("a ring");
        assert_eq!(restore(window(), &file_of(same)), Ok(()), "{limit}");
        assert_eq!(restore(settled(), &file_of(cells())), Ok(()), "{limit}");
    }
}

/// Each answer of a table, by its own limit and by a lower one: the permits that were taken, or the retry time.
fn answers(algorithm: impl Reclaim + Clone) -> Vec<Result<u64, Option<Duration>>> {
    let clock = ManualClock::new();
    let table = build(sized(algorithm, 10, OnFull::Share), clock.clone(), Plain);
    let mut answers = Vec::new();
    for step in 0..400 {
        let (key, permits) = (step % 3, step % 5);
        let by_own = table.check_n(&key, permits);
        answers.push(by_own.map(|it| it.permits()).map_err(|it| it.retry_after()));
        let lower = table.with_limit(7).expect("a lower limit");
        let by_lower = lower.check_n(&key, permits);
        answers.push(by_lower.map(|it| it.permits()).map_err(|it| it.retry_after()));
        clock.advance(Duration::from_millis(700 * (step % 7)));
    }
    answers
}

#[test]
fn a_table_decides_as_the_algorithm_in_its_sliding_window() {
    for limit in ["10/min", "30/min", "60/min", "1000/min"] {
        let word = answers(UnitRing::new(quota(limit)).expect("a ring"));
        assert!(word.iter().any(Result::is_ok) && word.iter().any(Result::is_err));
        assert_eq!(answers(SlidingWindow::new(quota(limit)).expect("a window")), word);
        let cells = answers(CounterRing::new(quota(limit)).expect("a ring"));
        let found = answers(SlidingWindow::settled(quota(limit)).expect("a window"));
        assert_eq!(found, cells);
    }
}
