"""The Python client against a real server: the notebook takes a submission through the whole protocol."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from celery.contrib.testing.worker import start_worker
from django.conf import settings
from django.core.management import CommandError, call_command
from webverdict_client import Client, Refused, Rows, UnknownArgumentError, client
from webverdict_client.__main__ import _read_value, main

from annotation import workflow
from annotation.models import ApiToken, Person, SignIn, Submission
from annotation.tests import testing
from config.celery import app

NOTEBOOK = settings.BASE_DIR / "docs" / "client.ipynb"
PASSWORD = "long enough 4 a newcomer!"


@pytest.fixture
def mira(tmp_path: Path, live_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """The client of an operator, whose address and token are in the environment."""
    monkeypatch.setattr(settings, "MEDIA_ROOT", tmp_path / "images")
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.0)
    person = testing.person("mira", is_superuser=True, is_staff=True)
    monkeypatch.setenv("WEBVERDICT_URL", live_server.url)
    monkeypatch.setenv("WEBVERDICT_TOKEN", ApiToken.issue(person, "test", "admin")[1])
    with Client() as connected:
        yield connected


@pytest.fixture
def visitor(mira: Client) -> Iterator[Client]:
    """The client of somebody without a token."""
    with Client(token="") as connected:
        yield connected


@pytest.fixture
def submission(mira: Client, tmp_path: Path) -> Submission:
    """A submission that mira maintains."""
    found = testing.submission(tmp_path)
    workflow.join_as_maintainer(found, Person.objects.get(username="mira"))
    return found


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_notebook_takes_trajectories_from_upload_to_a_bundle_that_verifies(
    mira: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "annotation" / "demo").mkdir(parents=True)
    (tmp_path / "annotation" / "demo" / "data").symlink_to(settings.BASE_DIR / "annotation" / "demo" / "data")
    monkeypatch.chdir(tmp_path)
    cells = [each for each in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if each["cell_type"] == "code"]
    assert not any(each["outputs"] for each in cells)
    found: dict[str, Any] = {}
    with start_worker(app, perform_ping_check=False, pool="solo"):
        for cell in cells:
            exec(compile("".join(cell["source"]), "client.ipynb", "exec"), found)
    submission = Submission.objects.get()
    assert submission.frozen_at is not None
    # Alice's and Chen's success against one failure is overruled; the other tasks keep their unanimous labels.
    assert sorted(found["final"].values()) == [0, 0, 1, 2]
    assert found["final"]["18de976dbe1bd5aee679d9dd1d39f604"] == 0
    assert len(found["labels"]) == 12
    assert sorted(found["labels"]["annotator"].unique()) == ["A1", "A2", "A3"]
    assert found["seen"][0] == ("opposed", False)
    assert {blind for _, blind in found["seen"][1:]} == {True}
    with zipfile.ZipFile(tmp_path / "bundle.zip") as bundle:
        bundle.extractall(tmp_path / "bundle")
    verify = [sys.executable, "-I", str(tmp_path / "bundle" / "verify.py"), str(tmp_path / "bundle.zip")]
    verified = subprocess.run(verify, capture_output=True, text=True, timeout=120, check=False)
    assert verified.returncode == 0, verified.stdout
    assert not (tmp_path / "upload.json").exists()  # a finished upload is forgotten


@pytest.mark.django_db(transaction=True)
def test_arguments_are_checked_before_anything_is_sent(mira: Client) -> None:
    with pytest.raises(UnknownArgumentError, match=r"freeze_submission needs id and does not take submission\."):
        mira.call("freeze_submission", submission=1)
    with pytest.raises(UnknownArgumentError, match="no operation frieze_submission"):
        mira.call("frieze_submission", id=1)
    with pytest.raises(UnknownArgumentError, match="It takes in the address: id; fields: reason"):
        mira.call("reopen_submission", id=1, because="?")


@pytest.mark.django_db(transaction=True)
def test_a_refusal_has_the_problem_details(mira: Client) -> None:
    with pytest.raises(Refused) as refused:
        mira.call("define_judge", name="")
    assert refused.value.status == 400
    assert refused.value.problem["errors"][0]["where"] == "name"
    assert str(refused.value) == refused.value.problem["detail"]


@pytest.mark.django_db(transaction=True)
def test_a_file_that_cannot_be_fetched_changes_nothing(mira: Client, tmp_path: Path) -> None:
    (kept := tmp_path / "bundle.zip").write_bytes(b"earlier")
    with pytest.raises(Refused):
        mira.evidence(404, kept)
    assert kept.read_bytes() == b"earlier"
    assert list(tmp_path.glob(".bundle*")) == []


class Unreliable(httpx2.HTTPTransport):
    """Answers 503 to the first request, and loses the answer to the second."""

    requests = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        if self.requests == 1:
            return httpx2.Response(503, headers={"Retry-After": "0"}, request=request)
        answer = super().handle_request(request)
        if self.requests == 2:
            raise httpx2.ReadError("lost")
        return answer


@pytest.mark.django_db(transaction=True)
def test_reading_is_repeated_and_a_change_only_if_nothing_was_done(mira: Client) -> None:
    assert "list_benchmarks" in mira.operations
    given = {"base_url": mira.http.base_url, "headers": mira.http.headers}
    mira.close()
    mira.http = httpx2.Client(**given, transport=(transport := Unreliable()))
    assert mira.rows("list_benchmarks") == Rows()
    assert transport.requests == 3
    mira.close()
    mira.http = httpx2.Client(**given, transport=(transport := Unreliable()))
    with pytest.raises(httpx2.ReadError):  # it may have arrived
        mira.call("invite_person", id=1, username="newcomer", role="annotator")
    assert transport.requests == 2


def invite(mira: Client, submission: Submission) -> str:
    return str(mira.call("invite_person", id=submission.pk, username="newcomer", role="annotator")["link"])


@pytest.mark.django_db(transaction=True)
def test_an_invited_person_joins_once_and_is_recorded(mira: Client, visitor: Client, submission: Submission) -> None:
    link = invite(mira, submission)
    with pytest.raises(Refused) as weak:
        visitor.call("join_with_invitation", link=link, password="short", name="mine")
    assert [each["where"] for each in weak.value.problem["errors"]] == ["password"]
    assert ApiToken.objects.filter(person__username="newcomer").count() == 0
    with pytest.raises(Refused, match="scope"):  # an invitation must not become a token that invites others
        visitor.call("join_with_invitation", link=link, password=PASSWORD, name="mine", scope="admin")
    joined = visitor.call("join_with_invitation", link=link, password=PASSWORD, name="mine", scope="read")
    assert (joined["username"], joined["scope"]) == ("newcomer", "read")
    with Client(token=joined["token"]) as newcomer:
        assert [each["role"] for each in newcomer.call("list_work")] == ["annotator"]
    assert SignIn.objects.get().person.username == "newcomer"
    assert Person.objects.get(username="newcomer").check_password(PASSWORD)
    for used in (link, "https://elsewhere.example/join/x/y", "/home", link.replace("/join/", "/new-password/")):
        with pytest.raises(Refused) as again:
            visitor.call("join_with_invitation", link=used, password=PASSWORD, name="mine")
        assert [each["code"] for each in again.value.problem["errors"]] == ["link_invalid"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("setting", "value"), [("LOCAL_SIGN_IN", False), ("REQUIRE_MFA", "everybody")])
def test_nobody_joins_past_single_sign_on_or_a_second_factor(
    mira: Client,
    visitor: Client,
    submission: Submission,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    value: Any,
) -> None:
    link = invite(mira, submission)
    monkeypatch.setattr(settings, setting, value)
    with pytest.raises(Refused) as refused:
        visitor.call("join_with_invitation", link=link, password=PASSWORD, name="mine")
    assert refused.value.status == 403
    assert not Person.objects.get(username="newcomer").has_usable_password()


@pytest.mark.django_db(transaction=True)
def test_commands_list_describe_and_call_operations(mira: Client, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["operations"]) == 0
    listed = capsys.readouterr().out
    assert len(listed.splitlines()) == len(mira.operations) > 150
    assert main(["describe", "freeze_submission"]) == 0
    assert capsys.readouterr().out.startswith("POST /api/v1/submissions/{id}/freeze\n")
    assert main(["call", "list_benchmarks", "--all"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["call", "freeze_submission", "id=404"]) == 1
    assert json.loads(capsys.readouterr().err)["status"] == 404
    assert main(["call", "freeze_submission", "404"]) == 2
    assert "'404' is not NAME=VALUE." in capsys.readouterr().err
    assert main(["call", "reopen_submission", "id=404", "reason={"]) == 2
    assert "The value of reason is not JSON" in capsys.readouterr().err
    assert main(["upload", "package.zip", "agent=x"]) == 2
    assert main(["--url", "http://127.0.0.1:1", "operations"]) == 1
    assert "cannot be reached" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "value"),
    [("3.14159265358979323846", "3.14159265358979323846"), ("0042", "0042"), ("7", 7), ("true", True), ("[1]", [1])],
)
def test_texts_of_a_command_stay_as_they_are(given: str, value: Any) -> None:
    assert _read_value(f"password={given}") == ("password", value)


@pytest.mark.django_db
def test_only_operators_get_a_token_by_command(capsys: pytest.CaptureFixture[str]) -> None:
    testing.person("mira", is_superuser=True)
    testing.person("amy")
    call_command("create_token", "mira", "--name", "notebook", "--days", "1")
    token = ApiToken.objects.get(digest=ApiToken.digest_of(capsys.readouterr().out.strip()))
    assert (token.person.username, token.scope, token.lifetime_days) == ("mira", "admin", 1)
    for name, options in (("amy", {}), ("mira", {"days": 0}), ("mira", {"name": ""})):
        with pytest.raises(CommandError):
            call_command("create_token", name, **{"name": "x", **options})
