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
        pairs(line, |name, value| {
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

/// The names of a line's fields; none if the line has another form, or fewer than three fields.
pub(crate) fn names(line: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let read = pairs(line, |name, _| {
        names.push(String::from_utf8_lossy(name).into_owned());
        Ok(())
    });
    if read.is_err() || names.len() < 3 {
        names.clear();
    }
    names
}

/// Calls `each` with the name and the value of each pair. A value in quotation marks has escapes as in JSON.
fn pairs(
    line: &[u8],
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Unreadable>,
) -> Result<(), Unreadable> {
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(|byte| b" \t".contains(byte)) {
            at += 1;
        }
        if at >= line.len() {
            return Ok(());
        }
        let is_end = |byte: &u8| b" =\"\t".contains(byte);
        let name_end = line[at..]
            .iter()
            .position(is_end)
            .map_or(line.len(), |length| at + length);
        if name_end == at || line.get(name_end) != Some(&b'=') {
            return Err(Unreadable::at(at, "no NAME=VALUE"));
        }
        let name = &line[at..name_end];
        at = name_end + 1;
        if line.get(at) == Some(&b'"') {
            let mut value = Vec::new();
            let start = at;
            at += 1;
            loop {
                match line.get(at) {
                    None => return Err(Unreadable::at(start, "unclosed quotation mark")),
                    Some(b'"') => break,
                    Some(b'\\') => {
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
                    Some(&byte) => {
                        value.push(byte);
                        at += 1;
                    }
                }
            }
            at += 1;
            if line.get(at).is_some_and(|byte| !b" \t".contains(byte)) {
                return Err(Unreadable::at(at, "no space after a quoted value"));
            }
            each(name, &value)?;
        } else {
            let length = line[at..].iter().position(|byte| b" \t".contains(byte));
            let end = length.map_or(line.len(), |length| at + length);
            each(name, &line[at..end])?;
            at = end;
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
        for line in ["a", "a=1 b", "=1", "a=\"x", "a=\"x\"y", "\"a\"=1"] {
            assert!(all(line).is_err(), "{line}");
        }
        assert_eq!(names(b"a=1 b=2").len(), 0);
        assert_eq!(names(b"a=1 b=2 c=3").len(), 3);
    }
}
