//! What a server says of itself.

use alloc::collections::BTreeMap;

use redis::Value;

use super::wire::{Trouble, Wire, text};

/// The answers of INFO and CONFIG GET, as far as the user may ask.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    info: BTreeMap<String, String>,
    config: BTreeMap<String, String>,
    /// Which of the two the user may not ask, or the server does not answer.
    pub(super) denied: Vec<&'static str>,
}

/// The settings that are asked for, one by one: all of them would be passwords too.
const SETTINGS: [&str; 7] = [
    "maxmemory",
    "maxmemory-policy",
    "appendonly",
    "appendfsync",
    "save",
    "replica-read-only",
    "min-replicas-to-write",
];

impl Facts {
    pub(super) async fn of(wire: &Wire) -> Result<Self, Trouble> {
        let mut questions = vec![vec!["INFO"]];
        questions.extend(SETTINGS.map(|setting| vec!["CONFIG", "GET", setting]));
        let mut answers = wire.ask_all(&questions).await?.into_iter();
        let mut facts = Self::default();
        match answers.next() {
            Some(Ok(info)) => facts.info = lines(&text(&info).unwrap_or_default()),
            _ => facts.denied.push("INFO"),
        }
        for (setting, answer) in SETTINGS.into_iter().zip(answers) {
            match answer {
                Ok(answer) => {
                    let value = second(&answer);
                    facts
                        .config
                        .extend(value.map(|value| (setting.to_owned(), value)));
                }
                Err(_) if facts.denied.contains(&"CONFIG GET") => {}
                Err(_) => facts.denied.push("CONFIG GET"),
            }
        }
        Ok(facts)
    }

    /// A line of INFO.
    pub(super) fn info(&self, name: &str) -> Option<&str> {
        self.info.get(name).map(String::as_str)
    }

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
            info: lines(info),
            config: lines(config),
            denied: Vec::new(),
        }
    }
}

/// `name:value`, one a line.
pub(super) fn lines(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.trim_end().split_once(':'));
    lines
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The value in an answer that is a name and a value: there is none of a setting that the server does not know.
fn second(answer: &Value) -> Option<String> {
    match answer {
        Value::Array(pair) => text(pair.get(1)?),
        Value::Map(pairs) => text(&pairs.first()?.1),
        _ => None,
    }
}
