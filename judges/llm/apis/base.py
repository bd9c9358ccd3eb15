"""What all APIs share: the parts of a request, and the parsed body of a reply. Does not use the network."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from judges.llm import Usage

LARGEST = 2**31 - 1  # largest value of a column of the trace
FILTERED = ("content_filter", "content_policy_violation", "image_content_policy_violation")
FILTER_MESSAGE = "content filtering policy"  # of errors of Anthropic, which have no code
CUT = ("length", "max_tokens", "max_output_tokens", "MAX_TOKENS", "model_context_window_exceeded")
JPEG = "image/jpeg"
SHORTEST_KEY = 8  # characters; a shorter word only fills the header: none, EMPTY, ollama
LEAST_LOGARITHM = -1e5  # some endpoints write -9999 for "nearly impossible"
# Thoughts as a share of the longest reply, for models that take a number of tokens. Thoughts count towards that length,
# so that a fixed number could leave nothing for the answer.
THINKING_SHARES = {"minimal": 0.1, "low": 0.2, "medium": 0.5, "high": 0.8, "xhigh": 0.9}


class UnreadableReply(Exception):
    """A body that is not a reply of this API; the message says what it is instead."""


@dataclass(frozen=True, slots=True)
class ReplyBody:
    """A reply: ``raw`` is its body as it was sent, and the other fields are parsed from it.

    ``tool`` is the name of the function that the model called, and ``arguments`` the text of its arguments.
    ``thought`` is True if the reply shows thoughts, or reached its length limit without any text. ``tokens`` are the
    tokens of the text with the natural logarithms of their probabilities, None if the endpoint states none.
    """

    raw: str
    text: str = ""
    tool: str = ""
    arguments: str = ""
    refusal: str = ""
    finish: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    thought: bool = False
    tokens: tuple[tuple[str, float], ...] | None = None

    @property
    def cut(self) -> bool:
        return self.finish in CUT


@dataclass(frozen=True, slots=True)
class Api:
    """One API of model endpoints.

    ``messages`` is the field of a request with the messages. ``names`` maps parameters, as errors of this API name
    them, to parameters of chat completions; only these are dropped when an endpoint refuses them. ``lacks`` are
    parameters of chat completions that this API does not have, ``length`` is its name for the length limit ("" for chat
    completions, which have two). ``reserved`` are fields that no judge may add to a request, and ``omitted`` those that
    are traced but not sent. ``build_path`` gets a request and the endpoint's address, ``build_headers`` its key (None:
    the SDK's own headers). ``translate`` returns the request for a request of chat completions. ``fill_image`` returns
    an image that is described by its digests, with its base64 in ``data``.
    """

    name: str
    messages: str
    names: Mapping[str, str]
    build_path: Callable[[Mapping[str, Any], str], str]
    translate: Callable[[Mapping[str, Any]], dict[str, Any]]
    fill_image: Callable[[Mapping[str, str], str], Any]
    parse: Callable[[str], ReplyBody]
    build_headers: Callable[[str], dict[str, str]] | None = None
    lacks: frozenset[str] = frozenset()
    length: str = ""
    reserved: frozenset[str] = frozenset()
    omitted: frozenset[str] = frozenset()


# --- requests --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The parts of a request of chat completions. ``output`` is "schema", "tool" or "" for a text."""

    settings: Mapping[str, Any]
    length: int
    output: str
    schema: Mapping[str, Any]
    tool: str
    description: str
    system: str
    messages: list[Mapping[str, Any]]
    further: dict[str, Any]  # fields that a judge added

    def pick(self, **names: str) -> dict[str, Any]:
        """Return the settings that are present, under the names of another API."""
        return {theirs: self.settings[ours] for ours, theirs in names.items() if ours in self.settings}


OURS = (
    *("model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "reasoning_effort"),
    *("response_format", "tools", "tool_choice", "logprobs", "prompt_cache"),
)


def split(request: Mapping[str, Any]) -> ChatRequest:
    messages = list(request["messages"])
    system = messages.pop(0)["content"] if messages and messages[0]["role"] == "system" else ""
    function = request["tools"][0]["function"] if "tools" in request else {}
    schema = request.get("response_format", {}).get("json_schema", {})
    return ChatRequest(
        settings={name: request[name] for name in OURS if name in request},
        length=request.get("max_completion_tokens") or request.get("max_tokens") or 0,
        output="tool" if function else "schema" if schema else "",
        schema=function.get("parameters") or schema.get("schema") or {},
        tool=function.get("name") or schema.get("name") or "",
        description=function.get("description") or "",
        system=system,
        messages=messages,
        further={name: value for name, value in request.items() if name not in OURS},
    )


def merge(ours: Mapping[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    """Return both objects in one; a field of ``further`` replaces ours, unless both are objects."""
    merged = {**ours, **further}
    for name in ours.keys() & further.keys():
        if isinstance(ours[name], Mapping) and isinstance(further[name], Mapping):
            merged[name] = merge(ours[name], further[name])
    return merged


def split_parts(content: Any) -> list[Mapping[str, Any]]:
    """Return the parts of a message of chat completions without empty texts, which some APIs refuse."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [part for part in parts if part["type"] != "text" or part["text"]]


def name_digests(part: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests of an image part."""
    return {name: part["image_url"][name] for name in ("sha256", "screenshot")}


# --- replies ---------------------------------------------------------------------------------------------------------


def load(raw: str) -> dict[str, Any]:
    try:
        whole = json.loads(raw)
    except (ValueError, RecursionError):
        raise UnreadableReply(f"The reply is not JSON; it begins with {raw[:80]!r}.") from None
    if not isinstance(whole, dict):
        raise UnreadableReply(f"The reply is JSON, but not an object; it begins with {raw[:80]!r}.")
    return whole


def read_error(raw: str, whole: Mapping[str, Any]) -> ReplyBody | None:
    """Return a refusal if a filter stopped the prompt, None if there is no error; raise UnreadableReply for others."""
    error = whole.get("error")
    if isinstance(error, dict) and is_filter(error):
        said = strip_unstorable(str(error.get("message") or "the endpoint filtered the prompt"))
        return ReplyBody(raw, refusal=said[:1000], finish="content_filter")
    if error:
        raise UnreadableReply(f"The reply is an error: {strip_unstorable(str(error))[:300]}")
    return None


def is_filter(error: Mapping[str, Any]) -> bool:
    """Return True for an error that a filter caused: a retry cannot help, and nothing failed."""
    return error.get("code") in FILTERED or FILTER_MESSAGE in str(error.get("message"))


def join_text(content: Any) -> str:
    """Return a text, or the joined texts of a list of parts, as some endpoints send them."""
    if isinstance(content, list):
        return "".join(join_text(part.get("text")) for part in content if isinstance(part, dict))
    return strip_unstorable(content) if isinstance(content, str) else ""


def write_arguments(given: Any) -> str:
    """Return the arguments of a function call as text; some APIs send them as an object."""
    return strip_unstorable(given if isinstance(given, str) else json.dumps(given))


def read_name(given: Any, most: int) -> str:
    return strip_unstorable(join_text(given))[:most]


def read_count(value: Any) -> int | None:
    """Return a count of tokens, None if implausible: an endpoint may omit it or count wrongly."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else None


def add_counts(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def unwrap(found: Any, name: str) -> dict[str, Any]:
    inner = found.get(name) if isinstance(found, dict) else None
    return inner if isinstance(inner, dict) else {}


def dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def read_tokens(given: Any, logarithm: str = "logprob") -> tuple[tuple[str, float], ...] | None:
    """Return tokens with the logarithms of their probabilities; None if there is no list, or one entry is broken."""
    if not isinstance(given, list):
        return None
    pairs = [(one.get("token"), one.get(logarithm)) for one in dicts(given)]
    sound = [
        (str(text), float(value))
        for text, value in pairs
        if isinstance(text, str) and isinstance(value, int | float) and LEAST_LOGARITHM <= value <= 0
    ]
    return tuple(sound) if len(sound) == len(given) else None


def build_key_pattern(key: str) -> re.Pattern[str] | None:
    """Return a pattern of the key, plain or JSON-escaped; None for a short word: not secret, and common in replies."""
    if len(key) < SHORTEST_KEY:
        return None
    ways = (rf"(?:\\?{re.escape(char)}|\\u(?i:{ord(char):04x}))" for char in key)
    return re.compile("".join(ways))


def strip_unstorable(text: str) -> str:
    """Replace characters that JSON endpoints and databases reject: NUL and halves of surrogate pairs."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
