//! The latency of calls.

use core::time::Duration;
use std::time::Instant;

use serde::Serialize;

use super::finding::{Finding, Level};

const CHECK: &str = "latency";

/// Calls of one measurement, and its longest duration.
const ANSWERS: usize = 300;
const PATIENCE: Duration = Duration::from_secs(1);

/// The default `response_timeout` of a store.
const LIMIT: Duration = Duration::from_millis(100);

/// The latencies of one kind of call; the fields are those of the JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Figures {
    pub(super) what: &'static str,
    pub(super) answers: usize,
    pub(super) p50_us: u128,
    pub(super) p99_us: u128,
    pub(super) max_us: u128,
    /// Answers that took longer than the default timeout.
    late: usize,
}

impl Figures {
    /// Makes one call after the other with its number; ends with the first error.
    pub(super) async fn measure<E>(
        what: &'static str,
        call: impl AsyncFn(usize) -> Result<(), E>,
    ) -> Result<Self, E> {
        let start = Instant::now();
        let mut took = Vec::with_capacity(ANSWERS);
        while took.is_empty() || took.len() < ANSWERS && start.elapsed() < PATIENCE {
            let sent = Instant::now();
            call(took.len()).await?;
            took.push(sent.elapsed());
        }
        Ok(Self::from(what, took))
    }

    /// The figures of one or more latencies.
    fn from(what: &'static str, mut took: Vec<Duration>) -> Self {
        took.sort_unstable();
        // The smallest latency that so many percent do not exceed.
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
        return Finding::new(CHECK, Level::Ok, found).means(format!(
            "All answers came within {LIMIT:?}, the default response_timeout."
        ));
    }
    let level = if most { Level::Problem } else { Level::Warning };
    Finding::new(
        CHECK,
        level,
        format!("{found}; {late} answers took longer than {LIMIT:?}"),
    )
    .means("With the default response_timeout these calls are errors, and OnError decides.")
    .advise("SLOWLOG GET and LATENCY DOCTOR show slow commands; or raise response_timeout and call_timeout.")
}

/// Microseconds as milliseconds.
fn millis(micros: u128) -> String {
    format!("{}.{:02} ms", micros / 1000, micros % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(took: impl IntoIterator<Item = u64>) -> Figures {
        Figures::from("PING", took.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn percentiles_are_exact() {
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
    fn late_answers_are_judged() {
        let level = |took: &[u64]| judge(&[figures([1]), figures(took.iter().copied())]).level;
        assert_eq!(level(&[1, 100]), Level::Ok);
        assert_eq!(level(&[1, 101]), Level::Warning);
        assert_eq!(level(&[1, 101, 101]), Level::Problem);
        assert_eq!(millis(12_345), "12.34 ms");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_first_error_ends_a_measurement() {
        let call = async |number: usize| if number < 3 { Ok(()) } else { Err(number) };
        assert_eq!(Figures::measure("PING", call).await, Err(3));
    }
}
