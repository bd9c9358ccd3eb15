"""No byte of a bundle tells who somebody is, though everybody worked through HTTP under a name that is easy to find."""

from __future__ import annotations

import base64
import io
import json
import urllib.parse
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from PIL import Image

from annotation import workflow
from annotation.models import Label, Person, Redaction, Submission, Trajectory
from annotation.models.states import State, with_state
from annotation.tests import planted, testing
from evaluations import anchoring
from evaluations.models import Anchor
from evaluations.publication.options import ResultFormat
from evaluations.tests.outside import outside
from judges.models import Judgment
from judges.tests import rows as judged

ROLES = ("alice", "bob", "chen", "carol", "mira")
PROXY = "198.51.100.1"
PRIVATE = "192.168.117.5"


@pytest.fixture
def signed_in(db: Any, tmp_path: Path, settings: Any) -> Any:
    """A submission whose people have planted identities, and a client of each, signed in from its own address."""
    settings.MEDIA_ROOT = tmp_path / "images"
    settings.BEHIND_PROXY = 1
    submission = testing.submission(tmp_path / "package", trajectories=3)
    people = testing.cast(submission)
    identities = planted.plant(people)
    clients, words = {}, [word for identity in identities.values() for word in identity.values()]
    for number, name in enumerate(ROLES, start=1):
        address, browser = f"203.0.113.{100 + number}", f"Zwurbelfox{number}/9.31"
        clients[name] = Client(REMOTE_ADDR=PROXY, HTTP_X_FORWARDED_FOR=address, HTTP_USER_AGENT=browser)
        words += [address, browser]
        for password in ("wrong", testing.PASSWORD):
            given = {"username": identities[name]["username"], "password": password}
            clients[name].post(reverse("sign-in"), given)
        assert clients[name].get(reverse("home")).status_code == 200
    return submission, people, clients, [*words, PROXY]


def fields(trajectory: Trajectory, verdict: int, says: str) -> dict[str, str]:
    """A complete label, or adjudication, as a page posts it."""
    given: dict[str, Any] = {"verdict": verdict, "reasoning": says, "criterion": "key_point"}
    for key_point in workflow.key_points_of(trajectory):
        given[f"finding_{key_point.pk}"] = "unmet" if verdict == 0 else "met"
        given[f"finding_{key_point.pk}_step"] = "1"
    if verdict == 0:
        given |= {"failure_step": "1", "failure_type": "range_not_exact"}
    return {name: str(value) for name, value in given.items()}


def done(answer: Any) -> Any:
    assert answer.status_code == 302, answer.content.decode()
    return answer


def review(submission: Submission, clients: dict[str, Client], says: str = "The steps show it.") -> None:
    """Everything that people do, to the freeze: labels, a revision, a flag, a report, a dispute, a spot check."""
    rows = list(submission.trajectories.order_by("position"))
    for name in ("alice", "bob", "chen"):
        for _ in rows:
            done(clients[name].post(reverse("next-trajectory", args=[submission.pk])))
            held = Trajectory.objects.get(
                assignments__annotator__username=username(clients[name]), assignments__lease_expires_at__isnull=False
            )
            verdict = 0 if (name, held.position) == ("bob", 0) else 1
            done(clients[name].post(reverse("submit", args=[held.pk]), fields(held, verdict, says)))
    alice, carol, mira = clients["alice"], clients["carol"], clients["mira"]
    revised = fields(rows[1], 1, f"{says} Twice.") | {"reason": "A word was missing."}
    done(alice.post(reverse("revise", args=[rows[1].pk]), revised))
    done(alice.post(reverse("flag", args=[rows[2].pk]), {"note": "Look at step 1."}))
    done(alice.post(reverse("report", args=[rows[2].pk]), {"kind": "task_outdated", "note": "Is it?"}))
    done(mira.post(reverse("submission-draw", args=[submission.pk])))
    for row in with_state(submission.trajectories.all()).exclude(state=State.UNANIMOUS.value):
        done(carol.post(reverse("open-adjudication", args=[row.pk])))
        done(carol.post(reverse("decide", args=[row.pk]), fields(row, 1, "The key points are met.")))
    box = {"x": "10", "y": "10", "width": "90", "height": "20", "reason": "A face."}
    done(mira.post(reverse("redact", args=[rows[0].pk, 1]), box))
    done(mira.post(reverse("freeze", args=[submission.pk])))


def username(client: Client) -> str:
    return Person.objects.get(pk=client.session["_auth_user_id"]).username


def judge(submission: Submission) -> None:
    run = judged.run_row(submission, judged.judge_row("some-judge"))
    for item in run.items.select_related("trajectory__task", "run__judge"):
        judged.judgment_row(item, 1, "It is so.")
    assert Judgment.objects.count() == 3


def exported(submission: Submission, path: Path, *options: str) -> Path:
    call_command("export_evidence", str(submission.pk), "--output", str(path), *options)
    return path


def published_anchors(settings: Any, tmp_path: Path, words: list[str]) -> None:
    """Heads at three places whose hosts and folders tell who runs them; the row of the webhook is of another time."""
    with outside() as site:
        settings.ANCHOR_FILE = str(tmp_path / "qzfolder9xv.jsonl")
        settings.ANCHOR_WEBHOOK = site.address
        anchoring.publish()
        words.append(site.address.removeprefix("http://"))
    (row,) = Anchor.objects.filter(method="webhook", error="")
    at = {"submission": row.submission, "sequence": row.sequence, "head": row.head, "published_at": row.published_at}
    Anchor.objects.create(method="rfc3161", target="https://qzhost9xv.example", token="AAAA", **at)
    Anchor.objects.filter(pk=row.pk).update(target=f"http://{PRIVATE}:8080")
    words += ["qzfolder9xv", "qzhost9xv", PRIVATE]


def found_in(path: Path, words: list[str]) -> dict[str, list[str]]:
    """The words that are anywhere in a zip, by the place: its own bytes, or a member with its name."""
    found = {"(the file)": planted.found_in(path.read_bytes(), words)}
    with zipfile.ZipFile(path) as package:
        assert len(package.namelist()) > 30
        for member in package.infolist():
            about = member.filename.encode() + member.comment + member.extra
            found[member.filename] = planted.found_in(about + package.read(member), words)
    return {place: here for place, here in found.items() if here}


def test_a_bundle_with_everything_holds_no_identity(
    signed_in: Any, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    submission, _, clients, words = signed_in
    review(submission, clients)
    judge(submission)
    published_anchors(settings, tmp_path, words)
    path = exported(submission, tmp_path / "bundle.zip")
    with zipfile.ZipFile(path) as package:
        names = set(package.namelist())
        assert {"judges/judgments.jsonl", "flags.jsonl", "reports/report.html", "redactions.jsonl"} <= names
        assert package.read("flags.jsonl") != b""
        targets = {line["target"] for line in map(json.loads, package.read("anchors.jsonl").splitlines())}
        assert targets == {"file", "webhook", "time stamp authority"}
    assert found_in(path, words) == {}


def test_a_download_by_the_maintainer_holds_no_identity_either(signed_in: Any, tmp_path: Path) -> None:
    submission, _, clients, words = signed_in
    review(submission, clients)
    answer = clients["mira"].get(reverse("api-evidence", args=[submission.pk]))
    path = tmp_path / "bundle.zip"
    path.write_bytes(b"".join(answer.streaming_content))
    assert found_in(path, words) == {}
    assert planted.found_in(str(dict(answer.items())).encode(), words) == []


@pytest.mark.parametrize("name", [each.value for each in ResultFormat])
def test_published_formats_hold_no_identity(signed_in: Any, tmp_path: Path, name: str) -> None:
    submission, _, clients, words = signed_in
    review(submission, clients)
    judge(submission)
    answer = clients["mira"].get(reverse("api-export", args=[submission.pk, name]), {"dataset": "maker/shops"})
    data = b"".join(answer.streaming_content)
    assert answer.status_code == 200
    assert planted.found_in(data + str(dict(answer.items())).encode(), words) == []
    if answer["Content-Type"] == "application/zip":
        assert in_members(data, words) == {}


def in_members(data: bytes, words: list[str]) -> dict[str, list[str]]:
    """The words that are in members of a zip, also in the values of compressed tables."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        for name in package.namelist():
            content = package.read(name)
            if name.endswith(".parquet"):
                rows = pq.read_table(io.BytesIO(content)).to_pylist()
                assert len(rows) >= 3
                content += json.dumps(rows, default=repr, ensure_ascii=False).encode()
            found[name] = planted.found_in(name.encode() + content, words)
    return {name: here for name, here in found.items() if here}


def test_a_name_in_a_compressed_table_is_found(signed_in: Any) -> None:
    submission, people, clients, words = signed_in
    name = people["bob"].last_name
    review(submission, clients, f"As {name} said.")
    given = {"accept_names": "true"}
    answer = clients["mira"].get(reverse("api-export", args=[submission.pk, "dataset"]), given)
    assert in_members(b"".join(answer.streaming_content), words) == {"data/labels.parquet": [name]}


def test_a_redacted_picture_is_in_the_bundle_in_place_of_its_original(signed_in: Any, tmp_path: Path) -> None:
    submission, _, clients, _ = signed_in
    review(submission, clients)
    redaction = Redaction.objects.get()
    with zipfile.ZipFile(exported(submission, tmp_path / "bundle.zip")) as package:
        assert [name for name in package.namelist() if redaction.original in name] == [
            f"screenshots/{redaction.original}.redacted.png"
        ]
        shown = Image.open(io.BytesIO(package.read(f"screenshots/{redaction.original}.redacted.png")))
    assert (shown.getpixel((10, 10)), shown.getpixel((99, 29))) == ((0, 0, 0), (0, 0, 0))


def test_a_name_in_a_reasoning_refuses_the_bundle_until_it_is_accepted(
    signed_in: Any, tmp_path: Path, capsys: Any
) -> None:
    """And then the search finds it, so it would find any other."""
    submission, people, clients, words = signed_in
    name = people["bob"].last_name
    review(submission, clients, f"As {name.upper()} said.")
    with pytest.raises(CommandError, match=r"Refused for 9 reasons.*name members: --accept-names\.$"):
        exported(submission, tmp_path / "refused.zip")
    said = "".join(capsys.readouterr())
    assert "label of A1 on task_0000" in said
    assert planted.found_in(said.encode(), words) == []
    assert not (tmp_path / "refused.zip").exists()
    path = exported(submission, tmp_path / "bundle.zip", "--accept-names")
    assert found_in(path, words) == {"labels.jsonl": [name]}
    assert Label.objects.filter(reasoning__contains=name.upper()).count() == 10


def test_every_spelling_is_searched_for() -> None:
    for word in ("Müßebröck", "qzmail1xv@plaented.example", "203.0.113.101"):
        hidden = [word.encode("utf-16"), word.upper().encode(), word.encode("latin-1"), json.dumps(word).encode()]
        hidden += [base64.b64encode(b"x" * n + word.encode() + b"yy") for n in range(4)]
        hidden += [urllib.parse.quote(word).encode()]
        assert [data for data in hidden if planted.found_in(b"before " + data + b" after", [word]) != [word]] == []
