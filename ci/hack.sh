#!/usr/bin/env bash
# Shows that the library builds without warnings with every set of HACK_DEPTH features (default 2). ci/features.sh builds only
# single features and some sets.
source "$(dirname "$0")/common.sh"

tool hack
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/hack
RUSTFLAGS="-D warnings" cargo hack check --locked --quiet --lib --feature-powerset --exclude-features default \
    --depth "${HACK_DEPTH:-2}"
