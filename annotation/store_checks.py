"""Compare stored files with their SHA-256: the files of a submission before an export, or the whole store.

A pass over the store reads every original that a row names, in the order of the digests. It can be interrupted and
continued.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import islice
from math import inf
from time import monotonic, sleep
from typing import Any, NamedTuple

from django.db.models import Q
from django.utils import timezone

from annotation import clock, redactions, screenshots
from annotation.models import Attachment, Redaction, Screenshot, Step, StoreCheck, Submission
from annotation.records import Problem

DAMAGED, MISSING = "damaged", "missing"
CODES = frozenset(f"{thing}_{kind}" for thing in ("screenshot", "attachment") for kind in (DAMAGED, "lost"))
SAYS = {
    DAMAGED: "is damaged in the image store: its SHA-256 differs from its name",
    MISSING: "is missing from the image store",
}
RESTORE = "Restore the file {name} from a backup, or import a package that contains it."
AT_ONCE = 200  # files in one query, and between two saves of a pass
SAVED_EVERY = 10.0  # seconds between two saves of a pass at most
READERS = 4  # files read at the same time for an export
MOST_PLACES = 10  # listed for one file
MOST_READ = 200  # files, for one page
WEEK = timedelta(days=7)
SILENT = timedelta(minutes=10)  # without a heartbeat for this long, the process of a pass counts as dead

Progress = Callable[[int, int], None]


class Place(NamedTuple):
    """A use of a stored file; ``name`` is such as "screenshot of step 3"."""

    sha256: str
    submission: int
    task_id: str
    thing: str
    name: str


def check_file(sha256: str) -> tuple[str | None, int]:
    """Return `DAMAGED`, `MISSING` or None for a stored original, and the size of an intact one in bytes."""
    try:
        return None, screenshots.check_original(sha256)
    except screenshots.DamagedFile:
        return DAMAGED, 0
    except FileNotFoundError:
        return MISSING, 0


def record_damage(bad: Collection[str], good: Collection[str] = ()) -> None:
    """Mark the screenshots with the digests ``bad`` as damaged, and clear the mark of those in ``good``."""
    if bad:
        Screenshot.objects.filter(sha256__in=bad, damaged_at=None).update(damaged_at=timezone.now())
    if good:
        Screenshot.objects.filter(sha256__in=good, damaged_at__isnull=False).update(damaged_at=None)


# --- of a submission -------------------------------------------------------------------------------------------------


def check_submission(submission: Submission, only: Collection[str] | None = None) -> list[Problem]:
    """Read the stored files of a submission and return a problem for each use of a damaged or missing one.

    ``only`` limits the check to these digests: an export checks the files that it contains.
    """
    digests = {place.sha256 for place in submission_places(submission)} if only is None else only
    return problems_of(submission, find_bad(digests))


def find_known_damage(submission: Submission) -> list[Problem]:
    """Return the result of `check_submission` for screenshots that an earlier check found damaged or missing.

    A page cannot wait until every file is read. It reads at most `MOST_READ` of those that are marked.
    """
    marked = Screenshot.objects.filter(damaged_at__isnull=False, steps__trajectory__submission=submission).distinct()
    return check_submission(submission, marked.values_list("sha256", flat=True)[:MOST_READ])


def problems_of(submission: Submission, bad: Mapping[str, str]) -> list[Problem]:
    """Return a problem for each use of these files in the submission; ``bad`` is a result of `find_bad`."""
    places = submission_places(submission) if bad else []
    return [_problem(place, bad[place.sha256]) for place in places if place.sha256 in bad]


def find_bad(digests: Collection[str]) -> dict[str, str]:
    """Return `DAMAGED` or `MISSING` by digest for the bad ones of these files, and mark screenshots."""
    bad: dict[str, str] = {}
    ordered = sorted(digests)
    with ThreadPoolExecutor(READERS) as readers:
        for start in range(0, len(ordered), AT_ONCE):  # a task waiting in the pool takes 2 kB
            some = ordered[start : start + AT_ONCE]
            found = zip(some, readers.map(check_file, some), strict=True)
            bad |= {sha256: kind for sha256, (kind, _) in found if kind is not None}
            record_damage([each for each in some if each in bad], [each for each in some if each not in bad])
    return bad


def submission_places(submission: Submission) -> list[Place]:
    """Return every use of a stored file in a submission, including redacted screenshots, in the submission's order."""
    steps = Step.objects.filter(trajectory__submission=submission, screenshot__isnull=False)
    files = Attachment.objects.filter(trajectory__submission=submission, withheld=False)
    found = [*_steps(steps.order_by("trajectory__position", "index"))]
    found += _attachments(files.order_by("trajectory__position", "name"))
    covered = {} if submission.audited else redactions.map_redacted(submission)
    found += [
        place._replace(sha256=covered[place.sha256], name=f"redacted {place.name}")
        for place in found
        if place.thing == "screenshot" and place.sha256 in covered
    ]
    return found


def _problem(place: Place, kind: str) -> Problem:
    message = f"{place.task_id}: the {place.name} {SAYS[kind]}. {RESTORE.format(name=place.sha256)}"
    return Problem(f"{place.thing}_{DAMAGED if kind == DAMAGED else 'lost'}", message, place.task_id)


def _steps(steps: Any) -> Iterator[Place]:
    fields = ("screenshot__sha256", "trajectory__submission", "trajectory__task__external_id", "index")
    for sha256, submission, task_id, index in steps.values_list(*fields).iterator():
        yield Place(sha256, submission, task_id, "screenshot", f"screenshot of step {index}")


def _attachments(files: Any) -> Iterator[Place]:
    fields = ("sha256", "trajectory__submission", "trajectory__task__external_id", "name")
    for sha256, submission, task_id, name in files.values_list(*fields).iterator():
        yield Place(sha256, submission, task_id, "attachment", f"attachment {name}")


# --- of the whole store ----------------------------------------------------------------------------------------------


def start() -> StoreCheck:
    total = sum(rows.count() for rows in _select_digests(""))
    return StoreCheck.objects.create(started_at=timezone.now(), total=total)


def unfinished() -> StoreCheck | None:
    newest = StoreCheck.objects.first()
    return newest if newest is not None and newest.finished_at is None else None


def find_last_finished() -> StoreCheck | None:
    return StoreCheck.objects.filter(finished_at__isnull=False).first()


def proceed(
    check: StoreCheck, *, rate: int, seconds: float | None = None, progress: Progress = lambda done, total: None
) -> bool:
    """Continue a pass to its end, or for ``seconds``; return whether it is finished.

    ``rate`` limits the bytes read per second; 0 means no limit. Raises one of `screenshots.STORE_ERRORS` if the store
    does not answer; the progress until then is saved.
    """
    ends = inf if seconds is None else monotonic() + seconds
    while batch := _next_batch(check.position):
        _proceed(check, batch, rate, min(ends, monotonic() + SAVED_EVERY))
        progress(check.files, max(check.total, check.files))
        if monotonic() >= ends:
            return False
    check.finished_at, check.total = timezone.now(), check.files
    check.save()
    return True


def _proceed(check: StoreCheck, batch: list[str], rate: int, ends: float) -> None:
    """Check the files of a batch until ``ends`` (of the monotonic clock), at least one, and save the pass."""
    bad: dict[str, str] = {}
    good: list[str] = []
    began, read = monotonic(), 0
    for sha256 in batch:
        kind, size = check_file(sha256)
        if kind is None:
            good.append(sha256)
        else:
            bad[sha256] = kind
        check.position = sha256
        read += size
        if rate and (ahead := read / rate - (monotonic() - began)) > 0:
            sleep(ahead)
        if monotonic() >= ends:
            break
    record_damage(bad, good)
    check.problems += [{"sha256": sha256, "kind": kind} for sha256, kind in bad.items()]
    check.files, check.size, check.heartbeat_at = check.files + len(bad) + len(good), check.size + read, clock.now()
    check.save()


def take(check: StoreCheck) -> bool:
    """Claim a pass for this process; return False if another process works on it."""
    now = clock.now()
    free = StoreCheck.objects.filter(Q(heartbeat_at=None) | Q(heartbeat_at__lt=now - SILENT), pk=check.pk)
    check.heartbeat_at = now
    return bool(free.update(heartbeat_at=now))


def proceed_weekly(rate: int, seconds: float) -> None:
    """For a periodic job: continue the pass for ``seconds``, or start a new one a week after the last start."""
    check = unfinished()
    if check is None:
        newest = StoreCheck.objects.first()
        if newest is not None and newest.started_at > timezone.now() - WEEK:
            return
        check = start()
    if take(check):
        try:
            proceed(check, rate=rate, seconds=seconds)
        finally:
            StoreCheck.objects.filter(pk=check.pk).update(heartbeat_at=None)


def report(check: StoreCheck) -> dict[str, Any]:
    """Return a pass as JSON: its damaged and missing files, each with its first uses."""
    where = places_of([each["sha256"] for each in check.problems])
    return {
        "started_at": check.started_at.isoformat(),
        "finished_at": check.finished_at.isoformat() if check.finished_at else None,
        "files": check.files,
        "bytes": check.size,
        **{
            kind: [
                {"sha256": each["sha256"], "places": where[each["sha256"]]}
                for each in check.problems
                if each["kind"] == kind
            ]
            for kind in (DAMAGED, MISSING)
        },
    }


def places_of(digests: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the first uses of each file by digest: submission, task_id and name."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for sha256 in digests:
        steps = Step.objects.filter(screenshot__sha256=sha256).order_by("trajectory", "index")
        files = Attachment.objects.filter(sha256=sha256, withheld=False).order_by("trajectory", "name")
        places = [*_steps(steps[:MOST_PLACES]), *_attachments(files[:MOST_PLACES]), *_find_redacted_places(sha256)]
        for place in islice(places, MOST_PLACES):
            found[sha256].append({"submission": place.submission, "task_id": place.task_id, "name": place.name})
    return found


def _find_redacted_places(sha256: str) -> Iterator[Place]:
    for row in Redaction.objects.filter(redacted=sha256, submission__audited=False):
        yield Place(sha256, row.submission_id, "", "screenshot", f"redacted screenshot {row.original}")


def named_digests() -> set[str]:
    """Return the digests of all originals that rows name."""
    return {sha256 for digests in _select_digests("") for sha256 in digests.iterator()}


def _next_batch(after: str) -> list[str]:
    found: set[str] = set()
    for digests in _select_digests(after):
        found.update(digests[:AT_ONCE])
    return sorted(found)[:AT_ONCE]


def _select_digests(after: str) -> list[Any]:
    """Return the sorted digests after ``after`` that rows name. An audit also names files that it does not have."""
    files = Attachment.objects.filter(sha256__gt=after, withheld=False).order_by("sha256")
    covered = Redaction.objects.filter(redacted__gt=after, submission__audited=False).order_by("redacted")
    shown = Screenshot.objects.filter(sha256__gt=after).order_by("sha256")
    return [
        shown.values_list("sha256", flat=True),
        files.values_list("sha256", flat=True).distinct(),
        covered.values_list("redacted", flat=True).distinct(),
    ]
