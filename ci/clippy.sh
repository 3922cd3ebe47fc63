#!/usr/bin/env bash
# Shows that no lint of Cargo.toml fires: in all packages of the workspace with all features, and in the library without
# features.
source "$(dirname "$0")/common.sh"

cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
cargo clippy --locked --all-targets --no-default-features -- -D warnings
