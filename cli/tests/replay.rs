//! `ringgate replay` and `ringgate suggest`, compared with limiters that compute every decision by brute force.

extern crate alloc;

#[path = "replay/support/brute_force.rs"]
mod brute_force;
#[path = "../../tests/common/random.rs"]
mod random;
#[path = "replay/support/log.rs"]
mod log;
#[path = "replay/support/tool.rs"]
mod tool;

#[path = "replay/agreement.rs"]
mod agreement;
#[path = "replay/inputs/other_forms.rs"]
mod other_forms;
#[path = "replay/output.rs"]
mod output;
#[path = "replay/block.rs"]
mod block;
#[path = "replay/calendar.rs"]
mod calendar;
#[path = "replay/inputs/brought_formats.rs"]
mod brought_formats;
#[path = "replay/cases_clients.rs"]
mod cases_clients;
#[path = "replay/cases_lines.rs"]
mod cases_lines;
#[path = "replay/commands.rs"]
mod commands;
#[path = "replay/details.rs"]
mod details;
#[path = "replay/errors.rs"]
mod errors;
#[path = "replay/inputs/formats.rs"]
mod formats;
#[path = "replay/inputs/lines.rs"]
mod lines;
#[path = "replay/inputs/input.rs"]
mod input;
#[path = "replay/inputs/compressed.rs"]
mod compressed;
#[path = "replay/inputs/messages.rs"]
mod messages;
#[path = "replay/inputs/resolution.rs"]
mod resolution;
#[path = "replay/inputs/spellings.rs"]
mod spellings;
#[path = "replay/page.rs"]
mod page;
#[path = "replay/inputs/edge_cases.rs"]
mod edge_cases;
#[path = "replay/networks.rs"]
mod networks;
#[path = "replay/inputs/own_formats.rs"]
mod own_formats;
#[path = "replay/warnings.rs"]
mod warnings;
#[path = "replay/inputs/format_variants.rs"]
mod format_variants;
#[path = "replay/rules.rs"]
mod rules;
