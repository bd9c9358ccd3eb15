"""The command `webverdict`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main() -> int:
    sys.path.insert(0, str(Path(__file__).parent))
    return int(import_module("config.command").main(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
