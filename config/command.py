"""The command `webverdict`: serve the embedded profile with its demo, administer it, or verify an evidence bundle."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import webbrowser
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import platformdirs

from config import embedded
from evaluations.verifier import main as verifier

VERIFIER = Path(__file__).parents[1] / "verify.py"  # the file that bundles have too; the build writes it
COMMANDS = """\
Without a command: serve WebVerdict on this machine, with demo data at the first start, until Ctrl-C.

  manage ...      run an administrative command on the data; `webverdict manage help` lists them
  doctor ...      check this instance and its services; `webverdict doctor --help` lists the options
  verify BUNDLE   check an evidence bundle offline; `webverdict verify --help` lists the options
"""


def main(arguments: list[str]) -> int:
    """Return the exit code: 0, 1 if something failed, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="webverdict",
        usage="webverdict [--data DIR] [--port PORT] [--no-demo] [--no-browser]"
        " [manage ... | doctor ... | verify BUNDLE]",
        description=COMMANDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = os.environ.get("WEBVERDICT_DATA") or platformdirs.user_data_path("webverdict", appauthor=False)
    parser.add_argument("--data", metavar="DIR", type=Path, default=Path(default), help=f"data folder ({default})")
    parser.add_argument("--port", type=int, default=8000, help="port on 127.0.0.1 (8000)")
    parser.add_argument("--no-demo", action="store_true", help="start without demo data")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument("--version", action="version", version=f"webverdict {version('webverdict')}")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.command == "verify":
        return verifier.main(options.rest, str(VERIFIER), "webverdict verify")
    if options.command not in (None, "manage", "doctor"):
        parser.error(f"there is no command {options.command!r}; the commands are manage, doctor and verify")
    try:
        use(options.data)
    except OSError as error:
        says = f"The data folder {options.data} cannot be written: {error.strerror}."
        print(f"{says} Choose another one: webverdict --data DIR", file=sys.stderr)  # noqa: T201
        return 1
    if options.command is not None:
        given = options.rest if options.command == "manage" else ["doctor", *options.rest]
        sys.argv = ["webverdict manage", *given]
        import_module("manage").main()
        return 0
    ready = show if not options.no_browser else None
    return embedded.serve(options.port, again="webverdict --port ", ready=ready, demo=not options.no_demo)


def use(data: Path) -> None:
    """Make ``data`` the data folder of this process and its children; OSError if nothing can be written there."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=data):
        os.environ["WEBVERDICT_DATA"] = str(data.absolute())


def show(address: str) -> None:
    """Open the browser of a desktop; elsewhere there is none, or one that would take the terminal."""
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(address)
