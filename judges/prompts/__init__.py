"""The project's own prompt sets: one folder a set (``webjudge/1``), one file a text (``verdict.system.md``).

A text is named ``<stage>.<part>``. The stages are those of the scorer: ``key_points``, ``screenshot`` and ``verdict``
for WebJudge, ``verdict`` alone for judges of one call. The parts:

``system``, ``user``
    what upstream's mode sends. The placeholders ``{task}``, ``{key_points}``, ``{last_actions}`` and ``{thoughts}`` are
    filled as plain text, as published judges do. A set that was loaded from a benchmark's own texts has these parts.
``user_without_images``
    used for ``verdict.user`` when no screenshot was kept; without it ``user`` is used.
``inputs.user``
    the line above the pictures that came with the task, in upstream's mode of WebJudge's general variant; without it
    the pictures are sent without a line.
``framed_system``, ``framed_user``
    what the default mode sends. ``{record}`` stands for everything that comes from the task, the pages and the
    agent, as a marked block of JSON strings (`judges.scorers.framing`).
``system``, ``user`` of the rubric judge
    its stages are ``verify_answer``, ``verify_page``, ``verify_steps``, ``extract_answer`` and ``extract_page``. Always
    framed: ``{record}`` is the marked block with task, answer, address and page, or steps; ``{claim}``,
    ``{instruction}`` (the word none where there is none), ``{request}`` (what to take out) and ``{schema}`` (JSON) are
    one line each, quoted as JSON strings (`framing.quote`) but for the schema.
``system``, ``user`` of action selection
    the published cookbook's way: its stages are ``action`` (``{task}``, ``{elements}``, ``{previous_actions}``),
    ``option_selection`` and ``action_correctness`` (``{task}``, ``{expected_option}``, ``{expected_action}``,
    ``{expected_value}``, ``{target}``, ``{output}``). ``framed_system`` and ``framed_user`` of ``action``, ``pointing``
    (a screenshot alone) and ``value`` (whether two values are the same) are what the default style sends.
``criteria``
    optional: what counts as success, put for ``{criteria}`` into both system texts of the stage.

A released set never changes, since judgments name it by its digest: a change is a new folder with the next number.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from judges.scorer import Prompts

HOME = Path(__file__).parent
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def list_names() -> list[str]:
    return sorted(f"{one.parent.name}/{one.name}" for one in HOME.glob("*/*") if any(one.glob("*.md")))


@cache
def load_builtin(name: str) -> Prompts:
    """One of our sets; LookupError, which names the known ones, when there is none."""
    if name not in list_names():
        raise LookupError(f"There is no prompt set {name}; known are {', '.join(list_names()) or 'none'}.")
    texts = {file.stem: file.read_text(encoding="utf-8").strip() for file in sorted((HOME / name).glob("*.md"))}
    return Prompts(name, compute_digest(texts), MappingProxyType(texts))


def compute_digest(texts: Mapping[str, str]) -> str:
    """SHA-256 of the canonical JSON of a set's texts: keys sorted, no spaces, UTF-8."""
    canonical = json.dumps(dict(texts), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def require_parts(prompts: Prompts, *parts: str) -> None:
    """LookupError, which names every text that is missing, unless the set has all ``parts``."""
    missing = [part for part in parts if not prompts.texts.get(part, "").strip()]
    if missing:
        says = f"The prompt set {prompts.name} has no {', '.join(missing)}; it has {', '.join(sorted(prompts.texts))}."
        if any(".framed_" in part for part in missing) and any(part.endswith(".system") for part in prompts.texts):
            says += " It may be one for upstream's mode: choose that mode, or a set with framed texts."
        raise LookupError(says)


def fill(template: str, **values: str) -> str:
    """``template`` with each ``{name}`` replaced, in one pass.

    Nothing in a value is looked at again, and braces that name no value stay as they are.
    """
    return PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template)


def build_system_text(prompts: Prompts, stage: str, part: str = "system") -> str:
    """A system text, with the criteria of its stage in their place where the set has any."""
    text, criteria = prompts.texts[f"{stage}.{part}"], prompts.texts.get(f"{stage}.criteria")
    return text if criteria is None else fill(text, criteria=criteria)
