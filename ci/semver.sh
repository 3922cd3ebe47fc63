#!/usr/bin/env bash
# Shows that the version in Cargo.toml is high enough for the changes of the public API.
#
#   ci/semver.sh          since the last tag
#   ci/semver.sh REV      since a revision
source "$(dirname "$0")/common.sh"

tool semver-checks
baseline=${1:-$(git describe --tags --abbrev=0 2>/dev/null)} ||
    not_run "no version is tagged, so there is nothing to compare with (ci/semver.sh REV compares with a revision)"
echo "since $baseline"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/semver
cargo semver-checks --package ringgate --baseline-rev "$baseline" --all-features
