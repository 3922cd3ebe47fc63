#!/usr/bin/env bash
# Shows that every Rust file, including the fuzz targets, is formatted by the settings of rustfmt.toml.
source "$(dirname "$0")/common.sh"

cargo fmt --all --check
cargo fmt --all --check --manifest-path fuzz/Cargo.toml
