#!/usr/bin/env bash
# Shows that models run in Miri without undefined behaviour, data races or failures, and so do unit tests of modules that store values
# in memory of dependencies. A seed chooses the interleaving and the values that weak memory returns.
#
#   ci/miri.sh       on the target of this machine, with one seed: the number of commits, so that each landing tries another one. Of the
#                    files of models it runs a third, by the same number, because ci/loom.sh explores all of them
#   ci/miri.sh all   all models, and also on a 32-bit and on a big-endian target
#
# The crate forbids unsafe code. So only two kinds of its faults are visible to Miri alone: those between threads, which the models
# have, and wrong uses of a dependency with unsafe code. Unit tests of one thread on plain numbers cannot have either, and ci/test.sh
# runs them.
#
# MIRI_SEEDS: the number of seeds, of which the number of commits is the first (default 1). The other targets run half as many.
source "$(dirname "$0")/common.sh"

toolchain nightly miri rust-src
seeds=${MIRI_SEEDS:-1}
half=$(((seeds + 1) / 2))
first_seed=$(git rev-list --count HEAD 2>/dev/null || echo 0)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/miri

# $1: target; $2: flags of Miri; the rest: arguments of cargo test.
run() {
    local target=$1 flags=$2
    shift 2
    echo "miri: $target, $flags, $*"
    MIRIFLAGS="-Zmiri-strict-provenance $flags" cargo +nightly miri test --locked --features rules --target "$target" "$@"
}
# A calendar lists the days of 20 years first, which takes minutes here. Its exchange of one word is that of the fixed window.
models=(--test models -- --skip calendar::)
if [[ ${1:-} != all ]]; then
    files=(tests/models/*.rs)
    for at in "${!files[@]}"; do
        ((at % 3 != first_seed % 3)) || models+=("$(basename "${files[at]}" .rs)::")
    done
fi

# The entries of a table are in memory that bytemuck zeroes, and the states and keys of a request are in arrays of smallvec.
# Without isolation, a test can read the environment. Only `cargo test` runs the longest test.
run "$(host)" "-Zmiri-seed=$first_seed -Zmiri-disable-isolation" --lib -- table:: rules:: keyed:: --skip a_key_is_found_wherever_it_is
run "$(host)" "-Zmiri-many-seeds=$first_seed..$((first_seed + seeds))" "${models[@]}"

[[ ${1:-} == all ]] || exit 0
# Runs the targets in parallel, each in a separate folder, because cargo locks a folder until its tests have ended.
export RUSTFLAGS=-Zrandomize-layout
CARGO_TARGET_DIR+=/i686 run i686-unknown-linux-gnu "-Zmiri-many-seeds=$first_seed..$((first_seed + half))" "${models[@]}" &
first=$!
CARGO_TARGET_DIR+=/s390x run s390x-unknown-linux-gnu "-Zmiri-many-seeds=$((first_seed + half))..$((first_seed + 2 * half))" "${models[@]}"
wait "$first"
