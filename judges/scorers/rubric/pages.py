"""Stored pages: text and screenshot of a web page, or a PDF, found by address.

One folder per task, as in Mind2Web-2: ``index.json`` maps addresses to ``web`` or ``pdf``, and the files are next to
it. Nothing here fetches anything.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlparse, urlunparse

from annotation.formats import cached_pages
from annotation.formats.cached_pages import without_fragment
from judges.scorers.framing import cut
from judges.scorers.rubric import pictures
from judges.scorers.rubric.engine import Engine, Limit

INDEX = "index.json"
MOST_INDEX = 32 * 1024 * 1024  # bytes
LONGEST_PAGE = 400_000  # characters
PREPARED = 128 * 1024 * 1024  # bytes of pages cached in memory: shrinking an image takes most of the time
SUFFIXES: dict[str, tuple[str, ...]] = {"web": (".txt", ".jpg"), "pdf": (".pdf",)}
LONGEST_ADDRESS = 20_000  # characters; longer addresses are compared as they are
TRACKING = "utm_"
SOURCES = ("chatgpt.com", "openai.com")  # tracking that assistants append to cited addresses
ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!~|<>&])")
SAFE = (":/?#[]@!$&'()*+,;=%", ":/?&=#", ":/?=&", ":/")

PageKind = Literal["web", "pdf"]

logger = logging.getLogger(__name__)


# --- Addresses: when two of them mean the same stored page ---


def unescape_markdown(address: str) -> str:
    """Return the address trimmed, and without the backslashes that escape characters in Markdown."""
    return ESCAPED.sub(r"\1", address.strip())


def remove_tracking(address: str) -> str:
    """Return the address without ``utm_*`` parameters. The rest of a query is encoded again."""
    try:
        parts = urlparse(address)
        if not parts.query:
            return address
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        kept = [pair for pair in pairs if not pair[0].lower().startswith(TRACKING)]
        return urlunparse(parts._replace(query=urlencode(kept, errors="surrogatepass")))
    except ValueError:  # for a text that is not an address
        return address


def simplify(address: str) -> str:
    """Return the form in which two addresses of the same page are equal.

    Tracking parameters, fragment, percent-encoding and one final slash are removed, then tracking parameters once more
    (which encodes a query again). http becomes https, ``www.`` directly after the scheme is removed, and everything
    becomes lower case, the path too. The order of parameters stays.
    """
    if len(address) > LONGEST_ADDRESS:
        return address
    bare = unquote(without_fragment(remove_tracking(address))).removesuffix("/")
    bare = remove_tracking(bare)
    if bare.startswith("http://"):
        bare = "https://" + bare.removeprefix("http://")
    if bare.startswith("https://www."):
        bare = "https://" + bare.removeprefix("https://www.")
    return bare.lower()


def list_variants(address: str) -> Iterator[str]:
    """Yield other forms of an address, most likely first and each once: without tracking, decoded and encoded in
    several ways, with the other scheme, with and without a final slash, and with the tracking of assistants."""
    if len(address) > LONGEST_ADDRESS:
        return
    seen = {address}
    for written in _list_spellings(address):
        for schemed in (written, _swap_scheme(written)):
            for ended in (schemed, schemed.removesuffix("/") if schemed.endswith("/") else schemed + "/"):
                for one in (ended, *_list_citations(ended)):
                    if one not in seen:
                        seen.add(one)
                        yield one


def _list_spellings(address: str) -> Iterator[str]:
    for base in dict.fromkeys((address, without_fragment(address), without_fragment(remove_tracking(address)))):
        decoded = unquote(base)
        yield base
        yield decoded
        for safe in SAFE:
            yield quote(decoded, safe=safe, errors="surrogatepass")


def _swap_scheme(address: str) -> str:
    if address.startswith("https://"):
        return "http://" + address.removeprefix("https://")
    if address.startswith("http://"):
        return "https://" + address.removeprefix("http://")
    return address


def _list_citations(address: str) -> Iterator[str]:
    joint = "&" if "?" in address else "?"
    for source in SOURCES:
        yield f"{address}{joint}utm_source={source}"


# --- Stored pages ---


class PageMissing(KeyError):
    """A page that is not stored; the message names the address."""

    def __str__(self) -> str:
        return str(self.args[0])


class Index:
    def __init__(self, pages: Mapping[str, str] | None = None) -> None:
        self.kinds: dict[str, PageKind] = {}
        self._by_form: dict[str, str] = {}
        for address, kind in (pages or {}).items():
            self.add(address, cast(PageKind, kind))

    def add(self, address: str, kind: PageKind) -> None:
        self.kinds[address] = kind
        self._by_form.setdefault(simplify(address), address)

    def find(self, address: str) -> str | None:
        """Return the stored address that ``address`` means, None if there is none.

        In this order: the exact address; without backslashes of Markdown; its simple form as an address; the first
        one with the same simple form; a variant.
        """
        bare = unescape_markdown(address)
        for exact in (address, bare):
            if exact in self.kinds:
                return exact
        form = simplify(bare)
        if form in self.kinds:
            return form
        if form in self._by_form:
            return self._by_form[form]
        return next((one for one in list_variants(bare) if one in self.kinds), None)


class _Pages:
    index: Index

    def _exists(self, name: str) -> bool:
        raise NotImplementedError

    def _load(self, name: str) -> bytes:
        raise NotImplementedError

    def has(self, url: str) -> PageKind | None:
        found = self.index.find(url)
        return None if found is None else self.index.kinds[found]

    def has_web(self, url: str) -> bool:
        return self.has(url) == "web"

    def has_pdf(self, url: str) -> bool:
        return self.has(url) == "pdf"

    def get_all_urls(self) -> list[str]:
        return list(self.index.kinds)

    def summary(self) -> dict[str, int]:
        kinds = list(self.index.kinds.values())
        return {"total_urls": len(kinds), "web_pages": kinds.count("web"), "pdf_pages": kinds.count("pdf")}

    def get_web(self, url: str) -> tuple[str, bytes]:
        """Return text and JPEG of a web page; raise PageMissing (a KeyError) if none is stored."""
        stem = self._find_stored(url, "web")
        return self._read(stem, ".txt").decode("utf-8", "replace"), self._read(stem, ".jpg")

    def get_pdf(self, url: str) -> bytes:
        """Return the bytes of a PDF; raise PageMissing (a KeyError) if none is stored."""
        return self._read(self._find_stored(url, "pdf"), ".pdf")

    def _find_stored(self, url: str, kind: PageKind) -> str:
        found = self.index.find(url)
        if found is None or self.index.kinds[found] != kind:
            raise PageMissing(f"No {kind} page is stored for {url}.")
        return found

    def _is_complete(self, address: str, kind: Any) -> bool:
        return kind in ("web", "pdf") and all(self._find(address, suffix) for suffix in SUFFIXES[kind])

    def _find(self, address: str, suffix: str) -> str | None:
        names = (stem + suffix for stem in cached_pages.stems(address))
        return next((name for name in names if self._exists(name)), None)

    def _read(self, address: str, suffix: str) -> bytes:
        name = self._find(address, suffix)
        if name is None:
            raise PageMissing(f"{address} has no file.")
        return self._load(name)


class CacheFileSys(_Pages):
    """The pages of one task in a folder, which is created if it is missing.

    Pages are written at once, the index only by `save`. An index that cannot be read starts empty, and entries whose
    files are missing are dropped, both with a warning in the log.
    """

    def __init__(self, task_dir: str | os.PathLike[str]) -> None:
        self.task_dir = Path(task_dir)
        self.task_dir.mkdir(parents=True, exist_ok=True)
        self.index = Index({address: kind for address, kind in self._read_index() if self._keep(address, kind)})

    @property
    def urls(self) -> dict[str, PageKind]:
        return self.index.kinds

    def put_web(self, url: str, text: str, screenshot: bytes | str) -> None:
        """Store a page; the screenshot is bytes or base64 of a PNG, JPEG or WebP, else PictureError is raised."""
        self._write(
            url, "web", {".txt": text.encode("utf-8", "replace"), ".jpg": pictures.convert_for_cache(screenshot)}
        )

    def put_pdf(self, url: str, data: bytes) -> None:
        self._write(url, "pdf", {".pdf": data})

    def save(self) -> None:
        """Write the index, whole or not at all."""
        written = json.dumps(self.index.kinds, ensure_ascii=True, indent=2).encode()
        _replace(self.task_dir / INDEX, written)

    def clear(self) -> None:
        """Forget every page and delete its files, the index too; other files of the folder stay."""
        for address, kind in self.index.kinds.items():
            for suffix in SUFFIXES[kind]:
                for stem in cached_pages.stems(address):
                    (self.task_dir / (stem + suffix)).unlink(missing_ok=True)
        (self.task_dir / INDEX).unlink(missing_ok=True)
        self.index = Index()

    def _write(self, url: str, kind: PageKind, files: Mapping[str, bytes]) -> None:
        stem = cached_pages.stem(url)
        for suffix, data in files.items():
            _replace(self.task_dir / (stem + suffix), data)
        self.index.add(url, kind)

    def _read_index(self) -> Iterator[tuple[str, str]]:
        file = self.task_dir / INDEX
        try:
            if not file.exists():
                return
            if file.stat().st_size > MOST_INDEX:
                raise ValueError(f"it has more than {MOST_INDEX:,} bytes")
            listed = json.loads(file.read_bytes())
            if not isinstance(listed, dict):
                raise ValueError("it is not an object of addresses")
        except (OSError, ValueError, RecursionError) as error:
            logger.warning("The index of pages %s cannot be read; starting with an empty one: %s", file, error)
            return
        yield from listed.items()

    def _keep(self, address: str, kind: Any) -> bool:
        complete = self._is_complete(address, kind)
        if not complete:
            logger.warning("The page %s is ignored: its files are missing from %s.", address, self.task_dir)
        return complete

    def _exists(self, name: str) -> bool:
        return (self.task_dir / name).is_file()

    def _load(self, name: str) -> bytes:
        return (self.task_dir / name).read_bytes()


def _replace(file: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


class StoredPages(_Pages):
    """Read-only pages that are stored elsewhere: the files that came with an answer.

    ``kinds`` maps addresses to ``web`` or ``pdf``; ``files`` maps the name of a file (``<md5>.txt``) to its reader.
    An address with a missing file is left out.
    """

    def __init__(self, kinds: Mapping[str, str], files: Mapping[str, Callable[[], bytes]]) -> None:
        self.files = files
        self.index = Index({address: kind for address, kind in kinds.items() if self._is_complete(address, kind)})

    def _exists(self, name: str) -> bool:
        return name in self.files

    def _load(self, name: str) -> bytes:
        return self.files[name]()


# --- Pages as shown to a model, each prepared once ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """``images`` are JPEGs, from top to bottom or page by page."""

    url: str
    kind: str
    text: str
    images: tuple[bytes, ...]

    @property
    def size(self) -> int:
        return len(self.text) + sum(map(len, self.images))


def shorten(text: str) -> str:
    """Return ``text`` of a page; if longer than `LONGEST_PAGE`, with white space collapsed and then possibly cut."""
    return text if len(text) <= LONGEST_PAGE else cut(" ".join(text.split()), LONGEST_PAGE)


class Pages:
    """The pages of a cache (any object with ``has``, ``get_web`` and ``get_pdf``), loaded on request.

    ``asked`` maps every requested address to ``web``, ``pdf`` or ``missing``, in the order of the requests.
    """

    def __init__(self, cache: Any, limit: Limit, engine: Engine) -> None:
        self.cache = cache
        self.limit = limit
        self.engine = engine
        self.asked: dict[str, str] = {}
        self._prepared: OrderedDict[str, Page] = OrderedDict()

    async def get(self, url: str) -> Page | None:
        async with self.limit:
            kind = self.cache.has(url) if self.cache is not None else None
            self.asked.setdefault(url, kind or "missing")
            if kind is None:
                return None
            if url not in self._prepared:
                work = partial(self._prepare, url, kind)
                page = await asyncio.to_thread(work) if self.engine.threads else work()
                if page is None:
                    self.asked[url] = "missing"
                    return None
                self._prepared[url] = page
            self._prepared.move_to_end(url)
            found = self._prepared[url]
            while len(self._prepared) > 1 and sum(page.size for page in self._prepared.values()) > PREPARED:
                self._prepared.popitem(last=False)
            return found

    def _prepare(self, url: str, kind: str) -> Page | None:
        if kind == "pdf":
            text, images = self.engine.read_pdf(self.cache.get_pdf(url))
            return Page(url, kind, shorten(text), tuple(images))
        text, screenshot = self.cache.get_web(url)
        if text is None or not screenshot:
            return None
        return Page(url, kind, shorten(text), (pictures.convert_for_model(screenshot),))
