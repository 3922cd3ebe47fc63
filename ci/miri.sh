#!/usr/bin/env bash
# Shows that unit tests and models run in Miri without undefined behaviour, data races or failures. Unit tests run once. Models
# run with several seeds, which choose the interleaving and the values that weak memory returns.
#
#   ci/miri.sh       on the target of this machine
#   ci/miri.sh all   also the models on a 32-bit and on a big-endian target
#
# MIRI_SEEDS: the number of seeds on the target of this machine (default 2). The other targets run half as many.
source "$(dirname "$0")/common.sh"

toolchain nightly miri rust-src
seeds=${MIRI_SEEDS:-2}
half=$(((seeds + 1) / 2))
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/miri

# $1: target; $2: flags of Miri; the rest: arguments of cargo test.
run() {
    local target=$1 flags=$2
    shift 2
    echo "miri: $target, $flags, $*"
    MIRIFLAGS="-Zmiri-strict-provenance $flags" cargo +nightly miri test --locked --features rules --target "$target" "$@"
}

# Without isolation, proptest finds its directory. Only `cargo test` runs long tests of one thread.
PROPTEST_CASES=8 run "$(host)" -Zmiri-disable-isolation --lib -- \
    --skip shares_of_consecutive_cells_add_up_to_the_limit --skip unit_ring::tests --skip every_pace_is_as_documented \
    --skip a_key_is_found_wherever_it_is --skip a_word_is_idle_when_it_means_as_much_as_a_fresh_one
run "$(host)" "-Zmiri-many-seeds=0..$seeds" --test models

[[ ${1:-} == all ]] || exit 0
# Runs the targets in parallel, each in a separate folder, because cargo locks a folder until its tests have ended.
export RUSTFLAGS=-Zrandomize-layout
CARGO_TARGET_DIR+=/i686 run i686-unknown-linux-gnu "-Zmiri-many-seeds=$seeds..$((seeds + half))" --test models &
first=$!
CARGO_TARGET_DIR+=/s390x run s390x-unknown-linux-gnu "-Zmiri-many-seeds=$((seeds + half))..$((seeds + 2 * half))" --test models
wait "$first"
