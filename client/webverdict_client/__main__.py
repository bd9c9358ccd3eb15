"""Commands: operations, describe OPERATION, call OPERATION [NAME=VALUE ...], upload PATH NAME=VALUE ..."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

import httpx2

from webverdict_client import Client, Refused, UnknownArgumentError

JSON = re.compile(r"[\[{].*|true|false|null|-?(?:0|[1-9][0-9]{0,14})", re.DOTALL)  # the server reads other numbers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Exit code 1: the server refused or cannot be reached; 2: wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        with Client(options.url) as client:
            _run(client, options)
    except Refused as refused:
        return _fail(json.dumps(refused.problem, ensure_ascii=False, indent=2) if refused.problem else str(refused), 1)
    except httpx2.TransportError as error:
        return _fail(f"The server cannot be reached: {error}", 1)
    except (UnknownArgumentError, ValueError, OSError) as error:
        return _fail(str(error), 2)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="webverdict-client", description="Call the API of a WebVerdict server, with the token in WEBVERDICT_TOKEN."
    )
    parser.add_argument("--url", default="", help="address of the server; default: WEBVERDICT_URL")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("operations", help="list the operations of the API")
    commands.add_parser("describe", help="print what an operation takes").add_argument("operation")
    call = commands.add_parser("call", help="call an operation and print its answer as JSON")
    call.add_argument("operation")
    call.add_argument(
        "values", nargs="*", metavar="NAME=VALUE", help="value as JSON, or plain text; for a file, its path"
    )
    call.add_argument("--all", action="store_true", help="all pages of a list")
    call.add_argument("--output", metavar="FILE", help="write the file that the operation returns")
    upload = commands.add_parser("upload", help="upload a package and wait for its report")
    upload.add_argument("path")
    upload.add_argument("values", nargs="*", metavar="NAME=VALUE", help="benchmark=, agent=, dry_run=true ...")
    upload.add_argument(
        "--state", metavar="FILE", help="remember the upload here, so that the same command continues it"
    )
    return parser


def _run(client: Client, options: argparse.Namespace) -> None:
    if options.command == "operations":
        for each in sorted(client.operations.values(), key=lambda operation: operation.id):
            _print(f"{each.id:<34} {each.scope:<6} {each.summary}")
        return
    if options.command == "describe":
        found = client.operations.get(options.operation)
        if found is None:
            raise UnknownArgumentError(f"This server has no operation {options.operation}.")
        _print(f"{found.method} {found.path}\n{found.summary}\n{found.describe_arguments()}")
        return
    values = dict(_read_value(each) for each in options.values)
    if options.command == "upload":
        if missing := {"benchmark", "agent"} - values.keys():
            raise ValueError(f"State {' and '.join(f'{name}=' for name in sorted(missing))}.")
        sent = client.upload(options.path, state=options.state, progress=_show_progress, **values)
        _print(json.dumps(sent.wait(), ensure_ascii=False, indent=2))
    elif options.output:
        _print(str(client.download(options.operation, options.output, **values)))
    else:
        answer = (client.rows if options.all else client.call)(options.operation, **values)
        if isinstance(answer, bytes):
            raise ValueError("This operation returns a file: add --output FILE.")
        _print(json.dumps(answer, ensure_ascii=False, indent=2))


def _read_value(given: str) -> tuple[str, Any]:
    """Return a name and its value. Texts stay as they are: a password may look like a number."""
    name, is_pair, value = given.partition("=")
    if not is_pair:
        raise ValueError(f"{given!r} is not NAME=VALUE.")
    if not JSON.fullmatch(value):
        return name, value
    try:
        return name, json.loads(value)
    except ValueError as error:
        raise ValueError(f"The value of {name} is not JSON: {error}.") from error


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done / max(total, 1):6.1%} of {total:,} bytes{'' if done < total else chr(10)}")
        sys.stderr.flush()


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _fail(text: str, code: int) -> int:
    sys.stderr.write(f"{text}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
