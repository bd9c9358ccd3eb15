"""What a maintainer sets about a submission, and until when: nothing that labels rest on changes under them."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from annotation import access
from annotation.models import Assignment, Person, PracticeAnswer, Submission, Trajectory
from annotation.protocol import MINIMUM_LABELS
from annotation.records import Problem
from annotation.workflow.guards import (
    Conflict,
    Incomplete,
    Role,
    lock_submission,
    record,
    require_member,
    require_unfrozen,
)

MOST_LABELS = 9
# What a label is made under: fixed as soon as somebody has begun one.
FIXED_BY_WORK = ("protocol_version", "required_labels", "practice")
# The second stage touches no blind label, so it may be switched on and off until the freeze.
SETTINGS = (*FIXED_BY_WORK, "spot_check_rate", "practice_set", "pass_mark", "second_stage")


def configure(person: Person, submission: Submission, **changes: Any) -> Submission:
    """Set any of `SETTINGS`; all of ``changes`` or, with a Conflict or Incomplete, none.

    ``spot_check_rate`` and ``pass_mark`` are fractions; ``practice_set`` is a Submission; None turns the last two off.
    Values that are those of now already change nothing and are never refused.
    """
    if unknown := set(changes) - set(SETTINGS):
        raise TypeError(f"There is no setting {', '.join(sorted(unknown))}.")
    with transaction.atomic():
        if "required_labels" in changes:
            # Before the submission, as everywhere: a claim that holds a row would wait for us and we for it.
            list(Trajectory.objects.filter(submission=submission).order_by("pk").select_for_update(no_key=True))
        submission = lock_submission(submission.pk)
        member = require_member(person, submission, Role.MAINTAINER)
        require_unfrozen(submission)
        old = {name: getattr(submission, name) for name in SETTINGS}
        changed = {name: value for name, value in changes.items() if value != old[name]}
        _require_changeable(submission, changed)
        _validate(person, submission, old | changed, changed)
        _write(submission, changed)
        if changed:
            record(
                submission, member, "configured", **{n: [_describe(old[n]), _describe(v)] for n, v in changed.items()}
            )
        return submission


def find_fixed_settings(submission: Submission) -> dict[str, str]:
    """The settings that can no longer be changed, each with the reason."""
    if submission.frozen_at is not None:
        return dict.fromkeys(SETTINGS, "The submission is frozen.")
    reasons = {}
    if Assignment.objects.filter(trajectory__submission=submission).exists():
        reasons = dict.fromkeys(FIXED_BY_WORK, "Somebody holds a slot or has labelled.")
    elif Submission.objects.filter(practice_set=submission).exists():
        reasons["practice"] = "Another submission names it as its practice set."
    elif PracticeAnswer.objects.filter(trajectory__submission=submission).exists():
        # They have been shown what is right, so no label of theirs would be their own.
        reasons["practice"] = "Somebody has practised on it."
    if submission.spot_check_draws.exists():
        reasons["spot_check_rate"] = "Spot checks have been drawn."
    return reasons


def _require_changeable(submission: Submission, changed: dict[str, Any]) -> None:
    reasons = find_fixed_settings(submission)
    refused = [
        f"The {name.replace('_', ' ')} cannot be changed. {reasons[name]}" for name in changed if name in reasons
    ]
    if refused:
        raise Conflict(" ".join(refused))


def _validate(person: Person, submission: Submission, after: dict[str, Any], changed: dict[str, Any]) -> None:
    """Refuse (Incomplete) values that mean nothing, alone or together."""
    rate, mark, practice_set = after["spot_check_rate"], after["pass_mark"], after["practice_set"]
    rules = {
        "protocol_version": (after["protocol_version"] in (1, 2), "The protocol has the versions 1 and 2."),
        "required_labels": (
            MINIMUM_LABELS <= after["required_labels"] <= MOST_LABELS,
            f"Ask for {MINIMUM_LABELS} to {MOST_LABELS} labels.",
        ),
        "spot_check_rate": (0 <= rate <= 1, "The spot check rate is between 0 and 100 percent."),
        "pass_mark": (mark is None or 0 <= mark <= 1, "The pass mark is between 0 and 100 percent."),
    }
    problems = [Problem(f"{name}_unusable", says, name) for name, (good, says) in rules.items() if not good]
    if after["practice"] and (practice_set is not None or mark is not None):
        message = "A practice set has no practice set and no pass mark of its own."
        problems.append(Problem("practice_of_practice", message, "practice_set"))
    elif mark is not None and practice_set is None:
        problems.append(Problem("practice_set_missing", "Choose the practice set of the pass mark.", "practice_set"))
    if changed.get("practice_set") is not None and not _is_usable(person, submission, practice_set):
        message = "Choose a practice submission that you maintain."
        problems.append(Problem("practice_set_unusable", message, "practice_set"))
    if problems:
        raise Incomplete(problems)


def _is_usable(person: Person, submission: Submission, practice_set: Submission) -> bool:
    """Whether it is, at this moment, a practice submission of the person's; locked, so that it stays one."""
    mine = access.submissions_maintained_by(person).filter(practice=True).exclude(pk=submission.pk)
    return mine.filter(pk=lock_submission(practice_set.pk).pk).exists()


def _write(submission: Submission, changed: dict[str, Any]) -> None:
    if not changed:
        return
    for name, value in changed.items():
        setattr(submission, name, value)
    submission.save(update_fields=list(changed))
    if "required_labels" in changed:
        # Nobody holds a slot: see `find_fixed_settings`.
        submission.trajectories.update(open_slots=changed["required_labels"])


def _describe(value: Any) -> Any:
    """A value as the event keeps it; a submission by names, which mean something outside of this instance."""
    return f"{value.benchmark.slug}: {value}" if isinstance(value, Submission) else value
