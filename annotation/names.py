"""Find the texts that people wrote about a submission, and search them for names, e-mail and IP addresses.

Whole words count, in any case, with and without accents. A name that is an ordinary word too (May, Will, a word of the
tasks or of the protocol) counts only as part of the full name, after an @, or in an address.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import astuple

from django.db.models import Model

from annotation import protocol
from annotation.label_fields import TEXT_FIELDS
from annotation.models import (
    Adjudication,
    Comment,
    Event,
    Flag,
    FlagAnswer,
    HumanAttempt,
    InformedRevision,
    KeyPoint,
    Label,
    Membership,
    Person,
    Question,
    Redaction,
    Release,
    Reopening,
    Report,
    Submission,
    Trajectory,
)

SHORTEST = 3  # letters; shorter names are parts of too many words

# Names that are also frequent words in reasons, in addition to the words of the tasks and the protocol.
ORDINARY_WORDS = """
    adjudicator admin agent all and annotator any april are art august best bill black blue bond brown can cash chance
    chip for get gold gray green grey guest had has home hope hunter its june long low maintainer may mark not now one
    page pages price red rich say see set short small star stone summer sun test tester the top two use user white will
    winter was young
"""
ORDINARY = frozenset(ORDINARY_WORDS.split())

EMAIL = re.compile(r"[\w.+-]@(?![0-9]x\.)[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}", re.IGNORECASE)
# Four numbers after a letter and a slash, or after "version", are a version: Chrome/120.0.0.1.
IPV4 = re.compile(r"(?<![\w.])(?<!\w/)(?<!ersion )[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w-]|\.[0-9])")
IPV6 = re.compile(r"(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?![\w:])", re.IGNORECASE)
TRANSCRIPTION = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae", "œ": "oe"})
PSEUDONYM = re.compile(r"[aqm][0-9]+")

Names = re.Pattern[str]


def has_name(text: str, names: Names | None) -> bool:
    return names is not None and bool(names.search(fold(text)))


def has_identity(text: str, names: Names | None) -> bool:
    plain = fold(text)
    if (names and names.search(plain)) or EMAIL.search(plain):
        return True
    return any(_is_address(match[0]) for regex in (IPV4, IPV6) for match in regex.finditer(plain))


def _is_address(text: str) -> bool:
    """Return whether it is the address of another machine; a time (10:30:00) is not an address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_unspecified or address.is_loopback)


def fold(text: str) -> str:
    """Return a text without case, accents and invisible characters, so that a name has one spelling."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in parts if unicodedata.category(sign) not in ("Mn", "Cf"))


def compile_names(people: Iterable[Person], ordinary: frozenset[str]) -> Names | None:
    """Return a pattern for texts of `fold`, None if there are no names; ``ordinary`` is of `find_ordinary_words`."""
    spaced: set[str] = set()
    unspaced: set[str] = set()
    for person in people:
        if person.erased_at or person.stand_in:
            continue
        first, last = person.first_name.strip(), person.last_name.strip()
        parts = re.split(r"[^\w']+", f"{first} {last}")
        names = (person.username, person.email, person.email.split("@")[0], first, last, *parts)
        for word in {word for name in names for word in _spell(name.strip())}:
            if _is_unspaced(word):
                unspaced |= {re.escape(word)} if len(word) > 1 else set()
            elif len(word) >= SHORTEST:
                is_doubtful = word in ORDINARY | ordinary or not _is_distinctive(word)
                spaced.add(f"{'@' if is_doubtful else ''}{re.escape(word)}")
        for name in (f"{first} {last}", f"{last} {first}") if first and last else ():
            for phrase in (r"[\s.,_-]*".join(map(re.escape, each.split())) for each in _spell(name)):
                (unspaced if _is_unspaced(phrase) else spaced).add(phrase)
    if spaced:
        unspaced.add(rf"(?<![^\W_])(?:{'|'.join(sorted(spaced))})(?![^\W_])")
    return re.compile("|".join(sorted(unspaced))) if unspaced else None


def _spell(name: str) -> set[str]:
    """Return a name without accents, and transcribed: muller and mueller for Müller."""
    composed = unicodedata.normalize("NFC", name).casefold()
    return {fold(composed), fold(composed.translate(TRANSCRIPTION))}


def _is_distinctive(word: str) -> bool:
    return any(map(str.isalpha, word)) and not PSEUDONYM.fullmatch(word)


def _is_unspaced(word: str) -> bool:
    """Return whether it is in a script without spaces between words."""
    return any(unicodedata.name(sign, "").startswith(("CJK", "HIRAGANA", "KATAKANA", "THAI")) for sign in word)


def find_ordinary_words(submission: Submission) -> frozenset[str]:
    texts = Trajectory.objects.filter(submission=submission).values_list("task_text", flat=True)
    return _split(" ".join(texts)) | _split_protocol()


@functools.cache
def _split_protocol() -> frozenset[str]:
    terms = (*protocol.CRITERIA, *protocol.FAILURE_TYPES, *protocol.CAUSES, *protocol.DECIDING, *protocol.PATHS)
    return _split(" ".join(str(value) for term in terms for value in astuple(term)))


def _split(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", fold(text)))


# --- texts ------------------------------------------------------------------------------------------------------------

OF_A_DECISION = (*TEXT_FIELDS, "revision_reason")

# Name, rows, lookups of the trajectory and of the author, and the columns with texts.
SOURCES: tuple[tuple[str, type[Model], str, str, tuple[str, ...]], ...] = (
    ("label", Label, "assignment__trajectory", "assignment__annotator", OF_A_DECISION),
    ("own attempt", HumanAttempt, "label__assignment__trajectory", "label__assignment__annotator", ("notes", "link")),
    ("informed reason", InformedRevision, "label__assignment__trajectory", "label__assignment__annotator", ("reason",)),
    ("adjudication", Adjudication, "trajectory", "adjudicator", OF_A_DECISION),
    ("reopening", Reopening, "trajectory", "reopened_by", ("reason",)),
    ("flag", Flag, "trajectory", "annotator", ("note",)),
    ("report", Report, "trajectory", "reporter", ("note", "answer")),
    ("release", Release, "trajectory", "annotator", ("reason",)),
)

# The texts of these events are also stored in rows.
EVENTS_OF_ROWS = ("released", "flagged", "reopened", "reported", "report_settled", "screenshot_redacted", "imported")

PlacedTexts = tuple[str, tuple[str, ...]]  # a place such as "label of A1 on task_0003", and the texts there


def find_written_texts(submission: Submission) -> Iterator[PlacedTexts]:
    """Yield all texts with their places; one query for each kind of row."""
    pseudonyms = dict(Membership.objects.filter(submission=submission).values_list("person", "pseudonym"))
    for kind, model, trajectory, author, columns in SOURCES:
        rows = model._default_manager.filter(**{f"{trajectory}__submission": submission})
        rows = rows.order_by(f"{trajectory}__position", "pk")
        for person, task, *texts in rows.values_list(author, f"{trajectory}__task__external_id", *columns):
            yield f"{kind} of {pseudonyms.get(person, 'somebody else')} on {task}", tuple(texts)
    points = KeyPoint.objects.filter(task__benchmark=submission.benchmark_id, accepted_at__isnull=False)
    points = points.filter(proposed_by__isnull=False).order_by("pk")
    for person, task, text in points.values_list("proposed_by", "task__external_id", "text"):
        yield f"key point of {pseudonyms.get(person, 'somebody else')} on {task}", (text,)
    for (reason,) in Redaction.objects.filter(submission=submission).values_list("reason"):
        yield "reason for a redaction", (reason,)
    events = Event.objects.filter(submission=submission).exclude(kind__in=EVENTS_OF_ROWS)
    for sequence, kind, payload in events.values_list("sequence", "kind", "payload"):
        yield f"event {sequence} ({kind})", tuple(extract_texts(payload))


def find_discussion(submission: Submission) -> Iterator[PlacedTexts]:
    """Yield the texts that no export or bundle contains: comments, answers to flags, questions and their answers."""
    pseudonyms = dict(Membership.objects.filter(submission=submission).values_list("person", "pseudonym"))
    comments = Comment.objects.filter(trajectory__submission=submission).order_by("trajectory__position", "pk")
    for person, task, text in comments.values_list("author", "trajectory__task__external_id", "text"):
        yield f"comment of {pseudonyms.get(person, 'somebody else')} on {task}", (text,)
    answers = FlagAnswer.objects.filter(trajectory__submission=submission).order_by("trajectory__position", "pk")
    for person, task, text in answers.values_list("answered_by", "trajectory__task__external_id", "text"):
        yield f"flag answer of {pseudonyms.get(person, 'somebody else')} on {task}", (text,)
    for kind, author, column in (("question", "asker", "text"), ("answer", "answered_by", "answer")):
        questions = Question.objects.filter(submission=submission).order_by("pk")
        for person, text in questions.exclude(**{author: None}).values_list(author, column):
            yield f"{kind} of {pseudonyms.get(person, 'somebody else')} on the guidelines", (text,)


def extract_texts(value: object) -> Iterator[str]:
    """Yield the texts in a JSON value, except ids of tasks."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from extract_texts(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name != "task_id":
                yield from extract_texts(each)
