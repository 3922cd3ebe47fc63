#!/usr/bin/env bash
# Shows that the library, its tests and its examples build without warnings: with no feature, with each feature alone, with
# all but each one, and with all.
source "$(dirname "$0")/common.sh"

check() {
    echo "features: ${1:-none}"
    cargo clippy --locked --quiet --no-default-features --features "$1" \
        --lib --tests --examples -- -D warnings
}

mapfile -t features < <(sed -n '/^\[features\]/,/^\[dep/s/^\([a-z0-9_-]*\) = .*/\1/p' Cargo.toml | grep -v '^default$')
check ""
for feature in "${features[@]}"; do
    check "$feature"
    check "$(printf '%s\n' "${features[@]}" | grep -vx "$feature" | paste -sd,)"
done
check "$(printf '%s\n' "${features[@]}" | paste -sd,)"
