"""The method of the published cookbook, for comparison: its page summary, its prompt, its two scorers.

The published cookbook differs from this judge as follows:

- It shows the actions of the whole task, also later ones, as previous ones. Fixed here in both styles, because it
  makes numbers meaningless.
- An unparsable row becomes CLICK without a value. Here the row is refused.
- An image that is not raw bytes is omitted silently. Here each prediction records its mode.
- Groups have a fixed order, so that 50 buttons hide all fields; submit inputs are listed twice; labels end at the first
  child; attributes have any length. This style keeps that, and cuts attributes at 500 characters.
- A page that declares an encoding is an error. Here every page is parsed as UTF-8.
- No element is asked for. The default style asks for one and scores it.
- "Answer: Apply" gives A, ``**Answer:** B`` gives nothing. Here a letter counts alone or with its operation; bold and
  brackets are understood, and a value is the whole line.
- Unreadable replies count as an action. Here no average includes them, and the bounds count them as wrong.
- Two model calls decide. The default style uses rules, and asks only about the meaning of a value.
- The first rows of a split are judged. Here you choose tasks; ``--limit`` with ``--seed`` is a random sample.

Custom prompt sets have ``action.system``, ``action.user`` ({task}, {elements}, {previous_actions}), and ``system`` and
``user`` of ``option_selection`` and ``action_correctness`` ({task}, {expected_option}, {expected_action},
{expected_value}, {target}, {output}).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.formats.external.multimodal_mind2web import ReferenceStep
from judges.llm import Asker, Prompt, Reply, SentImage
from judges.prompts import fill
from judges.scorer import Prompts
from judges.scorers.action_selection import actions
from judges.scorers.action_selection.page_summary import parse
from judges.scorers.framing import make_encodable
from judges.scorers.together import run_together

MOST_ELEMENTS = 50
PREVIOUS = 3
TEXT = 30
ATTRIBUTE = 500
ATTRIBUTES = ("id", "type", "placeholder", "href", "role", "aria-label", "value", "name")
EMPTY = "No page content"
UNPARSED = "Error parsing page"
SCORERS = ("option_selection", "action_correctness")

Group = Callable[[Any], bool]


def _is(*tags: str) -> Group:
    return lambda node: node.tag in tags


GROUPS: tuple[Group, ...] = (
    lambda node: node.tag == "button" or (node.tag == "input" and node.get("type") in ("submit", "button")),
    lambda node: node.tag == "a" or node.get("role") == "button" or node.get("onclick") is not None,
    lambda node: node.tag in ("select", "textarea") or (node.tag == "input" and node.get("type") != "hidden"),
    _is("label", "form"),
    _is("h1", "h2", "h3", "nav"),
)


@dataclass(frozen=True, slots=True)
class Listed:
    lines: tuple[str, ...]
    ranks: Mapping[str, int]  # the position of each node, from 1, in the order in which the summary takes them

    def rank_of(self, nodes: Collection[str]) -> int | None:
        return min((self.ranks[node] for node in nodes if node in self.ranks), default=None)


def summarise(html: str, most: int = MOST_ELEMENTS) -> Listed:
    """Return up to ``most`` elements, by group and then in document order; a message for an empty or broken page."""
    if not html.strip():
        return Listed((EMPTY,), {})
    root, problem = parse(html)
    if root is None:
        return Listed((f"{UNPARSED}: {problem}",), {})
    ranks: dict[str, int] = {}
    lines: list[str] = []
    nodes = [node for node in root.iter() if isinstance(node.tag, str)]
    for place, node in enumerate((node for group in GROUPS for node in nodes if group(node)), 1):
        if len(lines) < most:
            lines.append(format_node(node))
        if name := node.get("backend_node_id"):
            ranks.setdefault(name, place)
    return Listed(tuple(lines), ranks)


def format_node(node: Any) -> str:
    shown = "".join(f' {name}="{node.get(name)[:ATTRIBUTE]}"' for name in ATTRIBUTES if node.get(name))
    return " ".join(f"<{node.tag}{shown}>{extract_text(node)}</{node.tag}>".split())


def extract_text(node: Any) -> str:
    """Return the text before the first child element or, if that is blank, all pieces of text joined by spaces."""
    direct = (node.text or "").strip()
    if direct:
        return direct[:TEXT]
    pieces: list[str] = []
    for piece in node.itertext():
        if text := piece.strip():
            pieces.append(text)
        if sum(map(len, pieces)) > TEXT:
            break
    return " ".join(pieces)[:TEXT]


def format_previous_actions(before: Sequence[str]) -> str:
    """Return the last three actions before this one, numbered from 1, and the total if there are more."""
    if not before:
        return "None"
    shown = before[-PREVIOUS:]
    lines = [f"{number}. {action}" for number, action in enumerate(shown, 1)]
    return "\n".join([f"(last {len(shown)} of {len(before)})", *lines] if len(before) > len(shown) else lines)


# --- asking and scoring


def build_prompt(texts: Prompts, step: ReferenceStep, lines: Sequence[str], picture: SentImage | None) -> Prompt:
    text = fill_text(
        texts,
        "action.user",
        task=step.task,
        elements="\n".join(lines),
        previous_actions=format_previous_actions(step.actions[: step.index]),
    )
    return Prompt(texts.texts["action.system"], ((picture, text) if picture else (text,),))


def fill_text(texts: Prompts, name: str, **values: str) -> str:
    return fill(texts.texts[name], **{key: make_encodable(value) for key, value in values.items()})


async def grade(texts: Prompts, step: ReferenceStep, place: int, output: str, model: Asker) -> list[Reply]:
    """Return the replies of the two scorers of a prediction, in the order of `SCORERS`."""
    operation = step.operation
    values = {
        "task": step.task,
        "expected_option": actions.LETTERS[operation.op],
        "expected_action": operation.op,
        "expected_value": operation.value,
        "target": step.action,
        "output": output,
    }
    asked = (
        model.ask(
            Prompt(texts.texts[f"{name}.system"], ((fill_text(texts, f"{name}.user", **values),),)),
            stage=name,
            step=place,
            schema=actions.CHOICE_SCHEMA,
        )
        for name in SCORERS
    )
    return await run_together(asked)


def read_prediction(text: str) -> actions.Predicted | None:
    """Read a reply of three lines for the list of predictions; its two scorers read the reply themselves."""
    operation = actions.find_operation(text)
    if not operation:
        return None
    return actions.Predicted(operation, "" if operation == "CLICK" else actions.find_value(text))


def list_places() -> Iterator[str]:
    for stage in ("action", *SCORERS):
        yield from (f"{stage}.system", f"{stage}.user")
