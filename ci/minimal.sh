#!/usr/bin/env bash
# Shows that the library and the command-line tool build with the oldest versions of all direct and indirect dependencies that
# Cargo.toml allows. Dev-dependencies are left out, because they may require newer versions.
source "$(dirname "$0")/common.sh"

# Only the cargo of a nightly toolchain can choose the oldest versions.
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
