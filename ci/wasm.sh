#!/usr/bin/env bash
# Shows that the library builds for WebAssembly in a browser (wasm32-unknown-unknown), and that its unit tests and its
# comparisons with an exact log pass in WebAssembly, under WASI in Node.
source "$(dirname "$0")/common.sh"

for target in wasm32-unknown-unknown wasm32-wasip1; do
    rustup target add "$target" || not_run "the target $target cannot be installed here"
done
needs node nodejs
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/wasm
cargo build --locked --lib --target wasm32-unknown-unknown --no-default-features --features rules,serde
export PROPTEST_CASES=${PROPTEST_CASES:-32}
CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings $PWD/ci/wasi.mjs" \
    cargo test --locked --target wasm32-wasip1 --no-default-features --features rules --lib --test oracle --test quota
