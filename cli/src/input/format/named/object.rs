//! The fields of JSON objects, also with faults in some values, as servers write them that put a text or a number between quotation
//! marks and commas without escaping it: `\xFA` or a tab in a text, `NaN`, `-`, `007` or nothing as a number, or a line that was
//! cut.

use alloc::borrow::Cow;

use memchr::memchr;

use crate::input::format::named::paths::{Open, Paths};
use crate::input::format::words::closing;
use crate::input::row::Row;

/// The deepest objects and arrays.
const DEEPEST: usize = 100;

/// A fault of an object that is not one of a value that is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The line ends within the object.
    Cut,
    Invalid,
    /// A needed field, by the number of its path, is there twice. The second value ends at this place.
    Twice(usize, usize),
    /// A needed field is missing, possibly because of a fault before it.
    Missing,
}

/// Reads the wanted fields of an object into a row. A text that was cut is no value.
pub(crate) fn parse(line: &[u8], paths: &Paths, row: &mut Row) -> Scanned<()> {
    let mut scan = Scan { line, at: 0 };
    let mut fields = Fields { paths, seen: 0, row };
    match scan.whole(&mut |scan, name, open, depth| fields.value(scan, name, open, depth)) {
        Ok(()) | Err(Fault::Cut) if fields.has_all() => Ok(()),
        Ok(()) => Err(Fault::Missing),
        fault => fault,
    }
}

/// The names of an object's fields, or with `inner` the paths of its values that are no objects, with points between the names;
/// none if the line is not an object to its end.
pub(crate) fn names(line: &[u8], inner: bool) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    let end = Scan { line, at: 0 }
        .whole(&mut |scan, name, _, depth| scan.names(decoded(name).into_owned(), inner, depth, &mut names));
    end.map_or_else(|_| Vec::new(), |()| names)
}

/// Whether one of an object's fields has a name that `is` accepts; `None` if there is a fault before such a field.
pub(crate) fn has_name(line: &[u8], is: fn(&[u8]) -> bool) -> Option<bool> {
    let mut found = false;
    let end = Scan { line, at: 0 }.whole(&mut |scan, name, _, depth| {
        found = is(&decoded(name));
        match found {
            // Ends the scan.
            true => Err(Fault::Missing),
            false => scan.value(0, depth, &mut skip).map(drop),
        }
    });
    (found || end.is_ok()).then_some(found)
}

/// The result of a scan, which ends early at a fault.
type Scanned<T> = Result<T, Fault>;

/// Reads the value of a field of an object, given the name of the field, the open paths and the depth.
type OnField<'f, 'l> = dyn FnMut(&mut Scan<'l>, &'l [u8], Open, usize) -> Scanned<()> + 'f;

/// Skips a value.
fn skip<'l>(scan: &mut Scan<'l>, _name: &'l [u8], _open: Open, depth: usize) -> Scanned<()> {
    scan.value(0, depth, &mut skip).map(drop)
}

/// The wanted fields that were read so far.
struct Fields<'p, 'r> {
    paths: &'p Paths,
    seen: Open,
    row: &'r mut Row,
}

impl Fields<'_, '_> {
    fn value<'l>(&mut self, scan: &mut Scan<'l>, name: &'l [u8], open: Open, depth: usize) -> Scanned<()> {
        let step = self.paths.step(open, depth, &decoded(name));
        let raw = scan.value(step.deeper, depth, &mut |scan, name, open, depth| {
            self.value(scan, name, open, depth)
        })?;
        let Some(place) = step.here else {
            return Ok(());
        };
        let bit = 1 << step.path;
        let is_first = self.seen & bit == 0;
        if !is_first && self.paths.details & bit == 0 {
            return Err(Fault::Twice(step.path, scan.at));
        }
        self.seen |= bit;
        if is_first {
            set(self.row, place, raw);
        }
        Ok(())
    }

    /// Whether all fields were seen that are not details. A name with dots has two paths to one place.
    fn has_all(&self) -> bool {
        let places = |all: Open| {
            let numbers = self.paths.all.iter().enumerate();
            numbers
                .filter(move |(number, _)| all & (1 << number) != 0)
                .map(|(_, path)| path.place)
        };
        places(!self.paths.details).all(|place| places(self.seen).any(|seen| seen == place))
    }
}

/// Sets a field: a text without its quotation marks and escapes, another value as written. Nothing and null are missing.
fn set(row: &mut Row, place: usize, raw: &[u8]) {
    match raw {
        [] | b"null" => {}
        [b'"', ..] => row.set(place, &decoded(raw)),
        // Caddy writes headers as arrays.
        [b'[', text @ .., b']'] => match (serde_json::from_slice::<[String; 1]>(raw), text) {
            (Ok([text]), _) => row.set(place, text.as_bytes()),
            (_, [b'"', .., b'"']) if !text.windows(2).any(|pair| pair == b"\",") => {
                row.set(place, &decoded(text))
            }
            _ => row.set(place, raw),
        },
        _ => row.set(place, raw),
    }
}

/// The content of a text in quotation marks.
pub(crate) fn decoded(raw: &[u8]) -> Cow<'_, [u8]> {
    let inner = raw
        .strip_prefix(b"\"")
        .and_then(|raw| raw.strip_suffix(b"\""))
        .unwrap_or(raw);
    if memchr(b'\\', inner).is_none() {
        return Cow::Borrowed(inner);
    }
    // An escape may be unknown, or a lone surrogate.
    let text = serde_json::from_slice::<String>(raw).map(String::into_bytes);
    Cow::Owned(text.unwrap_or_else(|_| unescaped(inner)))
}

/// A text without the escapes of JSON. Others are kept as written.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some(at) = memchr(b'\\', rest) {
        let (before, escapes) = rest.split_at(at);
        out.extend_from_slice(before);
        // An escape has two or six bytes, and some characters have two escapes.
        let decoded = [12, 6, 2].into_iter().find_map(|length| {
            let quoted = [&b"\""[..], escapes.get(..length)?, b"\""].concat();
            Some((length, serde_json::from_slice::<String>(&quoted).ok()?))
        });
        let length = match decoded {
            Some((length, text)) => {
                out.extend_from_slice(text.as_bytes());
                length
            }
            None => {
                out.push(b'\\');
                1
            }
        };
        rest = &escapes[length..];
    }
    out.extend_from_slice(rest);
    out
}

/// A place in a line.
struct Scan<'l> {
    line: &'l [u8],
    at: usize,
}

impl<'l> Scan<'l> {
    /// The next byte that is not white space, which is skipped.
    fn next(&mut self) -> Option<u8> {
        self.at = self.line.len() - self.line[self.at..].trim_ascii_start().len();
        self.line.get(self.at).copied()
    }

    /// Scans an object that is the whole line.
    fn whole(&mut self, on_field: &mut OnField<'_, 'l>) -> Scanned<()> {
        if self.next() != Some(b'{') {
            return Err(Fault::Invalid);
        }
        self.object(Open::MAX, 0, on_field)?;
        self.next().map_or(Ok(()), |_| Err(Fault::Invalid))
    }

    /// Scans the object that begins here.
    fn object(&mut self, open: Open, depth: usize, on_field: &mut OnField<'_, 'l>) -> Scanned<()> {
        self.at += 1;
        if self.next() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.expect(b'"')?;
            let name = self.text(|_| true)?;
            self.expect(b':')?;
            self.at += 1;
            on_field(self, name, open, depth)?;
            match self.next() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => return Err(Fault::Invalid),
                None => return Err(Fault::Cut),
            }
        }
    }

    /// Adds the path of the value that begins here, or with `inner` those of the values in an object.
    fn names(&mut self, path: Vec<u8>, inner: bool, depth: usize, names: &mut Vec<Vec<u8>>) -> Scanned<()> {
        if !inner || self.next() != Some(b'{') {
            names.push(path);
            return self.value(0, depth, &mut skip).map(drop);
        }
        let below = |name: &[u8]| [&path, &b"."[..], &decoded(name)].concat();
        self.value(0, depth, &mut |scan, name, _, depth| {
            scan.names(below(name), true, depth, names)
        })
        .map(drop)
    }

    fn expect(&mut self, byte: u8) -> Scanned<()> {
        match self.next() {
            Some(next) if next == byte => Ok(()),
            Some(_) => Err(Fault::Invalid),
            None => Err(Fault::Cut),
        }
    }

    /// Scans the value of a field, and returns it as written.
    fn value(&mut self, open: Open, depth: usize, on_field: &mut OnField<'_, 'l>) -> Scanned<&'l [u8]> {
        let next = self.next();
        let start = self.at;
        match next {
            None => return Err(Fault::Cut),
            Some(b'{' | b'[') if depth == DEEPEST => return Err(Fault::Invalid),
            Some(b'{') => self.object(open, depth + 1, on_field)?,
            Some(b'[') => self.array(depth + 1)?,
            Some(b'"') => drop(self.text(ends_field)?),
            Some(_) => {
                // Another value ends at a comma before the next name, or at the end of the object.
                let ends = |at: usize| match self.line[at] {
                    b'}' => true,
                    b',' => begins_name(&self.line[at + 1..]),
                    _ => false,
                };
                self.at = (start..self.line.len()).find(|&at| ends(at)).ok_or(Fault::Cut)?;
                return Ok(self.line[start..self.at].trim_ascii());
            }
        }
        Ok(&self.line[start..self.at])
    }

    /// Scans the array that begins here.
    fn array(&mut self, depth: usize) -> Scanned<()> {
        self.at += 1;
        loop {
            match self.next() {
                None => return Err(Fault::Cut),
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'{' | b'[') if depth == DEEPEST => return Err(Fault::Invalid),
                Some(b'{') => self.object(0, depth + 1, &mut skip)?,
                Some(b'[') => self.array(depth + 1)?,
                Some(b'"') => {
                    self.text(|rest| matches!(rest.first(), Some(b',' | b']')))?;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// Scans the text that begins here, and returns it with its quotation marks. It ends at one that is not escaped, and behind
    /// which `ends` holds.
    fn text(&mut self, ends: fn(&[u8]) -> bool) -> Scanned<&'l [u8]> {
        let text = &self.line[self.at + 1..];
        let end = closing(text, |rest| ends(rest.trim_ascii_start())).ok_or(Fault::Cut)?;
        let start = self.at;
        self.at += end + 2;
        Ok(&self.line[start..self.at])
    }
}

/// Whether the value of a field ends before this text.
fn ends_field(rest: &[u8]) -> bool {
    match rest {
        [] | [b'}', ..] => true,
        [b',', rest @ ..] => begins_name(rest),
        _ => false,
    }
}

/// Whether the name of a field begins with this text.
fn begins_name(text: &[u8]) -> bool {
    text.trim_ascii_start().first() == Some(&b'"')
}
