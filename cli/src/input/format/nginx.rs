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

/// An expression for the lines of a format.
#[derive(Debug)]
pub(crate) struct Form {
    /// Each value that may have any text is as short as it can be.
    pub(crate) shortest: Regex,
    /// Each such value is as long as it can be. If another value differs by this, a client has written that value into its own,
    /// and the line has several meanings.
    pub(crate) longest: Option<Regex>,
}

/// The expressions of a format, and the names of their groups.
#[derive(Debug)]
pub(crate) struct Expressions {
    /// Those of usual lines, of lines in which more values have spaces, and of lines in which values also may be missing or not
    /// be escaped.
    pub(crate) forms: Vec<Form>,
    pub(crate) names: Vec<String>,
    /// The groups whose values no client chooses.
    pub(crate) fixed: Vec<usize>,
}

/// The expression of a value that may have any text.
const ANY: &str = "(.*?)";

/// The expression of a value without spaces.
const WORD: &str = "([^ ]*?)";

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
    let (mut names, mut fixed) = (Vec::new(), Vec::new());
    let mut sources = [(); 3].map(|()| String::from("(?s-u)^"));
    for (number, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => sources
                .iter_mut()
                .for_each(|source| *source += &regex::escape(text)),
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
                let (typed, has_gaps) = typed(name);
                // In quotation marks, nginx escapes those of the value.
                let escaped = quoted.then_some(r#"([^"\\]*(?:\\.[^"\\]*)*)"#);
                let usual = if may_have_spaces(name, &USUAL) { ANY } else { WORD };
                let spaced = if may_have_spaces(name, &RARE) { ANY } else { usual };
                sources[0] += typed.or(escaped).unwrap_or(usual);
                sources[1] += typed.or(escaped).unwrap_or(spaced);
                sources[2] += match typed {
                    Some(_) if has_gaps => WORD,
                    Some(typed) => typed,
                    None if quoted => ANY,
                    None => spaced,
                };
                if typed.is_some() {
                    fixed.push(names.len());
                }
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
    let regex = |source: &str| {
        Regex::new(&format!("{source}$")).map_err(|error| wrong(&format!("{format:?}"), &error.to_string()))
    };
    let form = |source: &str| -> Result<Form, Failure> {
        Ok(Form {
            shortest: regex(source)?,
            longest: Some(regex(&source.replace(ANY, "(.*)"))?),
        })
    };
    Ok(Expressions {
        forms: sources
            .iter()
            .map(|source| form(source))
            .collect::<Result<_, _>>()?,
        names,
        fixed,
    })
}

/// The expression of a variable that no client chooses, and whether a value may be missing or have another form.
fn typed(name: &str) -> (Option<&'static str>, bool) {
    let (expression, has_gaps) = match name {
        "remote_addr" | "realip_remote_addr" | "request_method" => (r"([^ ]+)", false),
        "msec" => (r"([0-9]+\.[0-9]+)", false),
        "time_local" => (r"([0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8} [+-][0-9]{4})", false),
        "time_iso8601" => (r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[Z+-][0-9:]*)", false),
        "status" => (r"([0-9]{3})", true),
        "body_bytes_sent" | "bytes_sent" => (r"([0-9]+|-)", true),
        "request_time" => (r"([0-9]+\.[0-9]+)", true),
        _ => return (None, false),
    };
    (Some(expression), has_gaps)
}

/// The beginnings of the names of variables whose values have spaces in usual lines: a client chooses them, or they are lists.
const USUAL: [&str; 7] = [
    "http_",
    "sent_http_",
    "upstream_",
    "cookie_",
    "arg_",
    "request",
    "remote_user",
];

/// Those of variables whose values have spaces in some lines.
const RARE: [&str; 6] = [
    "uri",
    "document_uri",
    "geoip",
    "ssl_client_",
    "proxy_add_",
    "date_",
];

fn may_have_spaces(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
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
