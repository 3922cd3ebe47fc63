#!/usr/bin/env bash
# Shows that the library builds without warnings with each feature alone, and with the sets of features of a table.
# ci/clippy.sh covers the package without features and with all. A set costs 3 seconds for the library and 20 with tests and
# examples, which is why only sets that have failed there include these.
#
#   ci/features.sh        each feature alone, and the table
#   ci/features.sh all    also all features but each one, with tests and examples, as well as each feature alone
source "$(dirname "$0")/common.sh"

[[ $# -eq 0 || $* == all ]] || { echo "usage: ci/features.sh [all]"; exit 2; }

# $1: a set of features; the rest: targets.
check() {
    local set=$1
    shift
    echo "features: $set ($*)"
    # Clippy takes little longer than `cargo check`, and can deny warnings without a second build of the dependencies.
    cargo clippy --locked --quiet --no-default-features --features "$set" "$@" -- -D warnings
}

# Sets whose tests had warnings: of items that only other features use.
check quanta,striped --lib --tests --examples
check rules --lib --tests --examples
check redis --lib --tests --examples
# Pairs that conditions in the library name together.
for pair in quanta,rules observe,redis observe,shared shared,tower config,shared redis-client,redis-cluster; do
    check "$pair" --lib
done
mapfile -t features < <(sed -n '/^\[features\]/,/^\[dep/s/^\([a-z0-9_-]*\) = .*/\1/p' Cargo.toml | grep -v '^default$')
for feature in "${features[@]}"; do
    check "$feature" --lib
done

[[ ${1:-} == all ]] || exit 0
for feature in "${features[@]}"; do
    check "$feature" --lib --tests --examples
    check "$(printf '%s\n' "${features[@]}" | grep -vx "$feature" | paste -sd,)" --lib --tests --examples
done
