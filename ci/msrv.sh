#!/usr/bin/env bash
# Shows that the library, the command-line tool and their tests build with the oldest Rust version that Cargo.toml names.
source "$(dirname "$0")/common.sh"

msrv=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
toolchain "$msrv"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/msrv
cargo "+$msrv" check --locked
cargo "+$msrv" check --locked --no-default-features
cargo "+$msrv" check --locked --workspace --all-features --lib --bins --tests --examples
