"""Forgeries by somebody with the server's private key who keeps the rules of a bundle: caught by what is outside it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from evaluations.tests.forgeries.ground import DISPUTE, PLAIN, forgery, unanimous
from evaluations.tests.forging import STRANGER, Forged, Line, later
from evaluations.tests.hand_made_bundle import KEY, sha256, signed, zipped
from evaluations.tests.revoked import LISTED_AT, NEXT_KEY, bundle_entry, key_entry, key_id, public, revocations
from evaluations.verifier.canonical import canonical_json

BEFORE, LATER = "2020-01-01T00:00:00.000000+00:00", "2999-01-01T00:00:00.000000+00:00"
BOTH_KEYS = [{"public_key": public(KEY)}, {"public_key": public(NEXT_KEY)}]


def published(honest: Forged, place: Path) -> dict[str, Any]:
    """All heads of the honest chain, as the instance published them outside."""
    events, lines = honest["events"], []
    for event in events:
        line = {"chain": events[0]["hash"], "sequence": event["sequence"], "head": event["hash"], "at": event["at"]}
        line |= {"key_id": key_id(KEY)}
        lines.append(line | {"signature": KEY.sign(canonical_json(line).encode()).hex()})
    return {"anchors": lines}


def saved_head(honest: Forged, place: Path) -> dict[str, Any]:
    return {"heads": [honest["events"][-1]["hash"]]}


def chain_id(honest: Forged, place: Path) -> dict[str, Any]:
    return {"chain": honest["events"][0]["hash"]}


def task_list(honest: Forged, place: Path) -> dict[str, Any]:
    return {"tasks": [{"task_id": line["task_id"]} for line in honest["trajectories"]]}


def honest_bundle(honest: Forged, place: Path) -> dict[str, Any]:
    path = place / "honest.zip"
    path.write_bytes(honest.sealed())
    return {"against": str(path)}


def manifest_of(honest: Forged) -> str:
    return sha256(honest.files["MANIFEST.json"])


def rename(forged: Forged, one: str, other: str) -> None:
    for name, document in forged.documents.items():
        forged.documents[name] = json.loads(json.dumps(document).replace(f'"{one}"', f'"{other}"'))


# --- what the chain was before ---------------------------------------------------------------------------------------


@forgery("anchors", given=published)
def a_maintainer_rewords_a_label_with_the_servers_key(forged: Forged) -> None:
    forged.refact(forged.label(DISPUTE), "label", reasoning="I was told so.")


@forgery("kept_heads", given=saved_head)
def a_maintainer_rewords_a_label_whose_head_was_saved(forged: Forged) -> None:
    forged.refact(forged.label(DISPUTE), "label", reasoning="I was told so.")


@forgery("anchors", given=published)
def an_annotator_is_invented(forged: Forged) -> None:
    """Everything that A3 did was done by somebody who does not exist."""
    rename(forged, "A3", "A9")


@forgery("anchors", given=published)
def a_label_of_an_invented_annotator_replaces_one(forged: Forged) -> None:
    row, member = forged.label(PLAIN, slot=2), forged["people"]["people"]
    added = forged.event("member_added", member=row["annotator"])
    forged.add_event(added, "member_added", added["actor"], **added["payload"] | {"member": "A9"})
    member.append({**next(each for each in member if each["pseudonym"] == row["annotator"]), "pseudonym": "A9"})
    for kind in ("claimed", "label_submitted"):
        forged.event(kind, task_id=PLAIN, slot=2)["actor"] = "A9"
    row["annotator"] = "A9"


@forgery("anchors", given=published)
def the_chain_is_rolled_back_behind_a_published_head_and_continued(forged: Forged) -> None:
    forged["events"][-1]["at"] = later(forged["events"][-1]["at"], 60)


@forgery("kept_heads", given=saved_head)
def the_chain_is_rolled_back_behind_a_saved_head(forged: Forged) -> None:
    del forged["events"][-1]


@forgery("chain_id", given=chain_id)
def the_review_is_replaced_by_another_of_the_same_trajectories(forged: Forged) -> None:
    forged["events"][0]["at"] = later(forged["events"][0]["at"], -1)


@forgery("tasks", given=task_list)
def a_task_is_left_out_of_catalogue_and_review(forged: Forged) -> None:
    task_id = unanimous(forged)
    forged.drop_task(task_id)
    forged["catalogue"][:] = [line for line in forged["catalogue"] if line["task_id"] != task_id]
    forged.refreeze()


# --- another bundle --------------------------------------------------------------------------------------------------


def opposite(forged: Forged) -> tuple[str, int]:
    """Return a task that people agreed on, and the verdict that they did not give: the draw of spot checks decides
    whether the first such task is a success."""
    task_id = unanimous(forged)
    verdict = next(row["verdict"] for row in forged["final-verdicts"] if row["task_id"] == task_id)
    return task_id, 0 if verdict else 1


@forgery("other_bundle", given=honest_bundle)
def a_second_bundle_has_another_verdict_and_another_chain(forged: Forged) -> None:
    task_id, verdict = opposite(forged)
    forged.decide(task_id, verdict)


@forgery("other_bundle", given=honest_bundle)
def a_second_bundle_has_another_verdict_by_later_events(forged: Forged) -> None:
    forged.add_event(None, "submission_reopened", "M1", reason="A mistake.")
    task_id, verdict = opposite(forged)
    next(row for row in forged["final-verdicts"] if row["task_id"] == task_id)["verdict"] = verdict


def restated(stated: Line) -> Any:
    """A cover that puts this into the manifest as the replaced bundle."""

    def cover(forged: Forged) -> bytes:
        files = {
            name: data for name, data in forged.written().items() if name not in ("MANIFEST.json", "SIGNATURE.json")
        }
        return zipped(signed(files, explain=False, stated={"supersedes": stated}))

    return cover


@forgery("supersedes", restated({"manifest": "ab" * 32, "reason": " \u200b"}))
def a_bundle_is_replaced_without_a_reason(forged: Forged) -> None:
    pass


@forgery("manifest", restated({"manifest": "the last one", "reason": "It was wrong."}))
def the_replaced_bundle_is_not_named_by_a_digest(forged: Forged) -> None:
    pass


# --- revocations -----------------------------------------------------------------------------------------------------


def key_is_revoked(honest: Forged, place: Path) -> dict[str, Any]:
    return {"keys": BOTH_KEYS, "revocations": [revocations(key_entry(KEY, BEFORE), key=NEXT_KEY)]}


@forgery("revocations", given=key_is_revoked)
def a_thief_signs_with_a_revoked_key(forged: Forged) -> None:
    forged.refact(forged.label(DISPUTE), "label", reasoning="I was told so.")


@forgery("revocations", given=lambda honest, place: key_is_revoked(honest, place) | published(honest, place))
def a_thief_dates_heads_of_a_revoked_key_after_its_revocation(forged: Forged) -> None:
    pass


def bundle_is_revoked(honest: Forged, place: Path) -> dict[str, Any]:
    return {"revocations": [revocations(bundle_entry(manifest_of(honest)))]}


@forgery("revocations", Forged.unsealed, bundle_is_revoked)
def a_revoked_bundle_is_sent_again(forged: Forged) -> None:
    pass


def entry_is_withdrawn(honest: Forged, place: Path) -> dict[str, Any]:
    saved = revocations(bundle_entry("cd" * 32), at=BEFORE)
    return {"revocations": [saved, revocations(at=LISTED_AT)]}


@forgery("revocations", Forged.unsealed, entry_is_withdrawn)
def an_entry_is_withdrawn_from_the_list_of_revocations(forged: Forged) -> None:
    pass


def list_is_changed(honest: Forged, place: Path) -> dict[str, Any]:
    changed = copy.deepcopy(bundle_is_revoked(honest, place))
    changed["revocations"][0]["bundles"].clear()
    return changed


@forgery("revocations", Forged.unsealed, list_is_changed)
def an_entry_is_taken_out_of_a_signed_list(forged: Forged) -> None:
    pass


@forgery("revocations", Forged.unsealed, lambda honest, place: {"revocations": [revocations(key=STRANGER)]})
def another_party_signs_an_empty_list(forged: Forged) -> None:
    pass


def thief_signs_the_list(honest: Forged, place: Path) -> dict[str, Any]:
    return {"keys": BOTH_KEYS, "revocations": [revocations(key_entry(NEXT_KEY, BEFORE), key=NEXT_KEY, at=LATER)]}


@forgery("revocations", Forged.unsealed, thief_signs_the_list)
def the_list_is_signed_by_a_key_that_it_revokes(forged: Forged) -> None:
    pass
