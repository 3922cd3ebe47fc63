#!/usr/bin/env bash
# Shows that the crate, its tool, tests and examples build without warnings with every subset of the features.
source "$(dirname "$0")/common.sh"

check() {
    echo "features: ${1:-none}"
    cargo clippy --locked --quiet --no-default-features --features "$1" \
        --lib --bins --tests --examples -- -D warnings
}

# "std" is in "quanta"; alone, it makes a difference to "keyed" only.
mapfile -t features < <(sed -n '/^\[features\]/,/^\[dep/s/^\([a-z0-9_-]*\) = .*/\1/p' Cargo.toml | grep -vE '^(default|std)$')
for ((subset = 0; subset < 1 << ${#features[@]}; subset++)); do
    chosen=""
    for ((at = 0; at < ${#features[@]}; at++)); do
        if ((subset >> at & 1)); then chosen+="${chosen:+,}${features[at]}"; fi
    done
    check "$chosen"
done
check std,keyed
