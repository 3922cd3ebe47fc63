#!/usr/bin/env bash
# Shows that no lint of Cargo.toml fires, with all features and with none.
source "$(dirname "$0")/common.sh"

cargo clippy --locked --all-targets --all-features -- -D warnings
cargo clippy --locked --all-targets --no-default-features -- -D warnings
