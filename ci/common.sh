# Sourced by the checks: strict mode, the repository's root, and how to say that a check was not run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Ends a check that cannot be run here: the reason on the last line, exit code 77.
not_run() {
    echo "not run: $*"
    exit 77
}

# Makes sure that toolchain $1 is there, with the components $2...
toolchain() {
    local name=$1
    shift
    command -v rustup >/dev/null || not_run "rustup is needed for the toolchain $name"
    cargo "+$name" --version >/dev/null 2>&1 ||
        rustup toolchain install "$name" --profile minimal ||
        not_run "the toolchain $name cannot be installed here"
    local component
    for component; do
        rustup component add "$component" --toolchain "$name" ||
            not_run "the component $component of $name cannot be installed here"
    done
}

# Makes sure that `cargo $1` is there. It is not installed for you: that takes minutes.
tool() {
    cargo "$1" --help >/dev/null 2>&1 || not_run "cargo-$1 is needed: cargo install --locked cargo-$1"
}

# Makes sure that the command $1 is there, by the packages $2... of Debian where they can be installed.
needs() {
    local command=$1
    shift
    command -v "$command" >/dev/null ||
        { apt-get update && apt-get install -y --no-install-recommends "$@"; } >/dev/null 2>&1 ||
        not_run "$command is not here and cannot be installed"
}

# The triple of this machine.
host() {
    rustc -vV | sed -n 's/^host: //p'
}
