#!/usr/bin/env bash
# Shows that the library and the command-line tool build with the oldest Rust version that Cargo.toml names. Their tests are not
# included: users do not build them, and checking them would take longer than all the rest.
source "$(dirname "$0")/common.sh"

msrv=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
toolchain "$msrv"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/msrv
cargo "+$msrv" check --locked
cargo "+$msrv" check --locked --no-default-features
cargo "+$msrv" check --locked --package ringgate --package ringgate-cli --all-features --lib --bins
