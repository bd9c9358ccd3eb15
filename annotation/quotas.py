"""Quotas of a benchmark: what its submissions may store. Quotas of calls and cost are in `judges.quotas`."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Exists, F, OuterRef, QuerySet, Sum
from django.template.defaultfilters import filesizeformat

from annotation import clock
from annotation.models import Attachment, Benchmark, ResumableUpload, Screenshot, Step
from annotation.records import Problem

AT_ONCE = 500  # digests in one query
ASK = "Ask the operator of this instance for a higher quota."


def count_bytes(benchmark: Benchmark) -> int:
    """Return the size of what is stored for a benchmark; a file that is used twice counts once.

    These are the screenshots and files of its submissions, and the whole length of unfinished uploads.
    """
    shots, files = _find_screenshots(benchmark), _find_files(benchmark)
    used = shots.aggregate(size=Sum("size"))["size"] or 0
    others = files.exclude(sha256__in=shots.values("sha256")).order_by().values("sha256", "size").distinct()
    used += sum(size for _, size in others.values_list("sha256", "size").iterator())
    arriving = ResumableUpload.objects.filter(benchmark=benchmark, offset__lt=F("length"), expires_at__gt=clock.now())
    return used + (arriving.aggregate(size=Sum("length"))["size"] or 0)


def find_excess(benchmark: Benchmark, sizes: Mapping[str, int]) -> Problem | None:
    """Return a problem if these files (size by SHA-256) do not fit into the quota of bytes beside the stored ones."""
    if benchmark.quota_bytes is None:
        return None
    digests, known = list(sizes), set[str]()
    for start in range(0, len(digests), AT_ONCE):
        some = digests[start : start + AT_ONCE]
        for stored in (_find_screenshots(benchmark), _find_files(benchmark)):
            known |= set(stored.filter(sha256__in=some).values_list("sha256", flat=True))
    return find_excess_of(benchmark, sum(size for sha256, size in sizes.items() if sha256 not in known))


def find_excess_of(benchmark: Benchmark, added: int) -> Problem | None:
    """Return a problem if so many further bytes do not fit into the quota."""
    quota = benchmark.quota_bytes
    if quota is None or not added or (used := count_bytes(benchmark)) + added <= quota:
        return None
    message = (
        f"The benchmark {benchmark} may store {_format(quota)}. It stores {_format(used)}, and this package adds "
        f"{_format(added)}. {ASK}"
    )
    return Problem("quota_bytes", message)


def _format(size: int) -> str:
    return filesizeformat(size).replace("\xa0", " ")


def _find_screenshots(benchmark: Benchmark) -> QuerySet[Screenshot]:
    shown = Step.objects.filter(screenshot=OuterRef("pk"), trajectory__submission__benchmark=benchmark)
    return Screenshot.objects.filter(Exists(shown))


def _find_files(benchmark: Benchmark) -> QuerySet[Attachment]:
    return Attachment.objects.filter(trajectory__submission__benchmark=benchmark, withheld=False)
