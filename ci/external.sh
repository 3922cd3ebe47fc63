#!/usr/bin/env bash
# Shows that the public API uses only those types of other crates that ci/external.toml lists. Other dependencies, such as
# redis, can be replaced without breaking users.
source "$(dirname "$0")/common.sh"

tool check-external-types
toolchain nightly
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/nightly
cargo +nightly check-external-types --all-features --config ci/external.toml
