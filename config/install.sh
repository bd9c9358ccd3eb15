#!/bin/sh
# Make or complete the environment in .venv: config/install.sh run|test
# PYTHON names the Python to use; otherwise the first suitable one on the PATH is taken.
set -eu
cd "$(dirname "$0")/.."

fail() { echo "$*" >&2; exit 1; }

suitable() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        suitable "$PYTHON" || fail "PYTHON=$PYTHON is not a Python 3.11 or newer."
        echo "$PYTHON"
        return
    fi
    for candidate in python3.13 python3.12 python3.11 python3 python; do
        if suitable "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    fail "No Python 3.11 or newer was found: install one, or name it: make $purpose PYTHON=/path/to/python3"
}

purpose=$1
case $purpose in
    run) requirements=requirements.txt ;;
    test) requirements=requirements-dev.txt ;; # holds those of run too
    *) fail "usage: config/install.sh run|test" ;;
esac
stamp_of() { echo ".venv/.installed-$1-$(cksum <"$2" | cut -d' ' -f1)"; }
stamp=$(stamp_of "$purpose" "$requirements")
if [ -e "$stamp" ] && suitable .venv/bin/python; then exit 0; fi

started=$(date +%s)
free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1024) }')
[ "$free" -ge 1024 ] || fail "Only $free MB of disk are free here; the environment needs 1024 MB."

if ! suitable .venv/bin/python || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python lacks the venv module: install it (Debian, Ubuntu: apt-get install python3-venv)."
    echo "Making the environment .venv with $("$python" --version) ..."
    rm -rf .venv
    "$python" -m venv .venv || fail "The environment could not be made: see the lines above."
fi

echo "Installing $requirements into .venv ..."
log=.venv/install.log
if ! .venv/bin/python -m pip install --no-input --disable-pip-version-check --no-warn-script-location \
    --progress-bar off --require-hashes -r "$requirements" >"$log" 2>&1; then
    grep -i error "$log" | tail -n 3 >&2
    fail "The installation failed (no network, or no disk?); all of its output is in $log."
fi
rm -f .venv/.installed-*
touch "$(stamp_of run requirements.txt)" "$stamp"
echo "Installed in $(($(date +%s) - started)) s."
