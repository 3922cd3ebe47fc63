//! Formats that name their fields.

pub(crate) mod csv;
pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod logfmt;
pub(crate) mod object;
pub(crate) mod paths;
pub(crate) mod servers;
