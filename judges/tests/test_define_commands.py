"""define_judge and load_prompts: what they do, what they refuse, and with which exit code."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from judges import prompt_sets
from judges.models import Judge, PromptSet
from judges.prompts import HOME, load_builtin
from judges.ready_judges import prepare
from judges.tests.test_prompt_source import EVALUATOR

pytestmark = pytest.mark.django_db


def run(*words):
    """(exit code, stdout, stderr) of a command."""
    out, err = StringIO(), StringIO()
    try:
        call_command(*words, stdout=out, stderr=err)
    except CommandError as error:
        return error.returncode, out.getvalue(), f"{err.getvalue()}{error}"
    return 0, out.getvalue(), err.getvalue()


def test_a_judge_is_defined_with_everything_that_was_said():
    code, out, _ = run(
        "define_judge", "strict", "--scorer", "webjudge", "--model", "some-model", "--endpoint", "other",
        "--set", "threshold=4", "--set", "mode=upstream", "--generation", "temperature=0.5",
        "--description", "For the board.",
    )  # fmt: skip
    judge = Judge.objects.get()
    assert (code, judge.parameters["threshold"], judge.parameters["mode"]) == (0, 4, "upstream")
    assert (judge.generation["temperature"], judge.endpoint, judge.description) == (0.5, "other", "For the board.")
    assert judge.created_by is None
    assert judge.fingerprint in out
    assert run("define_judge", "strict", "--scorer", "webjudge", "--model", "m")[1].startswith("strict@2 defined.")


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["--scorer", "magic", "--model", "m"], 1, "Known: "),
        (["--scorer", "webjudge", "--model", " "], 1, "model:"),
        (["--scorer", "webjudge", "--model", "m", "--set", "threshold=9"], 1, "parameters.threshold"),
        (["--scorer", "webjudge", "--model", "m", "--set", "colour=red"], 1, "The parameter colour does not exist"),
        (["--scorer", "webjudge", "--model", "m", "--prompts", "loaded/none"], 1, "The prompt set"),
        (["--scorer", "webjudge", "--model", "m", "--set", "threshold"], 2, "key=value"),
        (["--scorer", "webjudge", "--model", "m", "--set", "threshold=3", "--set", "threshold=4"], 2, "each key once"),
        (["--scorer", "webjudge", "--model", "m", "--generation", "=x"], 1, "The parameter"),
    ],
)
def test_what_is_wrong_with_a_judge_is_said_on_stderr(words, code, reason):
    refused = run("define_judge", "strict", *words)
    assert refused[0] == code
    assert reason in refused[2]
    assert not Judge.objects.exists()


def test_an_evaluator_is_loaded_once_and_judges_by_its_texts(tmp_path):
    file = tmp_path / "evaluator.py"
    file.write_text(EVALUATOR)
    assert run("load_prompts", "official", str(file), "--dry-run")[0] == 0
    assert not PromptSet.objects.exists()
    code, out, _ = run("load_prompts", "official", str(file))
    loaded = PromptSet.objects.get()
    assert (code, loaded.source, len(loaded.texts)) == (0, f"load_prompts {tmp_path.name}/evaluator.py", 8)
    assert loaded.digest in out
    assert "nothing was changed" in run("load_prompts", "official", str(file))[1]
    assert PromptSet.objects.count() == 1
    words = ["--scorer", "webjudge", "--model", "m", "--prompts", "loaded/official", "--set", "mode=upstream"]
    assert run("define_judge", "published", *words)[0] == 0
    assert prepare(Judge.objects.get()).parameters.mode == "upstream"


def test_a_set_for_upstream_does_not_make_a_judge_of_the_default_mode(tmp_path):
    file = tmp_path / "evaluator.py"
    file.write_text(EVALUATOR)
    run("load_prompts", "official", str(file))
    words = ["--scorer", "webjudge", "--model", "m", "--prompts", "loaded/official", "--set", "mode=default"]
    code, _, said = run("define_judge", "published", *words)
    assert (code, "framed_system" in said) == (1, True)


@pytest.mark.parametrize("name", ["webjudge/1", "single-call/1"])
def test_a_copy_of_our_own_folder_has_the_digest_of_ours(name):
    assert run("load_prompts", "copy", str(HOME / name))[0] == 0
    assert prompt_sets.find_prompts("loaded/copy").digest == load_builtin(name).digest


def test_a_mapping_reads_another_shape(tmp_path):
    file = tmp_path / "prompts.py"
    file.write_text("ONE = 'Decide.'\nTWO = f'Task {task}'\n")
    words = ["--map", "verdict.system=ONE", "--map", "verdict.user=TWO"]
    assert run("load_prompts", "mine", str(file), *words)[0] == 0
    assert PromptSet.objects.get().texts == {"verdict.system": "Decide.", "verdict.user": "Task {task}"}


@pytest.mark.parametrize(
    ("files", "words", "code", "reason"),
    [
        ({}, [], 1, "found nothing"),
        ({"a.py": "def f(:"}, [], 1, "line 1"),
        ({"a.py": "x = 'y'"}, [], 1, "Found x (line 1)"),
        ({"a.py": "x = 'y'"}, ["--map", "verdict.system=z"], 1, "The text z for verdict.system does not exist"),
        ({"a.py": "x = 'y'"}, ["--map", "z"], 1, "is not a mapping"),
        ({"verdict.system.md": " "}, [], 1, "is empty"),
        ({"b/verdict.system.md": "x", "c/verdict.system.md": "y"}, [], 1, "two files"),
    ],
)
def test_a_folder_without_prompts_is_refused_with_the_reason(tmp_path, files, words, code, reason):
    folder = tmp_path / "set"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    refused = run("load_prompts", "mine", str(folder), *words)
    assert refused[0] == code
    assert reason in refused[2]
    assert not PromptSet.objects.exists()


def test_a_path_that_is_not_there_is_wrong_usage(tmp_path):
    assert run("load_prompts", "mine", str(tmp_path / "nowhere"))[0] == 2
    assert run("load_prompts", "two words", str(HOME / "webjudge" / "1"))[0] == 1


def test_a_link_out_of_a_folder_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("Decide.")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "verdict.system.md").symlink_to(tmp_path / "secret")
    assert run("load_prompts", "mine", str(tmp_path / "set"))[0] == 1
    assert not PromptSet.objects.exists()


def test_a_name_of_bytes_that_are_no_text_is_written_as_escapes(db, tmp_path):
    file = tmp_path / "d\udcff" / "verdict.system.md"
    file.parent.mkdir()
    file.write_text("Decide.")
    call_command("load_prompts", "odd", file, stdout=StringIO())
    assert PromptSet.objects.get().source == "load_prompts d\\udcff/verdict.system.md"


@pytest.mark.parametrize("moment", ["0001-01-01T00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_moment_that_no_calendar_has_is_wrong_usage(db, moment):
    with pytest.raises(CommandError, match="not a date"):
        call_command("prune_calls", "--before", moment)
