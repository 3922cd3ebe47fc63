//! Detection of formats.

use crate::failure::Failure;
use crate::input::choice::FormatArg;
use crate::input::client;
use crate::input::format::alb::{ALB, ELB};
use crate::input::format::common::field::CommonField;
use crate::input::format::common::{self, CommonLayout};
use crate::input::format::envoy::ENVOY;
use crate::input::format::haproxy::Haproxy;
use crate::input::format::istio::Istio;
use crate::input::format::named::csv::Header;
use crate::input::format::named::servers::{CADDY, TRAEFIK, has_all};
use crate::input::format::named::{fields, json, logfmt};
use crate::input::format::nlb::NLB;
use crate::input::format::proxy_manager::ProxyManager;
use crate::input::format::s3::S3;
use crate::input::format::words::{self, WordFormat};
use crate::input::format::wrapper::container::{Cri, Docker, Timed};
use crate::input::format::wrapper::journald::Journald;
use crate::input::format::wrapper::rfc5424::Rfc5424;
use crate::input::format::wrapper::syslog::Syslog;
use crate::input::format::wrapper::{Envelope, Parts};
use crate::input::format::{LogFormat, WantedFields, sample};
use crate::input::row::{Row, shown};
use crate::input::time::infer_year::YearInference;
use crate::input::time::timestamp::{TimestampFormat, TimestampParser};

/// The first lines of an input with their numbers.
pub(crate) type FirstLines = [(usize, Vec<u8>)];

/// A parser of timestamps whose results are not kept.
pub(crate) fn parser() -> TimestampParser {
    TimestampParser::new(TimestampFormat::Auto, YearInference::new(None, 0), 0)
}

/// Refuses a log in which most users are addresses: another format, with the client in that place.
pub(crate) fn reject_address_as_user(lines: &FirstLines) -> Result<(), Failure> {
    let mut timestamps = parser();
    let layout = CommonLayout {
        names: true,
        vhost: false,
    };
    let (mut all, mut addresses, mut example) = (0, 0, None);
    for (number, line) in lines {
        let mut row = Row::new(1);
        if common::parse(line, layout, &mut timestamps, &[(CommonField::User, 0)], &mut row).is_ok() {
            all += 1;
            let user = row.get(0).unwrap_or_default();
            if user
                .split(|byte| b" ,".contains(byte))
                .any(|word| client::address(word).is_some())
            {
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
    let mut timestamps = parser();
    let has_directives = lines.iter().any(|(_, line)| line.starts_with(b"#Fields:"));
    // Each format with the number of its first line, and its lines.
    let mut found: Vec<(FormatArg, usize, usize)> = Vec::new();
    for (number, line) in sample(lines) {
        if has_directives && found.is_empty() && line.starts_with(b"#") {
            return Some((FormatArg::W3c, *number));
        }
        if let Some(kind) = detect_line(line, &mut timestamps, wanted) {
            match found.iter_mut().find(|(known, ..)| *known == kind) {
                Some((_, _, count)) => *count += 1,
                None => found.push((kind, *number, 1)),
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

fn detect_line(line: &[u8], timestamps: &mut TimestampParser, wanted: &WantedFields) -> Option<FormatArg> {
    if line.trim_ascii_start().starts_with(b"{") {
        let names = json::names(line);
        return match () {
            () if names.is_empty() => None,
            () if Docker::is(&names) => Some(FormatArg::Docker),
            () if Journald::is(&names) => Some(FormatArg::Journald),
            () if has_all(&names, &CADDY) => Some(FormatArg::Caddy),
            () if has_all(&names, &TRAEFIK) => Some(FormatArg::Traefik),
            () => Some(FormatArg::Json),
        };
    }
    if let Some(kind) = envelope_of(line, timestamps, false) {
        return Some(kind);
    }
    let nothing = WantedFields::default();
    let mut row = Row::new(1);
    let layouts: [(words::Layout, FormatArg); 5] = [
        (NLB, FormatArg::Nlb),
        (ALB, FormatArg::Alb),
        (ELB, FormatArg::Elb),
        (S3, FormatArg::S3),
        (ENVOY, FormatArg::Envoy),
    ];
    for (layout, kind) in layouts {
        // The client is there, and is an address.
        let with_client = WantedFields {
            fields: vec![("client".to_owned(), 0)],
            time_place: 1,
            time: None,
        };
        let wanted = if kind == FormatArg::S3 || kind == FormatArg::Envoy {
            &nothing
        } else {
            &with_client
        };
        if WordFormat::new(layout, wanted)
            .is_ok_and(|words| words.strict().parse(line, timestamps, &mut row).is_ok())
        {
            return Some(kind);
        }
    }
    if Istio::new(&nothing).is_ok_and(|mut format| format.parse(line, timestamps, &mut row).is_ok()) {
        return Some(FormatArg::Istio);
    }
    if ProxyManager::new(&nothing).is_ok_and(|mut format| format.parse(line, timestamps, &mut row).is_ok()) {
        return Some(FormatArg::ProxyManager);
    }
    if Haproxy::new(&nothing).is_ok_and(|mut format| format.parse(line, timestamps, &mut row).is_ok()) {
        return Some(FormatArg::Haproxy);
    }
    let names = CommonLayout {
        names: true,
        vhost: false,
    };
    if common::parse(line, names, timestamps, &[], &mut row).is_ok() {
        return Some(FormatArg::Combined);
    }
    if let Some(kind) = envelope_of(line, timestamps, true) {
        return Some(kind);
    }
    fields::has_time(&logfmt::names(line), wanted).then_some(FormatArg::Logfmt)
}

/// The envelope of a line in text. Those that begin with a full time are tried after formats that do so too.
fn envelope_of(line: &[u8], timestamps: &mut TimestampParser, full_time: bool) -> Option<FormatArg> {
    let mut parts = Parts::default();
    if full_time {
        if Timed.split(line, &mut parts).is_ok() && timestamps.detected(&parts.time).is_some() {
            let names = CommonLayout {
                names: false,
                vhost: false,
            };
            let is_line = common::parse(&parts.message, names, timestamps, &[], &mut Row::new(0)).is_ok()
                || !json::names(&parts.message).is_empty();
            if is_line {
                return Some(FormatArg::Timed);
            }
        }
        let mut parts = Parts::default();
        let is_syslog = Syslog { without_year: false }.split(line, &mut parts).is_ok();
        return (is_syslog && timestamps.detected(&parts.time).is_some()).then_some(FormatArg::Syslog);
    }
    if Cri.split(line, &mut parts).is_ok() {
        return Some(FormatArg::Cri);
    }
    if Rfc5424.split(line, &mut parts).is_ok() {
        return Some(FormatArg::Rfc5424);
    }
    let mut parts = Parts::default();
    let is_syslog = Syslog { without_year: true }.split(line, &mut parts).is_ok();
    (is_syslog && timestamps.syslog(&parts.time).is_some()).then_some(FormatArg::Syslog)
}

/// The envelope of the first line that has one.
pub(crate) fn detect_envelope(lines: &FirstLines) -> Option<(FormatArg, usize)> {
    let mut timestamps = parser();
    lines.iter().find_map(|(number, line)| {
        let names = json::names(line);
        let kind = match () {
            () if Docker::is(&names) => Some(FormatArg::Docker),
            () if Journald::is(&names) => Some(FormatArg::Journald),
            () => {
                envelope_of(line, &mut timestamps, false).or_else(|| envelope_of(line, &mut timestamps, true))
            }
        };
        Some((kind?, *number))
    })
}
