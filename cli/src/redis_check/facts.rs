//! The state and the settings of a server.

use alloc::collections::BTreeMap;

use redis::Value;

use super::connection::{CallError, Connection, text};

/// The answers of INFO and CONFIG GET, as far as the user may run them.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    info: BTreeMap<String, String>,
    config: BTreeMap<String, String>,
}

/// The settings to read. CONFIG GET * would return passwords too.
const SETTINGS: [&str; 6] = [
    "maxmemory",
    "maxmemory-policy",
    "appendonly",
    "appendfsync",
    "save",
    "replica-read-only",
];

impl Facts {
    pub(super) async fn read(connection: &Connection) -> Result<Self, CallError> {
        let mut calls = vec![vec!["INFO"]];
        calls.extend(SETTINGS.map(|setting| vec!["CONFIG", "GET", setting]));
        let mut answers = connection.call_all(&calls).await?.into_iter();
        let info = answers.next().and_then(|answer| text(&answer.ok()?));
        let value = |answer: Value| match answer {
            Value::Array(pair) => text(pair.get(1)?),
            Value::Map(pairs) => text(&pairs.first()?.1),
            _ => None,
        };
        let settings = SETTINGS.into_iter().zip(answers);
        Ok(Self {
            info: fields(&info.unwrap_or_default()),
            config: settings
                .filter_map(|(setting, answer)| Some((setting.to_owned(), value(answer.ok()?)?)))
                .collect(),
        })
    }

    /// A field of INFO.
    pub(super) fn info(&self, name: &str) -> Option<&str> {
        self.info.get(name).map(String::as_str)
    }

    /// A field of INFO that is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.info(name)?.parse().ok()
    }

    /// A setting.
    pub(super) fn config(&self, name: &str) -> Option<&str> {
        self.config.get(name).map(String::as_str)
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.info("cluster_enabled") == Some("1")
    }

    #[cfg(test)]
    pub(super) fn from_lines(info: &str, config: &str) -> Self {
        Self {
            info: fields(info),
            config: fields(config),
        }
    }
}

/// Lines of the form `name:value`.
pub(super) fn fields(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.trim_end().split_once(':'));
    lines
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
