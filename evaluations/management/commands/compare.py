"""compare --benchmark SLUG [--judge NAME[@VERSION]] [--submission ID | --imported] [--agent A] [--level L]
[--website W] [--rules published] [--epsilon E] [--json]"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q

from annotation.formats.tasks import nearest
from annotation.management.reports import find_benchmark, find_submission
from annotation.models import Benchmark, Submission
from evaluations import attempt_tables, cases, comparison_tables, people_tables
from evaluations.cases import Case, Rules
from evaluations.comparison import Comparison, compare, link_trajectories, list_judges
from evaluations.comparison.judges import Judges, People, compare_judges, with_ceiling
from evaluations.judge_alignment import notices
from evaluations.management import reports
from evaluations.statistics.alternative import EPSILON
from evaluations.tables import Table
from judges import defining
from judges.models import Judge


class Command(BaseCommand):
    help = (
        "Compare a judge with people, or without --judge all judges with people and with each other, as tables or JSON."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="the benchmark's short name")
        parser.add_argument(
            "--judge",
            metavar="NAME[@VERSION]",
            help="the newest version, or that one; a judgment file of several models made NAME-MODEL of each; "
            "without it all judges",
        )
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--submission", type=int, metavar="ID", help="only this submission, frozen or not")
        which.add_argument("--imported", action="store_true", help="only imported labels")
        parser.add_argument(
            "--epsilon",
            type=_share,
            default=EPSILON,
            help="epsilon of the alternative annotator test, 0 to 1: how much less often than an annotator the judge "
            "may agree with the others",
        )
        reports.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        benchmark, filters = find_benchmark(options["benchmark"]), reports.filters_of(options)
        judge = None if options["judge"] is None else find_judge(options["judge"], benchmark)
        if options["submission"] is not None:
            scope, every = self._of_submission(benchmark, options["submission"])
        else:
            scope, every = reports.of_benchmark(self, benchmark, filters, imported=options["imported"])
        scope, chosen = reports.narrowed(filters, scope, every)
        everywhere = Submission.objects.filter(benchmark=benchmark, practice=False)
        found = link_trajectories(chosen, everywhere)
        require_decisions(found, scope)
        if judge is None:
            self._all(found, scope, benchmark.slug, filters.rules, options["json"])
        else:
            one = compare(
                judge, found, scope, benchmark=benchmark.slug, rules=filters.rules, epsilon=options["epsilon"]
            )
            self._one(judge, one, found, benchmark.slug, options["json"])

    def _of_submission(self, benchmark: Benchmark, pk: int) -> tuple[str, list[Case]]:
        submission = find_submission(pk)
        if submission.benchmark != benchmark:
            says = f"Submission {pk} is of the benchmark {submission.benchmark.slug}, not of {benchmark.slug}."
            raise CommandError(says, returncode=2)
        found = cases.of_submission(submission)
        if says := cases.describe_figures(submission):
            self.stderr.write(says)
        if submission.frozen_at is None:
            decided = sum(case.final is not None for case in found)
            self.stderr.write(f"Submission {pk} is not frozen: {decided} of {len(found)} trajectories are decided.")
        if not any(case.labels for case in found):
            self.stderr.write("Imported labels belong to no submission: omit --submission to compare them.")
        return f"submission {pk}: {submission}", found

    def _one(self, judge: Judge, found: Comparison, chosen: Sequence[Case], slug: str, as_json: bool) -> None:
        require_answers(found, chosen)
        people = People.of(chosen, found.rules)
        told = with_ceiling(found, people) | notices.describe(judge, slug) if as_json else None
        tables = [*comparison_tables.tables(found), *comparison_tables.people(people, found.rules)]
        reports.show(self, told, f"{found.judge} compared with people: {found.scope}.", tables)

    def _all(self, chosen: Sequence[Case], scope: str, slug: str, rules: Rules, as_json: bool) -> None:
        judges = list_judges(chosen, benchmark=slug)
        if not judges:
            raise CommandError(f"Nothing to compare: no judge has judged any of these cases ({scope}).")
        found = compare_judges(judges, chosen, scope, benchmark=slug, rules=rules)
        told = notices.describe_all(found.as_json(), judges, slug) if as_json else None
        reports.show(self, told, f"Judges compared with people: {scope}.", tables_of(found))


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ArgumentTypeError(f"{text} is not a number from 0 to 1.")
    return value


def tables_of(found: Judges) -> Iterator[Table]:
    yield comparison_tables.judges(found.judges, found.people[-2:])
    yield comparison_tables.judges_by_agent(found.judges)
    yield comparison_tables.ceiling(found.people, found.rules)
    yield comparison_tables.ceiling_left_out(found.people_left_out, found.rules)
    yield people_tables.human_error(found.human_error)
    yield comparison_tables.versus(found.versus)
    yield comparison_tables.standings(found.agents)
    yield attempt_tables.over_attempts(found.attempts)
    yield attempt_tables.over_k(found.attempts)
    yield comparison_tables.agent_pairs(found.agent_pairs)


def find_judge(name: str, benchmark: Benchmark) -> Judge:
    """Return a judge of this instance, or one that came in an evidence bundle of this benchmark."""
    among = Judge.objects.filter(Q(came_with__isnull=True) | Q(came_with__benchmark=benchmark))
    try:
        return defining.find_judge(name, among)
    except LookupError as error:
        near = nearest(name.partition("@")[0], set(among.values_list("name", flat=True)))
        says = f"{error} Did you mean {near}?" if near else str(error)
        raise CommandError(says, returncode=2) from error


def require_decisions(found: Sequence[Case], scope: str) -> None:
    """Raise CommandError (exit 1) if labels or decisions are missing; the message says which."""
    labelled = sum(bool(case.labels) for case in found)
    if not labelled:
        raise CommandError(f"Nothing to compare: there are no labels ({scope}).")
    if not any(case.final is not None for case in found):
        raise CommandError(f"Nothing to compare: none of the {labelled} labelled cases is decided.")


def require_answers(comparison: Comparison, found: Sequence[Case]) -> None:
    """Raise CommandError (exit 1) if the judge was never asked."""
    if not any(row.n or row.unscored or row.errors for row in comparison.overall):
        decided = sum(case.final is not None for case in found)
        says = f"{comparison.judge} never judged any of the {decided} decided cases"
        raise CommandError(f"Nothing to compare: {says} ({comparison.scope}).")
