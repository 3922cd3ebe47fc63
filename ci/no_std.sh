#!/usr/bin/env bash
# Shows that the library builds without the standard library and without 64-bit atomics (thumbv7em), and on 32-bit targets.
source "$(dirname "$0")/common.sh"

for target in thumbv7em-none-eabi i686-unknown-linux-gnu; do
    rustup target add "$target" || not_run "the target $target cannot be installed here"
done
export RUSTFLAGS="-D warnings"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/no_std
cargo check --locked --lib --target thumbv7em-none-eabi --no-default-features
cargo check --locked --lib --target thumbv7em-none-eabi --no-default-features --features serde
cargo check --locked --lib --target i686-unknown-linux-gnu
