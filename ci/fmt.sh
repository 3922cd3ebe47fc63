#!/usr/bin/env bash
# Shows that every Rust file, the fuzz targets included, is formatted as rustfmt.toml says.
source "$(dirname "$0")/common.sh"

cargo fmt --all --check
cargo fmt --all --check --manifest-path fuzz/Cargo.toml
