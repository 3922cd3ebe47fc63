#!/usr/bin/env bash
# Shows that the documentation builds and every link in it leads somewhere: as users see it, and with the
# private modules, whose docs are the protocols.
source "$(dirname "$0")/common.sh"

export RUSTDOCFLAGS="-D warnings"
cargo doc --locked --no-deps --lib --all-features
cargo doc --locked --no-deps --lib --all-features --document-private-items
