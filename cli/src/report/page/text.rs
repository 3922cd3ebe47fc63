//! Figures, times and text of a log for the templates. They escape all but [`Safe`] text.

use core::fmt::Display;

use askama::filters::Safe;
use jiff::{Timestamp, tz::TimeZone};

use crate::report::RuleReport;

/// The characters that are shown of a text from a log.
const SHOWN: usize = 160;

/// The length of a short text: an IPv4 address.
const SHORT: usize = 15;

/// A text from a log as safe HTML: isolated from the surrounding text (it may be written from right to left), with marked
/// escape sequences for unprintable characters, and cut if it is long.
pub(super) fn key(word: &str) -> Safe<String> {
    // A short text stays on one line.
    let class = if word.chars().nth(SHORT).is_some() {
        "key long"
    } else {
        "key"
    };
    let shown = pieces(word, |escape| format!(r#"<span class="esc">{escape}</span>"#));
    Safe(format!(r#"<bdi class="{class}">{shown}</bdi>"#))
}

/// A text from a log as plain escaped text, where HTML allows no elements.
pub(super) fn plain(word: &str) -> Safe<String> {
    Safe(pieces(word, str::to_owned))
}

fn pieces(word: &str, escaped: impl Fn(&str) -> String) -> String {
    let mut html = String::with_capacity(word.len().min(SHOWN) + 16);
    if word.is_empty() {
        html += &escaped("(empty)");
    }
    for c in word.chars().take(SHOWN) {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\\' => html.push(c),
            // The standard library escapes control, format and joining characters.
            c if c.escape_debug().len() > 1 => html += &escaped(&c.escape_debug().to_string()),
            c => html.push(c),
        }
    }
    let length = word.chars().count();
    if length > SHOWN {
        html += &escaped(&format!("… ({} characters)", number(length as u64)));
    }
    html
}

/// Digits in groups of three: 12,345.
pub(super) fn number(figure: impl Display) -> String {
    let digits = figure.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A share in percent with two decimals below 10 % and one above, rounded half up. A part is never shown as 0 % or 100 %.
pub(super) fn percent(part: &u64, whole: &u64) -> String {
    let (part, whole) = (u128::from(*part), u128::from(*whole));
    if part == 0 || whole == 0 {
        return "0\u{a0}%".to_owned();
    }
    if part == whole {
        return "100\u{a0}%".to_owned();
    }
    let rounded = |units: u128| (part * 2 * units + whole) / (2 * whole);
    let hundredths = rounded(10_000);
    let tenths = rounded(1_000);
    match hundredths {
        0 => "<\u{a0}0.01\u{a0}%".to_owned(),
        1..1_000 => format!("{}.{:02}\u{a0}%", hundredths / 100, hundredths % 100),
        _ if tenths >= 1_000 => ">\u{a0}99.9\u{a0}%".to_owned(),
        _ => format!("{}.{}\u{a0}%", tenths / 10, tenths % 10),
    }
}

/// A part of a total: 20 of 900 (2.22 %).
pub(super) fn share(part: &u64, whole: &u64) -> String {
    format!("{} of {} ({})", number(part), number(whole), percent(part, whole))
}

/// Bytes with a unit.
pub(super) fn bytes(count: &u64) -> String {
    match *count {
        0..10_240 => format!("{}\u{a0}B", number(count)),
        10_240..10_485_760 => format!("{}\u{a0}KiB", number(count / 1024)),
        _ => format!("{}\u{a0}MiB", number(count / (1024 * 1024))),
    }
}

/// An instant in UTC, to the second: 2015-05-18 04:22:20.
pub(super) fn time(ms: &i64) -> Safe<String> {
    let instant = Timestamp::from_millisecond(*ms)
        .unwrap_or_default()
        .to_zoned(TimeZone::UTC);
    let text = instant.strftime("%Y-%m-%d %H:%M:%S");
    let datetime = instant.strftime("%Y-%m-%dT%H:%M:%SZ");
    Safe(format!(r#"<time datetime="{datetime}">{text}</time>"#))
}

/// The name of the time zone, which the script replaces.
pub(super) const UTC: Safe<&str> = Safe(r#"<span class="zone">UTC</span>"#);

/// Two instants in UTC, or one if they are in the same second.
pub(super) fn span(first: &i64, last: &i64) -> Safe<String> {
    Safe(match first.div_euclid(1000) == last.div_euclid(1000) {
        true => format!("at {} {UTC}", time(first)),
        false => format!("between {} and {} {UTC}", time(first), time(last)),
    })
}

/// A duration: 60 s, 5 min, 36 h, 2 d.
pub(super) fn duration(ms: f64) -> String {
    // The longest unit with a whole number. A minute is shown as 60 s, a day as 24 h.
    for (unit, length, least) in [
        ("d", 86_400_000.0, 2.0),
        ("h", 3_600_000.0, 1.0),
        ("min", 60_000.0, 2.0),
        ("s", 1_000.0, 1.0),
    ] {
        let count = ms / length;
        if count >= least && count.fract() == 0.0 {
            return format!("{count}\u{a0}{unit}");
        }
    }
    format!("{ms}\u{a0}ms")
}

/// The window of a rule: 60 s, or month from 5, UTC.
pub(super) fn window(rule: &RuleReport) -> String {
    rule.period.clone().unwrap_or_else(|| duration(rule.millis()))
}

/// The quota of a rule: 20 per 60 s, 100 per h, 50,000 per month from 5, UTC.
pub(super) fn quota(rule: &RuleReport) -> String {
    let window = window(rule);
    let window = window.strip_prefix("1\u{a0}").unwrap_or(&window);
    format!("{}\u{a0}per\u{a0}{window}", number(rule.limit))
}

/// The key of a rule as text.
pub(super) fn whom(rule: &RuleReport) -> Safe<String> {
    match rule.is_for_all() {
        true => Safe("all together".to_owned()),
        false => Safe(format!("each {}", plain(&rule.key))),
    }
}

/// A text in quotation marks, with escapes that TOML and Rust share for what a name may have.
pub(super) fn quoted(text: &str) -> Safe<String> {
    let text = text.replace('\\', r"\\").replace('"', "\\\"");
    code(&format!("\"{text}\""))
}

/// A value in an argument `--rule` of a shell, which is in single quotation marks. Within double ones a word is no keyword.
pub(super) fn word(text: &str) -> Safe<String> {
    let text = text.replace('"', "\\\"").replace('\'', "'\\''");
    match text.contains(char::is_whitespace) {
        true => code(&format!("\"{text}\"")),
        false => code(&text),
    }
}

/// A text to copy. Characters that do not print are escape sequences.
fn code(text: &str) -> Safe<String> {
    let mut html = String::new();
    for char in text.chars() {
        match char {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' | '\'' | '\\' => html.push(char),
            _ => html.extend(char.escape_debug()),
        }
    }
    Safe(html)
}

/// Escapes a report for a script element: no `<` can end the element or open a comment, and no character misleads a reader
/// of the source.
pub(super) fn embedded(json: &str) -> Safe<String> {
    let mut safe = String::with_capacity(json.len() + json.len() / 16);
    for c in json.trim().chars() {
        // Such characters occur within strings only, where an escape sequence means the same.
        let hidden = !c.is_ascii() && c.escape_debug().len() > 1 && c.len_utf16() == 1;
        if hidden || matches!(c, '<' | '>' | '&' | '\u{7f}') {
            safe += &format!("\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    Safe(safe)
}

#[cfg(test)]
mod tests {
    use super::{bytes, duration, embedded, key, number, percent, plain, span, time};

    #[test]
    fn text_from_a_log_is_escaped() {
        let plain = |word: &str| plain(word).0;
        let key = |word: &str| key(word).0;
        assert_eq!(plain(r#"</script>"'&\"#), r"&lt;/script&gt;&quot;&#39;&amp;\");
        assert_eq!(plain("a\0\u{1b}\n"), r"a\0\u{1b}\n");
        assert_eq!(key("10.0.0.1"), r#"<bdi class="key">10.0.0.1</bdi>"#);
        // Marks that reverse or hide text are escaped; letters that are written from right to left are not.
        assert_eq!(
            plain("\u{202e}exe\u{200b}\u{feff}\u{2066}"),
            r"\u{202e}exe\u{200b}\u{feff}\u{2066}"
        );
        assert_eq!(plain("שלום é 日本"), "שלום é 日本");
        assert_eq!(
            key("\u{7f}"),
            r#"<bdi class="key"><span class="esc">\u{7f}</span></bdi>"#
        );
        assert_eq!(plain(""), "(empty)");
        assert_eq!(
            plain(&"x".repeat(3000)),
            format!("{}… (3,000 characters)", "x".repeat(160))
        );
    }

    #[test]
    fn figures_are_grouped() {
        assert_eq!(
            [0, 12, 123, 1234, 123_456, 1_234_567].map(number),
            ["0", "12", "123", "1,234", "123,456", "1,234,567"]
        );
        assert_eq!(number(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn a_part_is_never_shown_as_0_or_100_percent() {
        let text = |part, whole| percent(&part, &whole).replace('\u{a0}', "");
        assert_eq!(text(0, 0), "0%");
        assert_eq!(text(0, 7), "0%");
        assert_eq!(text(7, 7), "100%");
        assert_eq!(text(1, 1_000_000), "<0.01%");
        assert_eq!(text(1, 20_000), "0.01%");
        assert_eq!(text(98, 10_000), "0.98%");
        assert_eq!(text(1, 3), "33.3%");
        assert_eq!(text(9_995, 100_000), "10.0%");
        assert_eq!(text(9_994, 100_000), "9.99%");
        assert_eq!(text(9_999, 10_000 + 1), ">99.9%");
        assert_eq!(text(u64::MAX - 1, u64::MAX), ">99.9%");
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(
            time(&1_431_857_103_999).0,
            r#"<time datetime="2015-05-17T10:05:03Z">2015-05-17 10:05:03</time>"#
        );
        assert!(time(&-1).0.contains("1969-12-31 23:59:59"));
        assert!(span(&1_000, &1_999).0.starts_with("at "));
        assert!(span(&-1, &0).0.starts_with("between "));
    }

    #[test]
    fn durations_and_bytes_have_units() {
        let text = |ms| duration(ms).replace('\u{a0}', " ");
        assert_eq!(text(0.25), "0.25 ms");
        assert_eq!(text(1_500.0), "1500 ms");
        assert_eq!(text(60_000.0), "60 s");
        assert_eq!(text(300_000.0), "5 min");
        assert_eq!(text(3_600_000.0), "1 h");
        assert_eq!(text(129_600_000.0), "36 h");
        assert_eq!(text(172_800_000.0), "2 d");
        assert_eq!(bytes(&10_239).replace('\u{a0}', " "), "10,239 B");
        assert_eq!(bytes(&294_504).replace('\u{a0}', " "), "287 KiB");
        assert_eq!(bytes(&(1 << 30)).replace('\u{a0}', " "), "1,024 MiB");
    }

    #[test]
    fn a_report_cannot_end_its_element() {
        let json = "{\"key\":\"</script><!--&\u{2028}\u{202e}é日😀\"}\n";
        let safe = embedded(json).0;
        assert_eq!(
            safe,
            r#"{"key":"\u003c/script\u003e\u003c!--\u0026\u2028\u202eé日😀"}"#
        );
        let again: serde_json::Value = serde_json::from_str(&safe).expect("it is JSON still");
        assert_eq!(again["key"], "</script><!--&\u{2028}\u{202e}é日😀");
    }
}
