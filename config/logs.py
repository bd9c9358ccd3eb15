"""How a log record is written."""

import logging


class OneLineFormatter(logging.Formatter):
    """One record, one line: a traceback's line ends become ` | `, so that a record cannot forge another one."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace("\r", "").replace("\n", " | ")
