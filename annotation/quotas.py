"""Quotas of a benchmark: what its submissions may store. Quotas of calls and cost are in `judges.quotas`."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Exists, OuterRef, QuerySet, Sum
from django.template.defaultfilters import filesizeformat

from annotation.models import Attachment, Benchmark, Screenshot, Step
from annotation.records import Problem

AT_ONCE = 500  # digests in one query
ASK = "Ask the operator of this instance for a higher quota."


def count_bytes(benchmark: Benchmark) -> int:
    """Return the size of the stored screenshots and files of a benchmark; a file that is used twice counts once."""
    shots, files = _find_screenshots(benchmark), _find_files(benchmark)
    used = shots.aggregate(size=Sum("size"))["size"] or 0
    others = files.exclude(sha256__in=shots.values("sha256")).order_by().values("sha256", "size").distinct()
    return used + sum(size for _, size in others.values_list("sha256", "size").iterator())


def find_excess(benchmark: Benchmark, sizes: Mapping[str, int]) -> Problem | None:
    """Return a problem if these files (size by SHA-256) do not fit into the quota of bytes beside the stored ones."""
    quota = benchmark.quota_bytes
    if quota is None:
        return None
    digests, known = list(sizes), set[str]()
    for start in range(0, len(digests), AT_ONCE):
        some = digests[start : start + AT_ONCE]
        for stored in (_find_screenshots(benchmark), _find_files(benchmark)):
            known |= set(stored.filter(sha256__in=some).values_list("sha256", flat=True))
    used = count_bytes(benchmark)
    added = sum(size for sha256, size in sizes.items() if sha256 not in known)
    if not added or used + added <= quota:
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
