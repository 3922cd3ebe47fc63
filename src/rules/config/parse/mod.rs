use super::file_error::FileError;
use super::file_format::FileFormat;

mod json;
pub(super) mod node;
pub(super) mod position;
mod toml;
mod yaml;

use node::Node;

/// Parses a text to a tree of values with their positions.
pub(super) fn parse(text: &str, format: FileFormat) -> Result<Node, FileError> {
    match format {
        FileFormat::Toml => toml::parse(text),
        FileFormat::Json => json::parse(text),
        FileFormat::Yaml => yaml::parse(text),
    }
}
