#!/usr/bin/env bash
# Shows that ThreadSanitizer finds no data race in the models and the stress tests on real threads.
source "$(dirname "$0")/common.sh"

toolchain nightly rust-src
[[ $(host) == x86_64-unknown-linux-gnu ]] || not_run "set up for x86_64-unknown-linux-gnu only"
export RUSTFLAGS=-Zsanitizer=thread
# Each model runs this often.
export RINGGATE_EXECUTIONS=${RINGGATE_EXECUTIONS:-100}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/tsan
# Less optimization makes the build faster, and hides no data race.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
cargo +nightly test --locked --features rules -Zbuild-std --target "$(host)" --release --test models --test stress
