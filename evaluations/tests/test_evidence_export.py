"""Evidence bundles by page, API and command: for maintainers, after the freeze, with every reason of a refusal."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Membership, Person, Screenshot, Submission
from annotation.tests import testing
from annotation.tests.test_api_submissions import get as api_get
from annotation.tests.test_api_submissions import problem
from evaluations.exports import ExportStopped
from evaluations.tests.builders import judged
from evaluations.tests.test_export_commands import run
from evaluations.verifier.documents import OF_JUDGES
from evaluations.verifier.rules import CLAIMS

People = dict[str, Person]
WHO = [("mira", 200), ("alice", 403), ("carol", 403), ("dave", 404), (None, 302)]


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, settings: Any) -> None:
    """What is broken here is not found by other tests."""
    settings.MEDIA_ROOT = tmp_path / "images"


def get(person: Person | None, name: str, submission: Submission, **query: str) -> Any:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client.get(reverse(name, args=[submission.pk]), query)


def package(response: Any) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(response.getvalue()))


def lose_a_picture() -> None:
    lost = Screenshot.objects.order_by("sha256")[0]
    default_storage.delete(f"originals/{lost.sha256[:2]}/{lost.sha256}")


# --- the page -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["evidence", "evidence-file"])
@pytest.mark.parametrize(("who", "code"), WHO)
def test_only_maintainers_reach_the_evidence(
    frozen: Submission, people: People, name: str, who: str | None, code: int
) -> None:
    assert get(people[who] if who else None, name, frozen).status_code == code


def test_the_page_of_a_frozen_submission_has_every_claim_and_the_head(frozen: Submission, people: People) -> None:
    text = get(people["mira"], "evidence", frozen).content.decode()
    assert all(f'id="claim-{name}"' in text for name in CLAIMS)
    assert frozen.events.order_by("-sequence")[0].hash in text
    assert "Nothing is missing for the bundle." in text
    assert "0 fail" in text


def test_before_the_freeze_the_page_tells_of_no_claim(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    text = get(people["mira"], "evidence", submission).content.decode()
    assert "claim-" not in text
    assert "task_0000: the labels differ" in text
    assert submission.events.order_by("-sequence")[0].hash in text


@pytest.mark.parametrize("name", ["evidence", "submission"])
def test_the_pages_show_the_head_and_the_id_of_the_chain_to_be_kept(
    submission: Submission, people: People, name: str
) -> None:
    text = get(people["mira"], name, submission).content.decode()
    hashes = list(submission.events.order_by("sequence").values_list("hash", flat=True))
    assert len(hashes) > 1
    assert f'The head of the chain: <code class="agent">{hashes[-1]}</code>' in text
    assert f'The id of the chain, the hash of its first event: <code class="agent">{hashes[0]}</code>' in text
    assert "Auditors record it before any judging starts" in text
    assert "<code>--head</code>" in text


def test_places_of_a_claim_lead_to_their_trajectories(uncovered: Submission, people: People) -> None:
    trajectory = uncovered.trajectories.order_by("position")[0]
    Membership.objects.filter(submission=uncovered, pseudonym="A1").update(pseudonym="A9")  # who labelled is unknown
    text = get(people["mira"], "evidence", uncovered).content.decode()
    assert reverse("submission-trajectory", args=[trajectory.pk]) in text


def test_the_download_states_its_exact_size(frozen: Submission, people: People) -> None:
    response = get(people["mira"], "evidence-file", frozen)
    assert response.streaming
    assert response["Content-Disposition"] == 'attachment; filename="shops.Careful-Agent.evidence.zip"'
    assert int(response["Content-Length"]) == len(response.getvalue())


def test_the_page_takes_its_choices(frozen: Submission, people: People) -> None:
    judged(frozen.benchmark)
    names = package(get(people["mira"], "evidence-file", frozen, screenshots="digests", without_judges="on")).namelist()
    assert set(OF_JUDGES).isdisjoint(names)
    assert not any(name.startswith("screenshots/") for name in names)


def test_a_choice_that_does_not_exist_is_said(frozen: Submission, people: People) -> None:
    response = get(people["mira"], "evidence-file", frozen, screenshots="some")
    assert response.status_code == 400
    assert "not one of the available choices" in response.content.decode()


@pytest.mark.parametrize("query", [{}, {"partial": "on"}])
def test_before_the_freeze_not_even_a_part_is_downloaded(
    submission: Submission, people: People, query: dict[str, str]
) -> None:
    response = get(people["mira"], "evidence-file", submission, **query)
    assert response.status_code == 409
    assert "once the submission is frozen" in response.content.decode()


def test_a_refused_download_shows_every_reason_and_a_part_is_asked_for(uncovered: Submission, people: People) -> None:
    response = get(people["mira"], "evidence-file", uncovered)
    assert response.status_code == 409
    assert "task_0002: the submission has no trajectory for this task." in response.content.decode()
    response = get(people["mira"], "evidence-file", uncovered, partial="on")
    assert response["Content-Disposition"].endswith('evidence.partial.zip"')
    assert json.loads(package(response).read("submission.json"))["partial"] is True


def test_a_picture_that_is_lost_meanwhile_breaks_the_download_off(frozen: Submission, people: People) -> None:
    response = get(people["mira"], "evidence-file", frozen)
    lose_a_picture()
    with pytest.raises(ExportStopped, match="cannot be read from the image store"):
        response.getvalue()


def test_download_is_refused_when_a_picture_is_lost(frozen: Submission, people: People) -> None:
    lose_a_picture()
    response = get(people["mira"], "evidence-file", frozen)
    assert response.status_code == 409
    assert "is missing from the image store" in response.content.decode()


def test_a_practice_set_has_no_evidence(submission: Submission, people: People) -> None:
    Submission.objects.filter(pk=submission.pk).update(practice=True)
    assert "there is nothing to prove" in get(people["mira"], "evidence", submission).content.decode()
    assert get(people["mira"], "evidence-file", submission).status_code == 409


# --- the API --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["evidence", "claims"])
@pytest.mark.parametrize(("who", "code"), [("alice", 403), ("carol", 403), ("dave", 404)])
def test_the_api_is_for_maintainers(frozen: Submission, people: People, name: str, who: str, code: int) -> None:
    problem(api_get(people[who], f"/submissions/{frozen.pk}/{name}"), code)


def test_the_api_has_the_bundle_of_the_page(frozen: Submission, people: People) -> None:
    response = api_get(people["mira"], f"/submissions/{frozen.pk}/evidence")
    data = response.getvalue()
    assert int(response["Content-Length"]) == len(data)
    assert data == get(people["mira"], "evidence-file", frozen).getvalue()


def test_the_api_takes_its_choices_and_refuses_others(uncovered: Submission, people: People) -> None:
    address = f"/submissions/{uncovered.pk}/evidence"
    told = problem(api_get(people["mira"], address), 409)
    assert [each["code"] for each in told["errors"]] == ["task_not_covered"]
    response = api_get(people["mira"], address, partial="true", screenshots="digests", judges="false")
    stated = json.loads(package(response).read("submission.json"))
    assert (stated["partial"], stated["contents"]) == (True, {"screenshots": "digests", "judges": False})
    problem(api_get(people["mira"], address, screenshots="some"), 400)
    problem(api_get(people["mira"], address, pictures="files"), 400)


def test_the_api_gives_no_part_before_the_freeze(submission: Submission, people: People) -> None:
    told = problem(api_get(people["mira"], f"/submissions/{submission.pk}/evidence", partial="true"), 409)
    assert "labels_blind" in [each["code"] for each in told["errors"]]


def test_the_api_tells_the_claims_of_a_frozen_submission_only(submission: Submission, people: People) -> None:
    told = api_get(people["mira"], f"/submissions/{submission.pk}/claims").json()
    assert told["claims"] is None
    assert told["chain"]["events"] == submission.events.count()
    assert "labels_missing" in [each["code"] for each in told["missing"]]


def test_the_claims_of_the_api_are_those_of_the_bundle(frozen: Submission, people: People) -> None:
    told = api_get(people["mira"], f"/submissions/{frozen.pk}/claims").json()
    stated = json.loads(package(get(people["mira"], "evidence-file", frozen)).read("claims.json"))
    assert told["claims"] == stated["claims"]
    assert [claim["name"] for claim in told["claims"]] == list(CLAIMS)


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_writes_the_bundle_of_the_page(frozen: Submission, people: People, tmp_path: Path) -> None:
    output = tmp_path / "bundle.zip"
    out, err, code = run("export_evidence", frozen.pk, "--output", output)
    assert (code, err) == (0, "")
    assert output.read_bytes() == get(people["mira"], "evidence-file", frozen).getvalue()
    assert "0 FAIL" in out


def test_the_command_refuses_with_every_reason_and_writes_nothing(submission: Submission, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    _, err, code = run("export_evidence", submission.pk, "--output", folder / "bundle.zip")
    assert code == 1
    assert err.count("refused: labels_missing") == 2
    assert "refused: not_frozen" in err
    assert "Refused for 3 reasons; nothing was written." in err
    assert err.endswith(": --partial.")
    assert "--accept-names" not in err
    assert list(folder.iterdir()) == []


def test_the_command_names_a_missing_folder_as_it_was_given(frozen: Submission, tmp_path: Path) -> None:
    output = tmp_path / "nowhere" / "bundle.zip"
    _, err, code = run("export_evidence", frozen.pk, "--output", output)
    assert code == 1
    assert err == f"{output} was not written: the folder {output.parent} does not exist."


def test_the_command_names_no_option_where_none_helps(submission: Submission, tmp_path: Path) -> None:
    Submission.objects.filter(pk=submission.pk).update(practice=True)
    _, err, _ = run("export_evidence", submission.pk, "--output", tmp_path / "bundle.zip")
    assert err.endswith("Refused for 1 reason; nothing was written.")


def test_the_command_writes_a_part_before_the_freeze(submission: Submission, people: People, tmp_path: Path) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    output = tmp_path / "bundle.zip"
    out, err, code = run("export_evidence", submission.pk, "--output", output, "--partial")
    assert code == 0
    assert "left out: dispute_open" in err
    assert "FAIL frozen" in err
    assert "partial evidence" in out


def test_the_command_leaves_out_what_it_is_told_to(frozen: Submission, tmp_path: Path) -> None:
    judged(frozen.benchmark)
    output = tmp_path / "bundle.zip"
    words = ("export_evidence", frozen.pk, "--output", output, "--screenshots", "digests", "--no-judges")
    assert run(*words)[2] == 0
    with zipfile.ZipFile(output) as made:
        stated = json.loads(made.read("submission.json"))["contents"]
    assert stated == {"screenshots": "digests", "judges": False}


def test_the_command_takes_names_when_it_is_told_to(submission: Submission, people: People, tmp_path: Path) -> None:
    testing.label(people["alice"], submission.trajectories.order_by("position")[0], reasoning="Carol says so.")
    words = ("export_evidence", submission.pk, "--output", tmp_path / "bundle.zip", "--partial")
    _, err, code = run(*words)
    assert code == 1
    assert "refused: name_in_text" in err
    assert run(*words, "--accept-names")[2] == 0


def test_a_full_disk_is_one_line_and_keeps_the_earlier_bundle(
    frozen: Submission, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "bundle.zip"
    output.write_text("earlier")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    _, err, code = run("export_evidence", frozen.pk, "--output", output)
    assert (code, err) == (1, f"{output} was not written: No space left on device.")
    assert output.read_text() == "earlier"
    assert not list(tmp_path.glob(".export-*"))


def test_a_lost_picture_is_one_line_and_no_half_bundle(frozen: Submission, tmp_path: Path) -> None:
    lose_a_picture()
    folder = tmp_path / "exports"
    folder.mkdir()
    _, err, code = run("export_evidence", frozen.pk, "--output", folder / "bundle.zip")
    assert code == 1
    assert [line.split(":")[:3] for line in err.splitlines()[:-1]] == [["refused", " screenshot_lost", " task_0001"]]
    assert list(folder.iterdir()) == []


class Terminal(io.StringIO):
    """What is written to somebody who looks on."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "watched"), [(Terminal(), True), (io.StringIO(), False)])
def test_the_command_shows_how_far_it_is_to_a_terminal_alone(
    frozen: Submission, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, watched: bool
) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    call_command("export_evidence", str(frozen.pk), "--output", str(tmp_path / "bundle.zip"))
    assert (f"\r[{'#' * 30}] " in stream.getvalue()) is watched
    assert bool(stream.getvalue()) is watched


@pytest.mark.parametrize("words", [("77", "--output", "x.zip"), ("1", "--output", ".")])
def test_wrong_usage_of_the_command(frozen: Submission, words: tuple[str, ...]) -> None:
    pk = frozen.pk if words[0] == "1" else int(words[0])
    assert run("export_evidence", pk, *words[1:])[2] == 2
