"""Measure a network trace of 50 MB: ``python -m bench.har``, a part of `make bench`.

A trace of a shop is created in the three formats that can be imported. Each is redacted (as by an import) and read (as
by a judge). Each case runs in a separate process, so that its peak memory is its own. The same is done with a trace of
a fifth of the size; the last line states whether memory grew with the size. Prints a table that states which case is
over its budget; this is not a failure, since times depend on the machine.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import io
import json
import random
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotation.formats import har
from bench.processes import read_memory, run_apart
from judges.scorers.network_trace.trace import read_trace

MIB = 2**20
SIZES = (10, 50)  # MB of the trace as JSON
SECONDS, MEGABYTES = 30, 50  # the budget of 50 MB: time, and memory above that before the start
GROWTH = 1.3  # of the peak from the smaller trace to the larger, for the events; if texts stayed, it would be nearly 2
WORDS = ("cart", "price", "delivery", "tablet", "review", "stock", "filter", "rating", "shipping", "colour", "offer")


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one case: size of the file in bytes, entries, seconds, and memory in MB before it and at the peak."""

    size: int
    entries: int
    seconds: float
    before: float
    peak: float


def entries(megabytes: int) -> Iterator[dict[str, Any]]:
    """Yield requests of a shop for a trace of this size: pages with all files that they load, calls, and posts."""
    chance = random.Random(megabytes)  # noqa: S311
    size = number = 0
    while size < megabytes * MIB:
        entry = one_entry(chance, number)
        size += len(json.dumps(entry))
        number += 1
        yield entry


def one_entry(chance: random.Random, number: int) -> dict[str, Any]:
    """Return the request with this number: 1 of 12 is a page, 1 of 12 a call, 1 of 40 a post, the rest is static."""
    what = number % 12
    kind, path, mime, text = [
        ("document", f"c/tablets?page={number}&sid={chance.getrandbits(64):x}", "text/html", page(chance)),
        ("xhr", f"api/products?after={number}", "application/json", products(chance)),
    ][min(what, 1)]
    if what > 1:
        picture = base64.b64encode(chance.randbytes(chance.randrange(500, 12_000))).decode()
        kind, path, mime, text = "image", f"media/{number}.png", "image/png", picture
    content = {"size": len(text), "mimeType": mime, "text": text} | ({"encoding": "base64"} if what > 1 else {})
    request: dict[str, Any] = {"method": "GET", "url": f"https://shop.example/{path}", "httpVersion": "HTTP/2"}
    if number % 40 == 1:
        body = f"product={number}&quantity=1&authenticity_token={chance.getrandbits(256):x}"
        request |= {"method": "POST", "postData": {"mimeType": "application/x-www-form-urlencoded", "text": body}}
    started = f"2026-01-05T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000Z"
    return {
        "startedDateTime": started,
        "time": 12.5,
        "_resourceType": kind,
        "request": request | {"cookies": [], "headers": request_headers(chance, kind), "queryString": []},
        "response": {
            "status": 200, "statusText": "OK", "httpVersion": "HTTP/2", "redirectURL": "", "cookies": [],
            "headers": response_headers(chance, mime), "content": content,
        },
        "cache": {},
        "timings": {"send": 0, "wait": 12, "receive": 0.5},
    }  # fmt: skip


def request_headers(chance: random.Random, kind: str) -> list[dict[str, str]]:
    destination = kind if kind in ("document", "image") else "empty"
    headers = {
        "accept": "text/html,application/xhtml+xml", "accept-language": "en-US", "referer": "https://shop.example/",
        "user-agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140 Safari/537.36",
        "sec-fetch-dest": destination, "sec-fetch-mode": "navigate" if kind == "document" else "no-cors",
        "cookie": f"session={chance.getrandbits(256):x}",
    }  # fmt: skip
    return [{"name": name, "value": value} for name, value in headers.items()]


def response_headers(chance: random.Random, mime: str) -> list[dict[str, str]]:
    headers = {"content-type": mime, "etag": f'"{chance.getrandbits(64):x}"', "cache-control": "max-age=3600"}
    return [{"name": name, "value": value} for name, value in headers.items()]


def page(chance: random.Random) -> str:
    rows = "".join(f'<li class="item"><a href="/p/{n}?ref=list">{words(chance)}</a></li>\n' for n in range(200))
    return f'<!doctype html><meta name="csrf-token" content="{chance.getrandbits(128):x}"><ul>{rows}</ul>'


def products(chance: random.Random) -> str:
    rows = [{"id": n, "name": words(chance), "price": 19.95, "in_stock": True} for n in range(60)]
    return json.dumps({"items": rows, "access_token": f"{chance.getrandbits(128):x}"})


def words(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=6))


def write_har(path: Path, megabytes: int) -> None:
    with gzip.open(path, "wt", 1) if path.suffix == ".gz" else path.open("w") as file:
        file.write('{"log":{"version":"1.2","creator":{"name":"bench","version":"1"},"entries":[')
        for number, entry in enumerate(entries(megabytes)):
            file.write(("," if number else "") + json.dumps(entry))
        file.write("]}}")


def write_playwright(path: Path, megabytes: int) -> None:
    """Write the same as a Playwright trace: a line for each entry, the bodies in separate files."""
    lines = io.StringIO()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number, entry in enumerate(entries(megabytes)):
            content = entry["response"]["content"]
            encoding, text = content.pop("encoding", ""), content.pop("text")
            content["_sha1"] = f"{number:040x}.bin"
            archive.writestr(f"resources/{content['_sha1']}", base64.b64decode(text) if encoding else text)
            snapshot = entry | {"_monotonicTime": number * 1.5}
            lines.write(json.dumps({"type": "resource-snapshot", "snapshot": snapshot}) + "\n")
        archive.writestr("trace.network", lines.getvalue())


def redact(path: Path) -> Cost:
    """Do the import's part: write the trace without its secrets to a temporary file."""
    began, before = time.perf_counter(), read_memory("VmRSS")
    with path.open("rb") as source, tempfile.TemporaryFile() as target:
        number = har.redact(source, path.name, target)
    return Cost(path.stat().st_size, number, time.perf_counter() - began, before, read_memory("VmHWM"))


def read(path: Path) -> Cost:
    """Do the judge's part: load all events of a trace."""
    began, before = time.perf_counter(), read_memory("VmRSS")
    with path.open("rb") as source:
        trace = read_trace(source, path.name)
    return Cost(path.stat().st_size, trace.entries, time.perf_counter() - began, before, read_memory("VmHWM"))


FORMS: tuple[tuple[str, Callable[[Path, int], None]], ...] = (
    ("network.har", write_har),
    ("network.har.gz", write_har),
    ("trace.zip", write_playwright),
)
TITLES = ("network trace", "", "of JSON", "file", "entries", "s", "MB over", "peak MB", "")
WIDTHS = (18, 10, 10, 10, 10, 8, 10, 9, 24)


def row(name: str, measure: Callable[[Path], Cost], megabytes: int, took: Cost) -> tuple[str, ...]:
    """Return a line of the table."""
    over = took.seconds > SECONDS or took.peak - took.before > MEGABYTES
    verdict = f"{'OVER' if over else 'within'} {SECONDS} s, {MEGABYTES} MB over"
    return (
        name,
        {"redact": "redacted", "read": "read"}[measure.__name__],
        f"{megabytes} MB",
        f"{took.size / MIB:.1f} MB",
        f"{took.entries:,}",
        f"{took.seconds:.2f}",
        f"{took.peak - took.before:.0f}",
        f"{took.peak:.0f}",
        verdict if megabytes == max(SIZES) else "",
    )


def say(cells: Sequence[str]) -> None:
    line = "".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=False))
    print(line.rstrip(), flush=True)  # noqa: T201


def main(arguments: list[str] | None = None) -> int:
    argparse.ArgumentParser(prog="python -m bench.har", description=__doc__).parse_args(arguments)
    say(TITLES)
    costs: dict[tuple[str, str], list[Cost]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, write in FORMS:
            for megabytes in SIZES:
                path = Path(folder) / f"{megabytes}-{name}"
                write(path, megabytes)
                for measure in (redact, read):
                    took = run_apart(measure, path)
                    costs.setdefault((name, measure.__name__), []).append(took)
                    say(row(name, measure, megabytes, took))
                path.unlink()
    growth = max(took[-1].peak / took[0].peak for took in costs.values())
    says = "flat" if growth <= GROWTH else "OVER THE BUDGET"
    print(f"from {SIZES[0]} to {SIZES[-1]} MB the peak grows at most {growth:.2f} times: {says}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
