//! The verdicts of all rules together, in order of time.

use ringgate::{ManualClock, RuleCounts};

use crate::failure::Failure;
use crate::intake::Intake;
use crate::layout::{Event, time_of_word};
use crate::plan::{Entry, Plan};
use crate::progress::Progress;
use crate::series::Series;
use crate::sorter::{Sorted, Sorter};
use crate::span::Span;

/// Every request with its verdicts.
#[derive(Debug)]
pub(crate) struct Judged {
    /// The records in order of time, each with words of verdicts after it.
    pub(crate) events: Sorted,
    pub(crate) verdicts: Verdicts,
    pub(crate) series: Series,
    /// How often a rule's table had no room.
    pub(crate) overflowed: Vec<(String, u64)>,
}

/// Where the verdicts are in a record: whether the request was refused, and for each entry whether it was about it and whether
/// it had no room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdicts {
    /// The first word.
    start: usize,
    /// How many.
    words: usize,
}

/// What an entry says of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Whether it was about the request.
    pub(crate) about: bool,
    /// Whether it had no room.
    pub(crate) denied: bool,
}

impl Verdicts {
    fn new(start: usize, entries: usize) -> Self {
        Self {
            start,
            words: (1 + 2 * entries).div_ceil(64),
        }
    }

    fn set(self, record: &mut [u64], bit: usize) {
        record[self.start + bit / 64] |= 1 << (bit % 64);
    }

    fn is_set(self, record: &[u64], bit: usize) -> bool {
        record[self.start + bit / 64] & (1 << (bit % 64)) != 0
    }

    /// Whether the request was refused.
    #[inline]
    pub(crate) fn is_refused(self, record: &[u64]) -> bool {
        self.is_set(record, 0)
    }

    #[inline]
    pub(crate) fn of(self, record: &[u64], entry: usize) -> Verdict {
        Verdict {
            about: self.is_set(record, 1 + 2 * entry),
            denied: self.is_set(record, 2 + 2 * entry),
        }
    }
}

/// Requests between two looks at the clock.
const UNSHOWN: u64 = 1 << 14;

/// Judges all requests.
///
/// # Errors
///
/// When the rules cannot be built, or a temporary file not be used.
pub(crate) fn judge(
    plan: &Plan,
    intake: &mut Intake,
    span: Span,
    progress: &mut Progress,
) -> Result<Judged, Failure> {
    progress.begin("judging");
    let clock = ManualClock::new();
    let rules = plan.rule_set(clock.clone(), intake.names.at_most())?;
    let entries = &plan.entries;
    // To look at what they would do, which nobody is told otherwise.
    let looked_at = entries.iter().any(|entry| entry.shadow || entry.lists);
    let (words, tiers) = {
        let layout = plan.fields.layout();
        (layout.words(), layout.tiers.clone())
    };
    let verdicts = Verdicts::new(words, entries.len());
    let mut event = Event {
        record: vec![0; words + verdicts.words],
        tiers,
    };
    let mut judged = Sorter::new(words + verdicts.words);
    let mut series = Series::new(span, entries.len());
    let mut reading = intake.events.read()?;
    while let Some(record) = reading.next()? {
        event.record[..words].copy_from_slice(record);
        let mut said = Said::default();
        let time = time_of_word(record[0]);
        let now = span.reading(time);
        if looked_at {
            clock.set(now);
            for peek in rules.peek(&event) {
                let Some(place) = place(entries, peek.rule(), peek.quota()) else {
                    continue;
                };
                said.about.push(place);
                if !peek.is_enforced() && peek.remaining() < peek.permits() {
                    said.denied.push(place);
                }
            }
        }
        if let Err(refused) = rules.check_at(&event, now) {
            said.refused = true;
            let places = refused
                .violations()
                .filter_map(|violation| place(entries, violation.rule(), violation.quota()));
            said.denied.extend(places);
        }
        let step = series.step_of(time);
        series.requests[step] += 1;
        let words_of = &mut event.record;
        words_of[words..].fill(0);
        if said.refused {
            series.denied[step] += 1;
            verdicts.set(words_of, 0);
        }
        for place in said.denied {
            series.by_rule[place][step] += 1;
            verdicts.set(words_of, 2 + 2 * place);
        }
        if looked_at {
            for place in said.about {
                verdicts.set(words_of, 1 + 2 * place);
            }
        } else {
            for (place, entry) in entries.iter().enumerate() {
                if entry.is_about(words_of) {
                    verdicts.set(words_of, 1 + 2 * place);
                }
            }
        }
        judged.push(words_of)?;
        if judged.records().is_multiple_of(UNSHOWN) {
            progress.go_on();
        }
    }
    let overflowed = |(name, counts): (&str, RuleCounts)| {
        (counts.overflowed > 0).then(|| (name.to_string(), counts.overflowed))
    };
    Ok(Judged {
        verdicts,
        series,
        overflowed: rules.counts().filter_map(overflowed).collect(),
        events: judged.finish()?,
    })
}

/// What the rules say of one request.
#[derive(Default)]
struct Said {
    refused: bool,
    about: Vec<usize>,
    denied: Vec<usize>,
}

fn place(entries: &[Entry], rule: &str, quota: ringgate::Quota) -> Option<usize> {
    let mut entries = entries.iter();
    entries.position(|entry| entry.rule == rule && entry.quota == quota)
}
