"""Write CSV so that spreadsheets do not interpret texts of tasks, pages and agents as formulas."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence

# Control characters, lone surrogates, zero-width characters (soft hyphens, word joiners, tags) and marks that reorder
# text; XML also forbids some of them. U+200C and U+200D are not listed: some writing systems join letters with them.
UNSEEN = (
    r"\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    r"\ufffe\uffff\U000e0000-\U000e007f"
)
# The start of a formula for spreadsheets, also after invisible characters and in full-width forms.
_FORMULA = re.compile(rf"[\s\u200c\u200d{UNSEEN}]*[=+\-@＝＋－＠|%]|[\t\r\n]")


def csv_text(rows: Sequence[Sequence[object]]) -> str:
    """Return CSV (RFC 4180), with an apostrophe before texts that a spreadsheet would interpret as formulas."""
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows([_plain(value) for value in row] for row in rows)
    return stream.getvalue()


def file_name(*parts: str) -> str:
    """Return a name of letters, digits, dots and dashes, such as ``shops.Agent-1.agreement.pairs.csv``."""
    plain = (re.sub(r"[^A-Za-z0-9_]+", "-", part).strip("-")[:80] for part in parts)
    return ".".join(part for part in plain if part) + ".csv"


def _plain(value: object) -> str:
    """Return a number in ASCII with all digits, "" for unknown values, and a text that cannot become a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return f"'{value}" if _FORMULA.match(value) else value
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else ""
    return str(value)
