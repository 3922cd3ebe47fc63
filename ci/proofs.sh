#!/usr/bin/env bash
# Shows that every one-word algorithm keeps its promises for every word, time and request: z3 proves the transitions of proofs/words. Shows
# that the crate makes these transitions: it agrees with a transcript of the proved model, and with 140 million random cases. Shows that the
# proofs can fail: each line of a specification has a mutation that a proof refutes. See proofs/README.md.
#
#   ci/proofs.sh              all proofs, the comparison, and a tenth of the mutations, which rotates with the number of commits
#   ci/proofs.sh mutations    all mutations
source "$(dirname "$0")/common.sh"

readonly Z3=5.4.1.0
[[ $# -eq 0 || $* == mutations ]] || { echo "usage: ci/proofs.sh [mutations]"; exit 2; }

needs python3 python3
venv=target/proofs/venv
if ! "$venv/bin/python" -c "import importlib.metadata as m; assert m.version('z3-solver') == '$Z3'" 2>/dev/null; then
    mkdir -p target/proofs
    # Debian's Python has its venv module in a package of its own.
    python3 -m venv --clear "$venv" >/dev/null 2>&1 || {
        provide python3-venv-is-missing python3-venv || true
        python3 -m venv --clear "$venv" >/dev/null 2>&1 || not_run "python3-venv is missing and cannot be installed"
    }
    "$venv/bin/pip" install --quiet "z3-solver==$Z3" || not_run "z3-solver $Z3 cannot be installed"
fi
python() {
    PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" "proofs/words/$1.py" "${@:2}"
}

if [[ ${1:-} == mutations ]]; then
    python mutate
    exit
fi

echo "== proofs"
python prove
echo "== comparison with the crate"
transcript=$PWD/target/proofs/transcript.txt
python transcript "$transcript"
RINGGATE_TRANSCRIPT=$transcript RINGGATE_WORDS=100000000 \
    cargo test --locked --quiet --profile models --features calendar,rules --lib specification:: -- --nocapture
echo "== mutations of the specifications"
python mutate "$(git rev-list --count HEAD 2>/dev/null || echo 0)/10"
echo "proofs: $SECONDS s"
