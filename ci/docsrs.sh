#!/usr/bin/env bash
# Shows that the documentation builds as on docs.rs, and that every item behind a feature states the feature.
# Needs a nightly toolchain, and builds all dependencies with it.
source "$(dirname "$0")/common.sh"

toolchain nightly
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/docsrs
# The settings of docs.rs in Cargo.toml.
export RUSTDOCFLAGS="--cfg docsrs -D warnings"
rm -rf "$CARGO_TARGET_DIR/doc"
cargo +nightly doc --locked --no-deps --lib --all-features

# The modules of lib.rs under a condition on a feature.
modules=$(awk '
    /^#\[cfg\(.*feature/ { feature = 1; next }
    feature && /^pub mod/ { sub(/;/, ""); print $3 }
    { feature = 0 }
' src/lib.rs)
pages=0
for module in $modules; do
    while read -r page; do
        # The page of a private module redirects to the public page.
        if grep -q 'http-equiv="refresh"' "$page"; then continue; fi
        # The part before the description belongs to the item itself, and not to a method.
        awk -v RS='Expand description' 'NR == 1' "$page" | grep -q 'Available on.*crate feature' ||
            { echo "$page does not state the feature that it needs"; exit 1; }
        pages=$((pages + 1))
    done < <(find "$CARGO_TARGET_DIR/doc/ringgate/$module" -name '*.html' | grep -E '/(struct|enum|trait|fn|type)\.[^/]*$')
done
echo "$pages items state the feature that they need"
((pages > 50))
