"""Find names of members, e-mail and IP addresses in the texts of a bundle.

A bundle has pseudonyms, but people write reasons and names of agents, benchmarks and judges, and judges write why they
have no verdict. All these texts are searched for the user name, first name, last name and e-mail address of every
member, and for any e-mail and IP addresses (see `annotation.names`). Content of the task and the agent's work (task
texts, answers, pages) is not searched.
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


def named(submission: Submission, judges: bool = True, reason: str = "") -> list[Problem]:
    """Return all places with a member's name, or an e-mail or IP address, in the texts of a bundle.

    ``where`` is such as ``label of A1 on task_0003``; the message never repeats the name. The number of queries does
    not depend on the submission's size. ``judges`` as in `documents`: without them, names of judges are only in events.
    ``reason`` is why the bundle replaces another one.
    """
    names = compile_names(Person.objects.filter(memberships__submission=submission), find_ordinary_words(submission))
    of_judges = chain(_of_judges(submission), _of_judgments(submission)) if judges else ()
    given_here = [("reason why it replaces a bundle", (reason,))]
    places = chain(find_written_texts(submission), _around(submission), of_judges, given_here)
    found: dict[str, None] = {}
    for where, given in places:
        if where not in found and any(has_identity(text, names) for text in given if text):
            found[where] = None
    return [_problem(where) for where in found]


def _problem(where: str) -> Problem:
    message = f"The {where} contains a person's name, an e-mail address or an IP address."
    return Problem("name_in_text", message, where)


def _around(submission: Submission) -> Iterator[PlacedTexts]:
    """Yield the names of agent, benchmark and practice set, and the messages of the import about its files."""
    practice = ("practice_set__agent__name", "practice_set__benchmark__slug")
    given = Submission.objects.values("agent__name", "benchmark__slug", "benchmark__name", *practice, "import_report")
    row = given.get(pk=submission.pk)
    yield "name of the agent", (row["agent__name"],)
    yield "name of the benchmark", (row["benchmark__slug"], row["benchmark__name"])
    yield "name of the practice set", tuple(row[name] for name in practice)
    report = {name: part for name, part in (row["import_report"] or {}).items() if name != "accepted"}
    yield "import report", tuple(extract_texts(report))


def _of_judges(submission: Submission) -> Iterator[PlacedTexts]:
    """Yield the texts of judges/runs.jsonl, including judges that came in a bundle, without the addresses, which the
    export removes."""
    here = Q(runs__submission=submission, runs__test=False)
    imported = Q(judgments__item=None, judgments__agent=submission.agent_id)
    imported &= Q(judgments__task__benchmark=submission.benchmark_id)
    own = Q(came_with__isnull=True) | Q(came_with=submission)
    for judge in Judge.objects.filter(own, here | imported).distinct().order_by("pk"):
        given = {name: value for name, value in judge.parameters.items() if name not in WITH_ADDRESSES}
        said = [judge.name, judge.prompts, _model(judge.model), *extract_texts(given), *extract_texts(judge.generation)]
        yield f"judge {judge.pk} (name, model or parameters)", tuple(ADDRESS.sub(" ", text) for text in said)


def _of_judgments(submission: Submission) -> Iterator[PlacedTexts]:
    """Yield why judgments have no verdict: text by a model, a program or the author of an imported file."""
    for judge, task_id, reason in reasons(submission):
        yield f"reason of judge {judge} on {task_id}", (reason,)


def _model(name: str) -> str:
    """Return only the last part of the name of a model that was loaded from a folder or an address."""
    return name.rpartition("/")[2] if name.startswith(("/", ".")) or "://" in name else name
