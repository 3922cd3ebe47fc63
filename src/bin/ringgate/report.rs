//! What a replay has found, as text and as JSON.

use core::cmp::Reverse;
use core::fmt::Write;
use std::io;

use ringgate::Algorithm;
use serde::Serialize;

use crate::args::ReplayArgs;
use crate::decisions::text;
use crate::failure::Failure;
use crate::replay::{ClientOutcome, Outcome};

/// The totals of a replay; its fields are those of the JSON object.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    requests: u64,
    admitted: u64,
    denied: u64,
    keys: usize,
    malformed: u64,
    /// The earliest request, RFC 3339 in UTC.
    first: String,
    /// The latest request.
    last: String,
    /// The clients that were denied, most often denied first.
    denied_by_key: Vec<DeniedKey<'a>>,
    #[serde(skip)]
    held: Option<usize>,
}

#[derive(Debug, Serialize)]
struct DeniedKey<'a> {
    key: &'a str,
    requests: u64,
    denied: u64,
}

impl<'a> Report<'a> {
    /// The most clients that are listed.
    const LISTED: usize = 20;

    pub(crate) fn new(outcome: &'a Outcome) -> Self {
        let clients = &outcome.clients;
        let requests = clients.iter().map(|client| client.requests).sum();
        let denied = clients.iter().map(|client| client.denied).sum();
        let mut most_denied: Vec<&ClientOutcome> =
            clients.iter().filter(|client| client.denied > 0).collect();
        most_denied.sort_unstable_by_key(|client| (Reverse(client.denied), &client.address));
        most_denied.truncate(Self::LISTED);
        Self {
            requests,
            admitted: requests - denied,
            denied,
            keys: clients.len(),
            malformed: outcome.malformed.count,
            first: text(outcome.span.first),
            last: text(outcome.span.last),
            denied_by_key: most_denied
                .into_iter()
                .map(|client| DeniedKey {
                    key: &client.address,
                    requests: client.requests,
                    denied: client.denied,
                })
                .collect(),
            held: outcome.held,
        }
    }

    /// What is to be known about the order of the log, if anything.
    pub(crate) fn note(&self) -> Option<String> {
        self.held
            .map(|held| format!("not in order of time: {held} requests were held in memory and sorted"))
    }

    /// One JSON object on one line.
    pub(crate) fn json(&self) -> Result<String, Failure> {
        let object = serde_json::to_string(self)
            .map_err(|error| Failure::io("the result cannot be written as JSON", io::Error::from(error)))?;
        Ok(object + "\n")
    }

    /// A table of totals, and one of the clients that were denied.
    pub(crate) fn text<A: Algorithm>(&self, args: &ReplayArgs, policy: &A) -> String {
        let mut totals = vec![
            ("rule", args.rule.to_string()),
            ("algorithm", args.algorithm_text()),
            (
                "bound",
                format!("at most {} in any {:?}", policy.bound(), policy.window()),
            ),
            ("requests", self.requests.to_string()),
            ("admitted", self.admitted.to_string()),
            ("denied", self.denied.to_string()),
            ("keys", self.keys.to_string()),
            ("malformed", self.malformed.to_string()),
            ("first", self.first.clone()),
            ("last", self.last.clone()),
        ];
        totals.extend(self.note().map(|note| ("note", note)));
        let mut table = String::new();
        for (name, value) in totals {
            line(&mut table, format_args!("{name:<10} {value}"));
        }
        if !self.denied_by_key.is_empty() {
            let widest = self.denied_by_key.iter().map(|row| row.key.len()).max();
            let width = widest.unwrap_or(0).max("most denied".len());
            line(
                &mut table,
                format_args!("\n{:<width$} {:>10} {:>10}", "most denied", "requests", "denied"),
            );
            for DeniedKey {
                key,
                requests,
                denied,
            } in &self.denied_by_key
            {
                line(
                    &mut table,
                    format_args!("{key:<width$} {requests:>10} {denied:>10}"),
                );
            }
        }
        table
    }
}

fn line(table: &mut String, content: core::fmt::Arguments<'_>) {
    writeln!(table, "{content}").expect("a String takes whatever is written");
}
