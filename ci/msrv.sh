#!/usr/bin/env bash
# Shows that the crate, its tool and its tests build with the oldest Rust that Cargo.toml promises.
source "$(dirname "$0")/common.sh"

msrv=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
toolchain "$msrv"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/msrv
cargo "+$msrv" check --locked
cargo "+$msrv" check --locked --no-default-features
cargo "+$msrv" check --locked --workspace --all-features --lib --bins --tests --examples
