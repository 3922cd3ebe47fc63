#!/usr/bin/env bash
# Shows that the library builds without warnings with the sets of features of a table, and with a third of the features alone, which
# rotates with the number of commits. ci/clippy.sh covers the package without features and with all. A set costs 3 to 8 seconds for
# the library and 20 with tests and examples, which is why only sets that have failed there include these.
#
#   ci/features.sh        the table, and a third of the features alone
#   ci/features.sh all    the table, and each feature alone and all but each one, with tests and examples
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
if [[ ${1:-} != all ]]; then
    commits=$(git rev-list --count HEAD 2>/dev/null || echo 0)
    for ((i = commits % 3; i < ${#features[@]}; i += 3)); do
        check "${features[i]}" --lib
    done
    exit
fi
for feature in "${features[@]}"; do
    check "$feature" --lib
    check "$feature" --lib --tests --examples
    check "$(printf '%s\n' "${features[@]}" | grep -vx "$feature" | paste -sd,)" --lib --tests --examples
done
