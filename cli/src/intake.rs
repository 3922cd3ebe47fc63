//! The inputs, read once: from lines to records in order of time.

use alloc::rc::Rc;
use core::cell::Cell;

use crate::failure::Failure;
use crate::format::{InputFormat, Parser, Wants};
use crate::key::{NONE, name};
use crate::layout::{Layout, time_of_word};
use crate::lines::{Line, Lines};
use crate::moment::Moments;
use crate::names::Names;
use crate::progress::Progress;
use crate::row::{Row, Unreadable, shown};
use crate::sorter::{Sorted, Sorter};
use crate::source::Source;

/// What was read.
#[derive(Debug)]
pub(crate) struct Intake {
    /// A record for each request, in order of time.
    pub(crate) events: Sorted,
    pub(crate) names: Names,
    /// Lines of all inputs, whatever was on them.
    pub(crate) lines: u64,
    pub(crate) unreadable: UnreadableLines,
    /// The time of the first request and of the last.
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// How many requests were earlier than the one before.
    pub(crate) early: u64,
    /// Fields that no line had.
    pub(crate) absent: Vec<String>,
}

/// The lines that are no requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnreadableLines {
    pub(crate) count: u64,
    /// What is wrong with the first of them.
    pub(crate) examples: Vec<String>,
}

impl UnreadableLines {
    /// Lines that are shown.
    const SHOWN: usize = 3;

    #[cold]
    fn add(&mut self, input: &str, line: Line<'_>, reason: &Unreadable) {
        self.count += 1;
        if self.examples.len() < Self::SHOWN {
            let text = shown(line.bytes);
            let number = line.number;
            self.examples
                .push(format!("{input}line {number}: {reason}: {text}"));
        }
    }
}

/// How the inputs are to be read.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) sources: Vec<Source>,
    pub(crate) format: InputFormat,
    pub(crate) time_field: Option<String>,
    pub(crate) moments: Moments,
}

impl Reading {
    /// Bytes of all inputs; `None` when nobody knows.
    pub(crate) fn size(&self) -> Option<u64> {
        self.sources.iter().map(Source::size).sum()
    }
}

/// Lines between two looks at the clock.
const UNSHOWN: u64 = 1 << 12;

impl Reading {
    /// Reads all inputs.
    ///
    /// # Errors
    ///
    /// When one cannot be read, or none has a request.
    pub(crate) fn take(mut self, layout: &Layout, progress: &mut Progress) -> Result<Intake, Failure> {
        progress.begin("reading");
        let wants = Wants {
            fields: layout.fields.clone(),
            time: self.time_field.take(),
        };
        let mut taking = Taking {
            layout,
            row: Row::new(wants.fields.len() + 1),
            record: Vec::with_capacity(layout.words()),
            events: Sorter::new(layout.words()),
            names: Names::new(),
            last: None,
            early: 0,
            seen: vec![false; wants.fields.len()],
        };
        let mut unreadable = UnreadableLines::default();
        let mut lines = 0;
        let read = Rc::new(Cell::new(0));
        for source in &self.sources {
            // With one input there is nothing to tell apart.
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
            let (parser, header) = Parser::of(self.format, start, &wants)
                .map_err(|failure| failure.in_input(&self.sources, source))?;
            if header {
                // It is the first line that is not blank.
                let failed = |error| source.failure(error);
                while reader.read().map_err(failed)?.is_some_and(Line::is_blank) {}
            }
            loop {
                let number = reader.count();
                if number.is_multiple_of(UNSHOWN) {
                    progress.read(read.get());
                }
                let line = match reader.read() {
                    Ok(Some(line)) => line,
                    Ok(None) => break,
                    Err(error) => {
                        let what = format!("{} cannot be read after line {number}", source.name());
                        return Err(Failure::io(what, error));
                    }
                };
                if line.is_blank() {
                    continue;
                }
                let parsed = parser
                    .read(line, &mut self.moments, wants.time_place(), &mut taking.row)
                    .and_then(|()| layout.record(&taking.row, &mut taking.record));
                match parsed {
                    Ok(()) => taking.push()?,
                    Err(reason) => unreadable.add(&input, line, &reason),
                }
            }
            lines += reader.count();
            progress.bytes += reader.bytes();
        }
        taking.finish(lines, unreadable, wants)
    }
}

/// What was taken so far.
struct Taking<'l> {
    layout: &'l Layout,
    row: Row,
    record: Vec<u64>,
    events: Sorter,
    names: Names,
    last: Option<u64>,
    early: u64,
    seen: Vec<bool>,
}

impl Taking<'_> {
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
        self.early += u64::from(self.last.is_some_and(|last| time < last));
        self.last = Some(time);
        self.events.push(&self.record)
    }

    fn finish(self, lines: u64, unreadable: UnreadableLines, wants: Wants) -> Result<Intake, Failure> {
        let mut events = self.events.finish()?;
        let mut reading = events.read()?;
        let Some(first) = reading.next()?.map(|record| record[0]) else {
            return Err(Failure::Empty {
                unreadable: unreadable.count,
                examples: unreadable.examples,
            });
        };
        drop(reading);
        let last = events.last().unwrap_or(first);
        let fields = wants.fields.into_iter().zip(self.seen);
        Ok(Intake {
            names: self.names,
            lines,
            unreadable,
            first: time_of_word(first),
            last: time_of_word(last),
            early: self.early,
            absent: fields.filter(|(_, seen)| !seen).map(|(name, _)| name).collect(),
            events,
        })
    }
}

impl Intake {
    /// What is to be known about the input, if anything.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.early > 0 {
            notes.push(format!(
                "not in order of time: {} requests were earlier than the one before, and all were sorted",
                self.early
            ));
        }
        for field in &self.absent {
            notes.push(format!(
                "no line has the field {field:?}: all requests have the same key there, {NONE}"
            ));
        }
        notes
    }
}

impl Failure {
    /// Which input it is about, where there are several.
    fn in_input(self, sources: &[Source], source: &Source) -> Self {
        match self {
            Self::Argument { what, given, allowed } if sources.len() > 1 => Self::Argument {
                what: format!("{}: {what}", source.name()),
                given,
                allowed,
            },
            other => other,
        }
    }
}
