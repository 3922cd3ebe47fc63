//! The evaluation of all rules together, in order of time.

use alloc::collections::BTreeMap;

use ringgate::rules::RuleCounts;
use ringgate::{ManualClock, Quota, RuleSet};

use crate::failure::Failure;
use crate::progress::Progress;
use crate::replay::batch::{BATCH, on_threads, threads};
use crate::replay::series::Series;
use crate::replay::span::Span;
use crate::rules::record_layout::{Event, time_of_word};
use crate::rules::{Plan, PlanEntry};
use crate::sorter::{Sorted, Sorter};

/// All requests with their verdicts.
#[derive(Debug)]
pub(crate) struct Evaluated {
    events: Sorted,
    /// The verdicts of all requests, in the same order.
    verdicts: Sorted,
    pub(crate) series: Series,
    /// The names of rules whose tables were full, with the number of requests without room.
    pub(crate) overflowed: Vec<(String, u64)>,
    /// The names of rules that blocked keys, with the number of blocks.
    pub(crate) blocks: Vec<(String, u64)>,
}

/// The verdicts about one request: a bit for a denial, and for each entry a bit for whether it applied and one for whether
/// it denied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict<'w>(&'w [u64]);

/// The bits of a verdict.
const IS_DENIED: usize = 0;
const fn applies(entry: usize) -> usize {
    1 + 2 * entry
}
const fn denies(entry: usize) -> usize {
    2 + 2 * entry
}

impl Verdict<'_> {
    fn is_set(self, bit: usize) -> bool {
        self.0[bit / 64] & (1 << (bit % 64)) != 0
    }

    /// Whether the request was denied.
    #[inline]
    pub(crate) fn is_denied(self) -> bool {
        self.is_set(IS_DENIED)
    }

    /// Whether an entry applied to the request.
    #[inline]
    pub(crate) fn applies(self, entry: usize) -> bool {
        self.is_set(applies(entry))
    }

    /// Whether an entry denied the request.
    #[inline]
    pub(crate) fn denied_by(self, entry: usize) -> bool {
        self.is_set(denies(entry))
    }
}

impl Evaluated {
    /// The number of requests.
    pub(crate) const fn requests(&self) -> u64 {
        self.events.records()
    }

    /// Visits all requests in order of time, with their verdicts.
    pub(crate) fn visit(
        &mut self,
        mut each: impl FnMut(&[u64], Verdict<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (mut events, mut verdicts) = (self.events.read()?, self.verdicts.read()?);
        while let (Some(record), Some(verdict)) = (events.next()?, verdicts.next()?) {
            each(record, Verdict(verdict))?;
        }
        Ok(())
    }
}

/// Evaluates all requests, on several threads if all rules have one key and one thread has room for all keys.
///
/// # Errors
///
/// When the rules cannot be built, or a temporary file fails.
pub(crate) fn evaluate(
    plan: &Plan,
    events: Sorted,
    keys: u64,
    span: Span,
    progress: &mut Progress,
) -> Result<Evaluated, Failure> {
    progress.begin("applying rules");
    let threads = match plan.common_key() {
        // Several threads have more room together than one. Verdicts must not depend on their number.
        Some(_) if events.records() > BATCH as u64 && plan.has_room(keys) => threads(),
        _ => 1,
    };
    let judged = judge(plan, events, keys, span, threads, progress)?;
    // A table without room decides by all of its keys.
    if threads > 1 && !judged.overflowed.is_empty() {
        return judge(plan, judged.events, keys, span, 1, progress);
    }
    Ok(judged)
}

/// Reads the requests in batches. Each thread decides those of its keys, in order of time.
fn judge(
    plan: &Plan,
    mut events: Sorted,
    keys: u64,
    span: Span,
    threads: usize,
    progress: &mut Progress,
) -> Result<Evaluated, Failure> {
    let words = plan.fields.layout().words();
    let of_verdict = (1 + 2 * plan.entries.len()).div_ceil(64);
    // Keys are not spread evenly.
    let share = keys / threads as u64;
    let room = if threads == 1 {
        keys
    } else {
        share + share / 8 + 1024
    };
    let evaluators = (0..threads).map(|_| Evaluator::new(plan, room, span, of_verdict));
    let mut evaluators: Vec<Evaluator<'_>> = evaluators.collect::<Result<_, _>>()?;
    let thread_of = |record: &[u64]| match plan.common_key() {
        Some(word) if threads > 1 => usize::try_from(record[word] >> 32).unwrap_or(0) % threads,
        _ => 0,
    };
    // The sorter keeps the order of the verdicts.
    let mut verdicts = Sorter::unsorted(of_verdict);
    let mut series = Series::new(span, plan.entries.len());
    let all = events.records();
    let mut reading = events.read()?;
    let mut batch = Vec::with_capacity(BATCH * words);
    let mut count = 0;
    loop {
        batch.clear();
        while batch.len() < BATCH * words
            && let Some(record) = reading.next()?
        {
            batch.extend_from_slice(record);
        }
        if batch.is_empty() {
            break;
        }
        let records = || batch.chunks_exact(words);
        for evaluator in &mut evaluators {
            evaluator.verdicts.clear();
        }
        on_threads(&mut evaluators, |number, evaluator| {
            for record in records().filter(|record| thread_of(record) == number) {
                evaluator.judge(record, span);
            }
        });
        let mut decided: Vec<_> = evaluators
            .iter()
            .map(|evaluator| evaluator.verdicts.chunks_exact(of_verdict))
            .collect();
        for record in records() {
            let Some(words) = decided[thread_of(record)].next() else {
                continue;
            };
            let verdict = Verdict(words);
            let step = series.step_of(time_of_word(record[0]));
            series.requests[step] += 1;
            series.denied[step] += u64::from(verdict.is_denied());
            for (place, denied) in series.by_rule.iter_mut().enumerate() {
                denied[step] += u64::from(verdict.denied_by(place));
            }
            verdicts.push(words)?;
            count += 1;
        }
        progress.show_phase(count, all);
    }
    let sum = |count: fn(&RuleCounts) -> u64| {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (rule, counts) in evaluators.iter().flat_map(|evaluator| evaluator.rules.counts()) {
            if count(&counts) > 0 {
                *sums.entry(rule.to_owned()).or_default() += count(&counts);
            }
        }
        sums.into_iter().collect()
    };
    Ok(Evaluated {
        events,
        verdicts: verdicts.finish()?,
        series,
        overflowed: sum(|counts| counts.overflowed),
        blocks: sum(|counts| counts.blocks),
    })
}

/// The rule set with its clock.
struct Evaluator<'p> {
    rules: RuleSet<Event, ManualClock>,
    clock: ManualClock,
    entries: &'p [PlanEntry],
    /// Whether to peek before each decision. Denials of shadow rules and matches of lists are not visible otherwise.
    peeks: bool,
    event: Event,
    /// The words of each verdict, and the verdicts about the present batch.
    words: usize,
    verdicts: Vec<u64>,
}

impl<'p> Evaluator<'p> {
    fn new(plan: &'p Plan, keys: u64, span: Span, words: usize) -> Result<Self, Failure> {
        let clock = ManualClock::new();
        let entries = &plan.entries;
        let tiers = plan.fields.layout().tiers.clone();
        Ok(Self {
            rules: plan.rule_set(clock.clone(), keys, span)?,
            clock,
            entries,
            peeks: entries.iter().any(|entry| entry.shadow || entry.lists),
            event: Event {
                record: Vec::new(),
                tiers,
            },
            words,
            verdicts: Vec::new(),
        })
    }

    /// Decides the next request in order of time, and adds its verdict.
    fn judge(&mut self, record: &[u64], span: Span) {
        self.event.record.clear();
        self.event.record.extend_from_slice(record);
        let now = span.reading(time_of_word(record[0]));
        let start = self.verdicts.len();
        self.verdicts.resize(start + self.words, 0);
        let verdict = &mut self.verdicts[start..];
        let mut set = |bit: usize| verdict[bit / 64] |= 1 << (bit % 64);
        let entries = self.entries;
        // A block is counted for the first quota of its rule.
        let place = |rule: &str, quota: Quota, is_block: bool| {
            entries.iter().position(|entry| match is_block {
                true => entry.rule == rule,
                false => entry.is(rule, quota),
            })
        };
        if self.peeks {
            self.clock.set(now);
            for peek in self.rules.peek(&self.event) {
                let status = peek.status();
                let place = place(&status.rule, status.quota, false).filter(|_| !status.is_block);
                let Some(place) = place else { continue };
                set(applies(place));
                // A request without a cost is only denied by a list, after which no permits ever remain.
                let is_denied = match status.permits {
                    0 => status.retry_after.is_none(),
                    permits => status.remaining < permits,
                };
                if !status.is_enforced && is_denied {
                    set(denies(place));
                }
            }
        } else {
            for (place, entry) in entries.iter().enumerate() {
                if entry.applies(record) {
                    set(applies(place));
                }
            }
        }
        if let Err(denied) = self.rules.check_at(&self.event, now) {
            set(IS_DENIED);
            for denial in denied.violations() {
                if let Some(place) = place(&denial.rule, denial.quota, denial.is_block) {
                    set(denies(place));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
