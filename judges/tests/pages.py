"""Pages as a browser reads them, so that tests do not depend on where a template breaks its lines."""

from __future__ import annotations

import re
from typing import Any

BLOCKS = (
    "article|aside|caption|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|h1|h2|h3|header|legend|li|main|nav|"
    "ol|option|p|section|select|summary|table|tbody|td|th|thead|tr|ul"
)


VERBATIM = re.compile(r"(<(?:pre|textarea)\b.*?</(?:pre|textarea)>)", re.DOTALL)


def read_page(response: Any) -> str:
    """The HTML of a response with white space collapsed, and without it at the edges of blocks and ends of tags."""
    parts = VERBATIM.split(response.content.decode())
    return "".join(part if number % 2 else _collapse(part) for number, part in enumerate(parts))


def _collapse(page: str) -> str:
    page = re.sub(r"\s+", " ", page)
    page = re.sub(rf" ?(</?(?:{BLOCKS})\b[^>]*>) ?", r"\1", page)
    return re.sub(r" (?=/?>)", "", page)
