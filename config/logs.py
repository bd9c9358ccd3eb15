"""How a log record is written."""

import logging
from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")


class OneLineFormatter(logging.Formatter):
    """Formats each record as one line. Line ends become ` | ` and control characters are escaped: nobody can forge a
    line.

    ``{request}`` is the id of the request that a record belongs to.
    """

    def format(self, record: logging.LogRecord) -> str:
        record.request = f" request={number}" if (number := request_id.get()) else ""
        line = " | ".join(super().format(record).splitlines())
        return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)
