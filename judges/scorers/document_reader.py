"""Reader of the YAML documents that maintainers write for a task; each problem names its line and the fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from annotation.formats.documents import kind_of
from annotation.formats.printable import printable
from annotation.formats.yaml_text import Place, YamlDocument, did_you_mean, flag_meant
from annotation.records import Problem


class DocumentReader:
    """A document with its problems. A reader method that finds a problem returns a harmless value."""

    prefix = ""  # of all problem codes
    not_text = not_flag = "wrong_type"  # problem codes
    too_long = "too_long"

    def __init__(self, document: YamlDocument, name: str) -> None:
        self.document, self.name = document, name
        self.problems: list[Problem] = []
        self.misspelt: set[tuple[Place, str]] = set()  # missing keys that were probably misspelt, with their parent

    def refuse(self, place: Place, code: str, says: str) -> None:
        line = self.document.line(place)
        end = "" if says.endswith((".", "?")) else "."
        self.problems.append(Problem(self.prefix + code, f"{self.name}, line {line:,}: {says}{end}", f"line {line}"))

    def refuse_type(self, place: Place, wanted: str, value: object, code: str = "wrong_type") -> None:
        self.refuse(place, code, f"{describe_place(place)} must be {wanted}, not {kind_of(value)}")

    def refuse_unknown_key(self, place: Place, what: str, known: Iterable[str]) -> None:
        key, names = str(place[-1]), list(known)
        near = difflib.get_close_matches(key.lower(), names, n=1, cutoff=0.5)
        self.misspelt |= {(place[:-1], one) for one in near}
        help_text = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(names)}"
        self.refuse(place, "unknown_key", f"`{printable(key, 60)}` is not {what}; {help_text}")

    def refuse_unknown_keys(self, place: Place, value: Iterable[str], what: str, known: Sequence[str]) -> None:
        """Refuse each unknown key; suggest only known keys that ``value`` does not contain, if there are any."""
        missing = [one for one in known if one not in value]
        for key in value:
            if key not in known:
                self.refuse_unknown_key((*place, key), what, missing or known)

    def read_text(self, place: Place, value: object, longest: int = 10_000) -> str:
        if not isinstance(value, str):
            self.refuse_type(place, "a text", value, self.not_text)
            return ""
        if len(value) > longest:
            self.refuse(place, self.too_long, f"{describe_place(place)} must have at most {longest:,} characters")
            return ""
        return value

    def read_flag(self, place: Place, value: object, default: bool = False) -> bool:
        if isinstance(value, bool):
            return value
        meant = flag_meant(value)
        help_text = f"; write {meant}" if meant else f", not {kind_of(value)}"
        self.refuse(place, self.not_flag, f"{describe_place(place)} must be true or false{help_text}")
        return default

    def read_choice(self, place: Place, text: str, known: Iterable[str], code: str = "wrong_value") -> str:
        names = list(known)
        if text in names:
            return text
        listed = f"{', '.join(names)}, not {printable(text, 60)}{did_you_mean(text, names)}"
        self.refuse(place, code, f"{describe_place(place)} must be one of {listed}")
        return ""


def describe_place(place: Place) -> str:
    names = [part for part in place if isinstance(part, str)]
    return printable(names[-1], 60) if names else "the document"
