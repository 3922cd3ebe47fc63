# Sourced by all checks: sets strict mode, changes to the root of the repository, and defines helper functions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Ends a check that cannot be run: prints the reason and exits with code 77.
not_run() {
    echo "not run: $*"
    exit 77
}

# Installs the toolchain $1 with the components $2... if it is missing.
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

# Requires `cargo $1`. The function does not install it, because that takes minutes.
tool() {
    cargo "$1" --help >/dev/null 2>&1 || not_run "cargo-$1 is needed: cargo install --locked cargo-$1"
}

# Installs the Debian packages $2... if the command $1 is missing. Fails if the command is missing afterwards.
provide() {
    local command=$1 root=()
    shift
    command -v "$command" >/dev/null && return
    command -v apt-get >/dev/null || return
    ((EUID == 0)) || root=(sudo -n)
    { "${root[@]}" apt-get -o DPkg::Lock::Timeout=300 update &&
        "${root[@]}" apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"; } >/dev/null 2>&1
    command -v "$command" >/dev/null
}

# Requires the command $1. If it is missing, installs the Debian packages $2...
needs() {
    provide "$@" || not_run "$1 is missing and cannot be installed"
}

# The triple of this machine.
host() {
    rustc -vV | sed -n 's/^host: //p'
}
