#!/usr/bin/env bash
# Shows that all tests pass: units, examples in the documentation, oracles, models repeated on real threads, the tool.
source "$(dirname "$0")/common.sh"

cargo test --locked --all-features
