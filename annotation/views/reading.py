"""View of an answer without steps: its text, its citations, and the stored pages."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from django.http import HttpRequest
from django.utils.safestring import SafeString, mark_safe

from annotation import screenshots
from annotation.formats import cached_pages, pdf_text
from annotation.formats.answer_text import normal, read_answer
from annotation.formats.documents import FormatError
from annotation.models import Attachment, Screenshot, Trajectory
from annotation.records import AttachmentKind

logger = logging.getLogger(__name__)
LONGEST_TEXT = 200_000  # characters of a page that are shown
TEXT, PICTURE = "text", "picture"
DAMAGED = "The stored list of these pages is damaged. Ask the operator to restore it."
AWAY = "The file store does not answer. Reload to try again."


@dataclass(frozen=True, slots=True)
class Source:
    """An address with its number on the desk; ``kind`` is "web" or "pdf" if its page is stored, else ""."""

    number: int
    address: str
    titles: tuple[str, ...] = ()
    kind: str = ""
    kept_as: str = ""  # the address under which the page is stored; its files are named after it

    @property
    def live(self) -> str:
        return self.address if cached_pages.is_web(self.address) else ""


@dataclass(frozen=True, slots=True)
class Page:
    """A stored page next to the answer. ``picture`` and ``file`` are None if there is no such file."""

    source: Source
    shown: str
    text: str = ""
    left_out: int = 0
    why_not: str = ""
    picture: Attachment | None = None
    size: Screenshot | None = None
    file: Attachment | None = None

    @property
    def other(self) -> str:
        """Return the other way to show the page; "" if there is only one."""
        return (TEXT if self.shown == PICTURE else PICTURE) if self.picture else ""


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer with its sources: ``cited`` in its order, then ``others``, stored but not cited; numbered through."""

    html: SafeString
    left_out: int
    cited: list[Source] = field(default_factory=list)
    others: list[Source] = field(default_factory=list)
    page: Page | None = None
    problem: str = ""

    @property
    def kept(self) -> list[int]:
        """Return the numbers of the pages that can be opened, in order."""
        return [source.number for source in (*self.cited, *self.others) if source.kind]

    @property
    def previous(self) -> int | None:
        return next((number for number in reversed(self.kept) if self.page and number < self.page.source.number), None)

    @property
    def next(self) -> int | None:
        after = self.page.source.number if self.page else 0
        return next((number for number in self.kept if number > after), None)


def reading_of(request: HttpRequest, trajectory: Trajectory) -> Reading:
    """Return the answer of a trajectory without steps, with the page that ?page= names, as ?show=text or picture."""
    said = read_answer(trajectory.final_answer or "")
    files, index, problem = _load_pages(trajectory)
    by_form = {normal(address): (kind, address) for address, kind in reversed(index.items())}
    cited = [
        Source(one.number, one.address, one.titles, *by_form.pop(normal(one.address), ("", "")))
        for one in said.citations
    ]
    others = [
        Source(number, address, (), kind, address)
        for number, (kind, address) in enumerate(reversed(by_form.values()), start=len(cited) + 1)
    ]
    # Safe: `read_answer` escapes all text of the agent, and links only to http and https.
    html = mark_safe(said.html)  # noqa: S308
    found = Reading(html, said.left_out, cited, others, problem=problem)
    chosen = request.GET.get("page", "")
    source = next((one for one in (*cited, *others) if one.kind and str(one.number) == chosen), None)
    return replace(found, page=_build_page(source, files, request.GET.get("show", ""))) if source else found


def _load_pages(trajectory: Trajectory) -> tuple[dict[str, Attachment], dict[str, str], str]:
    """Return the files of the stored pages by name, their index, and the problem if the index cannot be read."""
    files = {one.name: one for one in trajectory.attachments.filter(kind=AttachmentKind.CACHED_PAGE, withheld=False)}
    index = files.get(cached_pages.INDEX)
    if index is None:
        return files, {}, ""
    try:
        return files, cached_pages.read_index(screenshots.original(index.sha256), cached_pages.INDEX), ""
    except screenshots.DamagedFile:
        logger.exception("The index of the stored pages of trajectory %s is damaged", trajectory.pk)
        return files, {}, DAMAGED
    except (FormatError, *screenshots.STORE_ERRORS):
        logger.exception("The index of the stored pages of trajectory %s cannot be read", trajectory.pk)
        return files, {}, AWAY


def _build_page(source: Source, files: dict[str, Attachment], show: str) -> Page:
    found = dict(_find_files(source, files))
    if source.kind == cached_pages.PDF:
        return _add_text(Page(source, TEXT, file=found.get(".pdf")), found.get(".pdf"))
    picture = found.get(".jpg")
    size = Screenshot.objects.filter(sha256=picture.sha256).first() if picture else None
    shown = Page(
        source, TEXT if show == TEXT or size is None else PICTURE, picture=picture if size else None, size=size
    )
    return _add_text(shown, found.get(".txt")) if shown.shown == TEXT else shown


def _find_files(source: Source, files: dict[str, Attachment]) -> Iterator[tuple[str, Attachment]]:
    there = {name.rpartition("/")[2] for name in files}
    for name in cached_pages.files_of(source.kept_as, source.kind, there):
        found = files.get(f"{cached_pages.FOLDER}/{name}")
        if found is not None:
            yield name[name.rfind(".") :], found


def _add_text(page: Page, file: Attachment | None) -> Page:
    text, why_not = _read_text(file.sha256, page.source.kind) if file else ("", "its file is missing")
    return replace(page, text=text[:LONGEST_TEXT], left_out=max(len(text) - LONGEST_TEXT, 0), why_not=why_not)


@lru_cache(maxsize=16)
def _read_pdf_text(sha256: str) -> tuple[str, str]:
    try:
        return pdf_text.text_of(screenshots.original(sha256)), ""
    except pdf_text.NoText as error:
        return "", str(error)


def _read_text(sha256: str, kind: str) -> tuple[str, str]:
    try:
        if kind == cached_pages.PDF:
            return _read_pdf_text(sha256)
        return screenshots.original(sha256).decode("utf-8-sig", errors="replace"), ""
    except screenshots.DamagedFile:
        logger.exception("The text of a stored page is damaged")
        return "", "its stored file is damaged; ask the operator to restore it"
    except screenshots.STORE_ERRORS:
        logger.exception("The text of a stored page cannot be read")
        return "", "the file store does not answer"
