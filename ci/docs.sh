#!/usr/bin/env bash
# Shows that the documentation builds without a broken link, for users and with the private modules, whose documentation is
# the protocols. Also shows that .ci/run and the workflow name every check.
# Uses the toolchain and the folder of ci/docsrs.sh, so that the dependencies are built once for both.
source "$(dirname "$0")/common.sh"

for check in ci/*.sh; do
    name=$(basename "$check" .sh)
    [[ $name != common ]] || continue
    grep -Eq "^(check|by_hand) $name " .ci/run || { echo ".ci/run does not name $name"; exit 1; }
    grep -Eq "check: $name(,| )" .github/workflows/ci.yml || { echo "the workflow does not name $name"; exit 1; }
done

toolchain nightly
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/docsrs
export RUSTDOCFLAGS="-D warnings"
cargo +nightly doc --locked --no-deps --lib --all-features
cargo +nightly doc --locked --no-deps --lib --all-features --document-private-items
