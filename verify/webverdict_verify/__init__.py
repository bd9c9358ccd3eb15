"""The command `webverdict-verify`: the verify.py of bundles, which the build puts beside this file."""

from __future__ import annotations

import hashlib
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

NAME = "webverdict-verify"
PROGRAM = Path(__file__).with_name("verify.py")


def main() -> int:
    import_module("webverdict_verify.verify")  # makes the modules in it importable, before any installed ones
    digest = hashlib.sha256(PROGRAM.read_bytes()).hexdigest()
    told = f"{NAME} {version(NAME)} (verify.py with the SHA-256 {digest})"
    return int(import_module("evaluations.verifier.main").main(sys.argv[1:], str(PROGRAM), NAME, told))
