//! The items of `events` in a program without the feature `observe`.

use crate::shared::store::StoreError;

pub(super) const fn lost(_server: &str, _prefix: &str, _: &StoreError) {}

pub(super) const fn found(_server: &str, _prefix: &str) {}

pub(super) const fn refused(_server: &str, _prefix: &str, _: &StoreError) {}

pub(super) const fn restricted(_: &StoreError) {}
