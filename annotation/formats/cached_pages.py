"""Names and content of the files of cited pages, in the layout of Mind2Web-2.

``index.json`` maps each address to "web" or "pdf". The text and image of a page, or the file of a PDF, are named
after the address.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container, Iterator
from urllib.parse import unquote, urldefrag

from annotation.formats.documents import FormatError, decode_text, kind_of, parse_json
from annotation.formats.printable import printable
from annotation.records import Problem

FOLDER = "pages"
INDEX = f"{FOLDER}/index.json"
WEB, PDF = "web", "pdf"
SUFFIXES = {WEB: (".txt", ".jpg"), PDF: (".pdf",)}
MIB = 2**20
LIMITS = {".json": 4 * MIB, ".txt": 8 * MIB, ".jpg": 24 * MIB, ".pdf": 64 * MIB}  # bytes of a file
MOST_PAGES = 2_000
LONGEST_ADDRESS = 8_000  # characters
OF_THE_WEB = re.compile(r"https?://[^/?#\\\s]", re.IGNORECASE)  # all others must not become links
PDF_MARK = b"%PDF-"
MARK_WITHIN = 1024  # bytes; PDF readers accept this many before the mark

Read = Callable[[str, int], bytes]


def is_web(address: str) -> bool:
    """Return whether an address uses http or https, so that it may be a link (not ``javascript:`` or a local path)."""
    return OF_THE_WEB.match(address) is not None


def without_fragment(address: str) -> str:
    try:
        return urldefrag(address).url
    except ValueError:
        return address.partition("#")[0]


def stored_as(address: str) -> str:
    """Return the text whose MD5 names the files of a page: no fragment, percent-decoded, without a last slash."""
    return unquote(without_fragment(address)).removesuffix("/")


def md5_of(text: str) -> str:
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def stem(address: str) -> str:
    """Return the file name of a page without suffix (32 hexadecimal digits) by the rule of Mind2Web-2."""
    return md5_of(stored_as(address))


def stems(address: str) -> tuple[str, str]:
    """Return both possible file stems: by `stem`, and the MD5 of the address itself, for indexes of decoded ones."""
    return stem(address), md5_of(address)


def files_of(address: str, kind: str, there: Container[str] = ()) -> tuple[str, ...]:
    """Return the file names of a page, without folder: by `stem`, unless only the other name is in ``there``."""
    own, other = stems(address)
    return tuple(
        f"{other if f'{own}{suffix}' not in there and f'{other}{suffix}' in there else own}{suffix}"
        for suffix in SUFFIXES[kind]
    )


def read_index(data: bytes, name: str) -> dict[str, str]:
    """Return "web" or "pdf" by address. Raises FormatError with all problems; ``name`` is the file in messages."""
    document = parse_json(data, name)
    if not isinstance(document, dict):
        says = f"{name}: must be an object with addresses as keys, not {kind_of(document)}."
        raise FormatError(Problem("pages_index_invalid", says, name))
    problems = [Problem("pages_index_invalid", f"{name}: {says}.", name) for says in _entry_problems(document)]
    if problems:
        raise FormatError(*problems[:50])
    return {str(address): str(kind) for address, kind in document.items()}


def _entry_problems(document: dict[str, object]) -> Iterator[str]:
    if len(document) > MOST_PAGES:
        yield f"has {len(document):,} pages; the limit is {MOST_PAGES:,}"
        return
    kinds: dict[str, object] = {}
    for address, kind in document.items():
        shown = printable(address, 200)
        if not address or len(address) > LONGEST_ADDRESS:
            yield f"an address must have 1 to {LONGEST_ADDRESS:,} characters: {shown}"
        elif not is_web(address):
            yield f"an address must begin with http:// or https://; this one begins with {shown}"
        elif kind not in (WEB, PDF):
            yield f'{shown} must be "web" or "pdf", not {printable(repr(kind), 40)}'
        elif kinds.setdefault(stem(address), kind) != kind:
            yield f"{shown} has the same files as another address but another kind"


def check_content(name: str, read: Read) -> None:
    """Check the bytes of a page's file, except images, which are decoded when they are stored.

    ``read(name, limit)`` returns the bytes of a file, like `Package.read`. Raises FormatError.
    """
    suffix = name[name.rfind(".") :]
    if suffix == ".jpg":
        return
    data = read(name, LIMITS[suffix])
    if suffix == ".pdf" and PDF_MARK not in data[:MARK_WITHIN]:
        raise FormatError(Problem("page_not_pdf", f"{printable(name)}: is not a PDF.", printable(name, 300)))
    if suffix == ".txt":
        decode_text(data, name)
