"""Two entries of a public registry side by side: their verdicts on the same tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from annotation.models import Benchmark
from annotation.views.answers import paginate
from evaluations.comparison import Group, Label2, PairedCounts
from evaluations.comparison.agent_pairs import count, group_of
from evaluations.models import Entry, EntryRow
from evaluations.registry import published
from evaluations.registry.figures import Method
from evaluations.tables import cell
from evaluations.views.public import answer, public
from evaluations.views.registry import KEY, ROWS, build_line, name_verdict

NAMES = {
    Group.BOTH: "both succeed",
    Group.FIRST: "only the first",
    Group.SECOND: "only the second",
    Group.NEITHER: "neither",
}


@dataclass(frozen=True, slots=True)
class RowPair:
    """The rows of one task in the same version; a row that is left out has no verdict here."""

    first: EntryRow
    second: EntryRow

    @property
    def verdicts(self) -> list[int | None]:
        return [row.verdict if row.included else None for row in (self.first, self.second)]

    @property
    def group(self) -> Group:
        first, second = self.verdicts
        return group_of(first, second, Label2.NOT_SUCCESS)

    @property
    def sides(self) -> list[tuple[int | None, str]]:
        return [(each, name_verdict(each) or "left out") for each in self.verdicts]


@public
def compare(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the verdicts of the entries ?a= and ?b= on the tasks of both, or on those of ?group=."""
    benchmark = published.find_benchmark(slug)
    keys = [request.GET.get(name, "") for name in ("a", "b")]
    if not all(keys) or keys[0] == keys[1]:
        return render(request, "evaluations/registry_compare.html", {"benchmark": benchmark}, status=400)
    if not all(KEY.fullmatch(key) for key in keys):
        raise Http404("No such entry.")
    both = [published.find_entry(benchmark, key) for key in keys]
    seal = "".join(published.seal_entry(benchmark, each) for each in both)
    return answer(request, seal, lambda: _show_pair(request, benchmark, both))


def _show_pair(request: HttpRequest, benchmark: Benchmark, both: Sequence[Entry]) -> HttpResponse:
    versions = [published.find_version(each) for each in both]
    first, second = ({(row.task_id, row.task_version): row for row in published.rows_of(each)} for each in versions)
    pairs = [RowPair(row, second[task]) for task, row in first.items() if task in second]
    found = count(pair.group for pair in pairs)
    chosen = next((each for each in Group if each == request.GET.get("group")), None)
    context = {
        "benchmark": benchmark,
        "lines": [build_line(version, benchmark, entry=each) for version, each in zip(versions, both, strict=True)],
        "tabs": _build_tabs(found, len(pairs), chosen),
        "counts": found,
        "difference": cell(found.difference, "points"),
        "p": cell(found.test.p, "number"),
        "tested": all(version.method == Method.PEOPLE for version in versions),
        "others": [len(first) - len(pairs), len(second) - len(pairs)],
        "page": paginate(request, [pair for pair in pairs if chosen in (None, pair.group)], ROWS),
    }
    return render(request, "evaluations/registry_compare.html", context)


def _build_tabs(found: PairedCounts, total: int, chosen: Group | None) -> list[tuple[str, str, int, bool]]:
    names = NAMES | ({Group.UNDECIDED: "left out of one"} if found.groups[Group.UNDECIDED] else {})
    tabs = [(each.value, words, found.groups[each], each is chosen) for each, words in names.items()]
    return [("", "all tasks", total, chosen is None), *tabs]
