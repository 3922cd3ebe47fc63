//! The decision of one request by the states of a rule set, by [the protocol](super).

pub(crate) mod admitted;
mod block;
pub(crate) mod denied;
mod evaluation;
pub(crate) mod evidence;
pub(crate) mod extractor;
pub(crate) mod key_hashes;
pub(crate) mod needed_state;
pub(crate) mod peek;
pub(crate) mod request_limit;
pub(crate) mod reservation;
pub(crate) mod rule_state;
pub(crate) mod rule_states;
pub(crate) mod state_algorithms;
pub(crate) mod state_decision;
pub(crate) mod storage;
