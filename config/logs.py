"""How a log record is written."""

import logging
import re
from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")

# The secret part of a link by which somebody sets a password. Django logs the path of a refused request, too.
LINK = re.compile(r"(/join/[^/\s]+/)\S+")


class OneLineFormatter(logging.Formatter):
    """Formats each record as one line. Line ends become ` | ` and control characters are escaped: nobody can forge a
    line.

    The secret of a password link is removed. ``{request}`` is the id of the request that a record belongs to.
    """

    def format(self, record: logging.LogRecord) -> str:
        record.request = f" request={number}" if (number := request_id.get()) else ""
        line = " | ".join(super().format(record).splitlines())
        line = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)
        return LINK.sub(r"\1...", line)
