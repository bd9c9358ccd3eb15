"""The members of an ensemble: found and checked when it is defined, and loaded when it judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from annotation.records import Problem
from judges.models import Judge
from judges.scorer import REGISTRY, ParameterError, parameters_from
from judges.scorers.ensemble import EnsembleParameters, Member

MEMBERS, FINGERPRINTS = "parameters.members", "parameters.fingerprints"


def resolve(parameters: EnsembleParameters, problems: list[Problem]) -> EnsembleParameters:
    """Return the parameters with the version and fingerprint of each member; add what is wrong to ``problems``.

    Members are frozen, so that the fingerprint of the ensemble always means the same judges. Fingerprints that are
    given must be theirs.
    """
    members = parameters.parse_members()
    found = [(one, judge) for one in members if (judge := _find(one, problems)) is not None]
    if not members:
        problems.append(Problem("members_missing", "Name at least one judge.", MEMBERS))
    problems += [Problem("member_unfit", reason, MEMBERS) for _, judge in found if (reason := _find_obstacle(judge))]
    full = ", ".join(str(replace(one, version=judge.version)) for one, judge in found)
    prints = ", ".join(judge.fingerprint for _, judge in found)
    if len(found) == len(members) and parameters.fingerprints.strip() not in ("", prints):
        message = "These are not the fingerprints of the members. Leave this empty: it is filled in."
        problems.append(Problem("fingerprints_differ", message, FINGERPRINTS))
    try:
        return replace(parameters, members=full, fingerprints=prints)
    except ParameterError as error:  # the same judge, once without its version
        problems.append(Problem("parameter", str(error), MEMBERS))
        return parameters


def _find(member: Member, problems: list[Problem]) -> Judge | None:
    same = Judge.own.filter(name=member.name).order_by("-version")
    found = (same if member.version is None else same.filter(version=member.version)).first()
    if found is None:
        problems.append(Problem("member_unknown", f"The judge {member.label} does not exist.", MEMBERS))
    return found


def _find_obstacle(judge: Judge) -> str:
    """Return why a judge cannot be a member, or ""."""
    label, kind = f"{judge.name}@{judge.version}", judge.kind
    if kind is not None and kind.combines_judges:
        return f"{label} is an ensemble. Name its members instead."
    if kind is not None and kind.predicts_actions:
        return f"{label} judges the actions of its own model, so it has no verdict on an agent."
    if judge.frozen_at is None:
        return f"{label} has not judged yet, so it may still change. Run it first."
    return ""


def find_members(judge: Judge) -> list[Judge] | None:
    """Return the judges that an ensemble combines: none for other judges, None if unknown, as those in a bundle are."""
    kind = REGISTRY.get(judge.scorer)
    if kind is None or not kind.combines_judges:
        return []
    if judge.came_with_id is not None:
        return None
    return list_members(parameters_from(kind.parameters, judge.parameters))


def list_members(parameters: EnsembleParameters) -> list[Judge]:
    wanted: Mapping[tuple[Any, Any], str] = {
        (one.name, one.version): fingerprint
        for one, fingerprint in zip(parameters.parse_members(), parameters.parse_fingerprints(), strict=True)
    }
    named = Judge.own.filter(name__in=[name for name, _ in wanted])
    return [one for one in named if wanted.get((one.name, one.version)) == one.fingerprint]
