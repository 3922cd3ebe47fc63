//! Lines of known software whose client the tool cannot know. The error names the software and a pattern to copy.

use core::net::IpAddr;

use regex::bytes::Regex;

use crate::failure::Failure;
use crate::input::client;
use crate::input::format::common::{self, CommonLayout};
use crate::input::format::{FirstLines, sample, words};
use crate::input::time::timestamp::TimestampParser;

/// The rest of a line of the common format, as the groups of a pattern.
const REST: &str = r#"[^"]*\[(?<time>[^]]{26})\] "(?<method>[^ "]+) (?<path>[^ ?"]+)[^"]*" (?<status>[0-9-]+) (?<size>[0-9-]+)"#;

/// The colours of a terminal.
const COLOUR: &str = r"(?:\x1b\[[0-9;]*m)*";

const METHOD: &str = "(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE)";

/// Whether a line is of a kind.
type IsOfKind = dyn Fn(&[u8]) -> bool;

/// Lines that are refused if enough of the first lines are of this kind.
struct Kind {
    is: Box<IsOfKind>,
    /// The least part of the lines, as a number of lines of which one is of the kind.
    of: usize,
    /// The software, what is wrong, and the expected input.
    message: String,
}

/// Refuses the first lines of an input if software wrote them that the tool knows and does not read.
///
/// # Errors
///
/// When a part of the lines is of that software.
pub(crate) fn refuse(lines: &FirstLines) -> Result<(), Failure> {
    let lines = sample(lines);
    if !lines.is_empty() && lines.iter().all(|(_, line)| has_no_client(line)) {
        return Err(Failure::new(format!(
            "no line has a client: the first column is \"-\" in all of the first {} lines (expected an address there, as by \
             $remote_addr of nginx or %h of Apache; for another column: --pattern '^[^ ]+ (?<address>[^ ]+) {REST}')",
            lines.len()
        )));
    }
    for kind in kinds() {
        let mut found = lines.iter().filter(|(_, line)| (kind.is)(line));
        let Some((number, _)) = found.next() else { continue };
        if (1 + found.count()) * kind.of > lines.len() {
            return Err(Failure::new(format!("line {number} is of {}", kind.message)));
        }
    }
    Ok(())
}

fn kinds() -> Vec<Kind> {
    let mut kinds = vec![
        Kind {
            is: Box::new(has_list_first),
            of: 10,
            message: format!(
                "a log with X-Forwarded-For in the first column: which of several addresses is the client depends on the \
                 proxies (expected one address; for the last, which the nearest proxy saw: \
                 --pattern '^(?:[^ ,]+, ?)*(?<address>[^ ,]+) {REST}')"
            ),
        },
        Kind {
            is: Box::new(has_two_addresses),
            of: 10,
            message: format!(
                "a log with two addresses in the first columns, as X-Forwarded-For before the peer (expected one address; for \
                 the first: --pattern '^(?<address>[^ ]+) {REST}'; for the second: \
                 --pattern '^[^ ]+ (?<address>[^ ]+) {REST}')"
            ),
        },
        Kind {
            is: Box::new(has_other_bracket),
            of: 10,
            message: format!(
                "ingress-nginx with another address in brackets than in the first column (expected the same one; for the last \
                 in brackets: --pattern '^[^ ]+ - \\[(?:[^] ,]+, ?)*(?<address>[^] ,]+)\\] {REST}'; for the first column: \
                 --pattern '^(?<address>[^ ]+) {REST}')"
            ),
        },
        Kind {
            is: Box::new(has_envoy_list),
            of: 10,
            message: "Envoy or Istio with several addresses in X-Forwarded-For (expected one; for the last, which the nearest \
                      proxy saw: --pattern '^\\[(?<time>[^]]+)\\] \"(?<method>[^ \"]+) (?<path>[^ ?\"]+)[^\"]*\" \
                      (?<status>[0-9]+) .* \"(?:[^\", ]+, ?)*(?<address>[0-9a-fA-F.:]+)\" \"[^\"]*\" \"[^\"]*\" \"[^\"]*\" \
                      \"[^\"]*\"')"
                .into(),
        },
    ];
    let texts = [
        (
            format!(
                r"^{COLOUR}{METHOD} \S+ {COLOUR}(?:[0-9]{{3}}|-){COLOUR} (?:[0-9.]+|-) ms - (?:[0-9]+|-){COLOUR}\s*$"
            ),
            "morgan in its format dev, which has neither a client nor a time (expected morgan('combined'); in messages of a \
             container or of syslog: --pattern '(?<method>[A-Z]+) (?<target>[^ ]+) ' --key target)",
        ),
        (
            format!(r"^{METHOD} \S+ (?:[0-9]{{3}}|-) (?:[0-9]+|-) - (?:[0-9.]+|-) ms$"),
            "morgan in its format tiny, which has neither a client nor a time (expected morgan('combined'); in messages of a \
             container or of syslog: --pattern '^(?<method>[A-Z]+) (?<target>[^ ]+) ' --key target)",
        ),
        (
            format!(r"^\S+ \S+ {METHOD} \S+ HTTP/[0-9.]+ (?:[0-9]{{3}}|-) (?:[0-9]+|-) - (?:[0-9.]+|-) ms$"),
            "morgan in its format short, which has no time (expected morgan('combined'); in messages of a container or of \
             syslog: --pattern '^(?<address>[^ ]+) (?<user>[^ ]+) (?<method>[A-Z]+) (?<path>[^ ?]+)')",
        ),
        (
            r#"^\S+ - .* \[[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT\] ""#.into(),
            "morgan in its format default, whose time the tool does not read (expected morgan('combined'); in messages of a \
             container or of syslog, with the time of those: --pattern '^(?<address>[^ ]+) - [^\"]*\"(?<method>[A-Z]+) \
             (?<path>[^ ?]+)')",
        ),
        (
            r"^%?[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\t[A-Z][A-Za-z.]+\t[0-9a-fA-F.:]*\t".into(),
            "an audit file of EZproxy, which has events and no requests (expected the file of LogFile; for the events: \
             --pattern '^(?<time>[^\\t]+)\\t(?<event>[^\\t]+)\\t(?<address>[0-9a-fA-F.:]+)\\t')",
        ),
    ];
    kinds.extend(texts.into_iter().filter_map(|(expression, message)| {
        let expression = Regex::new(&expression).ok()?;
        Some(Kind {
            is: Box::new(move |line| expression.is_match(line)),
            of: 2,
            message: message.into(),
        })
    }));
    kinds
}

/// Whether a line of the common format has a client, where `rest` follows an address in its place.
fn is_common(rest: &[u8]) -> bool {
    let line = [b"192.0.2.1", rest].concat();
    common::is(&line, CommonLayout::ADDRESSES, &mut TimestampParser::detecting())
}

fn has_no_client(line: &[u8]) -> bool {
    line.starts_with(b"- ") && is_common(&line[1..])
}

/// Whether several addresses with commas between them begin a line.
fn has_list_first(line: &[u8]) -> bool {
    let Some(end) = end_of_list(line) else {
        return false;
    };
    let rest = &line[end..];
    let second = rest
        .get(1..)
        .and_then(|rest| rest.split(|&byte| byte == b' ').next());
    let peer = second.filter(|second| *second != b"-" && client::address(second).is_some());
    line[..end].contains(&b',') && is_common(&rest[peer.map_or(0, |peer| peer.len() + 1)..])
}

/// The end of the addresses at the beginning of a line.
fn end_of_list(line: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let length = line[at..].iter().position(|byte| b", ".contains(byte))?;
        let word = &line[at..at + length];
        if client::address(word).is_none() && !matches!(word, b"unknown" | b"-") {
            return None;
        }
        at += length;
        match line[at..] {
            [b',', b' ', ..] => at += 2,
            [b',', ..] => at += 1,
            _ => return Some(at),
        }
    }
}

fn has_two_addresses(line: &[u8]) -> bool {
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_client = |word| client::address(word).is_some();
    (is_client(first) || first == b"-")
        && is_client(second)
        && !client::has_port(first)
        && is_common(&line[first.len() + 1 + second.len()..])
}

/// Whether the address in brackets of ingress-nginx is not the one before it.
fn has_other_bracket(line: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(line, b" - [") else {
        return false;
    };
    let Some(end) = memchr::memmem::find(&line[at..], b"] - ") else {
        return false;
    };
    let inner = &line[at + 4..at + end];
    let address =
        |text: &[u8]| -> Option<IpAddr> { str::from_utf8(client::address(text)?).ok()?.parse().ok() };
    let first = address(&line[..at]);
    let mut words = client::listed(inner);
    first.is_some()
        && words.clone().all(|word| client::address(word).is_some())
        && words.any(|word| address(word) != first)
        && is_common(&line[at..])
}

fn has_envoy_list(line: &[u8]) -> bool {
    let mut places = Vec::new();
    if words::split(line, &mut places).is_some() {
        return false;
    }
    let forwarded = match places.len() {
        13 => 8,
        21 => 10,
        22 => 11,
        _ => return false,
    };
    let (start, end) = places[forwarded];
    let list = &line[start..end];
    let mut addresses = client::listed(list);
    line.starts_with(b"[") && list.contains(&b',') && addresses.all(|word| client::address(word).is_some())
}

#[cfg(test)]
mod tests {
    use super::kinds;

    #[test]
    fn each_expression_is_valid() {
        assert_eq!(kinds().len(), 9);
    }
}
