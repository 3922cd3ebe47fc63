//! Lines that hold a line of another format: of syslog, of containers and of the journal.

pub(crate) mod container;
pub(crate) mod header;
pub(crate) mod journald;

use core::fmt::Debug;

use crate::failure::Failure;
use crate::input::format::{LogFormat, ParseResult, Parsed, TimeKind};
use crate::input::lines::LONGEST;
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

/// The parts of one line; reused for each line.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) time: Vec<u8>,
    pub(crate) message: Vec<u8>,
    /// The values of the wrapper's own fields; an empty value is missing.
    pub(crate) values: Row,
    /// The stream of the message, 0 or 1, and whether the message continues on the stream's next line.
    pub(crate) stream: usize,
    pub(crate) continues: bool,
    /// The number of equal messages, if it is not one.
    repeated: Option<u64>,
}

impl Parts {
    fn clear(&mut self) {
        self.time.clear();
        self.message.clear();
        self.values.clear();
        (self.stream, self.continues) = (0, false);
        self.repeated = None;
    }

    /// Takes the message out of `message repeated 7 times: [ .. ]`, which rsyslog writes for equal messages in a row.
    ///
    /// # Errors
    ///
    /// When the number is too large to be replayed.
    fn unfold(&mut self) -> Result<(), Unreadable> {
        let Some(text) = self.message.strip_prefix(b"message repeated ") else {
            return Ok(());
        };
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = text.split_at(digits);
        let message = rest
            .strip_prefix(b" times: [")
            .and_then(|rest| rest.strip_suffix(b"]"));
        let Some(message) = message.filter(|_| digits > 0) else {
            return Ok(());
        };
        let number = str::from_utf8(number).ok().and_then(|number| number.parse().ok());
        self.repeated = number.filter(|number| (1..=MOST_REPEATED).contains(number));
        if self.repeated.is_none() {
            return Err(Unreadable::line(format!(
                "invalid number of repeated messages (expected 1 to {MOST_REPEATED})"
            )));
        }
        self.message = message.trim_ascii_start().to_vec();
        Ok(())
    }
}

/// The largest number of equal messages in one line.
const MOST_REPEATED: u64 = 1_000_000;

/// A format whose lines hold a message.
pub(crate) trait Envelope: Debug {
    /// The name for messages, as in "syslog".
    fn title(&self) -> &'static str;

    /// Splits a line.
    ///
    /// # Errors
    ///
    /// When the line has another form.
    fn split(&mut self, line: &[u8], parts: &mut Parts) -> Result<(), Unreadable>;

    /// The names of its own fields, by their numbers.
    fn fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// The number of a field of its own.
    fn field(&mut self, name: &str) -> Option<usize> {
        self.fields().iter().position(|field| *field == name)
    }

    fn time_kind(&self) -> TimeKind {
        TimeKind::Full
    }
}

/// An envelope and the format of its messages.
#[derive(Debug)]
pub(crate) struct Wrapped {
    envelope: Box<dyn Envelope>,
    /// The format of the messages, and whether each message must be of that format.
    message: Option<(Box<dyn LogFormat>, bool)>,
    /// The fields of the envelope with their places in a row.
    fields: Vec<(usize, usize)>,
    parts: Parts,
    pieces: Pieces,
    /// Whether the first whole message names the fields, and has not come yet.
    awaits_header: bool,
}

/// The beginnings of messages that continue, for each stream.
#[derive(Debug, Default)]
struct Pieces([Vec<u8>; 2]);

impl Pieces {
    /// Puts the beginning of a message before its last part. Returns whether the message is complete.
    ///
    /// # Errors
    ///
    /// When the message is too long. The rest of it is another unreadable line.
    fn join(&mut self, parts: &mut Parts) -> Result<bool, Unreadable> {
        let begun = &mut self.0[parts.stream];
        if !parts.continues && begun.is_empty() {
            return Ok(true);
        }
        if begun.len() + parts.message.len() > LONGEST {
            begun.clear();
            return Err(Unreadable::line("message exceeds 64 KiB"));
        }
        begun.extend_from_slice(&parts.message);
        if !parts.continues {
            core::mem::swap(begun, &mut parts.message);
            begun.clear();
        }
        Ok(!parts.continues)
    }
}

impl Wrapped {
    pub(crate) fn new(
        envelope: Box<dyn Envelope>,
        message: Option<(Box<dyn LogFormat>, bool)>,
        fields: Vec<(usize, usize)>,
    ) -> Self {
        let awaits_header = message.as_ref().is_some_and(|(format, _)| format.has_header());
        Self {
            envelope,
            message,
            fields,
            parts: Parts::default(),
            pieces: Pieces::default(),
            awaits_header,
        }
    }
}

/// The whole messages in the first lines.
pub(crate) fn messages(envelope: &mut dyn Envelope, lines: &[(usize, Vec<u8>)]) -> Vec<(usize, Vec<u8>)> {
    let mut parts = Parts::default();
    let mut pieces = Pieces::default();
    let mut messages = Vec::new();
    for (number, line) in lines {
        parts.clear();
        let is_split = envelope
            .split(line, &mut parts)
            .and_then(|()| parts.unfold())
            .is_ok();
        if is_split && pieces.join(&mut parts) == Ok(true) {
            messages.push((*number, parts.message.clone()));
        }
    }
    messages
}

impl LogFormat for Wrapped {
    fn parse(&mut self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> ParseResult {
        let parts = &mut self.parts;
        parts.clear();
        self.envelope.split(line, parts)?;
        parts.unfold()?;
        if !self.pieces.join(parts)? || core::mem::take(&mut self.awaits_header) {
            return Ok(Parsed::Other);
        }
        let kind = self.envelope.time_kind();
        let mut has_time = false;
        if let Some((format, required)) = &mut self.message {
            match format.parse(&parts.message, timestamps, row) {
                Ok(Parsed::Request) => has_time = format.time_kind() >= kind,
                Ok(Parsed::Other) => return Ok(Parsed::Other),
                Err(reason) if *required => return Err(reason),
                Err(_) => row.clear(),
            }
        }
        if !has_time {
            let read = kind.read(&parts.time, timestamps);
            row.time = read.ok_or_else(|| Unreadable::field("time", &parts.time, "an existing time"))?;
        }
        for &(field, place) in &self.fields {
            if let Some(value) = parts.values.get(field).filter(|value| !value.is_empty()) {
                row.set(place, value);
            }
        }
        row.count = parts.repeated.unwrap_or(1);
        Ok(Parsed::Request)
    }

    fn time_kind(&self) -> TimeKind {
        let message = self.message.as_ref();
        message
            .map_or(TimeKind::Absent, |(format, _)| format.time_kind())
            .max(self.envelope.time_kind())
    }

    fn late_notes(&mut self) -> Result<Vec<String>, Failure> {
        match &mut self.message {
            Some((format, _)) => format.late_notes(),
            None => Ok(Vec::new()),
        }
    }

    fn forwarded(&self) -> Option<String> {
        self.message.as_ref().and_then(|(format, _)| format.forwarded())
    }

    fn takes_fields(&self) -> bool {
        // A field of a message makes lines without one unreadable.
        matches!(self.message, Some((_, true)))
    }

    fn finish(&mut self) -> Result<(), Unreadable> {
        if let Some((format, true)) = &mut self.message {
            format.finish()?;
        }
        match self.pieces.0.iter().all(Vec::is_empty) {
            true => Ok(()),
            false => Err(Unreadable::line("the last message continues, and the input ends")),
        }
    }
}
