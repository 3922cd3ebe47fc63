//! The journal of systemd, as `journalctl --output json` exports it.

use crate::input::format::named::json::parse;
use crate::input::format::named::paths::Paths;
use crate::input::format::named::servers::has_all;
use crate::input::format::wrapper::{Envelope, Parts};
use crate::input::row::Unreadable;

/// Fields with names of their own here.
const NAMES: [(&str, &str); 4] = [
    ("host", "_HOSTNAME"),
    ("program", "SYSLOG_IDENTIFIER"),
    ("pid", "_PID"),
    ("message", "MESSAGE"),
];

/// The first fields of each line.
const TIME: &str = "__REALTIME_TIMESTAMP";
const MESSAGE: &str = "MESSAGE";

/// An export of the systemd journal as JSON lines.
#[derive(Debug)]
pub(crate) struct Journald {
    names: Vec<String>,
    paths: Paths,
}

impl Journald {
    pub(crate) fn new() -> Self {
        Self::with(vec![TIME.to_owned(), MESSAGE.to_owned()])
    }

    fn with(names: Vec<String>) -> Self {
        Self {
            paths: Paths::new(names.iter().zip(0..)),
            names,
        }
    }

    /// Whether an object has the fields of the journal.
    pub(crate) fn is(names: &[String]) -> bool {
        has_all(names, &[TIME, MESSAGE])
    }
}

impl Envelope for Journald {
    fn title(&self) -> &'static str {
        "the journal"
    }

    fn split(&mut self, line: &[u8], parts: &mut Parts) -> Result<(), Unreadable> {
        parse(line, &self.paths, &mut parts.values)?;
        let (Some(time), Some(message)) = (parts.values.get(0), parts.values.get(1)) else {
            return Err(Unreadable::line(
                "no __REALTIME_TIMESTAMP and MESSAGE in the object",
            ));
        };
        parts.time.extend_from_slice(time);
        match message
            .strip_prefix(b"[")
            .and_then(|text| text.strip_suffix(b"]"))
        {
            // A message that is not UTF-8 is an array of bytes.
            Some(bytes)
                if bytes
                    .iter()
                    .all(|byte| byte.is_ascii_digit() || b", ".contains(byte)) =>
            {
                let bytes = bytes.split(|&byte| byte == b',');
                let byte = |text: &[u8]| str::from_utf8(text.trim_ascii()).ok()?.parse::<u8>().ok();
                parts.message.extend(bytes.filter_map(byte));
            }
            _ => parts.message.extend_from_slice(message),
        }
        Ok(())
    }

    fn field(&mut self, name: &str) -> Option<usize> {
        let native = NAMES
            .iter()
            .find(|(ours, _)| *ours == name)
            .map(|(_, native)| *native);
        let is_native = |name: &&str| {
            name.bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        };
        let name = native.or_else(|| Some(name).filter(is_native))?;
        if self.names.len() + 1 >= Paths::MOST {
            return None;
        }
        if let Some(known) = self.names.iter().position(|known| known == name) {
            return Some(known);
        }
        let mut names = core::mem::take(&mut self.names);
        names.push(name.to_owned());
        *self = Self::with(names);
        Some(self.names.len() - 1)
    }

    fn fields(&self) -> &'static [&'static str] {
        &["host", "program", "pid", "message", "those of the journal"]
    }
}
