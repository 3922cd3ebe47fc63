//! Logs of containers by Docker's json-file driver.

use crate::input::format::named::json::parse;
use crate::input::format::named::paths::Paths;
use crate::input::format::named::servers::has_all;
use crate::input::format::wrapper::{Envelope, Parts};
use crate::input::row::{Row, Unreadable};

/// Lines such as `{"log":"message\n","stream":"stdout","time":"2015-05-17T10:05:03.1Z"}`.
#[derive(Debug)]
pub(crate) struct Docker {
    paths: Paths,
    /// Whether messages end with a line feed, unless they continue on the next line.
    ends: bool,
}

impl Docker {
    /// For an input with these first lines.
    pub(crate) fn new(lines: &[(usize, Vec<u8>)]) -> Self {
        let paths = Paths::new(["stream", "log", "time"].into_iter().zip(0..));
        let ends = lines.iter().any(|(_, line)| {
            let mut row = Row::default();
            parse(line, &paths, &mut row).is_ok() && row.get(1).is_some_and(|log| log.ends_with(b"\n"))
        });
        Self { paths, ends }
    }

    /// Whether a line has the fields of Docker's, of which there are no other than `attrs`.
    pub(crate) fn is(names: &[String]) -> bool {
        has_all(names, &["log", "stream", "time"])
    }
}

impl Envelope for Docker {
    fn title(&self) -> &'static str {
        "Docker's json-file"
    }

    fn split(&mut self, line: &[u8], parts: &mut Parts) -> Result<(), Unreadable> {
        parse(line, &self.paths, &mut parts.values)?;
        let (Some(log), Some(time)) = (parts.values.get(1), parts.values.get(2)) else {
            return Err(Unreadable::line("no log and time in the object"));
        };
        let message = log.strip_suffix(b"\n");
        parts.continues = self.ends && message.is_none();
        let message = message.unwrap_or(log);
        parts.stream = usize::from(parts.values.get(0) == Some(&b"stderr"[..]));
        parts.time.extend_from_slice(time);
        parts
            .message
            .extend_from_slice(message.strip_suffix(b"\r").unwrap_or(message));
        Ok(())
    }

    fn fields(&self) -> &'static [&'static str] {
        &["stream"]
    }
}
