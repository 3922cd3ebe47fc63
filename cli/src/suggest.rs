//! The limits at which at most a given share is denied.

use ringgate::Quota;
use serde::Serialize;
use serde_json::Number;

use crate::args::AlgorithmName;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::replay::by_key::ByKey;
use crate::replay::in_millis;
use crate::replay::lowest::{LimitDenials, Search};
use crate::replay::requests::Inputs;
use crate::replay::simulate::ladder;
use crate::replay::span::Span;
use crate::report::VERSION;
use crate::report::tables::{row, table};
use crate::rules::argument::ALL;
use crate::rules::{Plan, PlanEntry};

/// A percentage from `0%` to `100%`.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    text: String,
    percent: f64,
}

impl Share {
    /// The default shares.
    pub(crate) const DEFAULT: [&str; 4] = ["0%", "0.1%", "1%", "5%"];

    /// Parses a share such as `0.5%`.
    ///
    /// # Errors
    ///
    /// When the text has another form.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let number = text.strip_suffix('%').filter(|number| {
            let digits = |byte: u8| byte.is_ascii_digit() || byte == b'.';
            number.starts_with(|c: char| c.is_ascii_digit()) && number.bytes().all(digits)
        });
        let percent = number.and_then(|number| number.parse::<f64>().ok());
        match percent.filter(|percent| *percent <= 100.0) {
            Some(percent) => Ok(Self {
                text: text.into(),
                percent,
            }),
            None => Err(Failure::argument("--deny", format!("{text:?}"), "0% to 100%")),
        }
    }

    /// The share of a total, rounded down.
    fn of(&self, total: u64) -> u64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts far below 2^53; a millionth more, so that 1 % of 300 is 3"
        )]
        let most = (total as f64 * self.percent / 100.0 + 1e-6) as u64;
        most.min(total)
    }
}

/// The suggestions for all windows and shares.
#[derive(Debug, Serialize)]
pub(crate) struct Suggestions {
    version: u32,
    sources: Vec<String>,
    formats: Vec<String>,
    lines: u64,
    unreadable: u64,
    suggestions: Vec<Suggestion>,
    pub(crate) warnings: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) truncated: bool,
}

/// The limits for one window and one share.
#[derive(Debug, Serialize)]
struct Suggestion {
    /// Milliseconds.
    window: Number,
    #[serde(skip)]
    window_text: String,
    algorithm: String,
    key: String,
    /// Percent.
    deny: f64,
    #[serde(skip)]
    share_text: String,
    requests: u64,
    keys: u64,
    /// The lowest limit that denies no larger share of the requests; `null` if no limit that the algorithm supports does.
    of_requests: Option<LimitDenials>,
    /// The lowest limit that denies no larger share of the keys.
    of_keys: Option<LimitDenials>,
}

/// Finds the limits for each entry of a plan. The limits in the plan are ignored.
///
/// # Errors
///
/// When an input cannot be read, no input has a request, or the log spans too much time.
pub(crate) fn suggest(
    plan: &Plan,
    inputs: Inputs,
    shares: &[Share],
    progress: &mut Progress,
) -> Result<(Suggestions, Vec<String>), Failure> {
    let sources = inputs.sources.iter().map(|source| source.name()).collect();
    let mut requests = {
        let layout = plan.fields.layout();
        inputs.read(&layout, progress)?
    };
    let step = requests.findings.gaps.step();
    let span = requests.span(plan.windows())?;
    let mut found = Suggestions {
        version: VERSION,
        sources,
        formats: requests.formats.clone(),
        lines: requests.lines,
        unreadable: requests.unreadable.count,
        suggestions: Vec::new(),
        warnings: requests.findings.warnings(),
        notes: requests.findings.notes(),
        truncated: !requests.findings.truncated.is_empty(),
    };
    for entry in &plan.entries {
        let mut by_key = ByKey::of_events(&mut requests.events, entry, progress)?;
        let always = entry.always_holds(by_key.requests(), requests.events.records());
        found.notes.extend(always);
        let (requests, keys) = (by_key.requests(), by_key.survey.keys);
        found.warnings.extend(entry.warnings(requests, 0, 0));
        let mut search = search(entry, &mut by_key, span, progress)?;
        for share in shares {
            let (most, most_keys) = (share.of(requests), share.of(keys));
            let of_requests = search.lowest(|found| found.denied <= most, progress)?;
            let of_keys = search.lowest(|found| found.keys_denied <= most_keys, progress)?;
            found.suggestions.push(Suggestion {
                window: in_millis(entry.quota.window()),
                window_text: entry.window_text(),
                algorithm: entry.label(),
                key: entry.key.as_ref().map_or(ALL, |(name, _)| name).to_string(),
                deny: share.percent,
                share_text: share.text.clone(),
                requests,
                keys,
                of_requests,
                of_keys,
            });
        }
        if let Some(step) = step.filter(|step| entry.is_coarse(*step)) {
            let unit = step.name;
            let note = format!(
                "times are whole {unit}s, so all requests of a {unit} count at its beginning; with a window of {}, denials may \
                 differ from those at the exact times",
                entry.window_text()
            );
            let own = found.suggestions.iter().rev().take(shares.len()).rev();
            let own: Vec<Option<u64>> = own.map(|one| one.of_requests.map(|found| found.limit)).collect();
            let by_log = limits_by_log(entry, &mut by_key, span, shares, progress)?;
            if by_log == own {
                found.notes.push(note);
                continue;
            }
            let limits = shares.iter().zip(by_log).map(|(share, limit)| {
                let limit = limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
                format!("{limit} ({})", share.text)
            });
            found.warnings.push(format!(
                "{note}: limits may be too high; with --algorithm log, those for requests are {}",
                limits.collect::<Vec<_>>().join(", ")
            ));
        }
    }
    Ok((found, requests.unreadable.examples))
}

/// A search that has tried a ladder of limits.
fn search<'e>(
    entry: &'e PlanEntry,
    by_key: &'e mut ByKey,
    span: Span,
    progress: &mut Progress,
) -> Result<Search<'e>, Failure> {
    let top = entry.counting.enough(by_key.survey.demand_in_two, entry.quota);
    let mut search = Search::new(entry, by_key, span);
    search.try_limits(ladder(top, 1, 60), progress)?;
    Ok(search)
}

/// The limits for requests of a log, for each share.
fn limits_by_log(
    entry: &PlanEntry,
    by_key: &mut ByKey,
    span: Span,
    shares: &[Share],
    progress: &mut Progress,
) -> Result<Vec<Option<u64>>, Failure> {
    let mut entry = entry.clone();
    entry.counting = entry.counting.by(AlgorithmName::Log);
    let requests = by_key.requests();
    let mut search = search(&entry, by_key, span, progress)?;
    let mut limits = Vec::new();
    for share in shares {
        let most = share.of(requests);
        let found = search.lowest(|found| found.denied <= most, progress)?;
        limits.push(found.map(|found| found.limit));
    }
    Ok(limits)
}

impl Suggestions {
    /// Renders a table for each window.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (name, lines) in [
            ("warning", &self.warnings),
            ("format", &self.formats),
            ("note", &self.notes),
        ] {
            for line in lines {
                text += &format!("{name:<10} {line}\n");
            }
        }
        let mut window = None;
        let first = self.suggestions.iter().filter(|one| {
            let new = window != Some(&one.window_text);
            window = Some(&one.window_text);
            new
        });
        for (number, one) in first.enumerate() {
            if number > 0 || !text.is_empty() {
                text.push('\n');
            }
            text += &format!(
                "in any {} by {}, {}: {} requests of {} keys\n",
                one.window_text, one.key, one.algorithm, one.requests, one.keys
            );
            let of_window = self.suggestions.iter();
            let rows = of_window
                .filter(|other| other.window_text == one.window_text)
                .map(|one| {
                    let [limit, denied, rate] = cells(one.of_requests, one, true);
                    let [key_limit, keys_denied, key_rate] = cells(one.of_keys, one, false);
                    row([
                        ("denial rate up to", &one.share_text),
                        ("limit for requests", &limit),
                        ("denied", &denied),
                        ("denial rate", &rate),
                        ("limit for keys", &key_limit),
                        ("keys denied", &keys_denied),
                        ("denial rate", &key_rate),
                    ])
                });
            text += &table(1, rows);
        }
        text
    }
}

/// The limit, its denials and their share.
fn cells(found: Option<LimitDenials>, of: &Suggestion, requests: bool) -> [String; 3] {
    let Some(found) = found else {
        return ["none", "", ""].map(ToString::to_string);
    };
    let (denied, total) = match requests {
        true => (found.denied, of.requests),
        false => (found.keys_denied, of.keys),
    };
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let share = denied as f64 * 100.0 / total.max(1) as f64;
    [
        found.limit.to_string(),
        denied.to_string(),
        format!("{share:.2} %"),
    ]
}

/// Rules with a limit of 1 for windows such as `60s` and `h`, under the names of their options.
pub(crate) fn rules(windows: &[String]) -> Result<Vec<String>, Failure> {
    let wrong = |given, allowed| Failure::argument("--window", given, allowed);
    let mut quotas: Vec<Quota> = Vec::new();
    let rules = windows.iter().map(|window| {
        let quota = format!("1/{window}").parse();
        let quota = quota.map_err(|_| wrong(format!("{window:?}"), "1us to 366d, as in 60s, 5min, h"))?;
        if quotas.contains(&quota) {
            return Err(wrong(format!("{window:?} twice"), "each window once"));
        }
        quotas.push(quota);
        Ok(format!("{quota} as \"--window {window}\""))
    });
    rules.collect()
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn shares_are_rounded_down() {
        let of = |text: &str, total| Share::parse(text).map(|share| share.of(total)).ok();
        for (text, total, expected) in [
            ("0%", 10, Some(0)),
            ("1%", 99, Some(0)),
            ("1%", 100, Some(1)),
            ("1%", 300, Some(3)),
            ("0.1%", 1_999, Some(1)),
            ("33.3%", 1_000, Some(333)),
            ("100%", 7, Some(7)),
            ("101%", 7, None),
            ("-1%", 7, None),
            ("1", 7, None),
            ("%", 7, None),
            ("1.2.3%", 7, None),
            ("inf%", 7, None),
            ("1e1%", 7, None),
        ] {
            assert_eq!(of(text, total), expected, "{text}");
        }
    }
}
