#!/usr/bin/env bash
# Shows that the public API names no types of other crates but those of ci/external.toml: what is left out there can be
# changed, or dropped, without breaking users (redis above all).
source "$(dirname "$0")/common.sh"

tool check-external-types
toolchain nightly
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/nightly
cargo +nightly check-external-types --all-features --config ci/external.toml
