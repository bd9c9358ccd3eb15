"""Prompts out of files: our layout, and Python source of the shape that benchmarks have, in words of our own."""

import sys
import textwrap
from pathlib import Path

import pytest

from judges.prompt_source import gather, read
from judges.prompt_source.texts import SourceError, find_texts
from judges.prompts import fill

# The shape of a published evaluator: three functions, texts in variables, filled by .format, put into messages.
EVALUATOR = '''
import asyncio
from elsewhere import picture_of
MOST = 50

async def identify_key_points(task, model):
    """Not a prompt."""
    system_msg = """List what the task asks for.
Write {nothing} else: it is \\"exact\\"."""
    prompt = """The task: {task}"""
    text = prompt.format(task=task)
    messages = [{"role": "system", "content": system_msg},
                {"role": "user", "content": [{"type": "text", "text": text}]}]
    replies = await asyncio.to_thread(model.generate, messages)
    return replies[0]

async def judge_image(task, path, key_points, model):
    system_msg = """Rate the picture."""
    encoded = picture_of(path)
    prompt = """Task {task}

Points {key_points}"""
    text = prompt.format(task=task, key_points=key_points)
    return [{"role": "system", "content": system_msg},
            {"role": "user", "content": [{"type": "text", "text": text},
                {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{encoded}"}}]}]

async def Shop_Judge_eval(task, last_actions, paths, model, threshold):
    system_msg = """Decide.
Status: one word
"""
    prompt = """Task {task}
Actions:
{last_actions}
Reasons:
{thoughts} and {{"braces": 1}}"""
    key_points = (await identify_key_points(task, model)).replace("\\n\\n", "\\n")
    key_points = "\\n".join(line.lstrip() for line in key_points.splitlines())
    pattern = r"[1-5]\\d"
    kept = []
    if len(kept) == 0:
        prompt = """Task {task}
Actions:
{last_actions}"""
    text = prompt.format(task=task, last_actions="\\n".join(last_actions), thoughts="")
    messages = [{"role": "system", "content": system_msg},
                {"role": "user", "content": [{"type": "text", "text": "Look:"}] + kept},
                {"role": "user", "content": [{"type": "text", "text": text}] + kept}]
    return messages, text, system_msg
'''


def evaluator(source=EVALUATOR, name="evaluator.py", mapping=()):
    return read({name: textwrap.dedent(source).encode()}, mapping)


def refusal(files, mapping=()):
    with pytest.raises(SourceError) as refused:
        read(files, mapping)
    return str(refused.value)


def test_an_evaluator_of_three_stages_becomes_our_templates():
    texts = evaluator()
    assert set(texts) == {
        "key_points.system", "key_points.user", "screenshot.system", "screenshot.user", "verdict.system",
        "verdict.user", "verdict.user_without_images", "inputs.user",
    }  # fmt: skip
    assert texts["key_points.system"] == 'List what the task asks for.\nWrite {nothing} else: it is "exact".'
    assert texts["verdict.system"] == "Decide.\nStatus: one word\n"
    assert texts["inputs.user"] == "Look:"
    assert texts["verdict.user_without_images"] == "Task {task}\nActions:\n{last_actions}"


def test_a_template_filled_by_us_is_what_format_makes_of_it():
    template = 'Task {task}\nActions:\n{last_actions}\nReasons:\n{thoughts} and {{"braces": 1}}'
    values = {"task": "a {task}", "last_actions": "1. {thoughts}", "thoughts": "}{"}
    assert fill(evaluator()["verdict.user"], **values) == template.format(**values)


def test_the_line_above_input_images_is_the_one_text_that_user_messages_have_of_their_own():
    again = EVALUATOR.replace('[{"type": "text", "text": text}]}]', '[{"type": "text", "text": "Look:"}]}]')
    assert evaluator(again)["inputs.user"] == "Look:"
    assert "inputs.user" not in evaluator(again.replace('"Look:"', '"See:"', 1))
    assert "inputs.user" not in evaluator(EVALUATOR.replace('"Look:"', "line"))
    assert "inputs.user" not in evaluator(EVALUATOR.replace('"Look:"', 'f"Look: {task}"'))


def test_nothing_in_the_source_is_executed(tmp_path):
    marker = tmp_path / "ran"
    source = f"open({str(marker)!r}, 'w')\nimport nowhere_to_be_found\n{EVALUATOR}"
    assert evaluator(source) == evaluator()
    assert not marker.exists()
    assert "nowhere_to_be_found" not in sys.modules


def test_fstrings_and_glued_texts_are_read():
    source = """
    def evaluate(task, result):
        system_prompt = ("Decide " "well." + " Be brief.").strip()
        user_prompt = f"Task {task}, answer {result.answer}, site {result['site']}" + "."
        return [{"role": "system", "content": system_prompt}, {"role": "user", "content": user_prompt}]
    """
    assert evaluator(source) == {
        "verdict.system": "Decide well. Be brief.",
        "verdict.user": "Task {task}, answer {answer}, site {site}.",
    }


def test_the_role_of_the_message_says_more_than_the_name_of_the_variable():
    source = '''
    def evaluate(task):
        prompt = """Decide."""
        body = "Task {task}".format(task=task)
        return [{"role": "system", "content": prompt}, {"role": "user", "content": body}]
    '''
    assert evaluator(source) == {"verdict.system": "Decide.", "verdict.user": "Task {task}"}


def test_constants_of_a_module_are_read_by_their_own_names():
    source = """
    VERDICT_SYSTEM_PROMPT = "Decide."
    VERDICT_USER_TEMPLATE = "Task {task}"
    SCREENSHOT_SYSTEM = "Rate."
    """
    texts = evaluator(source)
    assert set(texts) == {"verdict.system", "verdict.user", "screenshot.system"}


def test_a_mapping_reads_other_shapes():
    source = """
    ONE = "Decide."
    class Asking:
        two = "Task {task}"
    """
    mapping = ["verdict.system=ONE", "verdict.user=Asking.two"]
    assert evaluator(source, mapping=mapping) == {"verdict.system": "Decide.", "verdict.user": "Task {task}"}
    assert evaluator(mapping=["verdict.user=Shop_Judge_eval.prompt#2"])["verdict.user"].endswith("{last_actions}")


@pytest.mark.parametrize("mapping", ["x", "verdict=ONE", "verdict.user=", "verdict.user=a.b.c", "../x.y=ONE"])
def test_a_malformed_mapping_is_refused_with_its_form(mapping):
    assert "stage.part=function.variable" in refusal({"a.py": b"ONE = 'x'"}, [mapping])


def test_a_mapping_to_nothing_names_what_there_is():
    assert "found ONE" in refusal({"a.py": b"ONE = 'x'"}, ["verdict.user=TWO"])


def test_source_without_prompts_names_what_was_looked_for_and_found():
    said = refusal({"a.py": b"def hello():\n    greeting = 'Good day'\n"})
    assert "verdict.system" in said
    assert "hello.greeting (line 2)" in said
    assert "found no texts" in refusal({"a.py": b""}).lower()


def test_two_evaluators_at_once_are_refused_and_named():
    said = refusal({"a.py": EVALUATOR.encode(), "b.py": EVALUATOR.encode()})
    assert "a.py" in said
    assert "b.py" in said
    assert "Give only one file" in said


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('f"Task {task:>10}"', "has a format"),
        ('f"Task {task.strip()}"', "expression"),
        ('f"Task {1 + 1}"', "expression"),
        ('"Task {0}".format(task)', "not a name"),
        ('"Task {}".format(task)', "not a name"),
        ('"Task {task".format(task=task)', "not a valid template"),
        ('"Task {{task}}".format(task=task)', "braces"),
        ('"Task %s" % task', "unsupported way"),
        ('"Task ".join(task)', "join"),
        ('"Task " + str(task)', "str"),
    ],
)
def test_a_text_whose_placeholders_are_unknown_is_refused_with_its_line(value, reason):
    said = refusal({"a.py": f"def evaluate(task):\n    system = 'Decide'\n    prompt = {value}\n".encode()})
    assert reason in said
    assert "line 3" in said


DEEP = {
    "signs": b"x = " + b"-" * 400_000 + b"1",
    "sums": b"x = 'a'" + b"+'a'" * 100_000,
    "brackets": b"x = " + b"(" * 5_000 + b")" * 5_000,
    "attributes": b"x = 'a'" + b".b" * 200_000,
    "calls": b"x = 'a'" + b".format()" * 50_000,
    "lambdas": b"x = " + b"lambda:" * 60_000 + b"1",
    "elifs": b"if a: pass\n" + b"elif a: pass\n" * 30_000,
}


@pytest.mark.parametrize("name", DEEP)
def test_deeply_nested_source_is_refused_and_named(name):
    assert "a.py" in refusal({"a.py": DEEP[name]})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"x" * (2**20 + 1), "more than"),
        (b"x = 'caf\xe9'", "not UTF-8: byte 8"),
        (b"def evaluate(:", "line 1"),
        (b"x = 1\n\x00", "a.py"),
        (b"\xff\xfe", "not UTF-8"),
        (b"x = '''", "line 1"),
        (b"    x = 1", "line 1"),
    ],
)
def test_what_is_no_source_is_refused_with_the_reason(data, reason):
    assert reason in refusal({"a.py": data})


@pytest.mark.slow
def test_a_wide_source_is_read_in_reasonable_time():
    lines = "\n".join(f"    t{n} = 'text {n}'" for n in range(20_000))
    found = find_texts("a.py", f"def evaluate():\n{lines}\n".encode())
    assert len(found) == 20_000


# Each is small, and each took the parser minutes or a gigabyte.
BOMBS = {
    "an f-string of places": {"a.py": b"x = f'" + b"{a}" * 100_000 + b"'"},
    "names": {"a.py": b"a;" * 500_000},
    "many files": {f"{n}.py": b"a;" * 200_000 for n in range(3)},
}


@pytest.mark.parametrize("name", BOMBS)
def test_source_that_is_dear_to_parse_is_refused_before_it_is_parsed(name, monkeypatch):
    with monkeypatch.context() as patch:  # pytest itself parses the source of a test that fails
        patch.setattr("ast.parse", None)
        said = refusal(BOMBS[name])
    assert "exceeds the limits for Python source" in said or "The Python files have more than" in said


@pytest.mark.slow
def test_a_source_with_thousands_of_wrong_texts_is_refused_in_few_words():
    source = "".join(f"def evaluate{n}():\n    system_msg = 'x'\n" for n in range(5_000))
    assert len(refusal({"a.py": source.encode()})) < 10_000


def test_a_folder_of_our_layout_is_taken_as_it_is():
    files = {"set/verdict.system.md": "\ufeffDecide é.\r\nNow.\n".encode(), "set/README": b"x", "set/note.md": b"x"}
    assert read(files) == {"verdict.system": "Decide é.\nNow."}


def test_files_that_hold_no_prompts_are_named():
    assert "picture.png" in refusal({"picture.png": b"x"})
    assert "found nothing" in refusal({})
    assert "not UTF-8" in refusal({"verdict.system.md": b"\xff"})
    assert "two files" in refusal({"a/verdict.system.md": b"x", "b/verdict.system.md": b"x"})


def test_what_is_no_file_is_not_read():
    with pytest.raises(SourceError, match="not a file"):
        gather(Path("/dev/zero"))
