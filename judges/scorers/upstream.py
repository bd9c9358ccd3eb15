"""Read replies exactly as the published judges do, faults included, so that numbers are comparable.

Source: the behaviour of the evaluation code of Online-Mind2Web. It differs from the default mode as follows:

- The verdict is the text between the first and second "status:", and a success if it contains "success": "unsuccessful"
  is a success, ``**Status**: success`` and no status are failures. Default: a structured answer; in text the last
  "Status:" or "Verdict:", with whole words and negations. Unclear is unscored.
- Relevance is the first digit 1 to 5 after the first "Score": "10" is 1, "0 of 5" is 5. Default: a structured answer,
  or the whole number after the last "Score". An unclear reply leaves the screenshot unread.
- WebVoyager: everything without FAILURE in capitals is a success. Default: the verdict must be stated.
- The last action of version 2 is always dropped. Default: dropped if it gives the answer.
- Autonomous Eval's instructions mention the answer, which it does not get. Default: they describe the real input.
- AgentTrek stops if a thought is missing. Here the thought is empty; steps after the last thought are left out in
  both.
- Unusual colour modes stop the evaluator. Here every image becomes one JPEG at import.
- An empty reply stops the worker, an unreadable one is a failure. Default: unscored, with the reason.
"""

from __future__ import annotations

import re

from annotation.records import Verdict

STATED = re.compile(r"success|failure\b")
ANY_STATUS = re.compile("success|fail")
DIGIT = re.compile("[1-5]")
BOLD_POINTS, PLAIN_POINTS = "**Key Points**:", "Key Points:"


def read_verdict(text: str) -> Verdict:
    """Return success if "success" occurs between the first and the second "status:", in any case; otherwise failure.

    So "unsuccessful" is a success, and "**Status**: success", whose colon is outside the bold text, is a failure.
    """
    return Verdict.SUCCESS if "success" in _find_status(text) else Verdict.FAILURE


def states_verdict(text: str) -> bool:
    """Return whether a reply that was cut off contains one of the two words after its status."""
    return STATED.search(_find_status(text)) is not None


def has_status(text: str) -> bool:
    """Return whether `read_verdict` finds "success" or a form of "fail"; otherwise its failure is only a default."""
    return ANY_STATUS.search(_find_status(text)) is not None


def _find_status(text: str) -> str:
    return (*text.lower().split("status:"), "")[1]


def read_voyager_verdict(text: str) -> Verdict:
    """Return failure if the word FAILURE occurs in upper case; else success, whatever the text says (WebVoyager)."""
    return Verdict.FAILURE if "FAILURE" in text else Verdict.SUCCESS


def has_voyager_status(text: str) -> bool:
    """Return whether the text has one of the two words; otherwise `read_voyager_verdict` returns success by default."""
    return "FAILURE" in text or "SUCCESS" in text


def read_key_points(text: str) -> str:
    """Return the text after the bold heading, up to its second occurrence; else after the last plain one; else all.

    Blank lines and indentation are removed.
    """
    closed = text.replace("\n\n", "\n")
    bold = closed.split(BOLD_POINTS)
    found = bold[1] if len(bold) > 1 else closed.split(PLAIN_POINTS)[-1]
    return "\n".join(line.lstrip() for line in found.splitlines())


def read_image_score(text: str) -> int:
    """Return the first digit 1 to 5 between the first and the second "Score" (case-sensitive); 0 if there is none.

    So "10" is 1, "0 of 5" is 5 and "score: 5" is 0.
    """
    return _find_first_digit(text.split("Score")[1:2])


def read_image_reason(text: str) -> str:
    """Return the text after the last bold Reasoning heading (or the start) up to a blank line, on one line."""
    return text.rpartition("**Reasoning**:")[2].strip().partition("\n\n")[0].replace("\n", " ")


def read_general_image_score(text: str) -> int:
    """Return the score as `read_image_score` does, but only after the heading "### Score"; 0 for another form."""
    return _find_first_digit(text.split("### Score")[1:2])


def read_general_image_reason(text: str) -> str:
    """Return the text after the last "### Reasoning:" up to "### Score", on one line."""
    return text.rpartition("### Reasoning:")[2].strip().partition("### Score")[0].replace("\n", " ")


def _find_first_digit(segments: list[str]) -> int:
    found = DIGIT.search(segments[0]) if segments else None
    return int(found[0]) if found else 0
