//! Reading all inputs once: from lines to records in order of time.

use alloc::rc::Rc;
use core::cell::Cell;
use std::io::ErrorKind;

use crate::failure::Failure;
use crate::input::choice::Choice;
use crate::input::client;
use crate::input::format::{Parsed, WantedFields};
use crate::input::lines::{Line, Lines};
use crate::input::open::{self, Opened};
use crate::input::row::{Row, Unreadable, shown};
use crate::input::source::Source;
use crate::input::time::calendar;
use crate::input::time::timestamp::TimestampParser;
use crate::key_names::KeyNames;
use crate::progress::Progress;
use crate::replay::details::{Details, FIELDS};
use crate::replay::findings::{Clients, Findings, Location};
use crate::replay::span::Span;
use crate::rules::key::name;
use crate::rules::record_layout::{CLIENT, RecordLayout, time_of_word};
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
    /// The formats of the inputs, with the reason for each.
    pub(crate) formats: Vec<String>,
    pub(crate) findings: Findings,
    pub(crate) details: Details,
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

    /// The failure of inputs without a request.
    fn empty(&self, findings: &Findings) -> Failure {
        let unreadable = self.count;
        let mut message = "no requests in the input".to_owned();
        if unreadable + findings.out_of_range + findings.others == 0 {
            message += ": it has no lines (expected one request a line)";
        }
        match unreadable {
            0 => {}
            1 => message += " (1 unreadable line)",
            _ => message += &format!(" ({unreadable} unreadable lines)"),
        }
        for (count, what) in [
            (findings.out_of_range, "requests are outside of --from and --to"),
            (findings.others, "lines are no requests of the format"),
        ] {
            if count > 0 {
                message += &format!("; {count} {what}");
            }
        }
        if unreadable > 0 {
            message += "; --format, --log-format or --pattern say how lines are read";
        }
        self.failure(message)
    }

    /// A failure with the examples.
    fn failure(&self, message: String) -> Failure {
        Failure::new([&[message], &self.examples[..]].concat().join("\n"))
    }
}

/// The inputs, and how to parse them.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) sources: Vec<Source>,
    pub(crate) choice: Choice,
    pub(crate) time_field: Option<String>,
    pub(crate) timestamps: TimestampParser,
    /// Earlier requests are left out.
    pub(crate) from: Option<i64>,
    /// Requests at this time or later are left out.
    pub(crate) to: Option<i64>,
    /// Whether an input may have more unreadable lines than requests.
    pub(crate) lenient: bool,
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
    /// When an input cannot be read, no input has a request, or one has more unreadable lines than requests.
    pub(crate) fn read(
        mut self,
        layout: &RecordLayout,
        progress: &mut Progress,
    ) -> Result<Requests, Failure> {
        progress.begin("reading");
        let wanted = WantedFields {
            fields: layout.wanted_fields().collect(),
            time_place: layout.fields.len(),
            time: self.time_field.take(),
            costs: layout.cost_places().collect(),
            client_place: layout.client_place(),
        };
        let mut collector = Collector {
            layout,
            row: Row::default(),
            details: Details::default(),
            record: Vec::with_capacity(layout.words()),
            events: Sorter::new(layout.words()),
            names: KeyNames::new(),
            last: None,
            missing: vec![0; layout.fields.len()],
            clients: Clients::new(layout),
            lines: 0,
            unreadable: UnreadableLines::default(),
            formats: Vec::new(),
            findings: Findings::default(),
            truncated: None,
        };
        let read = Rc::new(Cell::new(0));
        let sources = core::mem::take(&mut self.sources);
        let several = sources.len() > 1;
        for source in &sources {
            self.read_source(source, several, &wanted, &read, &mut collector, progress)?;
        }
        collector.findings.assumed_year = self.timestamps.assumed_year();
        collector.findings.assumed_utc = self.timestamps.assumed_utc();
        collector.finish(wanted)
    }

    fn read_source(
        &mut self,
        source: &Source,
        several: bool,
        wanted: &WantedFields,
        read: &Rc<Cell<u64>>,
        collector: &mut Collector<'_>,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        // Messages name the input only where there are several.
        let input: Rc<str> = match several {
            true => format!("{}, ", source.name()).into(),
            false => "".into(),
        };
        let mut reader = Lines::new(source.open(Rc::clone(read))?);
        source.check(reader.start())?;
        if reader.start().is_empty() && !reader.has_failed() {
            return Ok(());
        }
        let of_input = |failure| match several {
            true => Failure::new(format!("{}: {failure}", source.name())),
            false => failure,
        };
        let mut opened = open::open(&self.choice, reader.start(), wanted).map_err(of_input)?;
        if collector.layout.details && opened.format.takes_fields() {
            opened = self.with_details(reader.start(), wanted, opened);
        }
        collector
            .formats
            .push(format!("{}{}", input.replace(", ", ": "), opened.chosen));
        collector
            .findings
            .notes
            .extend(opened.notes.drain(..).map(|note| format!("{input}{note}")));
        let format = &mut opened.format;
        if format.has_header() {
            let failed = |error| source.failure(error);
            while reader.read().map_err(failed)?.is_some_and(Line::is_blank) {}
        }
        let (mut requests, unreadable_before) = (0, collector.unreadable.count);
        loop {
            let number = reader.count();
            if number.is_multiple_of(LINES_PER_UPDATE) {
                progress.read(read.get());
            }
            let line = match reader.read() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    let kind = error.kind();
                    let operation = format!("cannot read {} after line {number}", source.name());
                    let failure = Failure::io(operation, &error);
                    // A compressed file was cut off: the lines before the cut are valid.
                    if kind != ErrorKind::UnexpectedEof {
                        return Err(failure);
                    }
                    collector.findings.truncated.push(format!(
                        "{} ends within compressed data: the figures are those of its first {number} lines",
                        source.name()
                    ));
                    collector.truncated.get_or_insert(failure);
                    break;
                }
            };
            if line.is_blank() {
                continue;
            }
            collector.row.clear();
            let parsed = match line.whole {
                true => format.parse(line.bytes, &mut self.timestamps, &mut collector.row),
                false => Err(Unreadable::line("line exceeds 64 KiB")),
            };
            let parsed = match parsed {
                Ok(Parsed::Request) if self.is_out_of_range(collector.row.time) => {
                    collector.findings.out_of_range += collector.row.count;
                    requests += collector.row.count;
                    continue;
                }
                Ok(Parsed::Request) => collector.layout.record(&collector.row, &mut collector.record),
                Ok(Parsed::Other) => {
                    collector.findings.others += 1;
                    continue;
                }
                Err(reason) => Err(reason),
            };
            match parsed {
                Ok(()) => {
                    requests += collector.row.count;
                    collector.push(&input, line.number)?;
                }
                Err(reason) => collector.unreadable.add(&input, line, &reason),
            }
        }
        let number = reader.count();
        let late = format.late_notes().map_err(of_input)?;
        collector
            .findings
            .notes
            .extend(late.into_iter().map(|note| format!("{input}{note}")));
        if let Some(field) = format.forwarded() {
            collector.findings.forwarded.get_or_insert(field);
        }
        if let Err(reason) = format.finish() {
            let line = Line {
                number,
                bytes: b"",
                whole: true,
            };
            collector.unreadable.add(&input, line, &reason);
        }
        collector.lines += number;
        let unreadable = collector.unreadable.count - unreadable_before;
        collector.findings.readable += requests;
        if !self.lenient && unreadable > requests && (several || requests > 0) {
            let all = requests + unreadable;
            let (input, format) = (source.name(), opened.chosen);
            return Err(collector.unreadable.failure(format!(
                "{unreadable} of {all} lines of {input} are unreadable as {format} (--format, --log-format or --pattern say how lines are \
                 read; --lenient leaves them out)"
            )));
        }
        Ok(())
    }

    /// The format with those of the fields for details that it has.
    fn with_details(&self, start: &[u8], wanted: &WantedFields, mut opened: Opened) -> Opened {
        let mut wanted = wanted.clone();
        for (field, place) in FIELDS.into_iter().zip(wanted.time_place + 1..) {
            wanted.fields.push((field.to_owned(), place));
            match open::open(&self.choice, start, &wanted) {
                Ok(more) => opened.format = more.format,
                Err(_) => drop(wanted.fields.pop()),
            }
        }
        opened
    }

    fn is_out_of_range(&self, time: i64) -> bool {
        self.from.is_some_and(|from| time < from) || self.to.is_some_and(|to| time >= to)
    }
}

/// The requests so far.
struct Collector<'l> {
    layout: &'l RecordLayout,
    row: Row,
    details: Details,
    record: Vec<u64>,
    events: Sorter,
    names: KeyNames,
    last: Option<u64>,
    /// For each field, the requests without it.
    missing: Vec<u64>,
    clients: Clients,
    lines: u64,
    unreadable: UnreadableLines,
    formats: Vec<String>,
    findings: Findings,
    /// The failure of the first truncated input. `finish` returns it if no input has a request.
    truncated: Option<Failure>,
}

impl Collector<'_> {
    /// Adds the request in `row` and `record`, as often as it was repeated.
    #[inline]
    fn push(&mut self, input: &Rc<str>, line: u64) -> Result<(), Failure> {
        for (word, fields, prefixes) in self.layout.keys() {
            let hash = self.record[word];
            if !self.names.is_known(hash) {
                self.names.add(hash, &name(&self.row, fields, prefixes))?;
                for &field in fields {
                    let value = self.row.get(field).unwrap_or_default();
                    let of_kind = if client::is_list(value) {
                        &mut self.findings.with_lists
                    } else if client::address(value).is_some_and(|address| address.len() < value.len()) {
                        &mut self.findings.with_port
                    } else {
                        continue;
                    };
                    of_kind.insert(self.layout.fields[field].clone());
                }
                let client = fields.iter().find(|&&field| self.layout.fields[field] == CLIENT);
                let name = client
                    .and_then(|&field| self.row.get(field))
                    .filter(|name| client::has_port(name));
                if let Some(name) = name.filter(|_| self.findings.name_with_port.is_none()) {
                    self.findings.name_with_port = Some(shown(name));
                }
            }
        }
        for (field, missing) in self.missing.iter_mut().enumerate() {
            *missing += self.row.count * u64::from(self.row.get(field).is_none());
        }
        self.clients.add(&self.row);
        if self.layout.details {
            let start = self.layout.fields.len() + 1;
            self.record.push(self.details.word(&self.row, start));
        }
        let time = self.record[0];
        self.findings.out_of_order += u64::from(self.last.is_some_and(|last| time < last));
        self.last = Some(time);
        self.findings.locate(self.row.time, input, line);
        (0..self.row.count).try_for_each(|_| self.events.push(&self.record))
    }

    fn finish(mut self, wanted: WantedFields) -> Result<Requests, Failure> {
        let mut events = self.events.finish()?;
        if events.records() == 0 {
            return Err(self
                .truncated
                .unwrap_or_else(|| self.unreadable.empty(&self.findings)));
        }
        let mut reader = events.read()?;
        while let Some(record) = reader.next()? {
            self.findings.gaps.next(time_of_word(record[0]));
        }
        drop(reader);
        self.findings.unreadable = self.unreadable.count;
        self.findings.one_client = self.clients.only(self.findings.readable);
        self.findings.private_clients = self.clients.few_private();
        let keys: Vec<usize> = self
            .layout
            .keys()
            .flat_map(|(_, fields, _)| fields)
            .copied()
            .collect();
        for (name, place) in wanted.fields {
            let (missing, is_key) = (self.missing[place], keys.contains(&place));
            if missing == events.records() {
                if name == CLIENT && is_key {
                    return Err(Failure::new(format!(
                        "no line has a client: the place of the address is empty or \"-\" in all {} requests (expected an \
                         address; --key FIELD counts by another field, and --key all counts all requests together)",
                        self.findings.readable
                    )));
                }
                match is_key {
                    true => self.findings.absent_keys.push(name),
                    false => self.findings.absent.push(name),
                }
            } else if missing > 0 && is_key {
                self.findings.missing.push((name, missing));
            }
        }
        Ok(Requests {
            names: self.names,
            lines: self.lines,
            unreadable: self.unreadable,
            formats: self.formats,
            findings: self.findings,
            details: self.details,
            events,
        })
    }
}

impl Requests {
    /// The span of the requests.
    ///
    /// # Errors
    ///
    /// When the span is longer than a limiter can represent.
    pub(crate) fn span(&self, windows: impl Iterator<Item = i64>) -> Result<Span, Failure> {
        let gaps = &self.findings.gaps;
        Span::new(gaps.first, gaps.last, windows).map_err(|days| {
            let shown = |time, location: &Option<Location>| {
                let text = location
                    .as_ref()
                    .map_or_else(String::new, |location| format!(" ({location})"));
                format!("{}{text}", calendar::text(time))
            };
            let (first, last, days) = (
                shown(gaps.first, &self.findings.first),
                shown(gaps.last, &self.findings.last),
                days.0,
            );
            Failure::new(format!(
                "input spans {first} to {last} (expected at most {days} days with these windows; --from and --to leave requests out)"
            ))
        })
    }
}
