//! Lines of known software whose client the tool cannot know. The error names the software and a pattern to copy.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::failure::Failure;
use crate::input::client;
use crate::input::format::common::{self, CommonLayout};
use crate::input::format::{FirstLines, sample};
use crate::input::time::timestamp::TimestampParser;

/// The rest of a line of the common format, as the groups of a pattern.
const REST: &str = r#"[^"]*\[(?<time>[^]]{26})\] "(?<method>[^ "]+) (?<path>[^ ?"]+)[^"]*" (?<status>[0-9-]+) (?<size>[0-9-]+)"#;

/// The colours of a terminal.
const COLOUR: &str = r"(?:\x1b\[[0-9;]*m)*";

const METHOD: &str = "(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE)";

/// Lines that are refused if enough of the first lines are of this kind.
struct Kind {
    /// The groups other than `rest` have the addresses of a line, all of them clients. If groups have no name, the addresses must
    /// differ. `rest` is that of a line of the common format behind the client.
    expression: Regex,
    /// The least part of the lines, as a number of lines of which one is of the kind.
    of: usize,
    /// The software, what is wrong, and the expected input.
    message: String,
}

impl Kind {
    fn is(&self, line: &[u8]) -> bool {
        let Some(found) = self.expression.captures(line) else {
            return false;
        };
        let names = || self.expression.capture_names().skip(1);
        let groups = names()
            .zip(found.iter().skip(1))
            .filter(|(name, _)| *name != Some("rest"));
        let words = groups.filter_map(|(_, group)| Some(client::listed(group?.as_bytes())));
        let words: Vec<&[u8]> = words.flatten().collect();
        let is_client = |word: &&[u8]| matches!(*word, b"-" | b"unknown") || client::address(word).is_some();
        let is_other = |word: &&[u8]| client::spelled(word) != client::spelled(words[0]);
        let has_rest = found.name("rest").is_none_or(|rest| is_common(rest.as_bytes()));
        let may_be_equal = names().all(|name| name.is_some());
        has_rest && words.iter().all(is_client) && (may_be_equal || words.iter().any(is_other))
    }
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
    for kind in KINDS.iter() {
        let mut found = lines.iter().filter(|(_, line)| kind.is(line));
        let Some((number, _)) = found.next() else { continue };
        if (1 + found.count()) * kind.of > lines.len() {
            return Err(Failure::new(format!("line {number} is of {}", kind.message)));
        }
    }
    Ok(())
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let kinds = [
        (
            r"^(?<list>[^ ,]+(?:, ?[^ ,]+)+)(?: (?<peer>[0-9a-fA-F]*[.:][0-9a-fA-F.:]*))?(?<rest> .*)$".to_owned(),
            10,
            format!(
                "a log with X-Forwarded-For in the first column: which of several addresses is the client depends on the \
                 proxies (expected one address; for the last, which the nearest proxy saw: \
                 --pattern '^(?:[^ ,]+, ?)*(?<address>[^ ,]+) {REST}')"
            ),
        ),
        (
            // A name or an address with a port is a virtual host.
            r"^(?<first>[^ :,]+|[^ :,\[]*:[^ :]*:[^ ,]*) (?<second>[^ -][^ ]*)(?<rest> .*)$".to_owned(),
            10,
            format!(
                "a log with two addresses in the first columns, as X-Forwarded-For before the peer (expected one address; for \
                 the first: --pattern '^(?<address>[^ ]+) {REST}'; for the second: \
                 --pattern '^[^ ]+ (?<address>[^ ]+) {REST}')"
            ),
        ),
        (
            r"^([^ ]+) - \[([0-9a-fA-F:., ]+)\](?<rest> - .*)$".to_owned(),
            10,
            format!(
                "ingress-nginx with another address in brackets than in the first column (expected the same one; for the last \
                 in brackets: --pattern '^[^ ]+ - \\[(?:[^] ,]+, ?)*(?<address>[^] ,]+)\\] {REST}'; for the first column: \
                 --pattern '^(?<address>[^ ]+) {REST}')"
            ),
        ),
        (
            r#"^\[[^\]]+\] "[^"]*" (?:(?:"[^"]*"|[^ "]+) ){6,9}?"([^"]+)" (?:(?:"[^"]*"|[^ "]+)(?: |$)){4,}$"#.to_owned(),
            10,
            "Envoy or Istio with several addresses in X-Forwarded-For (expected one; for the last, which the nearest \
             proxy saw: --pattern '^\\[(?<time>[^]]+)\\] \"(?<method>[^ \"]+) (?<path>[^ ?\"]+)[^\"]*\" \
             (?<status>[0-9]+) .* \"(?:[^\", ]+, ?)*(?<address>[0-9a-fA-F.:]+)\" \"[^\"]*\" \"[^\"]*\" \"[^\"]*\" \
             \"[^\"]*\"')"
                .to_owned(),
        ),
        (
            format!(
                r"^{COLOUR}{METHOD} \S+ {COLOUR}(?:[0-9]{{3}}|-){COLOUR} (?:[0-9.]+|-) ms - (?:[0-9]+|-){COLOUR}\s*$"
            ),
            2,
            "morgan in its format dev, which has neither a client nor a time (expected morgan('combined'); in messages of a \
             container or of syslog: --pattern '(?<method>[A-Z]+) (?<target>[^ ]+) ' --key target)".to_owned(),
        ),
        (
            format!(r"^{METHOD} \S+ (?:[0-9]{{3}}|-) (?:[0-9]+|-) - (?:[0-9.]+|-) ms$"),
            2,
            "morgan in its format tiny, which has neither a client nor a time (expected morgan('combined'); in messages of a \
             container or of syslog: --pattern '^(?<method>[A-Z]+) (?<target>[^ ]+) ' --key target)".to_owned(),
        ),
        (
            format!(r"^\S+ \S+ {METHOD} \S+ HTTP/[0-9.]+ (?:[0-9]{{3}}|-) (?:[0-9]+|-) - (?:[0-9.]+|-) ms$"),
            2,
            "morgan in its format short, which has no time (expected morgan('combined'); in messages of a container or of \
             syslog: --pattern '^(?<address>[^ ]+) (?<user>[^ ]+) (?<method>[A-Z]+) (?<path>[^ ?]+)')".to_owned(),
        ),
        (
            r#"^\S+ - .* \[[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT\] ""#.into(),
            2,
            "morgan in its format default, whose time the tool does not read (expected morgan('combined'); in messages of a \
             container or of syslog, with the time of those: --pattern '^(?<address>[^ ]+) - [^\"]*\"(?<method>[A-Z]+) \
             (?<path>[^ ?]+)')".to_owned(),
        ),
        (
            r"^%?[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\t[A-Z][A-Za-z.]+\t[0-9a-fA-F.:]*\t".into(),
            2,
            "an audit file of EZproxy, which has events and no requests (expected the file of LogFile; for the events: \
             --pattern '^(?<time>[^\\t]+)\\t(?<event>[^\\t]+)\\t(?<address>[0-9a-fA-F.:]+)\\t')".to_owned(),
        ),
    ];
    kinds
        .map(|(expression, of, message)| Kind {
            expression: Regex::new(&format!("(?s-u){expression}")).expect("a valid expression"),
            of,
            message,
        })
        .into()
});

/// Whether a line of the common format has a client, where `rest` follows an address in its place.
fn is_common(rest: &[u8]) -> bool {
    let line = [b"192.0.2.1", rest].concat();
    common::is(&line, CommonLayout::Addresses, &mut TimestampParser::detecting())
}

fn has_no_client(line: &[u8]) -> bool {
    line.starts_with(b"- ") && is_common(&line[1..])
}
