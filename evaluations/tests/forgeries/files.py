"""Files, as somebody changes them who found the bundle on a disk, or has another key."""

from __future__ import annotations

import io
from typing import Any

from PIL import Image

from evaluations.tests.forgeries.ground import DISPUTE, forgery
from evaluations.tests.forging import STRANGER, Forged
from evaluations.tests.hand_made_bundle import picture, sha256, signature


@forgery("manifest", Forged.unsealed)
def a_label_is_changed(forged: Forged) -> None:
    forged.label(DISPUTE)["facts"]["verdict"] = 0


@forgery("manifest", Forged.unsealed)
def a_screenshot_is_replaced(forged: Forged) -> None:
    forged.files[forged.picture()] = picture(99)


@forgery("manifest", Forged.unsealed)
def a_file_is_left_out(forged: Forged) -> None:
    del forged.files[forged.picture()]


@forgery("manifest", Forged.unsealed)
def a_file_is_added(forged: Forged) -> None:
    forged.files["labels-2.jsonl"] = b"{}\n"


@forgery("signature", Forged.unsealed)
def an_entry_is_added_to_the_manifest(forged: Forged) -> None:
    forged.files["MANIFEST.json"] = forged.files["MANIFEST.json"].replace(
        b'"files":[', b'"files":[{"path":"A.md","sha256":"' + b"0" * 64 + b'","size":0},'
    )


@forgery("signature", Forged.under_the_old_signature)
def a_label_is_changed_under_the_old_signature(forged: Forged) -> None:
    forged.label(DISPUTE)["facts"]["reasoning"] = "I was told so."


@forgery("signature", lambda forged: forged.sealed(STRANGER))
def it_is_signed_by_another_key(forged: Forged) -> None:
    forged.relink()


@forgery("signature", Forged.unsealed)
def another_key_signs_under_the_name_of_the_right_one(forged: Forged) -> None:
    ours, theirs = forged.files["SIGNATURE.json"], signature(forged.files["MANIFEST.json"], STRANGER)
    key_id = ours.split(b'"key_id":"')[1][:16]
    forged.files["SIGNATURE.json"] = theirs.replace(theirs.split(b'"key_id":"')[1][:16], key_id)


@forgery("signature", Forged.unsealed)
def the_signature_is_taken_away(forged: Forged) -> None:
    del forged.files["SIGNATURE.json"]


@forgery("pictures", Forged.sealed)
def a_screenshot_is_replaced_and_signed_again(forged: Forged) -> None:
    forged.files[forged.picture()] = picture(99)


@forgery("pictures", Forged.sealed)
def a_screenshot_is_left_out_and_signed_again(forged: Forged) -> None:
    del forged.files[forged.picture()]


def cover_a_picture(forged: Forged, **changes: Any) -> None:
    """A redaction, with a whole other picture of the right size for it, unless something is changed."""
    name = forged.picture()
    sha = name.removeprefix("screenshots/").partition(".")[0]
    steps = [step["screenshot"] for line in forged["trajectories"] for step in line["steps"] if step["screenshot"]]
    shown = next(each for each in steps if each["sha256"] == sha)
    stream = io.BytesIO()
    Image.new("RGB", (changes.pop("width", shown["width"]), shown["height"])).save(stream, "PNG")
    other = stream.getvalue()
    line = {"original": sha, "revision": 1, "boxes": [[0, 0, 1, 1]], "reason": "A name.", "redacted": sha256(other)}
    line |= {"size": len(other), "redacted_by": "M1", "redacted_at": forged["events"][-1]["at"]}
    forged["redactions"].append(line | changes)
    del forged.files[name]
    forged.files[f"screenshots/{sha}.redacted.png"] = other


@forgery("complete_record", Forged.sealed)
def a_picture_is_covered_that_nobody_covered(forged: Forged) -> None:
    cover_a_picture(forged)


@forgery("pictures", Forged.sealed)
def something_that_is_no_screenshot_is_hidden_as_a_covered_picture(forged: Forged) -> None:
    cover_a_picture(forged)
    forged["redactions"].append(forged["redactions"][-1] | {"original": "c" * 64})


@forgery("pictures", Forged.sealed)
def a_picture_of_another_size_stands_for_a_covered_one(forged: Forged) -> None:
    cover_a_picture(forged, width=7)


@forgery("pictures", Forged.sealed)
def what_is_covered_lies_outside_of_the_picture(forged: Forged) -> None:
    cover_a_picture(forged, boxes=[[100_000, 0, 1, 1]])


@forgery("protocol")
def a_verdict_means_something_else(forged: Forged) -> None:
    forged["protocol"]["verdicts"][0]["definition"] = "Whatever it did."


@forgery("companions", Forged.sealed_as_it_is)
def the_readme_tells_of_another_review(forged: Forged) -> None:
    forged.files["README.md"] += b"- All of it was checked by the makers of the benchmark.\n"


@forgery("companions", Forged.sealed_as_it_is)
def the_metadata_name_another_agent(forged: Forged) -> None:
    crate = forged.files["ro-crate-metadata.json"]
    forged.files["ro-crate-metadata.json"] = crate.replace(
        b'"@id": "#agent",', b'"@id": "#agent", "alternateName": "X",'
    )


@forgery("companions")
def a_schema_allows_another_verdict(forged: Forged) -> None:
    forged.files["schemas/labels.schema.json"] = b'{"type": "object"}\n'


@forgery("companions", Forged.sealed_as_it_is)
def everything_that_explains_it_is_left_out(forged: Forged) -> None:
    for name in [name for name in forged.files if name.startswith(("README", "ro-crate", "schemas/"))]:
        del forged.files[name]


@forgery("companions")
def a_schema_of_nothing_is_added(forged: Forged) -> None:
    forged.files["schemas/notes.schema.json"] = b'{"type": "object"}\n'
