#!/usr/bin/env bash
# Shows that the crate and its tool build with the oldest version of every dependency that Cargo.toml allows, and of what
# these depend on: a user may have any of them. Without dev-dependencies, whose demands would hide ours.
source "$(dirname "$0")/common.sh"

# Only nightly's cargo chooses the oldest.
toolchain nightly
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/minimal
copy=$CARGO_TARGET_DIR/copy
rm -rf "$copy"
mkdir -p "$copy"
cp -R src cli README.md "$copy"
for manifest in Cargo.toml cli/Cargo.toml; do
    awk '/^\[/ { left_out = /dev-dependencies|^\[\[(example|bench)\]\]/ } !left_out' "$manifest" >"$copy/$manifest"
done
sed -i 's/^members = .*/members = ["cli"]/' "$copy/Cargo.toml"
cd "$copy"
cargo +nightly update --quiet -Zminimal-versions
cargo check --locked --workspace --all-features --lib --bins
cargo check --locked
