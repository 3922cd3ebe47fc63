//! How long answers take.

use core::time::Duration;
use std::time::Instant;

use serde::Serialize;

use super::finding::{Finding, Level};

const CHECK: &str = "latency";

/// How many answers are waited for, and for how long in all.
const ANSWERS: usize = 300;
const PATIENCE: Duration = Duration::from_secs(1);

/// What a call waits for an answer unless a store is told otherwise.
const LIMIT: Duration = Duration::from_millis(100);

/// What was measured of one kind of question, in microseconds from asking to hearing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Figures {
    pub(super) what: &'static str,
    pub(super) answers: usize,
    pub(super) p50_us: u128,
    pub(super) p99_us: u128,
    pub(super) max_us: u128,
    /// Answers that took longer than a call waits.
    late: usize,
}

impl Figures {
    /// Asks one question after the other, which is told its number; ends with the first that is not answered.
    pub(super) async fn of<E>(
        what: &'static str,
        ask: impl AsyncFn(usize) -> Result<(), E>,
    ) -> Result<Self, E> {
        let began = Instant::now();
        let mut took = Vec::with_capacity(ANSWERS);
        while took.is_empty() || took.len() < ANSWERS && began.elapsed() < PATIENCE {
            let asked = Instant::now();
            ask(took.len()).await?;
            took.push(asked.elapsed());
        }
        Ok(Self::from(what, took))
    }

    /// Of one answer at least.
    fn from(what: &'static str, mut took: Vec<Duration>) -> Self {
        took.sort_unstable();
        // The smallest that so many in a hundred are not above.
        let part = |percent: usize| took[(took.len() * percent).div_ceil(100) - 1].as_micros();
        Self {
            what,
            answers: took.len(),
            p50_us: part(50),
            p99_us: part(99),
            max_us: part(100),
            late: took.iter().filter(|took| **took > LIMIT).count(),
        }
    }
}

pub(super) fn judge(figures: &[Figures]) -> Finding {
    let parts = figures.iter().map(|figures| {
        let Figures {
            what, p50_us, p99_us, ..
        } = figures;
        format!("{what} p50 {}, p99 {}", millis(*p50_us), millis(*p99_us))
    });
    let found = parts.collect::<Vec<_>>().join("; ");
    let late: usize = figures.iter().map(|figures| figures.late).sum();
    let most = figures.iter().any(|figures| 2 * figures.late > figures.answers);
    if late == 0 {
        return Finding::new(
            CHECK,
            Level::Ok,
            found,
            format!(
                "Strict: a decision waits for one answer, which may take {LIMIT:?} (response_timeout) before OnError decides."
            ),
        );
    }
    let level = if most { Level::Problem } else { Level::Warning };
    Finding::new(
        CHECK,
        level,
        format!("{found}; {late} answers took longer than {LIMIT:?}"),
        format!("Strict: a call waits {LIMIT:?} for its answer unless it is told otherwise; these would have been errors, and \
                 OnError would have decided."),
    )
    .advise(
        "Look for what holds the server up (SLOWLOG GET, LATENCY DOCTOR) and for the way to it; or raise response_timeout and \
         call_timeout.",
    )
}

/// Microseconds as milliseconds.
pub(super) fn millis(micros: u128) -> String {
    format!("{}.{:02} ms", micros / 1000, micros % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(took: impl IntoIterator<Item = u64>) -> Figures {
        Figures::from("PING", took.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn parts_of_a_hundred() {
        let hundred = figures((1..=100).rev());
        assert_eq!(
            (hundred.p50_us, hundred.p99_us, hundred.max_us),
            (50_000, 99_000, 100_000)
        );
        let one = figures([7]);
        assert_eq!(
            (one.p50_us, one.p99_us, one.max_us, one.answers),
            (7_000, 7_000, 7_000, 1)
        );
        let two = figures([7, 8]);
        assert_eq!((two.p50_us, two.p99_us), (7_000, 8_000));
    }

    #[test]
    fn what_a_call_would_not_wait_for_is_said() {
        let level = |took: &[u64]| judge(&[figures([1]), figures(took.iter().copied())]).level;
        assert_eq!(level(&[1, 100]), Level::Ok);
        assert_eq!(level(&[1, 101]), Level::Warning);
        assert_eq!(level(&[1, 101, 101]), Level::Problem);
        assert_eq!(millis(12_345), "12.34 ms");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_first_that_is_not_answered_ends_it() {
        let ask = async |number: usize| if number < 3 { Ok(()) } else { Err(number) };
        assert_eq!(Figures::of("PING", ask).await, Err(3));
    }
}
