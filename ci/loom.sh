#!/usr/bin/env bash
# Shows that the models hold in every interleaving and under every memory ordering that loom explores. Each model states its
# bound on preemptions; small models have none. Models that a run has no time for with three preemptions have two or one, and
# `LOOM_MAX_PREEMPTIONS=3 ci/loom.sh` explores them with three.
source "$(dirname "$0")/common.sh"

export RUSTFLAGS="--cfg ringgate_loom"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/loom
cargo test --locked --profile models --features calendar,rules,wait --test models
