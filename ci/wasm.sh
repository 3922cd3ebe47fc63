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

# The browser's target has no random numbers: constructors with random seeds do not exist there, and those with given seeds do.
built=$CARGO_TARGET_DIR/wasm32-unknown-unknown/debug
compile() {
    echo "$1" | rustc --edition 2024 --target wasm32-unknown-unknown --crate-type lib --emit metadata -o "$built/seeds.rmeta" \
        --extern "ringgate=$built/libringgate.rlib" -L "dependency=$built/deps" -L "dependency=$CARGO_TARGET_DIR/debug/deps" -
}
compile 'pub fn f() -> ringgate::keyed::AnyKey { ringgate::keyed::AnyKey::with_seeds([1, 2, 3, 4]) }'
for random in 'keyed::AnyKey::random()' 'keyed::random_seeds()' 'clock::InstantClock::new()'; do
    if errors=$(compile "pub fn f() { let _ = ringgate::$random; }" 2>&1); then
        echo "ringgate::$random exists on wasm32-unknown-unknown (expected a compile error)"
        exit 1
    fi
    grep -q 'E0599\|E0425\|E0433' <<<"$errors" || { echo "$errors"; exit 1; }
done
# Histories are shorter than in native tests, because the code is not optimized for WebAssembly.
export PROPTEST_CASES=${PROPTEST_CASES:-32} RINGGATE_STEPS=${RINGGATE_STEPS:-2000}
CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings $PWD/ci/wasi.mjs" \
    cargo test --locked --target wasm32-wasip1 --no-default-features --features rules --lib --test oracle --test quota
