#!/usr/bin/env bash
# Shows that each `Ordering` of an atomic in src has its reason, and that the protocols and the glossary name what the code has.
#
# A reason is a comment that begins with the ordering ("Relaxed: ...", "Acquire on failure: ..."), at most eight lines above
# the ordering or above it in the same function. AcqRel may have one for Acquire and one for Release. A name in backticks in a
# `protocol.md`, or in the glossary of CONTRIBUTING.md, that is an identifier, a path of identifiers or a file must exist.
source "$(dirname "$0")/common.sh"

needs python3 python3-minimal
exec python3 ci/orderings.py
