//! logfmt: `time=2015-05-17T10:05:03Z ip=1.2.3.4 msg="a text"`.

use crate::failure::Failure;
use crate::input::format::named::fields::NamedFields;
use crate::input::format::{LogFormat, Parsed, WantedFields, sample};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

/// The format of pairs of names and values.
#[derive(Debug)]
pub(crate) struct Logfmt {
    /// The wanted names with their places in a row.
    wanted: Vec<(String, usize)>,
    named: NamedFields,
    /// The place of the time. Details follow it.
    time_place: usize,
}

impl Logfmt {
    /// For an input with these first lines.
    ///
    /// # Errors
    ///
    /// When no field is known to be the time.
    pub(crate) fn new(lines: &[(usize, Vec<u8>)], wanted: &WantedFields) -> Result<Self, Failure> {
        let mut all: Vec<String> = lines.iter().flat_map(|(_, line)| names(line)).collect();
        all.sort_unstable();
        all.dedup();
        let values = |name: &str| {
            let mut found = Vec::new();
            for (_, line) in sample(lines) {
                // A line that ends with an error has the values before it.
                let _ignored = pairs(line, |known, value| {
                    if known == name.as_bytes() {
                        found.push(value.to_vec());
                    }
                    Ok(())
                });
            }
            found
        };
        let time_place = wanted.time_place;
        let (named, wanted) = NamedFields::resolve(wanted, &all, values)?;
        Ok(Self {
            wanted,
            named,
            time_place,
        })
    }
}

impl LogFormat for Logfmt {
    fn parse(
        &mut self,
        line: &[u8],
        timestamps: &mut TimestampParser,
        row: &mut Row,
    ) -> Result<Parsed, Unreadable> {
        let cut = pairs(line, |name, value| {
            let Some((known, place)) = self.wanted.iter().find(|(known, _)| known.as_bytes() == name) else {
                return Ok(());
            };
            if row.get(*place).is_some() {
                // Of a detail, the first value counts.
                if *place > self.time_place {
                    return Ok(());
                }
                return Err(Unreadable::line(format!("the field {known:?} is there twice")));
            }
            row.set(*place, value);
            Ok(())
        })?;
        let mut needed = self.wanted.iter().filter(|(_, place)| *place <= self.time_place);
        if let Some(start) = cut
            && needed.any(|(_, place)| row.get(*place).is_none())
        {
            return Err(Unreadable::at(start, "unclosed quotation mark"));
        }
        self.named.complete(timestamps, row)?;
        Ok(Parsed::Request)
    }

    fn describe(&self) -> String {
        self.named.describe()
    }

    fn forwarded(&self) -> Option<String> {
        self.named.forwarded()
    }
}

/// The names of a line's fields; none if the line begins with another word, or has fewer than three fields.
pub(crate) fn names(line: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let is_name = |byte: &u8| !b" =\"\t{[".contains(byte);
    let first = line.trim_ascii_start();
    let end = first
        .iter()
        .position(|byte| !is_name(byte))
        .unwrap_or(first.len());
    if end == 0 || first.get(end) != Some(&b'=') {
        return names;
    }
    let read = pairs(line, |name, _| {
        names.push(String::from_utf8_lossy(name).into_owned());
        Ok(())
    });
    if read != Ok(None) || names.len() < 3 {
        names.clear();
    }
    names
}

/// Calls `each` with the name and the value of each pair. A value in quotation marks has escapes as in JSON, and ends at a
/// quotation mark before a space. Words without a value are skipped. Returns the place of a quotation mark that is not closed;
/// the value behind it was cut, and is left out.
fn pairs(
    line: &[u8],
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Unreadable>,
) -> Result<Option<usize>, Unreadable> {
    let is_space = |byte: &u8| b" \t".contains(byte);
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(is_space) {
            at += 1;
        }
        if at >= line.len() {
            return Ok(None);
        }
        let end_of_word = |at: usize| {
            let length = line[at..].iter().position(is_space);
            length.map_or(line.len(), |length| at + length)
        };
        let name_end = line[at..]
            .iter()
            .position(|byte| b" =\"\t".contains(byte))
            .map_or(line.len(), |length| at + length);
        if name_end == at || line.get(name_end) != Some(&b'=') {
            at = end_of_word(at);
            continue;
        }
        let name = &line[at..name_end];
        at = name_end + 1;
        if line.get(at) == Some(&b'"') {
            let start = at;
            let Some((value, end)) = quoted(line, at + 1) else {
                return Ok(Some(start));
            };
            at = end;
            each(name, &value)?;
        } else {
            let end = end_of_word(at);
            each(name, &line[at..end])?;
            at = end;
        }
    }
}

/// The value in quotation marks that begins at a place, and the place behind it; `None` if it does not end.
fn quoted(line: &[u8], mut at: usize) -> Option<(Vec<u8>, usize)> {
    let mut value = Vec::new();
    loop {
        match line.get(at)? {
            b'"' if matches!(line.get(at + 1), None | Some(b' ' | b'\t')) => return Some((value, at + 1)),
            b'\\' => {
                let escaped = *line.get(at + 1).unwrap_or(&b'\\');
                match escaped {
                    b'n' => value.push(b'\n'),
                    b't' => value.push(b'\t'),
                    b'r' => value.push(b'\r'),
                    b'"' | b'\\' | b'/' => value.push(escaped),
                    _ => value.extend_from_slice(&[b'\\', escaped]),
                }
                at += 2;
            }
            &byte => {
                value.push(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{names, pairs};

    fn all(line: &str) -> Result<Vec<(String, String)>, String> {
        let mut found = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        pairs(line.as_bytes(), |name, value| {
            found.push((text(name), text(value)));
            Ok(())
        })
        .map_err(|error| error.to_string())?;
        Ok(found)
    }

    #[test]
    fn pairs_are_split() {
        let expected = [
            ("at", "info"),
            ("path", "/a=b"),
            ("msg", "say \"hi\"\n"),
            ("empty", ""),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            all(r#"at=info path=/a=b  msg="say \"hi\"\n" empty="#),
            Ok(expected.to_vec())
        );
        for (line, expected) in [
            ("a", &[][..]),
            ("a=1 b c=2", &["a=1", "c=2"]),
            ("=1 a=2", &["a=2"]),
            ("a=\"x\"y\" b=1", &["a=x\"y", "b=1"]),
            ("\"a\"=1 b=2", &["b=2"]),
            ("b=1 a=\"x", &["b=1"]),
            ("b=1\ta=\"x\\", &["b=1"]),
        ] {
            let found = all(line).expect(line);
            let found: Vec<String> = found
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            assert_eq!(found, expected, "{line}");
        }
        assert_eq!(names(b"a=1 b=2").len(), 0);
        assert_eq!(names(b"a=1 b=2 c=3").len(), 3);
        assert_eq!(names(b"a=1 b=2 c d=3").len(), 3);
        assert_eq!(names(b"x a=1 b=2 c=3").len(), 0);
        assert_eq!(names(b"a=1 b=2 c=3 d=\"4").len(), 0);
    }
}
