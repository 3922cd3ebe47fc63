#!/usr/bin/env bash
# Shows that unit tests (once) and models (by seed: of the interleaving and of what weak memory answers) run in Miri
# without undefined behaviour, data races or failures: on this machine's kind, on 32 bits, and big-endian.
# MIRI_SEEDS: how many seeds on the first (default 2), half of it on each of the others.
source "$(dirname "$0")/common.sh"

toolchain nightly miri rust-src
seeds=${MIRI_SEEDS:-2}
half=$(((seeds + 1) / 2))
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/miri

# $1: target; $2: Miri's flags; the rest: what to test.
run() {
    local target=$1 flags=$2
    shift 2
    echo "miri: $target, $flags, $*"
    MIRIFLAGS="-Zmiri-strict-provenance $flags" cargo +nightly miri test --locked --features rules --target "$target" "$@"
}

# Without isolation proptest finds its directory. Long walks over plain numbers and tables of many keys, by one thread, are
# left to `cargo test`.
PROPTEST_CASES=8 run "$(host)" -Zmiri-disable-isolation --lib -- \
    --skip shares_of_consecutive_cells_add_up_to_the_limit --skip sums_equal_counts --skip a_key_is_found_wherever_it_is
run "$(host)" "-Zmiri-many-seeds=0..$seeds" --test models

# Side by side, each in a folder of its own: cargo lets one build at a time into a folder, until the tests have ended.
export RUSTFLAGS=-Zrandomize-layout
CARGO_TARGET_DIR+=/i686 run i686-unknown-linux-gnu "-Zmiri-many-seeds=$seeds..$((seeds + half))" --test models &
first=$!
CARGO_TARGET_DIR+=/s390x run s390x-unknown-linux-gnu "-Zmiri-many-seeds=$((seeds + half))..$((seeds + 2 * half))" --test models
wait "$first"
