#!/usr/bin/env bash
# Shows that the documentation builds as docs.rs builds it, and that every item of a feature says which feature it needs.
# Needs a nightly toolchain, and builds all dependencies with it.
source "$(dirname "$0")/common.sh"

toolchain nightly
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/docsrs
# What Cargo.toml says to docs.rs.
export RUSTDOCFLAGS="--cfg docsrs -D warnings"
cargo +nightly doc --locked --no-deps --lib --all-features

# The names that lib.rs re-exports under a condition on a feature.
names=$(awk '
    /^#\[cfg\(.*feature/ { feature = 1; next }
    feature && /^pub use/ { listing = 1 }
    listing { text = text " " $0 }
    /;/ { listing = 0; feature = 0 }
    END { gsub(/pub use [a-z_:]+/, "", text); gsub(/[{},;]/, " ", text); print text }
' src/lib.rs)
pages=0
for name in $names; do
    page=$(echo "$CARGO_TARGET_DIR"/doc/ringgate/*."$name".html)
    [[ -f $page ]] || { echo "$name has no page"; exit 1; }
    # Of the item itself, not of one of its methods.
    awk -v RS='Expand description' 'NR == 1' "$page" | grep -q 'Available on.*crate feature' ||
        { echo "$name does not say which feature it needs"; exit 1; }
    pages=$((pages + 1))
done
echo "$pages items say which feature they need"
((pages > 50))
