"""One record is one line."""

import logging

from config.log_formats import OneLineFormatter


def test_a_message_with_line_ends_and_a_traceback_stays_on_one_line():
    formatter = OneLineFormatter("{levelname} {message}", style="{")
    try:
        raise ValueError("first\nERROR forged line")
    except ValueError as error:
        record = logging.LogRecord("a", logging.ERROR, "", 0, "got\r\nthis", None, (type(error), error, None))
    written = formatter.format(record)
    assert "\n" not in written
    assert written.startswith("ERROR got | this | ")


def test_control_characters_of_a_message_are_escaped():
    record = logging.LogRecord("a", logging.ERROR, "", 0, "a\x1b[2Jb\x85c\u2028d\x00\t\x7f \u202eé", None, None)
    assert OneLineFormatter().format(record) == r"a\x1b[2Jb | c | d\x00\t\x7f \u202eé"
