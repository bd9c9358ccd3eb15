"""Whether a text tells who somebody is: a name of certain people, an e-mail address, an IP address.

Whole words count, in any case, with and without accents. A name that is an ordinary word too (May, Will, Black, a word
of the tasks or of the protocol) would be found in every second text: alone it is passed over, and counts only
as part of the full name, after an @, or in an address.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import astuple

from annotation import protocol
from annotation.models import Person, Submission, Trajectory

SHORTEST = 3  # letters of a name that is looked for; shorter ones are parts of too many things

# First and last names, and parts of them, that are words; beside those that the tasks and the protocol use.
_WORDS = """
    admin adjudicator agent amber angel annotator april art ash august autumn banks bar basil bay berry bill bird
    black blue bond bow bridge brook brown bush candy cash cat chance charity chase chip church clay cliff cloud
    coach cole cook coral corner crane crystal daisy dale dawn day dean den der des drew duke faith farmer fern
    field fields fisher flora flowers ford forest foster fox frank french ginger glass gold golden grace grant gray
    green grey guest hall harmony hazel heather hill hills holiday holly home hope hunter iris ivory ivy jade
    jasmine jewel joy judge june king knight lake lance lane law lily long love maintainer major marble mark marsh
    mason may melody mercy mile miles mill mini mint moon moss noble north oak olive page pages park parks pat
    patience peace pearl penny pepper person pierce piper poppy power price prince queen rain ray red reed rice rich
    river rivers rob robin rock root rose rosemary ruby rush rusty sage sandy scarlet sharp short sierra singer skip
    sky small snow son south sparrow spring star sterling stone storm sue summer sun sunny swan taylor tester
    tiffany user van vera violet von walker wall ward waters watt watts weaver wells west white will willow winter
    wise wolf wood woods worth young the and for are was has had not all any can its one two new see use now say get
    set top low best test
"""
_ORDINARY = frozenset(_WORDS.split())

_EMAIL = re.compile(r"[\w.+-]@(?![0-9]x\.)[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}", re.IGNORECASE)
# Four numbers behind a letter and a slash, or behind "version", are a version: Chrome/120.0.0.1.
_IPV4 = re.compile(r"(?<![\w.])(?<!\w/)(?<!ersion )[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w-]|\.[0-9])")
_IPV6 = re.compile(r"(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?![\w:])", re.IGNORECASE)
_TRANSCRIBED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae", "œ": "oe"})
_LIKE_A_PSEUDONYM = re.compile(r"[aqm][0-9]+")


def names_one(text: str, names: re.Pattern[str] | None) -> bool:
    """Whether a text has a name; ``names`` as `pattern` made it."""
    return names is not None and bool(names.search(folded(text)))


def identifies(text: str, names: re.Pattern[str] | None) -> bool:
    """Whether a text has a name, or an e-mail or IP address of anybody."""
    plain = folded(text)
    if names is not None and names.search(plain):
        return True
    return bool(_EMAIL.search(plain)) or any(_is_address(match[0]) for match in _addresses(plain))


def _addresses(plain: str) -> Iterator[re.Match[str]]:
    yield from _IPV4.finditer(plain)
    yield from _IPV6.finditer(plain)


def _is_address(written: str) -> bool:
    """Whether it is the address of a machine; times (10:30:00) are none, and this very machine's is nobody's."""
    try:
        address = ipaddress.ip_address(written)
    except ValueError:
        return False
    return not (address.is_unspecified or address.is_loopback)


def folded(text: str) -> str:
    """Text without case, accents and invisible characters, so that one name has one spelling."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in parts if unicodedata.category(sign) not in ("Mn", "Cf"))


def pattern(people: Iterable[Person], ordinary: frozenset[str]) -> re.Pattern[str] | None:
    """What finds a name of one of the people in a `folded` text; None when there is no name to look for."""
    words: set[str] = set()
    joined: set[str] = set()
    for person in people:
        if not person.erased_at and not person.stand_in:
            words |= _words(person)
            joined |= _joined(person)
    plain = {word for word in words if not _doubtful(word, ordinary)}
    parts = [re.escape(word) for word in sorted(plain)]
    parts += [rf"@{re.escape(word)}" for word in sorted(words - plain)]
    choices = [rf"(?<![^\W_])(?:{'|'.join(parts)})(?![^\W_])"] if parts else []
    choices += [full if _without_gaps(full) else rf"(?<![^\W_]){full}(?![^\W_])" for full in sorted(joined)]
    choices += [re.escape(word) for word in sorted(words) if _without_gaps(word)]
    return re.compile("|".join(choices)) if choices else None


def _words(person: Person) -> set[str]:
    """The names that identify a person by themselves, as they may be spelled."""
    parts = [person.first_name, person.last_name, *re.split(r"[^\w']+", f"{person.first_name} {person.last_name}")]
    given = [person.username, person.email, person.email.split("@")[0], *parts]
    spelled = {spelling for name in given for spelling in _spellings(name.strip())}
    return {word for word in spelled if len(word) >= SHORTEST or (len(word) >= 2 and _without_gaps(word))}


def _joined(person: Person) -> set[str]:
    """Patterns of first and last name beside each other, in either order, with whatever joins them."""
    first, last = person.first_name.strip(), person.last_name.strip()
    if not first or not last:
        return set()
    between = r"[\s.,_-]*"
    return {
        between.join(re.escape(part) for part in spelling.split())
        for name in (f"{first} {last}", f"{last} {first}")
        for spelling in _spellings(name)
    }


def _spellings(name: str) -> set[str]:
    """A name without its accents, and as it is transcribed: muller and mueller for Müller."""
    composed = unicodedata.normalize("NFC", name).casefold()
    return {folded(composed), folded(composed.translate(_TRANSCRIBED))}


def _doubtful(word: str, ordinary: frozenset[str]) -> bool:
    """Whether finding this word says nothing about a person."""
    no_letters = not any(sign.isalpha() for sign in word)
    return no_letters or bool(_LIKE_A_PSEUDONYM.fullmatch(word)) or word in _ORDINARY or word in ordinary


def _without_gaps(word: str) -> bool:
    """Whether it is written in a script that puts no blanks between words, so that there are no whole words."""
    return any(unicodedata.name(sign, "").startswith(("CJK", "HIRAGANA", "KATAKANA", "THAI")) for sign in word)


def words_of_the_work(submission: Submission) -> frozenset[str]:
    """The words of the tasks and of the protocol: whoever is called like one of them is not meant by it."""
    texts = Trajectory.objects.filter(submission=submission).values_list("task_text", flat=True)
    return _split(" ".join(texts)) | _words_of_the_protocol()


@functools.cache
def _words_of_the_protocol() -> frozenset[str]:
    terms = (*protocol.CRITERIA, *protocol.FAILURE_TYPES, *protocol.CAUSES, *protocol.DECIDING, *protocol.PATHS)
    return _split(" ".join(str(value) for term in terms for value in astuple(term)))


def _split(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", folded(text)))
