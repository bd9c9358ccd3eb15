"""What was to be judged, and where it came from: the claims `coverage` and `imported`."""

from __future__ import annotations

from collections.abc import Iterator

from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import Finding
from evaluations.verifier.replay import History
from evaluations.verifier.rules import undated
from evaluations.verifier.wrongs import Wrong, counted, hashed, named, number_of, outcome, passed_between, text_in


def coverage_claim(bundle: Bundle, history: History) -> Finding:
    """A trajectory for every task by its id without a date, and the catalogue that the freeze was over."""
    present = {undated(line["task_id"]) for line in bundle.trajectories}
    wanted = {undated(task["task_id"]): task["task_id"] for task in bundle.catalogue}
    lost = [task_id for base, task_id in wanted.items() if base not in present]
    wrongs = [Wrong(f"{named(task_id)} has no trajectory.", task_id) for task_id in lost]
    versions = {(task["task_id"], task["version"]) for task in bundle.catalogue}
    if len(versions) != len(bundle.catalogue):
        wrongs.append(Wrong("The catalogue has a version of a task twice.", "catalogue.jsonl"))
    wrongs += [
        Wrong(f"{named(line['task_id'])} was judged by a version that there is not.", line["task_id"])
        for line in bundle.trajectories
        if (line["task_id"], line["task_version"]) not in versions
    ]
    wrongs += _fixed_catalogue(bundle, history)
    covered, total = len(wanted) - len(lost), len(wanted)
    trajectories = counted(len(bundle.trajectories), "trajectory", "trajectories")
    of_all = counted(total, "task has", "tasks have")
    good = f"{covered} of {of_all} a trajectory: {trajectories} for {counted(len(present), 'task')}."
    return outcome("coverage", good, wrongs, f"{len(lost)} of {of_all} no trajectory." if lost else "")


def _fixed_catalogue(bundle: Bundle, history: History) -> Iterator[Wrong]:
    if not bundle.catalogue:
        yield Wrong("The catalogue has no task.", "catalogue.jsonl")
    if not history.catalogue_is_fixed:
        return
    freezes = history.of("frozen")
    tasks = sorted(bundle.catalogue, key=lambda task: (task["task_id"], task["version"]))
    if text_in(freezes[-1].payload, "catalogue") != hashed(tasks):
        yield Wrong("The catalogue is not the one that the submission was frozen under.", number_of(freezes[-1].event))


def imported_claim(bundle: Bundle, history: History) -> Finding:
    """The first event names the digest of every trajectory, which is that of the trajectory as it is here."""
    moment = history.moments[0] if history.moments else None
    if moment is None or moment.kind != "imported":
        return outcome("imported", "", [Wrong("The first event is not the import.", "#0")])
    payload, submission = moment.payload, bundle.submission
    taken = payload.get("trajectories")
    wrongs = [*_trajectories_taken(bundle, taken if isinstance(taken, dict) else {})]
    wrongs += [
        Wrong(f"submission.json names another {name} than the import.", "submission.json")
        for name in ("agent", "benchmark", "attempt")
        if payload.get(name) != submission[name]
    ]
    if submission["digest"] != hashed(sorted([line["task_id"], line["digest"]] for line in bundle.trajectories)):
        wrongs.append(Wrong("The digest of the submission is not that of its trajectories.", "submission.json"))
    wrongs += _reported(bundle, history)
    if (passed_between(submission["created_at"], moment.event["at"]) or 0) < 0:
        wrongs.append(Wrong("The submission is younger than its import.", "submission.json"))
    good = f"{counted(len(bundle.trajectories), 'trajectory', 'trajectories')} as imported."
    if bundle.import_report is None:
        good += " The import report itself is not there, only its digest."
    return outcome("imported", good, wrongs)


def _reported(bundle: Bundle, history: History) -> Iterator[Wrong]:
    """The report is the one that the import recorded, and says of these trajectories that they were taken."""
    report, recorded = bundle.import_report, text_in(history.moments[0].payload, "report")
    place = "import-report.json"
    if recorded is None:
        yield Wrong("The import does not say what its report was.", number_of(history.moments[0].event))
    elif report is None and history.report_is_kept:
        yield Wrong("The import report is not there, though the import says that it was kept.", place)
    elif report is not None and hashed(report) != recorded:
        yield Wrong("The import report is not the one of the import.", place)
    if report is None:
        return
    here, accepted = [line["task_id"] for line in bundle.trajectories], report["accepted"]
    for task_id in sorted(set(here) - set(accepted)):
        yield Wrong(f"The import report does not say that {named(task_id)} was accepted.", task_id)
    # One import can become several submissions, and what one of them lacks another may have.
    if any(warning["code"] == "several_submissions" for warning in report["warnings"]):
        return
    for task_id in sorted(set(accepted) - set(here)):
        yield Wrong(f"The import report accepted {named(task_id)}, which is not here.", place)
    for task_id in sorted(set(here).intersection(each["task_id"] for each in report["rejected"])):
        yield Wrong(f"The import report rejected {named(task_id)}, which is here.", task_id)


def _trajectories_taken(bundle: Bundle, taken: dict[str, object]) -> Iterator[Wrong]:
    seen: set[str] = set()
    positions = [line["position"] for line in bundle.trajectories]
    if positions != sorted(set(positions)):
        yield Wrong("The trajectories are not in the order of the submission.", "trajectories.jsonl")
    for line in bundle.trajectories:
        task_id = line["task_id"]
        if task_id in seen:
            yield Wrong(f"{named(task_id)} is there twice.", task_id)
        seen.add(task_id)
        if line["computed"] != line["digest"]:
            yield Wrong(f"{named(task_id)} is not what its digest was made over.", task_id)
        if task_id not in taken:
            yield Wrong(f"{named(task_id)} was not imported.", task_id)
        elif taken[task_id] != line["digest"]:
            yield Wrong(f"{named(task_id)} is not as it was imported.", task_id)
    for task_id in taken:
        if task_id not in seen:
            yield Wrong(f"{named(task_id)} was imported, and is not here.", task_id)
