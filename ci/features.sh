#!/usr/bin/env bash
# Shows that the crate, its tool, tests and examples build without warnings with every subset of the features.
source "$(dirname "$0")/common.sh"

mapfile -t features < <(sed -n '/^\[features\]/,/^\[dep/s/^\([a-z0-9_-]*\) = .*/\1/p' Cargo.toml | grep -v '^default$')
for ((subset = 0; subset < 1 << ${#features[@]}; subset++)); do
    chosen=""
    for ((at = 0; at < ${#features[@]}; at++)); do
        if ((subset >> at & 1)); then chosen+="${chosen:+,}${features[at]}"; fi
    done
    echo "features: ${chosen:-none}"
    cargo clippy --locked --quiet --no-default-features --features "$chosen" \
        --lib --bins --tests --examples -- -D warnings
done
