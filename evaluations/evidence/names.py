"""Find names of members, e-mail and IP addresses in the texts of a bundle.

A bundle is built of pseudonyms, but reasons are free text, and somebody gave names to agents, benchmarks and judges,
and judges say why they have no verdict. All of that is searched for the user name, first name, last name and e-mail
address of every member, and for e-mail and IP addresses of anybody (`annotation.names` says how); what the agent did
(task texts, answers, pages) is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from django.db.models import Q

from annotation.models import Person, Submission
from annotation.names import (
    PlacedTexts,
    compile_names,
    extract_texts,
    find_ordinary_words,
    find_written_texts,
    has_identity,
)
from annotation.records import Problem
from evaluations.evidence.judging import ADDRESS, WITH_ADDRESSES, reasons
from judges.models import Judge


def named(submission: Submission, judges: bool = True) -> list[Problem]:
    """Every place where people wrote a member's name, or an e-mail or IP address, into what a bundle holds.

    ``where`` is such as ``label of A1 on task_0003``; the message never repeats what was found. The number of queries
    does not grow with the submission. ``judges`` as `documents`: without them their names are in events alone.
    """
    names = compile_names(Person.objects.filter(memberships__submission=submission), find_ordinary_words(submission))
    of_judges = chain(_of_judges(submission), _of_judgments(submission)) if judges else ()
    places = chain(find_written_texts(submission), _around(submission), of_judges)
    found: dict[str, None] = {}
    for where, given in places:
        if where not in found and any(has_identity(text, names) for text in given if text):
            found[where] = None
    return [_problem(where) for where in found]


def _problem(where: str) -> Problem:
    message = f"The {where} holds a person's name, an e-mail address or an IP address."
    return Problem("name_in_text", message, where)


def _around(submission: Submission) -> Iterator[PlacedTexts]:
    """Names that people gave to what a bundle is about, and what the import said of their files."""
    practice = ("practice_set__agent__name", "practice_set__benchmark__slug")
    given = Submission.objects.values("agent__name", "benchmark__slug", "benchmark__name", *practice, "import_report")
    row = given.get(pk=submission.pk)
    yield "name of the agent", (row["agent__name"],)
    yield "name of the benchmark", (row["benchmark__slug"], row["benchmark__name"])
    yield "name of the practice set", tuple(row[name] for name in practice)
    report = {name: part for name, part in (row["import_report"] or {}).items() if name != "accepted"}
    yield "import report", tuple(extract_texts(report))


def _of_judges(submission: Submission) -> Iterator[PlacedTexts]:
    """The words of the lines of judges/runs.jsonl, with those of judges that came in a bundle; addresses are taken out
    of these when they are written."""
    here = Q(runs__submission=submission, runs__test=False)
    imported = Q(judgments__item=None, judgments__agent=submission.agent_id)
    imported &= Q(judgments__task__benchmark=submission.benchmark_id)
    own = Q(came_with__isnull=True) | Q(came_with=submission)
    for judge in Judge.objects.filter(own, here | imported).distinct().order_by("pk"):
        given = {name: value for name, value in judge.parameters.items() if name not in WITH_ADDRESSES}
        said = [judge.name, judge.prompts, _model(judge.model), *extract_texts(given), *extract_texts(judge.generation)]
        yield f"judge {judge.pk} (name, model or parameters)", tuple(ADDRESS.sub(" ", text) for text in said)


def _of_judgments(submission: Submission) -> Iterator[PlacedTexts]:
    """Why judgments have no verdict: a model, a program or whoever made a file wrote that."""
    for judge, task_id, reason in reasons(submission):
        yield f"reason of judge {judge} on {task_id}", (reason,)


def _model(name: str) -> str:
    """A model that was loaded from a folder or an address is stated by the last part of it alone."""
    return name.rpartition("/")[2] if name.startswith(("/", ".")) or "://" in name else name
