"""The key goes to its endpoint and nowhere else: no log, message, row or reply shows it, and nothing leaks in."""

from __future__ import annotations

import asyncio
import logging
import traceback
from pathlib import Path
from typing import Any

import pytest

from judges.llm import CallFailed, Endpoint, NotConfigured, Patience
from judges.llm import client as llm_client
from judges.llm.client import Client
from judges.ready_judges import load_endpoint
from judges.tests.builders import KEY, Fake
from judges.tests.clients import FITS, SCHEMA, Desk


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_client, "FIRST_WAIT", 0.01)


BODY = '{"choices": [{"message": {"content": "TEXT"}}]}'
ECHOES: dict[str, dict[str, Any]] = {
    "in an error": {"status": 401, "error": {"message": f"Incorrect API key provided: {KEY}."}},
    "in a page": {"status": 500, "body": f"<pre>Authorization: Bearer {KEY}</pre>"},
    "in a reply": {"reply": f"Your key is {KEY}."},
    "in a structured reply": {"reply": f'{{"status": "success", "score": 1, "why": "{KEY}"}}'},
    "in a broken body": {"body": f"Bearer {KEY}"},
    "in an error with 200": {"body": {"error": {"message": f"{KEY} is wrong"}}},
    "as JSON may write it": {"body": BODY.replace("TEXT", KEY.replace("-", "\\u002D"))},
    "nowhere": {"reply": FITS},
    "nowhere, and dropped": {"fault": "drop"},
}


@pytest.mark.parametrize("said", ECHOES.values(), ids=ECHOES.keys())
def test_an_endpoint_that_repeats_the_key_spreads_it_nowhere(
    fake: Fake, said: dict[str, Any], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    fake.says({"key": KEY, "name": "with our key"} | said)
    desk = Desk(fake, patience=Patience(attempts=2))
    told = ""
    try:
        told += repr(desk.ask(schema=SCHEMA))
    except CallFailed as failed:
        told += "".join(traceback.format_exception(failed))
        told += repr(failed.__cause__) + repr(failed.__context__)
    told += repr(desk.call_log.outcomes) + repr(desk.client) + repr(desk.client.__dict__) + repr(fake.endpoint)
    told += "".join(record.getMessage() + repr(record.args) for record in caplog.records)
    told += "".join(capfd.readouterr())
    assert KEY not in told
    assert desk.call_log.outcomes
    assert fake.counts()["by_rule"] == {"with our key": fake.counts()["calls"]}


def test_a_key_with_slashes_is_hidden_where_json_escapes_them(fake: Fake) -> None:
    key = "ab/cd+ef/0123456789=="
    fake.says({"body": BODY.replace("TEXT", key.replace("/", "\\/"))})
    desk = Desk(fake, endpoint=Endpoint("fake", fake.url, key))
    assert desk.ask().text == "[key]"
    assert "0123456789" not in repr(desk.call_log.outcomes)


@pytest.mark.parametrize("word", ["none", "x", "EMPTY"])
def test_a_word_that_stands_for_no_key_is_left_in_replies(fake: Fake, word: str) -> None:
    fake.says({"key": word, "reply": "none of the next is EMPTY"}, {"status": 418})
    assert Desk(fake, endpoint=Endpoint("fake", fake.url, word)).ask().text == "none of the next is EMPTY"


def test_no_address_is_logged(fake: Fake, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    Desk(fake).ask()
    assert fake.url not in caplog.text


@pytest.mark.parametrize("key", ["two words", "a\r\nX-Evil: 1", "sk-ключ", "tab\there"])
def test_a_key_that_no_header_takes_is_refused_without_showing_it(fake: Fake, key: str) -> None:
    with pytest.raises(NotConfigured, match="JUDGE_API_KEY_FAKE") as refused:
        Desk(fake, endpoint=Endpoint("fake", fake.url, key)).ask()
    assert key not in str(refused.value)


def test_nothing_of_the_environment_leaks_into_a_call(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "WEBHOOK_SECRET", "BASE_URL"):
        monkeypatch.setenv(f"OPENAI_{name}", "leaked")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Leaked: leaked\nAuthorization: Bearer leaked")
    fake.says({"key": KEY, "reply": "ok"}, {"status": 418}, record=True)
    assert Desk(fake).ask().text == "ok"
    [headers] = fake.counts()["headers"]
    assert "leaked" not in str(headers)
    assert headers.keys() >= {"host", "content-type", "content-length"}


def test_without_a_key_the_word_none_is_sent_and_no_other_key(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "leaked")
    fake.says({"key": "none", "reply": "ok"}, {"status": 418})
    assert Desk(fake, endpoint=Endpoint("fake", fake.url)).ask().text == "ok"


def test_without_an_address_no_client_is_made_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.openai.com/v1")
    desk = Desk(None)  # type: ignore[arg-type]

    async def made() -> Client:
        return Client(Endpoint("x", "", KEY), "m", desk.generation, desk.patience, desk.gate, desk.images)

    with pytest.raises(NotConfigured, match="no address"):
        asyncio.run(made())


def test_a_redirect_is_not_followed(fake: Fake) -> None:
    """Neither the key nor the pictures go to an address that nobody wrote into the settings."""
    fake.says({"times": 1, "status": 308, "headers": {"Location": f"{fake.url}/chat/completions"}}, {"reply": "ok"})
    with pytest.raises(CallFailed, match="redirects elsewhere"):
        Desk(fake).ask()
    assert fake.counts()["calls"] == 1


def test_a_key_from_a_file_reaches_the_endpoint(
    fake: Fake, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.JUDGE_ENDPOINTS = {"lab": fake.url}
    (tmp_path / "key").write_text("sk-from-a-file\n")
    monkeypatch.setenv("JUDGE_API_KEY_LAB_FILE", str(tmp_path / "key"))
    fake.says({"key": "sk-from-a-file", "reply": "ok"}, {"status": 418})
    assert Desk(fake, endpoint=load_endpoint("lab")).ask().text == "ok"
