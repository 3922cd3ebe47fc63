//! Detection of formats.

use crate::failure::Failure;
use crate::input::choice::{FormatArg, Lines};
use crate::input::client;
use crate::input::format::common::{self, CommonLayout, CommonLine, USER};
use crate::input::format::named::csv::Header;
use crate::input::format::named::servers::has_all;
use crate::input::format::named::{fields, json, logfmt};
use crate::input::format::words::WordFormat;
use crate::input::format::{FirstLines, WantedFields, sample};
use crate::input::row::shown;
use crate::input::time::timestamp::TimestampParser;

/// Refuses a log in which most users are addresses: another format, with the client in that place.
pub(crate) fn reject_address_as_user(lines: &FirstLines) -> Result<(), Failure> {
    let mut timestamps = TimestampParser::detecting();
    let (mut all, mut addresses, mut example) = (0, 0, None);
    for (number, line) in lines {
        if let Ok(split) = CommonLine::of(line, CommonLayout::Names, &mut timestamps) {
            all += 1;
            let user = split.values[USER].unwrap_or_default();
            if client::listed(user).any(|word| client::address(word).is_some()) {
                addresses += 1;
                example.get_or_insert((number, shown(user)));
            }
        }
    }
    match example {
        Some((number, user)) if 2 * addresses > all => Err(Failure::new(format!(
            "line {number} is of no known format: the user is the address \"{user}\" \
             (expected --log-format to say which address is the client, or --format combined if this is a user)"
        ))),
        _ => Ok(()),
    }
}

/// The format of most lines that are of a known format, and the number of the first such line; never `Auto`. A line of a
/// server that writes JSON stands for all lines of JSON.
pub(crate) fn detect(lines: &FirstLines, wanted: &WantedFields) -> Option<(FormatArg, usize)> {
    let (mut timestamps, order) = (TimestampParser::detecting(), FormatArg::in_order());
    let has_directives = lines.iter().any(|(_, line)| line.starts_with(b"#Fields:"));
    // Each format with the number of its first line, and its lines.
    let mut found: Vec<(FormatArg, usize, usize)> = Vec::new();
    for (number, line) in sample(lines) {
        if has_directives && found.is_empty() && line.starts_with(b"#") {
            return Some((FormatArg::W3c, *number));
        }
        let names = json::names(line);
        if names.is_empty() && line.trim_ascii_start().starts_with(b"{") {
            continue;
        }
        let kind = order
            .iter()
            .find(|kind| is_of(**kind, line, &names, &mut timestamps, wanted));
        if let Some(kind) = kind {
            match found.iter_mut().find(|(known, ..)| known == kind) {
                Some((_, _, count)) => *count += 1,
                None => found.push((*kind, *number, 1)),
            }
        }
    }
    // Of several with equally many lines, the first.
    let most = found.iter().rev().max_by_key(|(_, _, count)| *count);
    let is_server =
        |(kind, ..): &&(FormatArg, usize, usize)| matches!(kind, FormatArg::Caddy | FormatArg::Traefik);
    let most = match most {
        Some((FormatArg::Json, ..)) => found.iter().find(is_server).or(most),
        most => most,
    };
    if let Some((kind, number, _)) = most {
        return Some((*kind, *number));
    }
    let (number, first) = lines.first()?;
    let header = Header::parse(first).ok()?;
    (header.names.len() > 1 && fields::has_time(&header.names, wanted)).then_some((FormatArg::Csv, *number))
}

/// Whether a line, which has these names if it is an object, is of a format.
fn is_of(
    kind: FormatArg,
    line: &[u8],
    names: &[String],
    timestamps: &mut TimestampParser,
    wanted: &WantedFields,
) -> bool {
    match kind.lines() {
        Lines::Common(layout) => common::is(line, layout, timestamps),
        Lines::Json(marks) => !names.is_empty() && has_all(names, marks),
        Lines::Logfmt => fields::has_time(&logfmt::names(line), wanted),
        Lines::Words(layout) => WordFormat::is(layout, line, timestamps),
        Lines::Messages(is, _) => is(line, names, timestamps),
        // By the first line of the input.
        Lines::Csv | Lines::W3c => false,
    }
}

/// The envelope of the first line that has one.
pub(crate) fn detect_envelope(lines: &FirstLines) -> Option<(FormatArg, usize)> {
    let (mut timestamps, nothing) = (TimestampParser::detecting(), WantedFields::default());
    let mut order = FormatArg::in_order();
    order.retain(|kind| matches!(kind.lines(), Lines::Messages(..)));
    lines.iter().find_map(|(number, line)| {
        let names = json::names(line);
        let kind = order
            .iter()
            .find(|kind| is_of(**kind, line, &names, &mut timestamps, &nothing));
        Some((*kind?, *number))
    })
}
