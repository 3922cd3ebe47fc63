use alloc::format;
use alloc::string::ToString;
use core::fmt;
use std::path::Path;

use crate::error::ConfigError;

/// The format of a rules file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileFormat {
    /// TOML, for the file extension `toml`.
    Toml,
    /// JSON, for the file extension `json`.
    Json,
    /// YAML 1.2, for the file extensions `yaml` and `yml`: one document, with anchors and aliases, without merge keys.
    Yaml,
}

impl FileFormat {
    /// Returns the format for the file's extension, in lower or upper case. The error about another one has the field `format`.
    pub(super) fn of(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let extension = path.as_ref().extension().unwrap_or_default().to_string_lossy();
        match &*extension.to_ascii_lowercase() {
            "toml" => Ok(Self::Toml),
            "json" => Ok(Self::Json),
            "yaml" | "yml" => Ok(Self::Yaml),
            _ => Err(ConfigError::new(
                "format",
                match &*extension {
                    "" => "no file extension".to_string(),
                    extension => format!("file extension {extension:?}"),
                },
                "toml, json, yaml or yml",
            )),
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Toml => "TOML",
            Self::Json => "JSON",
            Self::Yaml => "YAML",
        })
    }
}
