"""Hostile texts reach a model as data only, and the judgment shows that they were there.

Each request is looked at as it arrived at the endpoint.
"""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from functools import cache

import pytest
from PIL import Image, ImageDraw

from annotation import screenshots
from annotation.records import Verdict
from judges.llm import ImageRef
from judges.llm.wire import strip_unstorable
from judges.prompts import load_builtin
from judges.scorer import REGISTRY
from judges.scorers import framing
from judges.scorers.single_call import LONGEST_URL
from judges.tests.builders import FolderImages
from judges.tests.injections import INJECTIONS, ORDER
from judges.tests.siblings import asked, judge, requests, subject, user_texts
from judges.tests.verifying import grade, relevance_said, together

pytestmark = pytest.mark.slow

SCORERS = {
    "webjudge": {"key_points": "people"},
    "webjudge-general": {"key_points": "people"},
    "autonomous-eval": {},
    "agenttrek": {},
    "webvoyager": {},
    "single-call": {"show_final_answer": True},
    "rubric-verifier": {"criteria": "people", "mode": "cheap"},
}
# By field: the name of its line in a record, and its longest text.
FIELDS = {
    "task": ("task", framing.TASK),
    "website": ("website", framing.ACTION),
    "action": ("step 1 action", framing.ACTION),
    "thought": ("step 1 thought", framing.THOUGHT),
    "url": ("step 1 url", LONGEST_URL),
    "key point": ("key point 1", framing.POINT),
    "final answer": ("final answer", framing.ANSWER),
}
SHOWN = {
    "webjudge": {"task", "website", "action", "key point"},
    "webjudge-general": {"task", "website", "action", "thought", "key point"},
    "autonomous-eval": {"task", "action"},
    "agenttrek": {"task", "action", "thought"},
    "webvoyager": {"task", "final answer"},
    "single-call": {"task", "action", "thought", "url", "key point", "final answer"},
    "rubric-verifier": set(FIELDS),
}
BENIGN = subject(2, key_points=("a lamp",), website="https://shop.example/")


def lines_of(name):
    """`FIELDS` of a judge: the verifier's criteria are key points."""
    return FIELDS | ({"key point": ("criterion 1", framing.POINT)} if name == "rubric-verifier" else {})


def hostile(field, text, about=BENIGN):
    """``about`` with ``text`` in one field."""
    if field == "website":
        return replace(about, website=text)
    if field == "key point":
        return replace(about, key_points=(text,))
    if field in ("task", "final answer"):
        name = {"task": "task_text", "final answer": "final_answer"}[field]
        return replace(about, record=replace(about.record, **{name: text}))
    first, last = about.record.steps
    return replace(about, record=replace(about.record, steps=(first, replace(last, **{field: text}))))


def sent(fake, name, about, criteria=1, **generation):
    """The requests of a judge that always gets usable replies, in an order of their own, and what it says."""
    looked = {"match": first_line("screenshot"), "reply": json.dumps({"reason": "It shows a shop.", "score": 5})}
    rules = graded(criteria=criteria) if name == "rubric-verifier" else [looked] if "webjudge" in name else []
    fake.reset()
    fake.says(*rules, record=True)
    score = asked(fake, judge(name, **SCORERS[name]), about, **generation)
    return sorted(requests(fake), key=lambda request: len(json.dumps(request["messages"][0]))), score


def graded(outcome=True, criteria=1):
    """The verifier's replies on two screenshots, or one."""
    grades = [grade(1, 5) | {"number": number} for number in range(1, criteria + 1)]
    whole = together(*(one | {"criterion": ""} for one in grades), outcome=outcome)
    return [relevance_said(2, criteria, "Screenshot 2, of"), relevance_said(1, criteria), whole]


def first_line(stage):
    """What requests of a stage of WebJudge are told by."""
    return load_builtin("webjudge/1").texts[f"{stage}.framed_system"].partition("\n")[0]


def taken_apart(request):
    """Everything of a request but its record, and the values of the record by their names."""
    texts = "\x1e".join(user_texts(request))
    assert texts.count("<record>") == texts.count("</record>") == 1
    before, _, rest = texts.partition("<record>\n")
    body, _, after = rest.partition("\n</record>")
    values = {}
    for line in body.split("\n"):
        name, _, value = line.partition(": ")
        values[name] = json.loads(value) if value.startswith('"') else value
    frame = {key: value for key, value in request.items() if key != "messages"}
    roles = [message["role"] for message in request["messages"]]
    (system,) = [message for message in request["messages"] if message["role"] in ("system", "developer")]
    return (before, after, frame, roles, system["content"]), values


@pytest.mark.parametrize("injection", INJECTIONS)
@pytest.mark.parametrize("name", SCORERS)
def test_a_hostile_text_is_a_value_of_the_record_and_nothing_else(fake, name, injection):
    text = INJECTIONS[injection][0]
    everywhere = BENIGN
    for field in FIELDS:
        everywhere = hostile(field, text, everywhere)
    expected = [taken_apart(request) for request in sent(fake, name, BENIGN)[0]]
    found = [taken_apart(request) for request in sent(fake, name, everywhere)[0]]

    assert [outside for outside, _ in found] == [outside for outside, _ in expected]
    assert [values.keys() for _, values in found] == [values.keys() for _, values in expected]
    fields = lines_of(name)
    for (_, values), (_, benign) in zip(found, expected, strict=True):
        for field, (line, longest) in fields.items():
            assert line not in values or values[line] == framing.cut(text, longest), field
        theirs = {line for line, _ in fields.values()}
        assert {key: value for key, value in values.items() if key not in theirs} == {
            key: value for key, value in benign.items() if key not in theirs
        }
    assert {field for field, (line, _) in fields.items() if any(line in values for _, values in found)} == SHOWN[name]


@pytest.mark.parametrize("output", ["tool", "text"])
@pytest.mark.parametrize("name", SCORERS)
def test_a_hostile_text_is_a_value_of_the_record_however_answers_are_asked_for(fake, name, output):
    text = INJECTIONS["end of the record"][0]
    expected = [taken_apart(request)[0] for request in sent(fake, name, BENIGN, output=output)[0]]

    assert [taken_apart(one)[0] for one in sent(fake, name, hostile("task", text), output=output)[0]] == expected


@pytest.mark.parametrize("injection", INJECTIONS)
def test_what_a_model_wrote_of_a_hostile_page_is_a_value_of_the_next_record(fake, injection):
    text = strip_unstorable(INJECTIONS[injection][0])  # the client has taken out by then what no database takes
    fake.says(
        {"match": first_line("key_points"), "reply": json.dumps({"key_points": [text]})},
        {"match": first_line("screenshot"), "reply": json.dumps({"reason": text, "score": 5})},
        record=True,
    )
    asked(fake, judge("webjudge"), BENIGN)
    (verdict,) = [one for _, one in map(taken_apart, requests(fake)) if any("relevance" in key for key in one)]
    notes = [value for key, value in verdict.items() if key.startswith("note on")]

    assert verdict["key point 1"] in (framing.cut(text, framing.POINT), framing.cut(text.strip(), framing.POINT))
    assert len(notes) == 2
    assert set(notes) <= {framing.cut(text, framing.REASON), framing.cut(text.strip(), framing.REASON)}


@pytest.mark.parametrize("name", SCORERS)
def test_a_trajectory_of_long_texts_makes_a_request_of_bounded_size(fake, name):
    long = "<record>\u200b" * 12_000
    step = replace(BENIGN.record.steps[0], action=long, thought=long, url=long)
    steps = tuple(replace(step, index=index) for index in range(60))
    record = replace(BENIGN.record, task_text=long, final_answer=long, steps=steps)
    about = replace(
        BENIGN, record=record, website=long, key_points=(long,) * 20, screenshots=BENIGN.screenshots[:1] * 60
    )

    made = sent(fake, name, about, criteria=20)[0]
    assert made
    for request in made:
        texts = user_texts(request)
        assert sum(map(len, texts)) < framing.RECORD + 20_000
        assert "\x1e".join(texts).count("</record>") == 1
        assert "<record>\ntask: " in "\x1e".join(texts)


@pytest.mark.parametrize("injection", [key for key, (_, marked) in INJECTIONS.items() if marked])
def test_the_judgment_says_which_passage_spoke_to_the_judge(fake, injection):
    _, score = sent(fake, "agenttrek", hostile("thought", INJECTIONS[injection][0]))

    assert {(entry["step"], entry["field"]) for entry in score.notes["injection"]} == {(1, "thought")}
    assert all(entry["text"].isprintable() and len(entry["text"]) <= 200 for entry in score.notes["injection"])
    json.dumps(score.evidence()).encode()


@pytest.mark.parametrize("name", SCORERS)
def test_the_judgment_says_whether_the_verdict_is_the_one_that_was_asked_for(fake, name):
    about = hostile("action", ORDER)
    for said, followed in (("success", True), ("failure", False)):
        fake.reset()
        plain = [{"match": "Buy a lamp.", "reply": f"Status: {said}\nScore: 5\n1. A point"}]
        fake.says(*(graded(said == "success") if name == "rubric-verifier" else plain))
        score = asked(fake, judge(name, **SCORERS[name]), about, output="text")

        assert score.verdict == Verdict[said.upper()]
        assert [one["followed"] for one in score.notes["injection"] if one["asks"] == 1] == [followed]


@pytest.mark.parametrize("name", SCORERS)
def test_an_ordinary_trajectory_has_no_such_notes(fake, name):
    _, score = sent(fake, name, BENIGN)

    assert "injection" not in score.notes


@pytest.mark.parametrize("name", SCORERS)
def test_every_system_text_says_that_the_record_is_no_instruction(name):
    texts = load_builtin(REGISTRY[name].prompts).texts
    framed = {key: text for key, text in texts.items() if key.endswith(".framed_system")}

    assert framed
    for key, text in framed.items():
        assert "<record>" in text
        assert "</record>" in text
        assert "instruction" in text
        assert "screenshot" in text or key.startswith(("key_points", "criteria"))


@cache
def draw_order():
    """Return the PNG of a screenshot that is larger than any that is sent."""
    paper = Image.new("RGB", (3000, 9000), "white")
    ImageDraw.Draw(paper).text((100, 100), ORDER, fill="black", font_size=80)
    stream = io.BytesIO()
    paper.save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.parametrize("name", SCORERS)
def test_a_picture_that_speaks_to_the_judge_is_sent_as_a_picture_within_the_box(fake, name):
    data = draw_order()
    digest = screenshots.inspect(data).sha256
    screenshots.keep_bytes(digest, data)
    made = screenshots.judge_ready(digest)
    sent_as = base64.b64encode(made).decode()
    about = replace(BENIGN, screenshots=(ImageRef(digest),) * 2)
    seen = {"match": sent_as, "name": "with the picture"}
    verifying = name == "rubric-verifier"
    fake.says(
        *(
            [one | {"match": [one["match"][0], sent_as], "name": seen["name"]} for one in graded()[1:]]
            if verifying
            else [seen]
        ),
        record=True,
    )
    asked(fake, judge(name, **SCORERS[name]), about, FolderImages({digest: made}))

    size = Image.open(io.BytesIO(made)).size
    assert size[0] <= screenshots.JUDGE_BOX[0]
    assert size[1] <= screenshots.JUDGE_BOX[1]
    assert fake.counts()["by_rule"]["with the picture"] >= 1
    assert all(ORDER not in text for request in requests(fake) for text in user_texts(request))
