//! Logs of nginx by the string of its directive `log_format`.

use regex::bytes::Regex;

use crate::failure::Failure;
use crate::input::format::columns::{Part, Standard};

/// The fields of the tool with the variables that have them.
pub(crate) const STANDARD: &[Standard] = &[
    ("client", "remote_addr realip_remote_addr client", Part::Address),
    ("user", "remote_user", Part::Whole),
    ("method", "request_method", Part::Whole),
    ("target", "request_uri", Part::Whole),
    ("path", "uri request_uri", Part::Path),
    ("protocol", "server_protocol", Part::Whole),
    ("size", "body_bytes_sent bytes_sent", Part::Whole),
    ("referer", "http_referer", Part::Whole),
    ("agent", "http_user_agent", Part::Whole),
    ("vhost", "host http_host server_name", Part::Whole),
];

/// Variables with the time, in the order of preference.
pub(crate) const TIMES: &[&str] = &["msec", "time_iso8601", "time_local"];

/// A part of the string.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(String),
}

/// The expressions of a format, and the names of their groups.
#[derive(Debug)]
pub(crate) struct Expressions {
    /// Matches lines whose values have the form of their variables.
    pub(crate) exact: Regex,
    /// Matches lines in which only the times have that form: a value may be missing, or not be escaped.
    pub(crate) loose: Regex,
    pub(crate) names: Vec<String>,
}

/// The expressions that match lines of a format.
///
/// # Errors
///
/// When the string is a directive, has no variable, names one twice or has two without a text between them.
pub(crate) fn expression(format: &str) -> Result<Expressions, Failure> {
    let wrong = |given: &str, expected: &str| Failure::argument("--log-format", given, expected);
    if format.trim_start().starts_with("log_format ") || format.contains('\n') {
        return Err(wrong(
            "a whole directive",
            "its string alone, in one piece: '$remote_addr [$time_local] \"$request\"'",
        ));
    }
    let pieces = pieces(format);
    let mut names = Vec::new();
    let mut exact = String::from("(?s-u)^");
    let mut loose = exact.clone();
    for (number, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => {
                exact += &regex::escape(text);
                loose += &regex::escape(text);
            }
            Piece::Variable(name) => {
                if names.contains(name) {
                    return Err(wrong(&format!("${name} twice"), "each variable once"));
                }
                if matches!(pieces.get(number + 1), Some(Piece::Variable(_))) {
                    return Err(wrong(
                        &format!("${name} without a text behind it"),
                        "a text between variables",
                    ));
                }
                let before = number.checked_sub(1).map(|before| &pieces[before]);
                let quoted = matches!(before, Some(Piece::Text(text)) if text.ends_with('"'))
                    && matches!(pieces.get(number + 1), Some(Piece::Text(text)) if text.starts_with('"'));
                let of_value = match name.as_str() {
                    "remote_addr" | "realip_remote_addr" | "request_method" => r"([^ ]+)",
                    "status" => r"([0-9]{3})",
                    "body_bytes_sent" | "bytes_sent" => r"([0-9]+|-)",
                    "msec" | "request_time" => r"([0-9]+\.[0-9]+)",
                    "time_local" => r"([0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8} [+-][0-9]{4})",
                    "time_iso8601" => r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[Z+-][0-9:]*)",
                    // In quotation marks, nginx escapes those of the value.
                    _ if quoted => r#"([^"\\]*(?:\\.[^"\\]*)*)"#,
                    name if may_have_spaces(name) => "(.*?)",
                    _ => "([^ ]*?)",
                };
                exact += of_value;
                loose += match name.as_str() {
                    "remote_addr" | "realip_remote_addr" | "msec" | "time_local" | "time_iso8601" => of_value,
                    _ if quoted => "(.*?)",
                    name if may_have_spaces(name) && name != "request_time" => "(.*?)",
                    _ => "([^ ]*?)",
                };
                names.push(name.clone());
            }
        }
    }
    if names.is_empty() {
        return Err(wrong(
            &format!("{format:?}"),
            "variables of nginx, as in '$remote_addr [$time_local] \"$request\"'",
        ));
    }
    let regex = |source: String| {
        Regex::new(&(source + "$")).map_err(|error| wrong(&format!("{format:?}"), &error.to_string()))
    };
    Ok(Expressions {
        exact: regex(exact)?,
        loose: regex(loose)?,
        names,
    })
}

/// Whether the value of a variable may have spaces: a client chooses it, or it is a list.
fn may_have_spaces(name: &str) -> bool {
    const PREFIXES: [&str; 6] = ["http_", "sent_http_", "upstream_", "cookie_", "arg_", "request"];
    name == "remote_user" || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The texts and the variables `$name` and `${name}`. Another dollar sign is text.
fn pieces(format: &str) -> Vec<Piece> {
    let variable =
        regex::Regex::new(r"\$(?:\{([0-9A-Za-z_]+)\}|([0-9A-Za-z_]+))").expect("a valid expression");
    let (mut pieces, mut end) = (Vec::new(), 0);
    for found in variable.captures_iter(format) {
        let (whole, [name]) = found.extract();
        let start = found.get(0).map_or(end, |whole| whole.start());
        pieces.push(Piece::Text(format[end..start].to_owned()));
        pieces.push(Piece::Variable(name.to_owned()));
        end = start + whole.len();
    }
    pieces.push(Piece::Text(format[end..].to_owned()));
    pieces.retain(|piece| *piece != Piece::Text(String::new()));
    pieces
}
