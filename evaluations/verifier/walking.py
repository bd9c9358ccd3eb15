"""Two documents beside each other: what a report states, and what was recomputed."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isclose
from typing import Any

from evaluations.verifier.resampling import End, Ends
from evaluations.verifier.wrongs import counted

EXACT = 1e-9
MOST_KEPT = 1000  # differences that are written out; more are counted
NAMED_BY = ("name", "judge", "first", "second", "agent", "human_label_2")  # what an entry of a list is called by


@dataclass
class Walked:
    """What was compared: ``numbers`` one by one, ``intervals`` by resampling; ``differing`` has place and sentence."""

    gives: str  # what the other document was recomputed from: "the labels give"
    numbers: int = 0
    intervals: int = 0
    wrong: int = 0
    differing: list[tuple[str, str]] = field(default_factory=list)

    def differs(self, place: str, says: str) -> None:
        self.wrong += 1
        if len(self.differing) < MOST_KEPT:
            self.differing.append((place, f"{place} {says}"))


def walk(stated: Any, recomputed: Any, gives: str) -> Walked:
    """Compare any JSON with a recomputed document, whose intervals may be `End` and `Ends`."""
    walked = Walked(gives)
    _walk_value(walked, "", stated, recomputed)
    return walked


def _walk_value(walked: Walked, place: str, stated: Any, recomputed: Any) -> None:
    if isinstance(recomputed, Ends):
        _walk_interval(walked, place, stated, recomputed)
    elif isinstance(recomputed, dict) and isinstance(stated, dict):
        _walk_keys(walked, place, stated, recomputed)
    elif isinstance(recomputed, list) and isinstance(stated, list):
        _walk_entries(walked, place, stated, recomputed)
    elif not isinstance(recomputed, (dict, list)):
        walked.numbers += _is_number(recomputed)
        if not _same(stated, recomputed):
            walked.differs(place, f"is {_told(stated)}, and {walked.gives} {_told(recomputed)}")
    else:
        walked.differs(place or "it", f"is {_told(stated)}, and should be {_told(recomputed)}")


def _walk_keys(walked: Walked, place: str, stated: dict[str, Any], recomputed: dict[str, Any]) -> None:
    ends = isinstance(recomputed.get("low"), End)
    for key, value in recomputed.items():
        inner = f"{place}.{key}" if place else key
        if key not in stated:
            if not (isinstance(value, Ends) and not value.low.needed):
                walked.differs(inner, "is missing")
        elif not (ends and key in ("low", "high")):
            _walk_value(walked, inner, stated[key], value)
    for key in stated:
        if key not in recomputed:
            walked.differs(f"{place}.{_short(key)}" if place else _short(key), "does not belong there")
    if ends and "low" in stated and "high" in stated:
        both = [stated["low"], stated["high"]]
        given = None if both == [None, None] else both
        _walk_interval(walked, place, given, Ends(recomputed["low"], recomputed["high"]))


def _walk_entries(walked: Walked, place: str, stated: list[Any], recomputed: list[Any]) -> None:
    if len(stated) != len(recomputed):
        walked.differs(place, f"has {counted(len(stated), 'entry', 'entries')}, and {walked.gives} {len(recomputed)}")
    for number, (one, other) in enumerate(zip(stated, recomputed)):  # noqa: B905 - the lengths were compared
        _walk_value(walked, f"{place}[{_entry_name(other, number)}]", one, other)


def _walk_interval(walked: Walked, place: str, stated: Any, ends: Ends) -> None:
    walked.intervals += ends.low.allowed
    if stated is None:
        if ends.low.needed:
            walked.differs(place, f"has no interval, and resampling gives {_told(ends)}")
    elif not ends.low.allowed:
        walked.differs(place, f"has an interval, {_told(stated)}, and resampling gives none")
    elif not (isinstance(stated, list) and len(stated) == 2 and all(map(_is_number, stated))):
        walked.differs(place, f"has {_told(stated)} for an interval")
    else:
        for name, number, end in (("low", stated[0], ends.low), ("high", stated[1], ends.high)):
            if not end.fits(number):
                says = f"is {_told(number)}, and resampling gives {_told(end)}"
                walked.differs(f"{place}.{name}" if place else name, says)


def _same(stated: Any, recomputed: Any) -> bool:
    """As numbers to `EXACT`, counts and everything else as they are; true is not 1."""
    if isinstance(recomputed, float):
        return _is_number(stated) and isclose(stated, recomputed, rel_tol=EXACT, abs_tol=EXACT)
    return type(stated) is type(recomputed) and bool(stated == recomputed)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _entry_name(entry: Any, number: int) -> str:
    names = [str(entry[key]) for key in NAMED_BY if key in entry] if isinstance(entry, dict) else []
    return ", ".join(map(_short, names)) or str(number)


def _told(value: Any) -> str:
    if isinstance(value, Ends):
        return f"about {value.low.least:.6g} to {value.high.most:.6g}"
    if isinstance(value, End):
        return f"{value.least:.6g} to {value.most:.6g}"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list) and len(value) <= 4 and all(map(_is_number, value)):
        return "[" + ", ".join(map(_told, value)) + "]"
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else f"a list of {len(value)}"
    return "nothing" if value is None else _short(repr(value))


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
