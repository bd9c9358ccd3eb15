#!/bin/sh
# Make or complete the environment in .venv: config/install.sh run|test
# Make or complete .venv-webarena, which adds the optional extra `webarena` to that of the tests: config/install.sh parity
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
    run) requirements=requirements.txt needed=1024 ;; # MB: 500 are installed, and pip unpacks them first
    test) requirements=requirements-dev.txt needed=2048 ;; # 1500; holds those of run too
    parity) requirements=requirements-webarena.txt ;;
    *) fail "usage: config/install.sh run|test|parity" ;;
esac

# The extra pins what others need newer, so it has an environment of its own. A .pth file lends it everything else of
# .venv; what it installs itself comes first.
install_parity() {
    environment=.venv-webarena
    stamp=$environment/.installed-$(cksum <"$requirements" | cut -d' ' -f1)
    if [ -e "$stamp" ] && suitable $environment/bin/python; then exit 0; fi
    suitable .venv/bin/python || fail "There is no .venv yet: run config/install.sh test first."
    echo "Installing $requirements into $environment ..."
    rm -rf $environment
    .venv/bin/python -m venv $environment || fail "The environment could not be made: see the lines above."
    log=$environment/install.log
    if ! $environment/bin/python -m pip install --no-input --disable-pip-version-check --no-warn-script-location \
        --progress-bar off --require-hashes -r "$requirements" >"$log" 2>&1; then
        grep -i error "$log" | tail -n 3 >&2
        fail "The installation failed (no network, or no disk?); all of its output is in $log."
    fi
    library='import sysconfig; print(sysconfig.get_path("purelib"))'
    .venv/bin/python -c "$library" >"$($environment/bin/python -c "$library")/webverdict.pth"
    touch "$stamp"
}
if [ "$purpose" = parity ]; then
    install_parity
    exit 0
fi
stamp_of() { echo ".venv/.installed-$1-$(cksum <"$2" | cut -d' ' -f1)"; }
stamp=$(stamp_of "$purpose" "$requirements")
if [ -e "$stamp" ] && suitable .venv/bin/python; then exit 0; fi

started=$(date +%s)
free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1024) }')
[ "$free" -ge "$needed" ] || fail "Only $free MB of disk are free here; the environment needs $needed MB."

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
