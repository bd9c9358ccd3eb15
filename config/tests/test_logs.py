"""One record is one line."""

import logging

from config.logs import OneLineFormatter


def test_a_message_with_line_ends_and_a_traceback_stays_on_one_line():
    formatter = OneLineFormatter("{levelname} {message}", style="{")
    try:
        raise ValueError("first\nERROR forged line")
    except ValueError as error:
        record = logging.LogRecord("a", logging.ERROR, "", 0, "got\r\nthis", None, (type(error), error, None))
    written = formatter.format(record)
    assert "\n" not in written
    assert written.startswith("ERROR got | this | ")
