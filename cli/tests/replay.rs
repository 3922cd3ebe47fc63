//! `ringgate replay` and `ringgate suggest`, compared with limiters that compute every decision by brute force.

extern crate alloc;

#[path = "replay/brute_force.rs"]
mod brute_force;
#[path = "replay/log.rs"]
mod log;
#[path = "replay/tool.rs"]
mod tool;

#[path = "replay/agreement.rs"]
mod agreement;
#[path = "replay/answers.rs"]
mod answers;
#[path = "replay/commands.rs"]
mod commands;
#[path = "replay/details.rs"]
mod details;
#[path = "replay/errors.rs"]
mod errors;
#[path = "replay/formats.rs"]
mod formats;
#[path = "replay/input.rs"]
mod input;
#[path = "replay/packed.rs"]
mod packed;
#[path = "replay/page.rs"]
mod page;
#[path = "replay/neighbours.rs"]
mod neighbours;
#[path = "replay/own_formats.rs"]
mod own_formats;
#[path = "replay/told.rs"]
mod told;
#[path = "replay/truth.rs"]
mod truth;
#[path = "replay/rules.rs"]
mod rules;
