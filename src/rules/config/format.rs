use alloc::format;
use alloc::string::ToString;
use core::fmt;
use std::path::Path;

use crate::error::ConfigError;

/// What a rules file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// TOML, by the file ending `toml`.
    Toml,
    /// JSON, by the file ending `json`.
    Json,
    /// YAML 1.2, by the file ending `yaml` or `yml`: one document; anchors and aliases are read, merge keys are
    /// not.
    Yaml,
}

impl Format {
    /// Tells the format by the ending of the file's name, in whichever case.
    ///
    /// # Errors
    ///
    /// With the field `format`, when the ending is none of these.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::Format;
    ///
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// assert_eq!(Format::of("etc/rules.yml")?, Format::Yaml);
    /// assert!(Format::of("etc/rules.ini").is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn of(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let ending = path.as_ref().extension().unwrap_or_default().to_string_lossy();
        match &*ending.to_ascii_lowercase() {
            "toml" => Ok(Self::Toml),
            "json" => Ok(Self::Json),
            "yaml" | "yml" => Ok(Self::Yaml),
            _ => Err(ConfigError::new(
                "format",
                match &*ending {
                    "" => "no file ending".to_string(),
                    ending => format!("the file ending {ending:?}"),
                },
                "toml, json, yaml or yml",
            )),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Toml => "TOML",
            Self::Json => "JSON",
            Self::Yaml => "YAML",
        })
    }
}
