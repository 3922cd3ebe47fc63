#!/usr/bin/env bash
# Shows that the models hold in every interleaving and under every ordering that loom can tell apart; each model says
# with how many preemptions, small ones without a bound.
source "$(dirname "$0")/common.sh"

export RUSTFLAGS="--cfg ringgate_loom"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/loom
cargo test --locked --profile models --features rules,tokio --test models
