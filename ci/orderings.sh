#!/usr/bin/env bash
# Shows that each `Ordering` of an atomic in src has its reason, that the protocols name what the code has, and that each type
# has a definition for the index of terms.
#
# A reason is a comment that begins with the ordering ("Relaxed: ...", "Acquire on failure: ..."), at most eight lines above
# the ordering or above it in the same function. AcqRel may have one for Acquire and one for Release. A comment that begins so is
# above such an ordering. Whether the partner that it names exists is not checked. A name in backticks in a
# `protocol.md` that is an identifier, a path of identifiers or a file must exist. The index is printed by ci/terms.py.
source "$(dirname "$0")/common.sh"

needs python3 python3-minimal
exec env PYTHONDONTWRITEBYTECODE=1 python3 ci/orderings.py
