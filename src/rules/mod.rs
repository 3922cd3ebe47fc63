//! Several limits that are decided in one step, read from files, and replaced while they are in use.
//!
//! | task | item |
//! |---|---|
//! | decide by several rules | [`RuleSet`] of [`Rule`]s, built by [`RuleSetBuilder`] |
//! | count by a part of the request | [`Key`], and [`OnMissingKey`] for requests without that part |
//! | charge more than one permit | [`Cost`] |
//! | apply a rule to some requests only | [`Condition`] |
//! | give some keys other limits | [`TierOf`], [`Rule::tier`] |
//! | try a rule without enforcing it | [`Rule::shadow`], [`Rule::enforce_percent`], [`RuleSet::counts`] |
//! | refund a request, or settle its actual cost | [`RuleSet::reserve`], [`Reservation`] |
//! | limit the requests in flight | [`Rule::in_flight`] |
//! | block keys that violate a rule too often | [`Rule::block`], [`Block`] |
//! | limit each calendar day, week, month or year | [`Rule::calendar`] |
//! | list rules of different kinds | [`AnyRule`] |
//! | change rules while they are in use | [`LiveRules`] |
//! | read rules from TOML, JSON or YAML (feature `config`) | `RuleSetBuilder::from_file`, `Extractors` |
//! | follow a file (feature `watch`) | `RulesWatcher` |
#![doc = ""]
#![doc = include_str!("protocol.md")]

pub(crate) mod condition;
#[cfg(feature = "config")]
mod config;
mod decided_by;
mod denial;
pub(crate) mod evaluate;
pub(crate) mod key;
pub(crate) mod key_address;
pub(crate) mod key_list;
pub(crate) mod key_missing;
mod key_or;
mod key_parts;
mod live;
mod migration;
mod quota_status;
pub(crate) mod rule;
pub(crate) mod set;
mod store_error;
#[cfg(feature = "watch")]
mod watch;

pub use condition::{Condition, Cost, TierOf};
#[cfg(feature = "config")]
pub use config::{
    extractors::Extractors, file_error::FileError, file_format::FileFormat, resolver::Resolver,
};
pub use decided_by::{DecidedBy, Reason};
pub use denial::Denial;
pub use evaluate::admitted::Admitted;
pub use evaluate::denied::Denied;
pub use evaluate::peek::RulePeek;
pub use evaluate::reservation::Reservation;
pub use key::Key;
pub use key_missing::OnMissingKey;
pub use key_parts::KeyParts;
pub use live::{LiveRules, LoadedRules, ReloadError, Reloaded};
pub use quota_status::QuotaStatus;
pub use rule::algorithm::RuleAlgorithm;
pub use rule::block::Block;
pub use rule::error::RuleError;
pub use rule::kind;
pub use rule::mode::Mode;
pub use rule::on_error::OnError;
pub use rule::view::RuleView;
pub use rule::{AnyRule, Rule};
pub use set::RuleSet;
pub use set::builder::RuleSetBuilder;
pub use set::counts::RuleCounts;
pub use set::live_counts::LiveCounts;
pub use store_error::{StoreError, StoreErrorKind};
#[cfg(feature = "watch")]
pub use watch::RulesWatcher;

#[cfg(all(feature = "watch", feature = "shared"))]
pub(crate) use watch::Replaceable;

pub(crate) use evaluate::denied::DeniedValues;
pub(crate) use evaluate::evidence::DeniedQuotas;
pub(crate) use evaluate::key_hashes::KeyHashes;
pub(crate) use evaluate::peek::EnforcedQuota;
pub(crate) use evaluate::rule_states::KeyDecision;
pub(crate) use key_address::AddressSource;
pub(crate) use key_missing::MissingCause;
pub(crate) use set::live_counts::RuleUsage;
pub(crate) use set::sharded_counts::ShardId;
pub(crate) use set::sharded_counts::ShardedCounts;
