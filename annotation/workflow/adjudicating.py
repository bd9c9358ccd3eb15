"""Transitions by adjudicators, and the draw of the spot checks."""

from __future__ import annotations

import math
import random
from datetime import datetime

from django.db import transaction

from annotation import access, clock, queue
from annotation.label_fields import LabelContent
from annotation.models import (
    Activity,
    Adjudication,
    AdjudicationFinding,
    Draft,
    FlagAnswer,
    Membership,
    Person,
    SpotCheck,
    SpotCheckDraw,
    Submission,
    Trajectory,
)
from annotation.models.events import digest
from annotation.models.states import TO_ADJUDICATE, State, state_of, with_state
from annotation.models.trajectories import new_seed, seed_hash
from annotation.workflow.annotating import MOST_PUT_OFF, PUT_OFF
from annotation.workflow.facts import adjudication_facts, draw_facts
from annotation.workflow.guards import (
    NOT_MEASURED,
    Conflict,
    Role,
    has_content,
    load_measures,
    lock_submission,
    lock_trajectory,
    record_for,
    require_complete,
    require_member,
    require_reason,
    require_unfrozen,
)


def open_adjudication(person: Person, trajectory: Trajectory, reason: str = "") -> Adjudication:
    """Open the adjudication of a trajectory; from then on its labels cannot change.

    Returns the person's own open adjudication again, resumed if it was put off, and takes over another person's if its
    lease has expired. A decided one is opened again only with a ``reason``, as the next revision.
    """
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.ADJUDICATOR)
        require_unfrozen(submission)
        undecided = row.adjudications.filter(decided_at__isnull=True).first()
        if undecided is not None and undecided.adjudicator == person:
            undecided.put_off_until = None
            undecided.save(update_fields=["put_off_until"])
            # Otherwise others could take it over at once: it was opened a day ago.
            Activity.objects.update_or_create(trajectory=row, person=person, defaults={"last_at": clock.now()})
            return undecided
        if undecided is not None:
            _take_over(undecided, row)
        blind = access.judged_blind(row)
        _require_adjudicable(state_of(row), reason)
        adjudication = Adjudication.objects.create(
            trajectory=row,
            adjudicator=person,
            revision=row.adjudications.count() + 1,
            revision_reason=reason.strip(),
            blind=blind,
            opened_at=clock.now(),
        )
        record_for(member, "adjudication_opened", row, revision=adjudication.revision, blind=blind)
        return adjudication


def _require_adjudicable(state: State, reason: str) -> None:
    if state is State.ADJUDICATED:
        require_reason(reason, "changing an adjudication")
    elif state not in TO_ADJUDICATE:
        raise Conflict(f"This trajectory needs no adjudication: it is {state}.")


def _take_over(undecided: Adjudication, trajectory: Trajectory) -> None:
    activity = Activity.objects.filter(trajectory=trajectory, person=undecided.adjudicator).first()
    last_sign = max(undecided.opened_at, activity.last_at) if activity else undecided.opened_at
    if last_sign > queue.adjudications_expire_before() or queue.is_put_off(undecided.put_off_until):
        raise Conflict("Another adjudicator is deciding this trajectory.")
    member = Membership.objects.get(submission=trajectory.submission, person=undecided.adjudicator)
    record_for(member, "adjudication_expired", trajectory, revision=undecided.revision)
    undecided.delete()


def put_off_adjudication(person: Person, trajectory: Trajectory) -> datetime:
    """Keep the person's open adjudication for `PUT_OFF`, and offer other trajectories; return the end of that time.

    `open_adjudication` resumes it. No event is recorded: nothing changes but the end of the reservation. Putting it off
    again before it is resumed adds no day.
    """
    with lock_trajectory(trajectory) as (row, submission):
        require_member(person, submission, Role.ADJUDICATOR)
        require_unfrozen(submission)
        undecided = _require_open_adjudication(person, row)
        if undecided.put_off_until is not None and queue.is_put_off(undecided.put_off_until):
            return undecided.put_off_until
        own = Adjudication.objects.filter(adjudicator=person, trajectory__submission=submission, decided_at=None)
        others = own.filter(put_off_until__gt=clock.now()).exclude(pk=undecided.pk).count()
        if others >= MOST_PUT_OFF:
            raise Conflict(f"You have put off {others} trajectories. Resume one of them first.")
        until = clock.now() + PUT_OFF
        undecided.put_off_until = until
        undecided.save(update_fields=["put_off_until"])
        return until


def leave_adjudication(person: Person, trajectory: Trajectory) -> None:
    """Return an opened trajectory to the adjudication queue; the draft stays saved."""
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.ADJUDICATOR)
        undecided = _require_open_adjudication(person, row)
        record_for(member, "adjudication_left", row, revision=undecided.revision)
        undecided.delete()


def decide(person: Person, trajectory: Trajectory, content: LabelContent, *, measured: bool = True) -> Adjudication:
    """Save the verdict of an adjudication that the person has opened.

    Submitting the same decision again returns the stored one, because the first response may have been lost. Not
    ``measured``: a script sent it, as in `annotating.submit`.
    """
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.ADJUDICATOR)
        if (standing := _find_standing(person, row)) and has_content(standing, content):
            return standing
        require_unfrozen(submission)
        adjudication = _require_open_adjudication(person, row)
        fields = require_complete(row, content, Role.ADJUDICATOR)
        fields |= load_measures(person, row) if measured else NOT_MEASURED
        for name, value in fields.items():
            setattr(adjudication, name, value)
        AdjudicationFinding.objects.bulk_create(
            AdjudicationFinding(
                adjudication=adjudication, key_point_id=f.key_point, finding=str(f.finding), step=f.step
            )
            for f in content.findings
        )
        adjudication.decided_at, adjudication.put_off_until = clock.now(), None
        adjudication.save()
        Draft.objects.filter(trajectory=row, author=person).delete()
        facts = digest(adjudication_facts(adjudication))
        record_for(member, "adjudication_decided", row, revision=adjudication.revision, adjudication=facts)
        return adjudication


def _find_standing(person: Person, trajectory: Trajectory) -> Adjudication | None:
    """Return the person's decision if it is the latest and the trajectory was not reopened since."""
    latest = trajectory.adjudications.order_by("-revision").first()
    theirs = latest is not None and latest.decided_at is not None and latest.adjudicator_id == person.pk
    return latest if theirs and state_of(trajectory) is not State.REOPENED else None


def _require_open_adjudication(person: Person, trajectory: Trajectory) -> Adjudication:
    adjudication = trajectory.adjudications.filter(decided_at__isnull=True, adjudicator=person).first()
    if adjudication is None:
        raise Conflict("You have not opened this trajectory for adjudication.")
    return adjudication


def draw_spot_checks(person: Person, submission: Submission) -> SpotCheckDraw:
    """Draw spot checks from the unanimous trajectories that were in no earlier draw, by the seed fixed before."""
    with transaction.atomic():
        submission = lock_submission(submission.pk)
        member = require_member(person, submission, Role.MAINTAINER, Role.ADJUDICATOR)
        require_unfrozen(submission)
        agreed = with_state(submission.trajectories.select_related("task")).filter(state=State.AGREED.value)
        population = {trajectory.task.external_id: trajectory for trajectory in agreed}
        if not population:
            raise Conflict("All unanimous trajectories have already been in a draw.")
        number = submission.spot_check_draws.count() + 1
        seed = submission.spot_check_seed
        drawn = choose(sorted(population), submission.spot_check_rate, seed)
        draw = SpotCheckDraw.objects.create(
            submission=submission,
            number=number,
            seed=seed,
            rate=submission.spot_check_rate,
            population=sorted(population),
            drawn=drawn,
            drawn_at=clock.now(),
        )
        SpotCheck.objects.bulk_create(
            SpotCheck(trajectory=trajectory, draw=draw, selected=task_id in drawn)
            for task_id, trajectory in sorted(population.items())
        )
        # Fix the seed of the next draw now and record only its hash: nobody can predict it or choose another.
        submission.spot_check_seed = new_seed()
        submission.save(update_fields=["spot_check_seed"])
        record_for(
            member,
            "spot_checks_drawn",
            None,
            draw=digest(draw_facts(draw)),
            number=number,
            seed=seed,
            next_seed=seed_hash(submission.spot_check_seed),
        )
        return draw


def choose(population: list[str], rate: float, seed: str) -> list[str]:
    """Return ``ceil(rate * n)`` items, chosen at random by the seed; see `choose_so_many`."""
    # The decimal product is rounded first: 0.1 * 30 is 3.0000000000000004 in binary and would draw four.
    return choose_so_many(population, math.ceil(round(rate * len(population), 9)), seed)


def choose_so_many(population: list[str], count: int, seed: str) -> list[str]:
    """Return ``count`` items of the sorted population, chosen at random by the seed, in sorted order.

    Python documents that `random.Random(str)` seeds by SHA-512 (version 2) and keeps `random()` reproducible
    across releases; `sample` has no such promise, so items are ranked by one `random()` each.
    """
    generator = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    ranked = sorted((generator.random(), item) for item in sorted(population))
    return sorted(item for _, item in ranked[:count])


def answer_flags(person: Person, trajectory: Trajectory, answer: str) -> FlagAnswer:
    """Answer everybody who flagged a trajectory.

    Raises Conflict before the person may see the labels: an answer before a blind decision would announce it.
    """
    with lock_trajectory(trajectory) as (row, submission):
        require_member(person, submission, Role.ADJUDICATOR)
        require_unfrozen(submission)
        if not access.may_see_labels(person, row):
            raise Conflict("Decide this trajectory first. Then you can answer its flags.")
        if not row.flags.exists():
            raise Conflict("Nobody has flagged this trajectory.")
        text = require_reason(answer, "an answer")
        return row.flag_answers.create(answered_by=person, text=text, answered_at=clock.now())
