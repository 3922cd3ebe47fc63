//! Reading all inputs once: from lines to records in order of time.

use alloc::rc::Rc;
use core::cell::Cell;

use crate::failure::Failure;
use crate::input::detect::{self, FormatArg};
use crate::input::format::WantedFields;
use crate::input::lines::{Line, Lines};
use crate::input::row::{Row, Unreadable, shown};
use crate::input::source::Source;
use crate::input::time::timestamp::TimestampParser;
use crate::key_names::KeyNames;
use crate::progress::Progress;
use crate::rules::key::{NONE, name};
use crate::rules::record_layout::{RecordLayout, time_of_word};
use crate::sorter::{Sorted, Sorter};

/// The requests of all inputs.
#[derive(Debug)]
pub(crate) struct Requests {
    /// A record for each request, in order of time.
    pub(crate) events: Sorted,
    pub(crate) names: KeyNames,
    /// Lines of all inputs, blank and unreadable ones included.
    pub(crate) lines: u64,
    pub(crate) unreadable: UnreadableLines,
    /// The time of the first request and of the last.
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// Requests that were earlier than the request on the line before.
    pub(crate) out_of_order: u64,
    /// Wanted fields that no line has.
    pub(crate) absent: Vec<String>,
}

/// Lines that could not be parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnreadableLines {
    pub(crate) count: u64,
    /// The first of them, with their errors.
    pub(crate) examples: Vec<String>,
}

impl UnreadableLines {
    const EXAMPLES: usize = 3;

    #[cold]
    fn add(&mut self, input: &str, line: Line<'_>, reason: &Unreadable) {
        self.count += 1;
        if self.examples.len() < Self::EXAMPLES {
            let text = shown(line.bytes);
            let number = line.number;
            self.examples
                .push(format!("{input}line {number}: {reason}: {text}"));
        }
    }
}

/// The inputs, and how to parse them.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) sources: Vec<Source>,
    pub(crate) format: FormatArg,
    pub(crate) time_field: Option<String>,
    pub(crate) timestamps: TimestampParser,
}

/// Lines between two updates of the progress line.
const LINES_PER_UPDATE: u64 = 1 << 12;

impl Inputs {
    /// Bytes of all inputs; `None` if the size of one is unknown.
    pub(crate) fn size(&self) -> Option<u64> {
        self.sources.iter().map(Source::size).sum()
    }

    /// Reads all inputs.
    ///
    /// # Errors
    ///
    /// When an input cannot be read, or no input has a request.
    pub(crate) fn read(
        mut self,
        layout: &RecordLayout,
        progress: &mut Progress,
    ) -> Result<Requests, Failure> {
        progress.begin("reading");
        let wanted = WantedFields {
            fields: layout.fields.clone(),
            time: self.time_field.take(),
        };
        let mut collector = Collector {
            layout,
            row: Row::new(wanted.fields.len() + 1),
            record: Vec::with_capacity(layout.words()),
            events: Sorter::new(layout.words()),
            names: KeyNames::new(),
            last: None,
            out_of_order: 0,
            seen: vec![false; wanted.fields.len()],
        };
        let mut unreadable = UnreadableLines::default();
        let mut lines = 0;
        let read = Rc::new(Cell::new(0));
        for source in &self.sources {
            // Messages name the input only where there are several.
            let input = match self.sources.len() {
                1 => String::new(),
                _ => format!("{}, ", source.name()),
            };
            let mut reader = Lines::new(source.open(Rc::clone(&read))?);
            reader.pass_mark().map_err(|error| source.failure(error))?;
            let start = reader.peek().map_err(|error| source.failure(error))?;
            if start.is_empty() {
                continue;
            }
            let format =
                detect::open(self.format, start, &wanted).map_err(|failure| match self.sources.len() {
                    1 => failure,
                    _ => Failure::new(format!("{}: {failure}", source.name())),
                })?;
            if format.has_header() {
                let failed = |error| source.failure(error);
                while reader.read().map_err(failed)?.is_some_and(Line::is_blank) {}
            }
            loop {
                let number = reader.count();
                if number.is_multiple_of(LINES_PER_UPDATE) {
                    progress.read(read.get());
                }
                let line = match reader.read() {
                    Ok(Some(line)) => line,
                    Ok(None) => break,
                    Err(error) => {
                        let operation = format!("cannot read {} after line {number}", source.name());
                        return Err(Failure::io(operation, error));
                    }
                };
                if line.is_blank() {
                    continue;
                }
                let parsed = format
                    .read(line, &mut self.timestamps, &mut collector.row)
                    .and_then(|()| layout.record(&collector.row, &mut collector.record));
                match parsed {
                    Ok(()) => collector.push()?,
                    Err(reason) => unreadable.add(&input, line, &reason),
                }
            }
            lines += reader.count();
        }
        collector.finish(lines, unreadable, wanted)
    }
}

/// The requests so far.
struct Collector<'l> {
    layout: &'l RecordLayout,
    row: Row,
    record: Vec<u64>,
    events: Sorter,
    names: KeyNames,
    last: Option<u64>,
    out_of_order: u64,
    seen: Vec<bool>,
}

impl Collector<'_> {
    /// Adds the request in `row` and `record`.
    #[inline]
    fn push(&mut self) -> Result<(), Failure> {
        for (word, fields) in self.layout.keys() {
            let hash = self.record[word];
            if !self.names.is_known(hash) {
                self.names.add(hash, &name(&self.row, fields))?;
            }
        }
        for (field, seen) in self.seen.iter_mut().enumerate() {
            *seen = *seen || self.row.get(field).is_some();
        }
        let time = self.record[0];
        self.out_of_order += u64::from(self.last.is_some_and(|last| time < last));
        self.last = Some(time);
        self.events.push(&self.record)
    }

    fn finish(
        self,
        lines: u64,
        unreadable: UnreadableLines,
        wanted: WantedFields,
    ) -> Result<Requests, Failure> {
        let mut events = self.events.finish()?;
        let mut reader = events.read()?;
        let Some(first) = reader.next()?.map(|record| record[0]) else {
            return Err(Failure::Empty {
                unreadable: unreadable.count,
                examples: unreadable.examples,
            });
        };
        drop(reader);
        let last = events.last().unwrap_or(first);
        let fields = wanted.fields.into_iter().zip(self.seen);
        Ok(Requests {
            names: self.names,
            lines,
            unreadable,
            first: time_of_word(first),
            last: time_of_word(last),
            out_of_order: self.out_of_order,
            absent: fields.filter(|(_, seen)| !seen).map(|(name, _)| name).collect(),
            events,
        })
    }
}

impl Requests {
    /// Notes about the input for the report.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.out_of_order > 0 {
            notes.push(format!(
                "input not in order of time: {} requests were earlier than the one before (all were sorted)",
                self.out_of_order
            ));
        }
        for field in &self.absent {
            notes.push(format!(
                "no line has the field {field:?}: its value is {NONE} for all requests"
            ));
        }
        notes
    }
}
